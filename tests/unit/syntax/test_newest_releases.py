"""What the releases of TVM since 0.24 added to the text: it is read, and comes back from the print."""

from textwrap import indent

import pytest

from relaxlang import assert_structural_equal, build, parse, structural_equal
from relaxlang.base.diagnostics import DiagnosticError


def back(text: str) -> str:
    """The print of a program, after it was checked to read back as the same module."""
    module = parse(text)
    printed = module.script()
    again = parse(printed)
    assert structural_equal(module, again)
    assert again.script() == printed
    return printed


def kernel(body: str) -> str:
    lines = "\n".join("    " + line for line in body.splitlines())
    return f'@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n{lines}\n'


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ('T.cuda.sync(A[0:4], None, [1, 2], mode="all")', 'T.cuda.sync(A[0:4], None, [1, 2], mode="all")'),
        ('Tx.copy(A, B[2:6], config={"k": 1})', 'Tx.copy(A, B[2:6], config={"k": 1})'),
        ("T.ptx.cp_async(A.ptr_to([3]))", "T.ptx.cp_async(T.address_of(A[3]))"),
        ("x, y = T.cta_id([4, 2])\nT.evaluate(x + y)", "x, y = T.cta_id([4, 2])"),
        ('T.ptx["ld.global::x.v2"](A[0], 4)', 'T.ptx["ld.global::x.v2"](A[0], 4)'),
        ("T.evaluate(T.address_of(A))", "T.address_of(A[0])"),
        ("tx = T.thread_id([32])\nif T.filter(tx, 0, 4):\n    T.cta.copy(A, B)", "T.cta.copy(A, B)"),
        ('with T.wg():\n    T.evaluate(T.ptr_byte_offset(A.data, 4, "float32"))', "with T.wg():"),
        ("A[0] = T.ptx.max_f32(A[1], B[0])", "A[0] = T.ptx.max_f32(A[1], B[0])"),
        (
            'C = T.alloc_buffer((4,), scope="trn.psum", allocated_addr=[0, 8])\nT.evaluate(C[0])',
            "allocated_addr=[0, 8]",
        ),
    ],
)
def test_kernel_language_is_carried(written: str, printed: str) -> None:
    assert printed in back(kernel(written))


def test_bind_takes_a_type() -> None:
    printed = back(kernel('p = T.bind(T.address_of(A[0]), T.handle("float32"))\nC = T.decl_buffer((8,), data=p)'))
    assert 'p: T.handle("float32", "global") = T.address_of(A[0])' in printed


def test_spread_tensors_are_typed_as_declared() -> None:
    printed = back("""
@I.ir_module
class Module:
    I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})

    @R.function
    def main(x: R.DTensor((8, 8), "float32", "mesh[0]", "R"), w: R.DTensor((8, 8), "float32", "mesh[0]", "S[1]")):
        y: R.DTensor((8, 8), "float32", "mesh[0]", "S[1]") = R.matmul(x, w)
        return y
""")
    assert "R.device_mesh((2,), I.Range(0, 2))" in printed
    assert 'y: R.DTensor((8, 8), "float32", "mesh[0]", "S[1]") = R.matmul(x, w' in printed


def test_a_scalar_parameter_is_a_dimension() -> None:
    printed = back('@R.function\ndef main(n: R.Prim("int64"), x: R.Tensor(["n"], "float32")):\n    return x\n')
    assert 'R.Prim(value=n), x: R.Tensor((n,), "float32")' in printed


def test_faulty_on_purpose_stays_so() -> None:
    text = """
@I.ir_module(check_well_formed=False)
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y: R.Tensor((4,), "int32") = R.exp(x)
        return y
"""
    assert back(text).startswith("@I.ir_module(check_well_formed=False)")
    with pytest.raises(DiagnosticError):
        parse(text.replace("(check_well_formed=False)", ""))


