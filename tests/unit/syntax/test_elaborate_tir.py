"""TensorIR functions from text: the nodes are exactly what is written."""

import pytest

from relaxlang import DiagnosticError, assert_structural_equal, parse
from relaxlang.ir import prim, tir
from relaxlang.ir.visit import walk

HEAD = '@T.prim_func\ndef f(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16,), "int32"), n: T.int32):\n'


def func(body: str) -> tir.PrimFunc:
    """The function with these lines as its body."""
    found = parse(HEAD + "".join(f"    {line}\n" for line in body.split("\n")))["f"]
    assert isinstance(found, tir.PrimFunc)
    return found


def stored(value: str) -> prim.PrimExpr:
    """The value of `B[0] = value`."""
    stmt = func(f"B[0] = {value}").body
    assert isinstance(stmt, tir.BufferStore)
    return stmt.value


def codes(text: str) -> list[str]:
    """The codes under which a text is reported."""
    with pytest.raises(DiagnosticError) as raised:
        parse(text)
    return [d.code for d in raised.value.diagnostics]


def test_nothing_is_folded() -> None:
    value = stored("B[1] + 0")
    assert isinstance(value, prim.Add) and value.b == prim.const(0, "int32")
    assert isinstance(stored("T.Add(1, 2)"), prim.Add)


def test_plain_numbers_take_the_type_of_what_they_meet() -> None:
    value = stored('T.Cast("int32", T.int64(7) + 1)')
    assert isinstance(value, prim.Cast) and isinstance(value.value, prim.Add)
    assert value.value.b == prim.IntImm(prim.INT64, 1)
    assert stored("1 + 2") == prim.IntImm(prim.INT32, 3)


def test_negative_literals_are_literals() -> None:
    assert stored("-5") == prim.IntImm(prim.INT32, -5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("B[1] // 2", prim.FloorDiv),
        ("B[1] % 2", prim.FloorMod),
        ("T.truncdiv(B[1], 2)", prim.Div),
        ("T.min(B[1], n)", prim.Min),
    ],
)
def test_integer_arithmetic(text: str, kind: type) -> None:
    assert type(stored(text)) is kind


def test_ceildiv_of_data_does_not_overflow() -> None:
    value = stored("T.ceildiv(B[1], 7)")
    assert isinstance(value, prim.Cast) and value.value.dtype is prim.INT64


def test_ceildiv_of_sizes_is_the_usual_form() -> None:
    assert str(stored("T.ceildiv(n, 7)")) == "(n + 6) // 7"


def test_loops() -> None:
    loop = func("for i in range(2, 7):\n    B[i] = 0").body
    assert isinstance(loop, tir.For)
    assert (loop.min, loop.extent) == (prim.const(2, "int32"), prim.const(5, "int32"))
    outer = func("for i, j in T.grid(16, T.int64(8)):\n    A[i, j] = T.float32(0)").body
    assert isinstance(outer, tir.For) and isinstance(outer.body, tir.For)
    assert (outer.loop_var.dtype, outer.body.loop_var.dtype) == (prim.INT32, prim.INT64)


def test_extent_is_recovered_from_its_print() -> None:
    loop = func("for i in range(n, n + 4):\n    B[i] = 0").body
    assert isinstance(loop, tir.For) and loop.extent == prim.const(4, "int32")


def test_thread_binding_and_annotations() -> None:
    loop = func('for i in T.thread_binding(16, thread="threadIdx.x", annotations={"k": 1}):\n    B[i] = 0').body
    assert isinstance(loop, tir.For) and loop.thread_binding is not None
    assert loop.thread_binding.thread_tag == "threadIdx.x" and loop.annotations["k"] == 1


def test_a_body_with_blocks_gets_a_root() -> None:
    body = func(
        'for i in range(16):\n    with T.block("b"):\n        vi = T.axis.spatial(16, i)\n        B[vi] = 0'
    ).body
    assert isinstance(body, tir.BlockRealize) and body.block.name_hint == "root"
    assert isinstance(func("for i in range(16):\n    B[i] = 0").body, tir.For)


def test_blocks() -> None:
    text = (
        'for i, j in T.grid(16, 8):\n    with T.block("b"):\n        vi, vj = T.axis.remap("SR", [i, j])\n'
        "        T.where(i < n)\n        T.reads(A[vi, 0:8])\n        T.writes(B[vi])\n"
        "        with T.init():\n            B[vi] = 0\n        B[vi] = B[vi] + 1"
    )
    root = func(text).body
    assert isinstance(root, tir.BlockRealize) and isinstance(root.block.body, tir.For)
    inner = root.block.body.body
    assert isinstance(inner, tir.For) and isinstance(inner.body, tir.BlockRealize)
    block = inner.body.block
    assert [v.kind for v in block.iter_vars] == ["spatial", "reduce"]
    assert block.init is not None and block.reads is not None and len(block.reads[0].region) == 2
    assert block.reads[0].region[1].extent == prim.const(8, "int32")
    assert isinstance(inner.body.predicate, prim.LT)


