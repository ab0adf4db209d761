"""`--run`: call a function of the built program, show, save and compare what it gives."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relaxlang.base.diagnostics import Diagnostic, DiagnosticError, fail
from relaxlang.base.files import write_atomically
from relaxlang.base.suggest import did_you_mean
from relaxlang.cli.arguments import Argument, read_argument, read_file_argument
from relaxlang.cli.compilation import Compilation
from relaxlang.cli.options import CommandLine, number, real
from relaxlang.cli.parameters import Filler, Parameter, assign, missing, read_dims
from relaxlang.cli.report import write_out
from relaxlang.runtime.ndarray import ShapeTuple, dtype_name, wrap

if TYPE_CHECKING:
    from relaxlang.ir.module import AnyFunc
    from relaxlang.ir.struct_info import StructInfo
    from relaxlang.runtime.graph import Graph, Tree
    from relaxlang.runtime.module import RuntimeModule

_NPY = "biufc"  # kinds of numpy dtypes that `.npy` files can hold


class Request(NamedTuple):
    """What `--run` and the options beside it ask for."""

    function: str
    given: list[Argument]
    seed: int | None
    dims: dict[str, Any]
    save: str
    expected: list[Any]
    rtol: float
    atol: float
    repeat: int
    tolerance_given: bool


def read_request(line: CommandLine) -> Request:
    """The request of a command line. Raises RLX70xx for what is wrong with its texts and files."""
    return Request(
        line.value("--run") or "main",
        [read_argument(span) for span in line.spans("--arg")],
        number(line, "--random", 0),
        read_dims(line.spans("--dim")),
        line.value("--save-result"),
        [read_file_argument(span) for span in line.spans("--expect")],
        real(line, "--rtol", 1e-5),
        real(line, "--atol", 1e-6),
        number(line, "--repeat", 1) or 1,
        line.has("--rtol") or line.has("--atol"),
    )


class Call(NamedTuple):
    """A function of a program with the values to call it with; `outputs` are the places of those that it writes."""

    program: RuntimeModule
    function: str
    values: list[Any]
    outputs: list[int]
    params: list[Parameter]


def prepare(c: Compilation, request: Request) -> Call:
    """Build the program and find values for all parameters, once. RLX7005 when that is impossible."""
    if c.call is None:
        c.call = _prepare(c, request)
    return c.call


def _prepare(c: Compilation, request: Request) -> Call:
    program = c.runnable()
    name = request.function
    function = None if c.is_built else c.parsed.functions.get(name) or c.lowered.functions.get(name)
    params = parameters(function, program, name)
    values = assign(request.function, params, request.given)
    filler = Filler(request.seed or 0, params, values, request.dims)
    wanted = [p for p in params if p.name not in values and not p.output]
    if wanted and request.seed is None:
        raise missing(request.function, [p for p in params if not p.output], values)
    for index, param in enumerate(params):
        if param.name not in values:
            values[param.name] = filler.make(param, index, zeros=param.output)
    if filler.defaulted:
        sizes = ", ".join(f"{name} = {size}" for name, size in filler.defaulted.items())
        c.settings.reporter.note(f"{sizes}, since neither `--arg` nor `--dim` says")
    outputs = [i for i, p in enumerate(params) if p.output]
    return Call(program, request.function, [values[p.name] for p in params], outputs, params)


def parameters(function: AnyFunc | None, program: RuntimeModule, name: str) -> list[Parameter]:
    """The parameters of a function of a program; `function` is its definition, None where only the program is left.

    RLX7005 when the program has no such function.
    """
    from relaxlang.ir.relax import Function
    from relaxlang.ir.struct_info import tensor_info
    from relaxlang.ir.tir import PrimFunc
    from relaxlang.runtime.graph_module import GraphExecutorFactory

    kernel = program.kernels.get(name)
    if isinstance(function, Function):
        return [Parameter(p.name, p.struct_info) for p in function.params]
    if kernel is not None:
        written = [getattr(p, "output", False) for p in kernel.signature.params]
        if not isinstance(function, PrimFunc):
            return [Parameter(p.name, None, out) for p, out in zip(kernel.signature.params, written)]
        found = []
        for var, signature, out in zip(function.params, kernel.signature.params, written):
            buffer = function.buffer_map.get(var)
            info = tensor_info(buffer.shape, buffer.dtype) if buffer is not None else _scalar(var)
            found.append(Parameter(signature.name, info, out))
        return found
    for vm_function in program.executable.vm_functions():
        if vm_function.name == name:
            return [Parameter(p, None) for p in vm_function.params]
    if isinstance(program, GraphExecutorFactory) and name in program.graphs:
        graph = program.graphs[name]
        return [Parameter(n, _tree_info(graph, tree)) for n, tree in graph.arguments]
    names = [n for n in program.function_names if n not in ("create_executor", "default")]
    near = did_you_mean(name, names)
    listed = "there are " + ", ".join(f"`{n}`" for n in names) if names else "the module has no functions"
    fail("RLX7005", f"there is no function `{name}`", help=f"did you mean `{near}`?" if near else listed)


def _tree_info(graph: Graph, tree: Tree) -> StructInfo:
    """The struct info of an argument of a graph."""
    from relaxlang.base.dtype import dtype
    from relaxlang.ir.prim import INT64, IntImm
    from relaxlang.ir.struct_info import TupleStructInfo, tensor_info

    if isinstance(tree, tuple):
        return TupleStructInfo(tuple(_tree_info(graph, part) for part in tree))
    tensor = graph.tensors[tree]
    return tensor_info(tuple(IntImm(INT64, d) for d in tensor.shape), dtype(tensor.dtype))


def _scalar(var: Any) -> Any:
    from relaxlang.ir.struct_info import PrimStructInfo

    return PrimStructInfo(var.dtype)


def execute(c: Compilation, call: Call, request: Request) -> list[tuple[str, Any]]:
    """Run the call and give its results by label. Raises what the program raises."""
    from relaxlang.runtime.vm import VirtualMachine

    program = call.program
    has_code = any(f.name == call.function for f in program.executable.vm_functions())
    function = VirtualMachine(program)[call.function] if has_code else program[call.function]
    with c.settings.clock.phase("run"):
        result = function(*call.values)
    if request.repeat > 1:
        from relaxlang.runtime.bench import measure

        with c.settings.clock.phase("repeat"):
            times = measure(function, tuple(call.values), 1, request.repeat)
        c.settings.reporter.say(
            f"{request.repeat} runs: min {times.min * 1e3:.4f} ms, median {times.median * 1e3:.4f} ms, "
            f"max {times.max * 1e3:.4f} ms\n"
        )
    if call.outputs:
        return [(call.params[i].name, wrap(np.ascontiguousarray(call.values[i]))) for i in call.outputs]
    return list(_leaves(result))


def interpret(c: Compilation, call: Call) -> list[tuple[str, Any]]:
    """What the reference interpreter gives for the module as it stands in the file, on copies of the arguments."""
    from relaxlang.interp import run

    if c.is_built:
        fail("RLX7003", f"`{c.name}` is a built program, which cannot be interpreted", help="leave `--compare` out")
    module = c.parsed if call.function in c.parsed.functions else c.lowered
    values = [np.array(v, order="C").view(type(v)) if isinstance(v, np.ndarray) else v for v in call.values]
    with c.settings.clock.phase("interpret"):
        result = run(module, call.function, *values)
    if call.outputs:
        return [(call.params[i].name, values[i]) for i in call.outputs]
    return list(_leaves(result))


def _leaves(result: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a result that are no tuples, labelled by their place: ``, or `1`, `2.0`."""
    waiting: list[tuple[str, Any]] = [("", result)]
    while waiting:
        label, value = waiting.pop()
        if isinstance(value, (tuple, list)) and not isinstance(value, ShapeTuple):
            prefix = label + "." if label else ""
            waiting += reversed([(f"{prefix}{i}", v) for i, v in enumerate(value)])
        else:
            yield label, value


