"""The table of spellings: names of all eras lead to one concept, and back."""

import pytest

from relaxlang.syntax import spellings


@pytest.mark.parametrize(
    ("namespace", "attr", "concept"),
    [
        ("T", "sblock", "T.block"), ("T", "block", "T.block"), ("T", "axis.S", "T.axis.spatial"),
        ("", "out_ty", "out_sinfo"), ("", "type_args", "sinfo_args"), ("R", "Any", "R.Object"),
        ("T", "unknown", "T.unknown"), ("T", "Min", "T.Min"),
    ],
)  # fmt: skip
def test_canonical_names(namespace, attr, concept):
    assert spellings.canonical_name(namespace, attr) == concept


def test_names_in_dialects():
    assert [spellings.name_in("T.block", d) for d in (None, "tvm-0.22", "tvm-0.23", "tvm-0.24", "tvm-0.27")] == [
        "T.block", "T.block", "T.block", "T.sblock", "T.sblock"]  # fmt: skip
    assert spellings.name_in("out_sinfo", "tvm-0.26") == "out_ty"
    assert spellings.name_in("T.allocate", "tvm-0.24") is None
    assert spellings.name_in("break") == "break" and spellings.name_in("break", "tvm-0.22") == "T.break_loop"
    assert spellings.attribute_key("tir.noalias", "tvm-0.23") == "tirx.noalias"
    assert spellings.canonical_attribute_key("tirx.noalias") == "tir.noalias"


def test_every_spelling_leads_back_to_its_concept():
    for dialect in spellings.DIALECTS:
        for spelling in spellings._TABLE:
            name = spelling.in_dialect(dialect)
            if name is not None:
                namespace, _, attr = name.partition(".") if name[1:2] == "." else ("", "", name)
                assert spellings.canonical_name(namespace, attr) == spelling.concept
                assert name in spellings.names_for(spelling.concept)


def test_eras_hold_every_dialect_in_order():
    assert spellings.DIALECTS[0] == "rfc-2021" and spellings.DIALECTS[-1] == "tvm-0.27"
    assert spellings.CANONICAL in spellings.ERAS["E2"]