def test_reads_that_are_not_written_are_unknown() -> None:
    root = func('with T.block("b"):\n    B[0] = 0').body
    assert isinstance(root, tir.BlockRealize) and root.block.name_hint == "b"
    assert root.block.reads is None


def test_old_style_block_makes_its_loops() -> None:
    root = func('with T.block([16, T.reduce_axis(0, 8)], "b") as [vi, vk]:\n    B[vi] = B[vi] + 1').body
    assert isinstance(root, tir.BlockRealize)
    loop = root.block.body
    assert isinstance(loop, tir.For) and isinstance(loop.body, tir.For)


def test_lets_scope_over_the_rest() -> None:
    body = func('x = B[0] + 1\nB[1] = x\ny: T.int64 = 3\nB[2] = T.Cast("int32", y)').body
    assert isinstance(body, tir.LetStmt) and isinstance(body.body, tir.SeqStmt)
    last = body.body.seq[1]
    assert isinstance(last, tir.LetStmt) and last.var.dtype is prim.INT64


def test_vectors() -> None:
    store = func("A[0, 0:4] = A[1, 4:8] * T.float32(2)").body
    assert isinstance(store, tir.BufferStore) and isinstance(store.indices[1], prim.Ramp)
    assert store.value.dtype.lanes == 4


def test_signature_dimensions() -> None:
    found = parse('@T.prim_func\ndef f(A: T.Buffer((n, m), "float32"), B: T.Buffer((n * m,), "float32")):\n'
                  "    m = T.int32()\n    B[0] = A[0, 0]\n")["f"]  # fmt: skip
    assert isinstance(found, tir.PrimFunc)
    a, b = (found.buffer_map[p] for p in found.params)
    assert a.shape[0].dtype is prim.INT64 and a.shape[1].dtype is prim.INT32
    assert isinstance(b.shape[0], prim.Mul) and b.shape[0].a is a.shape[0]


def test_handles_and_strides() -> None:
    found = parse(
        "@T.prim_func\ndef f(a: T.handle):\n    s = T.int32()\n"
        '    A = T.match_buffer(a, (4, 4), "float16", strides=("s0", 1), elem_offset=s, align=64, offset_factor=8)\n'
        "    A[0, 0] = T.float16(1)\n"
    )["f"]
    assert isinstance(found, tir.PrimFunc)
    (buffer,) = found.buffer_map.values()
    assert (buffer.align, buffer.offset_factor, len(buffer.strides)) == (64, 8, 2)
    assert isinstance(buffer.elem_offset, prim.Var) and isinstance(buffer.strides[0], prim.Var)


def test_conversions_on_store() -> None:
    store = func("A[0, 0] = B[0]").body
    assert isinstance(store, tir.BufferStore) and store.value.dtype is prim.FLOAT32
    store = func("B[0] = A[0, 0]").body
    assert isinstance(store, tir.BufferStore) and isinstance(store.value, prim.Cast) and store.value.dtype is prim.INT32
    assert codes(HEAD + "    x = 1\n    x = 0.5\n    B[0] = x\n") == ["RLX0314"]


def test_a_parameter_that_is_matched_twice() -> None:
    """Both buffers are views of its memory."""
    found = parse(
        "@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (2, 2))\n    B = T.match_buffer(a, (4,))\n"
        "    B[3] = A[0, 1]\n"
    )["f"]
    assert isinstance(found, tir.PrimFunc) and isinstance(found.body, tir.DeclBuffer)
    (first,) = found.buffer_map.values()
    assert found.body.buffer.data is first.data and found.body.buffer.shape != first.shape


def test_static_conditions_are_decided() -> None:
    assert isinstance(func("if 1 < 2:\n    B[0] = 1\nelse:\n    B[0] = 2").body, tir.BufferStore)


def test_compile_time_loop_is_unrolled() -> None:
    body = func("for k in [1, 3]:\n    B[k] = k").body
    assert isinstance(body, tir.SeqStmt) and len(body.seq) == 2


def test_macro() -> None:
    found = parse(
        "@T.macro\ndef put(X, at, value):\n    X[at] = value + X[at]\n\n"
        + HEAD
        + "    put(B, 3, n)\n    put(B, at=4, value=1)\n"
    )["f"]
    assert isinstance(found, tir.PrimFunc) and isinstance(found.body, tir.SeqStmt)
    stores = [s for s in found.body.seq if isinstance(s, tir.BufferStore)]
    assert [str(s.value) for s in stores] == ["n + B[3]", "1 + B[4]"]


def test_carried_intrinsics_print_back() -> None:
    assert str(func('T.evaluate(T.tvm_stack_alloca("shape", 4))').body) == 'T.tvm_stack_alloca("shape", 4)'


