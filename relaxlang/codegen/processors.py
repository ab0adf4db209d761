"""Whether LLVM can make code for a processor.

LLVM ends the whole process when it is asked for 64-bit code on a name that it does not know or that stands for a 32-bit
processor. So a name that is not known to be good is tried in a process of its own, once; the answer is kept on disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import lru_cache

from relaxlang.base.config import config
from relaxlang.base.diagnostics import RelaxlangError, fail
from relaxlang.base.files import write_atomically
from relaxlang.base.suggest import did_you_mean

_GOOD = frozenset({"", "generic", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"})
_SECONDS = 60
_TRIAL = """
import sys
from llvmlite import binding
triple, cpu, features = sys.argv[1:]
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
target = binding.Target.from_triple(triple)
machine = target.create_target_machine(cpu=cpu, features=features, reloc="pic")
module = binding.parse_assembly(f'target triple = "{triple}"\\ndefine i32 @f(i32 %x) {{\\n ret i32 %x\\n}}\\n')
machine.emit_object(module)
print("good")
"""


def check_processor(triple: str, cpu: str, features: str) -> None:
    """Raise RLX5004 unless LLVM makes code for the processor."""
    if cpu in _GOOD and not features:
        return
    fault = _fault(triple, cpu, features)
    if not fault:
        return
    near = did_you_mean(cpu, _processors(triple)) if f"'{cpu}'" in fault else None
    fail("RLX5004", f"LLVM cannot make code for this target: {fault}", help=f"did you mean `{near}`?" if near else "")


@lru_cache(maxsize=64)
def _fault(triple: str, cpu: str, features: str) -> str:
    """What LLVM says against a processor; empty when it is good."""
    path = _remembered(triple, cpu, features)
    if path and os.path.exists(path):
        return ""
    errors = _run(triple, cpu, features)
    if errors is None:
        return ""
    found = re.search(r"'[^']*' is not a recognized (processor|feature)|LLVM ERROR: [^\n]*", errors)
    if found:
        return found[0].removeprefix("LLVM ERROR: ").rstrip("!")
    if path:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_atomically(path, b"")
        except (OSError, RelaxlangError):  # no cache then
            return ""
    return ""


def _remembered(*parts: str) -> str:
    root = config.cache_dir
    if root is None:
        return ""
    from llvmlite import binding

    key = "\0".join([str(binding.llvm_version_info), *parts])
    return os.path.join(root, "processors", hashlib.sha256(key.encode()).hexdigest()[:32])


def _run(triple: str, cpu: str, features: str) -> str | None:
    """LLVM's complaints in a trial; None when there can be no trial."""
    import subprocess  # takes 3 ms, and few builds get here

    command = [sys.executable, "-c", _TRIAL, triple, cpu, features]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return made.stderr


def _processors(triple: str) -> list[str]:
    listed = _run(triple, "help", "") or ""
    return re.findall(r"^  (\S+) +- Select the", listed, re.MULTILINE)


_V2 = frozenset("cx16 popcnt sse3 sse4.1 sse4.2 ssse3".split())
_V3 = _V2 | frozenset("avx avx2 bmi bmi2 f16c fma lzcnt movbe".split())
_V4 = _V3 | frozenset("avx512bw avx512cd avx512dq avx512f avx512vl".split())
_LEVELS = {"": frozenset[str](), "generic": frozenset[str](), "x86-64": frozenset[str](), "x86-64-v2": _V2,
           "x86-64-v3": _V3, "x86-64-v4": _V4}  # fmt: skip


def unfit(triple: str, cpu: str, features: str) -> str:
    """Why code for that machine does not run on this one; empty when it does.

    Processors differ in ways that their names do not tell, so a name that is neither this machine's nor a level (such
    as `x86-64-v3`) is held to be unfit unless its features are listed.
    """
    from relaxlang.codegen.target import host_cpu, host_features, host_triple

    if triple.split("-")[0] != host_triple().split("-")[0] or triple.split("-")[2:3] != host_triple().split("-")[2:3]:
        return f"it is for `{triple}`, and this is `{host_triple()}`"
    wanted = {f[1:] for f in features.split(",") if f.startswith("+")} | _LEVELS.get(cpu, frozenset())
    lacking = sorted(wanted - {f[1:] for f in host_features().split(",") if f.startswith("+")})
    if lacking:
        return f"this processor lacks {', '.join(lacking[:5])}"
    if not features and cpu not in _LEVELS and cpu != host_cpu():
        return f"it is for the processor `{cpu}`, and this is `{host_cpu()}`"
    return ""
