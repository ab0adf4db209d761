"""`--completion=SHELL`: the script that teaches a shell the options, made from their table.

source <(relaxc --completion=bash)                                     # in ~/.bashrc
relaxc --completion=zsh > "${fpath[1]}/_relaxc"
relaxc --completion=fish > ~/.config/fish/completions/relaxc.fish
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaxlang.cli.options import GROUPS, Option

_FILES = ("--output", "--trace", "--save-result", "--expect", "--arg")
_FOLDERS = ("--include", "--print-ir-dir")
_INPUTS = ("rlx", "rlxe", "so", "onnx")


def completion(shell: str) -> str:
    """The script for `bash`, `zsh` or `fish`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _options() -> list[Option]:
    from relaxlang.cli.build_options import composed_options

    return [*(o for group in GROUPS.values() for o in group), *(c.option for c in composed_options())]


def choices(option: Option) -> Sequence[str]:
    """The words that an option's value, or a part of it between commas, may be; empty when there is no list of them."""
    if option.words:
        return option.words
    name = option.name
    if name in ("--pipeline", "--describe", "--skip", "--start-at", "--stop-after") or name.startswith("--print-ir-"):
        if option.kind == "flag" or name in _FOLDERS:
            return ()
        from relaxlang.passes import PASSES
        from relaxlang.passes.pipelines import PIPELINES

        more = [*PIPELINES] if name in ("--pipeline", "--describe") else []
        return [*(["all"] if name.startswith("--print-ir-") else more), *sorted(PASSES)]
    if name == "--emit":
        from relaxlang.cli.emit import KINDS

        return [*KINDS]
    if name == "--dialect":
        from relaxlang.syntax.migrate import RELEASES

        return [*RELEASES]
    if name == "--explain":
        from relaxlang.base.codes import CODES

        return sorted(CODES)
    if name in ("--executor", "--runtime", "--target"):
        from relaxlang.cli.build_options import registries
        from relaxlang.ir.configuration.target import TARGETS

        registry = {**registries(), "target": TARGETS}[name[2:]]
        return [kind.name for kind in registry.kinds()]
    return ()


# --- bash -------------------------------------------------------------------------------------------------------------
def _bash() -> str:
    options = _options()
    spelled = [name + ("=" if o.kind in ("value", "repeat") else "") for o in options for name in o.names]
    shorts = [name.removesuffix("=") for name in spelled if not name.startswith("--")]
    longs = [name for name in spelled if name.startswith("--")]
    cases = []
    for option in options:
        words = choices(option)
        pattern = "|".join(option.names)
        if words:
            cases.append(f"    {pattern}) words='{' '.join(words)}' ;;")
        elif option.name in _FOLDERS:
            cases.append(f'    {pattern}) COMPREPLY=($(compgen -d -- "$value")); return ;;')
        elif option.name in _FILES:
            cases.append(f'    {pattern}) COMPREPLY=($(compgen -f -- "$value")); return ;;')
        elif option.kind in ("value", "repeat"):
            cases.append(f"    {pattern}) return ;;")
    taking = "|".join(n for o in options if o.kind in ("value", "repeat") for n in o.names)
    return _BASH.format(
        cases="\n".join(cases),
        taking=taking,
        options=" ".join([*longs, *shorts]),
        inputs="|".join(_INPUTS),
    )


# `=` splits words in bash, unless the user changed COMP_WORDBREAKS. A list is completed behind its last comma.
_BASH = """\
# bash completion of relaxc, made by `relaxc --completion=bash`
_relaxc() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local option= value=$cur words= head= lead=
  COMPREPLY=()
  if [[ $cur == "=" ]]; then option=$prev value=
  elif [[ $prev == "=" ]]; then option=${{COMP_WORDS[COMP_CWORD-2]}}
  elif [[ $cur == --*=* ]]; then option=${{cur%%=*}} value=${{cur#*=}} lead=${{cur%%=*}}=
  else
    case $prev in
    {taking}) option=$prev ;;
    esac
  fi
  case $option in
{cases}
  esac
  if [[ -n $words ]]; then
    if [[ $value == *,* ]]; then head=${{value%,*}},; fi
    COMPREPLY=($(compgen -P "$lead$head" -W "$words" -- "${{value##*,}}"))
  elif [[ -n $option ]]; then
    return
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "{options}" -- "$cur"))
    if [[ ${{#COMPREPLY[@]}} -eq 1 && $COMPREPLY == *= ]]; then compopt -o nospace 2> /dev/null; fi
  else
    local extglob=$(shopt -p extglob)
    shopt -s extglob
    COMPREPLY=($(compgen -d -- "$cur"; compgen -f -X '!*.@({inputs})' -- "$cur"))
    $extglob
  fi
}}
complete -F _relaxc relaxc relaxlang
"""


# --- zsh --------------------------------------------------------------------------------------------------------------
def _zsh() -> str:
    specs = "".join(f" \\\n  {spec}" for option in _options() for spec in _zsh_specs(option))
    inputs = f"'*:input file:_files -g \"*.({'|'.join(_INPUTS)})(-.)\"'"
    return f"#compdef relaxc relaxlang\n_arguments -s{specs} \\\n  {inputs}\n"


def _zsh_specs(option: Option) -> Iterator[str]:
    """What `_arguments` takes for each spelling: `(others)--name=[help]:what:words`."""
    others = "*" if option.kind == "repeat" else f"({' '.join(option.names)})"
    for name in option.names:
        long = name.startswith("--")
        sign = {"flag": "", "maybe": "=-" if long else "-"}.get(option.kind, "=" if long else "+")
        value = (
            "" if option.kind == "flag" else f"{'::' if option.kind == 'maybe' else ':'}{_zsh_text(option.metavar)}:"
        )
        if value:
            value += _zsh_values(option)
        yield "'" + f"{others}{name}{sign}[{_zsh_text(option.help)}]{value}".replace("'", "'\\''") + "'"


def _zsh_values(option: Option) -> str:
    words = choices(option)
    if words:
        listed = " ".join(words)
        return f"_sequence -s , compadd - {listed}" if option.kind == "repeat" else f"({listed})"
    if option.name in _FOLDERS:
        return "_files -/"
    return "_files" if option.name in _FILES else " "


def _zsh_text(text: str) -> str:
    for special in "\\[]:":
        text = text.replace(special, "\\" + special)
    return text


# --- fish -------------------------------------------------------------------------------------------------------------
def _fish() -> str:
    lines = ["# fish completion of relaxc, made by `relaxc --completion=fish`"]
    lines += [f"complete -c relaxc {_fish_words(option)}" for option in _options()]
    patterns = " ".join(f"(__fish_complete_suffix .{suffix})" for suffix in _INPUTS)
    lines.append(f"complete -c relaxc -x -a {_fish_text(patterns)}")
    return "\n".join(lines) + "\n"


def _fish_words(option: Option) -> str:
    parts = [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names]
    words = choices(option)
    if words and option.kind == "repeat":
        parts.append("-x -a " + _fish_text(f'(__fish_complete_list , \'string split " " "{" ".join(words)}"\')'))
    elif words and option.kind == "value":
        parts.append("-x -a " + _fish_text(" ".join(words)))
    elif option.name in _FOLDERS:
        parts.append("-x -a '(__fish_complete_directories)'")
    elif option.name in _FILES:
        parts.append("-r -F")
    elif option.kind in ("value", "repeat"):
        parts.append("-x")
    return " ".join([*parts, "-d", _fish_text(option.help)])


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