def test_unknown_names_are_carried_without_checks() -> None:
    text = HEAD + "    T.evaluate(T.brand_new(B[0], 1))\n"
    assert codes(text) == ["RLX0102"]
    assert "T.brand_new(B[0], 1)" in parse(text, check=False).script()


def test_faults_do_not_follow_each_other() -> None:
    assert codes(
        HEAD + "    for i in T.sreial(4):\n        B[i] = i\n    x = nope\n    B[0] = x\n    B[1] = x + 1\n"
    ) == ["RLX0102", "RLX0101"]


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("tx", ""),
        ("tyy", ""),
        ("tirr", ""),
        ("relx", ""),
        ("tvn", ""),
        ("outt", "did you mean `out`?"),
        ("rnge", "did you mean `range`?"),
    ],
)
def test_what_a_misspelt_name_may_stand_for(name: str, help: str) -> None:
    """Names in scope and builtins, not what old scripts call the namespaces."""
    with pytest.raises(DiagnosticError) as caught:
        parse(HEAD + f"    out = 1\n    B[0] = {name}\n")
    assert [(d.code, d.help) for d in caught.value.diagnostics] == [("RLX0101", help)]


@pytest.mark.parametrize(
    "line",
    [
        "T.evaluate(A.ptr_to([]))",
        "T.evaluate(A.vload([0]))",
        "A.vstore([0], T.float32(1))",
        "T.buffer_store(A, 1.0, [0])",
    ],
)
def test_methods_take_an_index_for_each_dimension(line: str) -> None:
    assert codes(HEAD + f"    {line}\n") == ["RLX0301"]


def test_a_buffer_without_dimensions_has_no_vectors() -> None:
    text = '@T.prim_func\ndef f(A: T.Buffer((), "float32")):\n    T.evaluate(A.vload([], "float32x4"))\n'
    assert codes(text) == ["RLX0303"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ('T.Call("tirx.exp")', "RLX0113"),
        ('T.Call("tirx.exp", A[0, 0], ret_ty="float32")', "RLX0113"),
        ('T.Call(tvm.ir.Op.get("tirx.no such"), [A[0, 0]], ret_ty="float32")', "RLX0102"),
    ],
)
def test_calls_of_operators_by_name(call: str, code: str) -> None:
    assert codes(HEAD + f"    T.evaluate({call})\n") == [code]
    made = func('A[0, 0] = T.Call(tvm.ir.Op.get("tirx.exp"), [A[0, 0]], ret_ty="float32")').body
    assert isinstance(made, tir.BufferStore) and isinstance(made.value, prim.Call) and made.value.op == "exp"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("T.break_loop()", "RLX0319"),
        ("T.Continue()", "RLX0319"),
        ('T.evaluate(A.access_ptr("r", ofset=1))', "RLX0114"),
        ("T.evaluate(A.access_ptr([1]))", "RLX0116"),
        ('T.evaluate(A.access_ptr("r", content_lanes="x"))', "RLX0116"),
        ('A.vstore([0, 0], A.vload([0, 1], "float32", None, 1))', "RLX0113"),
        ('B[0] = T.bitwise_xor("x", 1)', "RLX0112"),
        ('T.evaluate(T.GE(n, "x"))', "RLX0112"),
        ("B[0] = 2147483648", "RLX0129"),
        ("x: T.int8 = 300", "RLX0129"),
        ("x: T.uint8 = -1", "RLX0129"),
        ("A[0, 0] = A.vload([0, 1.5])", "RLX0302"),
        ("B[0] = len(range(n))", "RLX0116"),
    ],
)
def test_calls_that_do_not_fit(line: str, code: str) -> None:
    assert codes(HEAD + f"    {line}\n") == [code]


def test_values_that_are_bound_in_expressions_have_the_type_of_the_variable() -> None:
    made = stored("T.Let(n, where={n: 2.5})")
    assert isinstance(made, prim.Let) and made.value.dtype == made.var.dtype


def test_returning_by_name() -> None:
    assert_structural_equal(func("T.Return(n)"), func("return n"))


def test_what_is_wrong_with_a_value_is_marked_at_the_value() -> None:
    for value in ("2147483648", "A"):
        with pytest.raises(DiagnosticError) as raised:
            parse(HEAD + f"    B[0] = {value}\n")
        span = raised.value.diagnostics[0].span
        assert span is not None and span.text == value


def test_names_of_blocks_may_get_a_suffix() -> None:
    made = func('with T.block_name_suffix_context("_1"):\n    with T.block("b"):\n        B[0] = 1\n'
                'with T.block("b"):\n    B[1] = 1')  # fmt: skip
    assert [b.name_hint for b in walk(made.body) if isinstance(b, tir.Block)] == ["root", "b_1", "b"]
