"""Programs made with apache-tvm's own builders, without a line of text: what the text oracle prints and reads.

Each function gives a `tvm.IRModule`; `PROGRAMS` lists them by name. Nothing here is imported before TVM is known to be
installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax as rx
from tvm import s_tir, te, tirx, topi

Make = Callable[[], Any]
PROGRAMS: dict[str, Make] = {}


def program(make: Make) -> Make:
    """Put a program in the table."""
    PROGRAMS[make.__name__] = make
    return make


def tensor(name: str, *shape: Any, dtype: str = "float32") -> Any:
    """A variable of Relax that holds a tensor."""
    return rx.Var(name, rx.TensorType(shape, dtype))


def size(name: str) -> Any:
    """A symbolic dimension."""
    return tirx.Var(name, "int64")


# --- Relax ------------------------------------------------------------------------------------------------------------
@program
def layers() -> Any:
    """Two dense layers in a dataflow block, with two results."""
    x, w, b = tensor("x", size("n"), 16), tensor("w", 16, 4), tensor("b", 4)
    builder = rx.BlockBuilder()
    with builder.function("main", [x, w, b]):
        with builder.dataflow():
            hidden = builder.emit(rx.op.add(rx.op.matmul(x, w), b))
            active = builder.emit_output(rx.op.nn.relu(hidden))
            scores = builder.emit_output(rx.op.nn.softmax(active, axis=-1))
        builder.emit_func_output(rx.Tuple([active, scores]))
    return builder.get()


@program
def shapes() -> Any:
    """Shape arithmetic, casts that define dimensions, tuples."""
    n, m, k = size("n"), size("m"), size("k")
    x, s = tensor("x", n, m), rx.Var("s", rx.ShapeType(ndim=2))
    builder = rx.BlockBuilder()
    with builder.function("main", [x, s]):
        flat = builder.emit(rx.op.reshape(x, rx.ShapeExpr([n * m])))
        known = builder.match_cast(s, rx.ShapeType([k, n]))
        wide = builder.emit(rx.op.broadcast_to(rx.op.expand_dims(flat, 0), rx.ShapeExpr([k, n * m])))
        pair = builder.emit(rx.Tuple([wide, known]))
        builder.emit_func_output(builder.emit(rx.TupleGetItem(pair, 0)))
    return builder.get()


@program
def operators() -> Any:
    """Operators with attributes of many kinds."""
    x, w = tensor("x", 1, 3, 32, 32), tensor("w", 8, 3, 3, 3)
    builder = rx.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(rx.op.nn.conv2d(x, w, strides=(2, 2), padding=(1, 1, 1, 1)))
            y = builder.emit(rx.op.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2)))
            y = builder.emit(rx.op.permute_dims(y, axes=[0, 2, 3, 1]))
            y = builder.emit(rx.op.mean(y, axis=[1, 2], keepdims=True))
            y = builder.emit(rx.op.astype(y, "float16"))
            y = builder.emit(rx.op.concat([y, y], axis=-1))
            parts = builder.emit(rx.op.split(y, 2, axis=3))
            y = builder.emit_output(rx.op.subtract(parts[0], rx.const(0.5, "float16")))
        builder.emit_func_output(y)
    return builder.get()


@program
def calls() -> Any:
    """Packed functions, with and without effects, in destination-passing style; functions of the module."""
    x = tensor("x", size("n"), 4)
    builder = rx.BlockBuilder()
    y = tensor("y", size("n"), 4)
    with builder.function("helper", [y]):
        builder.emit_func_output(builder.emit(rx.op.exp(y)))
    helper = builder.get().get_global_var("helper")
    with builder.function("main", [x], pure=False):
        a = builder.emit(rx.op.call_dps_packed("example.median", (x,), out_ty=x.ty))
        b = builder.emit(rx.op.call_pure_packed("example.scale", a, ty_args=[x.ty]))
        builder.emit(rx.Call(rx.ExternFunc("example.log"), [b, tvm.ir.StringImm("rows")], ty_args=[rx.TupleType([])]))
        builder.emit_func_output(builder.emit(rx.Call(helper, [b])))
    return builder.get()


@program
def scalars() -> Any:
    """Constants of every kind that TVM prints without a side file."""
    builder = rx.BlockBuilder()
    with builder.function("main", []):
        values = [
            rx.const(1.5, "float32"), rx.const(-3, "int64"), rx.const(True, "bool"),
            rx.const(float("inf"), "float32"), rx.const(0.1, "float64"), tvm.ir.StringImm('a "quoted" text\n'),
            rx.ShapeExpr([1, 2]),
        ]  # fmt: skip
        builder.emit_func_output(builder.emit(rx.Tuple(values)))
    return builder.get()


@program
def unknown_types() -> Any:
    """A constant beside tensors of unknown dtype: TVM infers less than it could."""
    x, y = rx.Var("x", rx.TensorType(dtype=None, ndim=2)), tensor("y", 4, 4)
    builder = rx.BlockBuilder()
    with builder.function("main", [x, y]):
        more = builder.emit(rx.op.add(x, rx.const(1, "int32")))
        builder.emit_func_output(builder.emit(rx.op.matmul(more, y)))
    return builder.get()


@program
def numbers() -> Any:
    """Numbers as arguments."""
    x = tensor("x", 4)
    builder = rx.BlockBuilder()
    with builder.function("main", [x]):
        args = (x, tirx.FloatImm("float64", 0.1), tirx.IntImm("int64", 3))
        scaled = builder.emit(rx.op.call_pure_packed("example.scale", *args, ty_args=[x.ty]))
        builder.emit_func_output(builder.emit(rx.op.add(scaled, x)))
    return builder.get()


@program
def sizes() -> Any:
    """A parameter that is a number, and a dimension of another one."""
    n = rx.Var("n", tvm.ir.PrimType("int64"))
    x = tensor("x", n, n + 1)
    builder = rx.BlockBuilder()
    with builder.function("main", [n, x]):
        builder.emit_func_output(builder.emit(rx.op.exp(x)))
    return builder.get()


# --- TensorIR ---------------------------------------------------------------------------------------------------------
def kernel(buffer: Any, *body: Any) -> Any:
    """A module of one kernel, from its statements; `buffer` is its parameter."""
    main = tirx.PrimFunc([buffer], tirx.SeqStmt(list(body)))
    return tvm.IRModule({"main": main.with_attr("global_symbol", "main")})


@program
def variables() -> Any:
    """What is bound is a let, what is declared is memory of one element."""
    a, b = tirx.decl_buffer((8,), "float32", "A"), tirx.Var("x", "int32")
    c = tirx.decl_buffer((1,), "int32", "y", scope="local")
    index = (b + tirx.BufferLoad(c, [0])) * -1
    store = tirx.BufferStore(a, tirx.FloatImm("float32", 1.0), [index + 8])
    changes = [tirx.BufferStore(c, tirx.IntImm("int32", value), [0]) for value in (5, 4)]
    return kernel(a, tirx.Bind(b, tirx.IntImm("int32", 3)), tirx.AllocBuffer(c), *changes, store)


@program
def views() -> Any:
    """Buffers on the memory of others, and pointers into them."""
    a = tirx.decl_buffer((8,), "float32", "A")
    b = tirx.decl_buffer((2, 4), "float32", "B")
    pointer = a.access_ptr("r", offset=2, extent=4)
    call = tirx.Evaluate(tirx.call_extern("int32", "example", pointer))
    store = tirx.BufferStore(b, tirx.FloatImm("float32", 1.0), [0, 1])
    return kernel(a, tirx.DeclBuffer(b, data=a.data), store, call)


def matmul_func(n: Any = 64) -> Any:
    """A matrix product from TE."""
    a, b = te.placeholder((n, 128), name="A"), te.placeholder((128, 32), name="B")
    k = te.reduce_axis((0, 128), name="k")
    c = te.compute((n, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


@program
def matmul() -> Any:
    """A block with an init."""
    return tvm.IRModule({"main": matmul_func()})


@program
def symbolic() -> Any:
    """A kernel over a symbolic dimension, with predicates and select."""
    n = te.var("n", dtype="int64")
    a = te.placeholder((n,), name="A")
    b = te.compute((n + 2,), lambda i: te.if_then_else(tirx.all(i >= 1, i <= n), te.max(a[i - 1], 0.0), 0.0), name="B")
    c = te.compute((n,), lambda i: tirx.Select(i % 2 == 0, b[i], te.exp(b[i + 1])), name="C")
    return tvm.IRModule({"main": te.create_prim_func([a, c])})


@program
def scheduled() -> Any:
    """Tiled, cached, vectorized, annotated loops."""
    sch = s_tir.Schedule(tvm.IRModule({"main": matmul_func()}))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 16])
    jo, ji = sch.split(j, [None, 8])
    sch.reorder(io, jo, k, ii, ji)
    cached = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(cached, jo)
    sch.vectorize(ji)
    sch.parallel(io)
    sch.unroll(ii)
    sch.annotate(jo, "pragma_auto_unroll_max_step", 16)
    sch.annotate(block, "meta_schedule.note", "text")
    sch.decompose_reduction(block, k)
    return sch.mod


@program
def threads() -> Any:
    """Loops bound to threads, a shared buffer."""
    sch = s_tir.Schedule(tvm.IRModule({"main": matmul_func()}))
    block = sch.get_sblock("C")
    i, j, _ = sch.get_loops(block)
    copy = sch.cache_read(block, 0, "shared")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.compute_at(copy, j)
    return sch.mod


@program
def uneven() -> Any:
    """A split that does not divide, so that the block has a predicate."""
    sch = s_tir.Schedule(tvm.IRModule({"main": matmul_func(50)}))
    i, _, _ = sch.get_loops(sch.get_sblock("C"))
    sch.split(i, [None, 16])
    return sch.mod


@program
def pragmas() -> Any:
    """Annotations of loops."""
    sch = s_tir.Schedule(tvm.IRModule({"main": matmul_func()}))
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    sch.annotate(i, "pragma_unroll", True)
    sch.annotate(j, "pragma_auto_unroll_max_step", 16)
    sch.unroll(k)
    return sch.mod


@program
def external() -> Any:
    """A packed function in a kernel, on buffers whose first element may lie anywhere."""
    a = te.placeholder((16,), name="A")

    def make(ins: Any, outs: Any) -> Any:
        return tirx.call_packed("example.copy", ins[0], outs[0])

    b = te.extern((16,), [a], make, name="B", dtype="float32")
    return tvm.IRModule({"main": te.create_prim_func([a, b])})


def emitted(make: Callable[..., Any], *inputs: Any) -> Any:
    """A module whose `main` calls a kernel from `topi`."""
    builder = rx.BlockBuilder()
    with builder.function("main", list(inputs)):
        with builder.dataflow():
            out = builder.emit_output(builder.call_te(make, *inputs))
        builder.emit_func_output(out)
    return builder.get()


@program
def softmax_kernel() -> Any:
    """Several blocks in one kernel."""
    return emitted(topi.nn.softmax, tensor("x", size("n"), 10))


@program
def sorting() -> Any:
    """A kernel of the library with loops, lets and external calls."""

    def argsort(x: Any) -> Any:
        return topi.argsort(x, axis=0, dtype="int32")

    return emitted(argsort, tensor("x", 16))


@program
def scan() -> Any:
    """A cumulative sum."""

    def cumsum(x: Any) -> Any:
        return topi.cumsum(x, axis=1)

    return emitted(cumsum, tensor("x", 4, 8))


@program
def resize() -> Any:
    """Images: floor, cast, clip, integer arithmetic."""

    def resize2d(x: Any) -> Any:
        return topi.image.resize2d(x, (0.0, 0.0, 0.0, 0.0), (8, 8), layout="NCHW", method="linear")

    return emitted(resize2d, tensor("x", 1, 3, 4, 4))


# --- after passes -----------------------------------------------------------------------------------------------------
def after(make: Make, *passes: Any) -> Any:
    """A program after passes."""
    return tvm.transform.Sequential(passes)(make())


@program
def legalized() -> Any:
    """Operators as kernels."""
    return after(operators, rx.transform.LegalizeOps())


@program
def fused() -> Any:
    """Operators fused into functions and kernels."""
    t = rx.transform
    return after(layers, t.LegalizeOps(), t.AnnotateTIROpPattern(), t.FoldConstant(), t.FuseOps(), t.FuseTIR())


@program
def explicit_memory() -> Any:
    """Kernels called on storage that is allocated in the text."""
    t = rx.transform
    memory = (t.ToNonDataflow(), t.RemovePurityChecking(), t.CallTIRRewrite(), t.StaticPlanBlockMemory())
    return after(layers, t.LegalizeOps(), *memory)
