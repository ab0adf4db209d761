"""The line editor: the only file that knows prompt_toolkit."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from relaxlang.base.colors import ColorChoice, wants_color
from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.repl.completion import choices
from relaxlang.repl.painting import painted
from relaxlang.repl.plain import guarded_execute, submits
from relaxlang.repl.prompts import CONTINUATION
from relaxlang.repl.scope import signature
from relaxlang.repl.session import WIDTH, Result, Session
from relaxlang.repl.status import status
from relaxlang.repl.transcript import said
from relaxlang.syntax.interactive import tokens

LARGE = 100_000
"""Characters of an input beyond which it is neither coloured nor read while it is typed."""
PAGED = 200
"""Lines of output from which it goes through a pager."""

_STYLE = Style.from_dict(
    {
        "keyword": "ansimagenta",
        "constant": "ansicyan",
        "number": "ansicyan",
        "string": "ansigreen",
        "comment": "ansibrightblack",
        "error": "ansired",
        "command": "ansiblue",
        "prompt": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


class _Lexer(Lexer):
    """Colours by the language's own lexer; the last text is kept, since an editor asks for it again and again."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._lines: list[StyleAndTextTuples] = []

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        if document.text != self._text:
            self._text = document.text
            self._lines = _fragments(document.text)
        return lambda number: self._lines[number] if number < len(self._lines) else []


def _fragments(text: str) -> list[StyleAndTextTuples]:
    lines: list[StyleAndTextTuples] = [[]]

    def put(style: str, part: str) -> None:
        first, *rest = part.split("\n")
        lines[-1].append((style, first))
        for line in rest:
            lines.append([(style, line)])

    at = 0
    if text.lstrip().startswith((":", "?")):
        at = len(text.split(" ", 1)[0])
        put("class:command", text[:at])
    if len(text) <= LARGE:
        body = text[at:]
        offset = at
        for token in tokens(body):
            put("", text[at : offset + token.start])
            put(f"class:{token.kind}", body[token.start : token.end])
            at = offset + token.end
    put("", text[at:])
    return lines


class _Completer(Completer):
    """Completions from the session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if len(before) > LARGE:
            return
        for choice in choices(self.session, before):
            yield Completion(choice.text, -choice.typed, display_meta=choice.meta)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif _finished(buffer):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n" + _indentation(buffer.document.current_line_before_cursor))

    @keys.add("escape", "enter")
    def _force(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("tab", filter=Condition(_at_indentation))
    def _indent(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("    ")

    return keys


def _at_indentation() -> bool:
    """Whether only blanks stand before the cursor, in a line that is not the first."""
    from prompt_toolkit.application import get_app

    document = get_app().current_buffer.document
    return document.cursor_position_row > 0 and not document.current_line_before_cursor.strip()


def _finished(buffer: Buffer) -> bool:
    document = buffer.document
    if document.line_count > 1 and document.text_after_cursor.strip():
        return False
    if len(document.text) > LARGE:
        return not document.current_line.strip()
    return submits(document.text)


def _indentation(line: str) -> str:
    blanks = line[: len(line) - len(line.lstrip())]
    return blanks + "    " * (line.rstrip().endswith((":", "(", "[", "{")) and not line.startswith(":"))


# --- the loop ---------------------------------------------------------------------------------------------------------
class Prompt:
    """A session at a terminal; `input` and `output` are prompt_toolkit's, by default those of the process."""

    def __init__(
        self,
        session: Session,
        *,
        vi: bool = False,
        color: str = "auto",
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self.session = session
        self.color = wants_color(sys.stdout, cast(ColorChoice, color))
        session.editor = edited
        self.prompt: PromptSession[str] = PromptSession(
            message=lambda: [("class:prompt", session.prompt)],
            prompt_continuation=lambda width, number, wrapped: [("class:prompt", CONTINUATION)],
            multiline=True,
            lexer=_Lexer(),
            completer=_Completer(session),
            complete_while_typing=False,
            history=_history(),
            auto_suggest=AutoSuggestFromHistory(),
            enable_history_search=True,
            bottom_toolbar=self._toolbar,
            key_bindings=_keys(),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            enable_open_in_editor=True,
            mouse_support=False,
            style=_STYLE,
            include_default_pygments_style=False,
            input=input,
            output=output,
        )

    def run(self, first: Sequence[str] = ()) -> int:
        """Read and run inputs until Ctrl-D or `:quit`; the exit code."""
        for text in first:
            sys.stdout.write(self.session.prompt + text + "\n")
            if self._execute(text):
                return 0
        while True:
            try:
                text = self.prompt.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return 0
            if text.strip() and self._execute(text):
                return 0

    def _execute(self, text: str) -> bool:
        self.session.width = shutil.get_terminal_size((WIDTH, 24)).columns
        try:
            return guarded_execute(self.session, text, self._show)
        except KeyboardInterrupt:
            sys.stdout.write("interrupted\n")
            return False

    def _show(self, result: Result) -> None:
        colored = painted(result.text, result.language) if self.color else result.text
        text = said(result._replace(text=colored), color=self.color)
        if text:
            page(text + "\n")

    def _toolbar(self) -> str:
        text = self.prompt.default_buffer.document.text_before_cursor
        return signature(self.session, text) or status(self.session)


def interact(session: Session, first: Sequence[str] = (), *, vi: bool = False, color: str = "auto") -> int:
    """A session at this terminal; the exit code."""
    sys.stdout.write("relaxlang: `:help` lists the commands, Ctrl-D ends\n")
    return Prompt(session, vi=vi, color=color).run(first)


def _history() -> History:
    """The history in the user's state directory; one that is forgotten when that cannot be written."""
    folder = config.state_dir
    if folder is None:
        return InMemoryHistory()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "repl_history"
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def page(text: str) -> None:
    """Print text, through the user's pager when it is long."""
    command = shlex.split(config.pager) or (["less", "-R"] if shutil.which("less") else [])
    if text.count("\n") < PAGED or not sys.stdout.isatty() or not command or shutil.which(command[0]) is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    subprocess.run(command, input=text.encode(), check=False)


def edited(text: str) -> str:
    """The text after the user has edited it in an editor of his. RLX7103 when there is none."""
    command = shlex.split(config.editor) or [name for name in ("nano", "vi") if shutil.which(name)][:1]
    if not command:
        fail("RLX7103", "no editor is known", help="set VISUAL or EDITOR")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.rlx"
        path.write_text(text, encoding="utf-8")
        try:
            subprocess.run([*command, str(path)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise RelaxlangError(f"`{command[0]}` failed: {error}") from error
        return path.read_text(encoding="utf-8")