def test_faults_of_scope_that_are_wanted_stay() -> None:
    text = """
@I.ir_module(check_well_formed=False)
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((n,), "float32"):
        n = T.int64()
        y = R.call_pure_packed("f", x, sinfo_args=R.Tensor((n,), "float32"))
        return y
"""
    assert back(text).startswith("@I.ir_module(check_well_formed=False)")
    assert "check_well_formed" not in back(text.replace("(n,)", "(4,)"))


@pytest.mark.parametrize(
    "view", ["R.shape([17])", 'R.shape([16]), R.dtype("int64")', 'None, R.dtype("void")', "None, None, 4"]
)
def test_a_view_fits_in_its_tensor(view: str) -> None:
    text = f'@R.function\ndef main(x: R.Tensor((16,), "float32")):\n    return R.memory.view(x, {view})\n'
    with pytest.raises(DiagnosticError):
        parse(text)
    parse(text.replace(view, 'R.shape([8]), R.dtype("float32"), R.prim_value(32)'))


def test_a_rewriter_has_both_functions() -> None:
    with pytest.raises(DiagnosticError, match="needs a Relax function `replacement`"):
        parse("@R.rewriter\nclass Rule:\n    @R.function\n    def pattern():\n        return R.tuple()\n")


def test_what_shall_be_scheduled_is_kept() -> None:
    """`s_tir=True` is written for what TVM 0.26 would not know to be schedulable, and read back."""
    plain = '@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    for i in range(4):\n        A[i] = T.float32(1)\n'
    marked = plain.replace("@T.prim_func", "@T.prim_func(s_tir=True)")
    assert "s_tir" not in parse(plain).script(dialect="tvm-0.27")
    mod = parse(marked)
    for dialect in (None, "tvm-0.27"):
        text = mod.script(dialect=dialect)
        assert "@T.prim_func(s_tir=True)" in text
        assert_structural_equal(parse(text), mod)
    block = marked.replace("        A[i]", '        with T.sblock("b"):\n            A[i]')
    assert "s_tir" not in parse(block).script()
    assert "s_tir=True" in parse(block).script(dialect="tvm-0.27")


def test_scalable_vectors() -> None:
    """Their length, in units of `T.vscale()`, is part of the type; no processor here runs them."""
    text = back(
        """@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((8,), "float32xvscalex4")):
    A[T.Ramp(0, 1, 4 * T.vscale())] = T.Broadcast(T.float32(1), T.vscale() * 4)
    for i in range(2):
        A[i : i + T.vscale() * 4] = B[i]
"""
    )
    assert "A[T.Ramp(0, 1, T.vscale() * 4)] = T.Broadcast(T.float32(1.0), T.vscale() * 4)" in text
    assert "A[T.Ramp(i, 1, T.vscale() * 4)] = B[i]" in text
    with pytest.raises(DiagnosticError, match="scalable vectors have no code") as caught:
        build(parse(text))
    assert caught.value.diagnostics[0].code == "RLX5013"
    with pytest.raises(DiagnosticError, match="length must be a positive integer"):
        parse(kernel("A[T.Ramp(0, 1, T.vscale() * -4)] = T.float32(0)"))


@pytest.mark.parametrize(
    "line",
    [
        'C = A.view("float16")',
        "C = A.sub[0:4, 1::2]",
        "C = A.tile((0, (-1, 4, 2)), (1, (2, 8)))[:, i, :]",
        'C = A.view(8, 4).sub[:, i].rearrange(pattern="(a b) -> a b", a=2)',
        'Tx.copy(A.view("float16")[0], B[0:4])',
        "Tx.select(B, A, T.float32(1.0), lambda i, j: i < j)",
        "T.ptx.mov.b64(T.ptx.SINK, A.permute(1, 0)[0])",
        "Tx.memset(D[0], T.float32(0.0))",
        'E = T.decl_buffer((4,), "float32", data=A.data, elem_offset=A.elem_offset_of([1]))',
    ],
)
def test_views_of_gpu_memory_are_carried_as_they_are_written(line: str) -> None:
    used = "\nC[0, i] = C[0, i + 1]\nTx.copy(C[:, 1], B[0:4])\n" if line.startswith("C =") else "\n"
    text = kernel(f'D = T.alloc_buffer((2, 2), "float32")\nfor i in range(2):\n{indent(line + used, " " * 4)}')
    assert f"{line}\n" in back(text)