def show(results: Sequence[tuple[str, Any]]) -> None:
    """Print results: each with dtype and shape, then as numpy prints it."""
    for label, value in results:
        write_out((f"{label}: " if label else "") + _shown(value) + "\n")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{dtype_name(value.dtype)}[{','.join(map(str, value.shape))}]\n{np.asarray(value)}"
    if isinstance(value, ShapeTuple):
        return f"shape[{','.join(map(str, value))}]"
    if isinstance(value, bool):
        return f"bool {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"{'int64' if isinstance(value, int) else 'float64'} {value}"
    return "null" if value is None else repr(value)


def save(results: Sequence[tuple[str, Any]], path: str, note: Any) -> None:
    """Write each result to an `.npy` file: `path` for one, `x.0.npy`, `x.1.npy`, … for more."""
    stem, suffix = os.path.splitext(path)
    for label, value in results:
        array = np.asarray(value)
        if array.dtype.hasobject:
            fail("RLX7006", f"the result {label or 'value'} is no array and cannot be saved")
        if array.dtype.kind not in _NPY:
            note(f"`.npy` files have no {dtype_name(array.dtype)}; saved as float32, which holds the same values")
            array = array.astype(np.float32)
        content = io.BytesIO()
        np.save(content, array.view(np.ndarray), allow_pickle=False)
        write_atomically(
            f"{stem}.{label}{suffix or '.npy'}" if label else stem + (suffix or ".npy"), content.getvalue()
        )


