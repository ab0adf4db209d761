"""Sections of constants in texts that TVM prints."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np
import pytest

import relaxlang


def record(array: np.ndarray, kind: int, bits: int) -> str:
    """An array as TVM writes it."""
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim, kind, bits, 1)
    shape = struct.pack(f"<{array.ndim + 1}q", *array.shape, array.nbytes)
    return base64.b64encode(head + shape + array.tobytes()).decode()


A, B = np.arange(6, dtype="float32").reshape(2, 3), np.array([True, False, True])
ARRAYS = [record(A, 2, 32), record(B, 6, 8)]
CLASSIC = {
    "root": 1,
    "nodes": [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relax.expr.Constant"], "data": [2]},
        {"type_key": "Array", "data": [3, 4]},
        {"type_key": "relax.expr.Constant", "attrs": {"data": "0", "span": "0"}},
        {"type_key": "relax.expr.Constant", "attrs": {"data": "1", "span": "0"}},
    ],
    "b64ndarrays": ARRAYS,
}
PLAIN = {
    "root_index": 6,
    "nodes": [
        {"type": "ffi.String", "data": "relax.expr.Constant"},
        {"type": "ffi.Tensor", "data": ARRAYS[0]},
        {"type": "relax.expr.Constant", "data": {"data": 1}},
        {"type": "ffi.Tensor", "data": ARRAYS[1]},
        {"type": "relax.expr.Constant", "data": {"data": 3}},
        {"type": "ffi.Array", "data": [2, 4]},
        {"type": "ffi.Map", "data": [0, 5]},
    ],
}
MODULE = """metadata = tvm.ir.load_json('''{}''')


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        y = R.add(x, metadata["relax.expr.Constant"][0])
        return (y, metadata["relax.expr.Constant"][1])
"""


@pytest.mark.parametrize("section", [CLASSIC, PLAIN], ids=["classic", "plain"])
def test_both_forms_are_read(section: dict) -> None:
    mod = relaxlang.parse(MODULE.format(json.dumps(section, indent=2)))
    got = relaxlang.interpret(mod, "main", np.ones((2, 3), "float32"))
    np.testing.assert_array_equal(got[0], A + 1)
    np.testing.assert_array_equal(got[1], B)
    assert relaxlang.structural_equal(relaxlang.parse(mod.script()), mod)


@pytest.mark.parametrize(
    "section",
    ["", "[]", "{}", '{"root": 7, "nodes": []}', '{"root_index": 0, "nodes": [{"data": [0]}]}', "[" * 100_000,
     json.dumps({**CLASSIC, "b64ndarrays": [ARRAYS[0][:40], ""]}), json.dumps({**CLASSIC, "b64ndarrays": ["%", 1]})],
)  # fmt: skip
def test_faults(section: str) -> None:
    with pytest.raises(relaxlang.DiagnosticError) as caught:
        relaxlang.parse(MODULE.format(section))
    assert {d.code for d in caught.value.diagnostics} == {"RLX0152"}


def test_a_section_that_was_left_out() -> None:
    with pytest.raises(relaxlang.DiagnosticError, match="show_meta=True"):
        relaxlang.parse(MODULE.partition("\n")[2])