def test_views_have_their_own_names_and_no_code() -> None:
    with pytest.raises(DiagnosticError, match="a view of `A` has no attribute `shape`"):
        parse(kernel("C = A.view(4, 2)\nn = A.view(4, 2).shape"))
    with pytest.raises(DiagnosticError, match="a lambda that is carried as it is written cannot use `n`"):
        parse(kernel("n = T.int32(1)\nTx.select(B, A, lambda i: i < n)"))
    with pytest.raises(DiagnosticError, match="`C` is a view of the language of GPU kernels"):
        build(parse(kernel("C = A.view(4, 2)\nC[0, 0] = T.float32(0)")))


def test_what_is_said_of_a_group_of_gpu_instructions() -> None:
    text = back(kernel('with Tx.compose_op(schedule="A"):\n    Tx.add(B, A, B)\n    Tx.add(B, B, A)\nTx.add(A, A, A)'))
    assert 'with Tx.compose_op(schedule="A"):\n            Tx.add(B, A, B)\n            Tx.add(B, B, A)\n' in text
    assert "            Tx.add(A, A, A)" not in text


def test_pointers_to_tensor_maps() -> None:
    text = back("@T.prim_func\ndef f(M: T.TensorMap()):\n    T.evaluate(T.address_of(M))\n")
    assert 'T.handle("tensormap"' in text
    with pytest.raises(DiagnosticError, match="`tensormap` is not a dtype"):
        parse('@T.prim_func\ndef f(M: T.Buffer((4,), "tensormap")):\n    T.evaluate(0)\n')


def test_one_coordinate_that_is_taken_apart() -> None:
    assert "tid = T.thread_id([128])\n" in back(kernel("tid, = T.thread_id([128])\nT.ptx.bar.arrive(0, tid)"))


def test_memory_of_one_element_is_assigned_by_its_name() -> None:
    text = back(kernel('D = T.alloc_local((1,), "int32")\nD = 1\nD = D[0] + 1'))
    assert "D[0] = 1" in text and "D[0] = D[0] + 1" in text


def test_layouts_and_variables_of_gpu_kernels() -> None:
    text = back(
        kernel(
            """T.device_entry()
P = T.alloc_buffer((8, 16), "float16", scope="local", layout=T.TileLayout(T.S[(2, 4, 16) : (1024, 64, 1)]))
Q = T.alloc_buffer((8, 16), "float16", layout=None)
U = T.alloc_buffer((8, 16), "float16", layout=T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[4, 4])))
v = T.local_scalar("uint32")
w = T.shared_scalar("uint64")
T.ptx.ld.global_.b32(v, T.ptx.addr(P.data, -16))
v = v + T.uint32(1)
v += T.uint32(2)
P[0, 0] = Q[0, 0] + U[0, 0]"""
        )
    )
    for part in ("layout=T.TileLayout(T.S[(2, 4, 16):(1024, 64, 1)])", "layout=None", "T.TileLayout(T.S[4, 4])"):
        assert part in text
    assert "T.ptx.ld.global_.b32(v[0], " in text and "v[0] = v[0] + T.uint32(2)" in text


def test_attributes_in_a_dict() -> None:
    text = back(kernel('T.attr({"a": 1, "b": "x"})\nA[0] = T.float32(1)'))
    assert 'T.attr(0, "a", 1)' in text and 'T.attr(0, "b", "x")' in text


def test_vectors_and_carried_calls_do_not_mix() -> None:
    with pytest.raises(DiagnosticError, match="not defined here"):
        parse(kernel("T.evaluate(T.ptx.x(3) + A[T.Ramp(0, 1, 2)])"))