def compare(results: Sequence[tuple[str, Any]], request: Request) -> None:
    """RLX7007 for each result that is not as `--expect` says."""
    found: list[Diagnostic] = []
    if len(results) != len(request.expected):
        found.append(Diagnostic("RLX7007", f"{len(results)} results, but {len(request.expected)} expected"))
    for (label, value), wanted in zip(results, request.expected):
        why = _difference(np.asarray(value), np.asarray(wanted), request)
        if why:
            found.append(Diagnostic("RLX7007", f"the result{f' {label}' if label else ''} {why}"))
    if found:
        raise DiagnosticError(found)


def compare_with(results: Sequence[tuple[str, Any]], wanted: Sequence[tuple[str, Any]], request: Request) -> str:
    """Lines that say how far results are from the interpreter's; RLX7007 when that is more than tolerated, which is
    what sums in another order may make of a result unless `--rtol` or `--atol` says otherwise."""
    lines, found = [], []
    for (label, value), (_, want) in zip(results, wanted):
        what = f"the result{f' {label}' if label else ''}"
        a, b = np.asarray(value), np.asarray(want)
        if a.dtype.hasobject or b.dtype.hasobject:
            lines.append(f"{what} is no array and not compared\n")
            continue
        why = _difference(a, b, request if request.tolerance_given else _rounding(request, b))
        if why:
            found.append(Diagnostic("RLX7007", f"{what} {why}", notes=["expected is what the interpreter gives"]))
        else:
            lines.append(f"{what} is as interpreted: {_closeness(a, b)}\n")
    if len(results) != len(wanted):
        found.append(Diagnostic("RLX7007", f"{len(results)} results, but {len(wanted)} interpreted"))
    if found:
        raise DiagnosticError(found)
    return "".join(lines)


_STEPS = 256
"""Units in the last place of a result's largest element by which rounding may move the others."""


def _rounding(request: Request, wanted: Any) -> Request:
    """The request with the tolerances that suit a result: its dtype and its largest finite element."""
    import ml_dtypes

    if wanted.dtype.kind in "biu" or not wanted.size:
        return request
    info: Any = ml_dtypes.finfo
    rtol = min(_STEPS * float(info(wanted.dtype).eps), 0.05)
    size = np.abs(wanted.astype(np.float64))
    return request._replace(rtol=rtol, atol=rtol * float(np.max(size, where=np.isfinite(size), initial=0.0)))


def _closeness(value: Any, wanted: Any) -> str:
    """The largest difference between floats, absolute and relative; of anything else that there is none."""
    if value.dtype.kind in "biu" or not value.size:
        return f"{value.size} equal elements"
    with np.errstate(all="ignore"):
        a, b = value.astype(np.float64), wanted.astype(np.float64)
        gap = np.where(a == b, 0.0, np.abs(a - b))
        relative = np.where(gap == 0, 0.0, gap / np.maximum(np.abs(a), np.abs(b)))
    gap, relative = (np.nan_to_num(x, nan=0.0) for x in (gap, relative))
    at = np.unravel_index(int(np.argmax(gap)), gap.shape)
    place = f" at [{','.join(str(int(i)) for i in at)}]" if at else ""
    return f"at most {gap.max():.3g} apart (relative {relative.max():.3g}){place} in {value.size} elements"


def _difference(value: Any, wanted: Any, request: Request) -> str:
    if value.shape != wanted.shape or value.dtype != wanted.dtype:
        have, want = (f"{a.dtype}[{','.join(map(str, a.shape))}]" for a in (value, wanted))
        return f"is {have}, expected {want}"
    if value.dtype.kind in "biu":
        close = value == wanted
    else:
        value, wanted = value.astype(np.float64), wanted.astype(np.float64)
        close = np.isclose(value, wanted, rtol=request.rtol, atol=request.atol, equal_nan=True)
    if close.all():
        return ""
    where = tuple(int(i) for i in np.argwhere(~close)[0])
    place = f"[{','.join(map(str, where))}]" if where else ""
    share = f"{int((~close).sum())} of {close.size} elements differ"
    return f"differs: {share}, first {value[where]} for {wanted[where]}" + (f" at {place}" if place else "")
