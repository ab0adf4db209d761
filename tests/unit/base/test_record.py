"""Records are dataclasses to everything that looks at them."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from typing import ClassVar

import pytest

from relaxlang.base.constructors import constructor
from relaxlang.base.node import Node, node
from relaxlang.base.record import fresh, record, replace


@record
class Point:
    """Two fields, one with a default, and something that is no field."""

    x: int
    y: int = 2
    origin: ClassVar[str] = "here"


@record
class Named(Point):
    """A field more, and one with another default."""

    name: str = ""
    y: int = 3


@record
class Alone:
    """One field."""

    value: object


@record
class Empty:
    """No fields."""


@record(frozen=False)
class Bag:
    """A field that is made anew."""

    items: list[int] = fresh(factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.items)


@record(frozen=False, eq=False)
class Thing:
    """Equal to itself only."""

    at: int


def test_construction_by_position_by_name_and_by_default() -> None:
    assert (Point(1).x, Point(1).y, Point(y=5, x=4).y) == (1, 2, 5)
    assert (Named(1).y, Named(1, 2, "a").name) == (3, "a")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=2)
    assert str(inspect.signature(Named)) == "(x: 'int', y: 'int' = 3, name: 'str' = '') -> None"


def test_what_is_shown() -> None:
    assert repr(Named(1)) == "Named(x=1, y=3, name='')" and repr(Empty()) == "Empty()"
    thing = Bag()
    thing.items.append(thing)
    assert repr(thing) == "Bag(items=[...], size=0)"


def test_equality_and_hash_are_those_of_the_fields() -> None:
    nan = float("nan")
    for make in (lambda: Point(1), lambda: Named(1), lambda: Alone(nan), lambda: Empty()):
        assert make() == make() and hash(make()) == hash(make())
    assert Point(1) != Point(2) and Point(1, 3) != Named(1, 3) and Alone(1) != 1
    assert Bag() == Bag() and Bag.__hash__ is None
    thing = Thing(1)
    assert thing == thing and thing != Thing(1) and len({thing, Thing(1)}) == 2


def test_own_methods_stay() -> None:
    @record
    class Own:
        a: list[int]

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "mine"

    assert hash(Own([1])) == 7 and repr(Own([1])) == "mine" and Own([1]) == Own([1])


def test_frozen_records_refuse_changes() -> None:
    for act in (lambda p: setattr(p, "x", 3), lambda p: setattr(p, "other", 3), lambda p: delattr(p, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            act(Point(1))
    bag = Bag()
    bag.size = 4
    assert bag.size == 4

    class Plain(Point):
        def __init__(self) -> None:
            super().__init__(1)
            self.other = 5

    assert Plain().other == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        Plain().x = 3


def test_fresh_defaults_are_not_shared() -> None:
    first, second = Bag(), Bag([1, 2])
    first.items.append(3)
    assert Bag().items == [] and second.size == 2 and Bag(items=[4]).items == [4]


def test_copies() -> None:
    assert replace(Named(1, 2, "a"), x=5) == dataclasses.replace(Named(1, 2, "a"), x=5) == Named(5, 2, "a")
    assert pickle.loads(pickle.dumps(Named(1))) == Named(1)


def test_the_standard_library_sees_dataclasses() -> None:
    assert dataclasses.is_dataclass(Point) and dataclasses.is_dataclass(Point(1))
    assert [(f.name, f.type, f.default) for f in dataclasses.fields(Named)][1:] == [
        ("y", "int", 3),
        ("name", "str", ""),
    ]
    assert dataclasses.fields(Bag)[0].default_factory is list
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2}
    match Point(1):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_a_dataclass_may_derive_from_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Further(Point):
        z: int = 9

    assert Further(1) == Further(1, 2, 9) and [f.name for f in dataclasses.fields(Further)] == ["x", "y", "z"]
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Open", (Point,), {}))


@node
class Pair(Node):
    """Names that differ in nothing but spelling share compiled code."""

    left: int
    right: int = 1


@node
class Other(Node):
    """As `Pair`."""

    a: int
    b: int = 2


def test_shared_code_has_its_own_names() -> None:
    assert (Pair(left=3).right, Other(a=3).b, Pair(1, 5).right) == (1, 2, 5)
    assert list(inspect.signature(Other).parameters) == ["a", "b", "span"]
    assert Pair.__init__.__code__.co_code == Other.__init__.__code__.co_code
    with pytest.raises(TypeError, match=r"Other\.__init__\(\) missing 1 required positional argument: 'a'"):
        Other()


def test_statements_see_the_globals_of_the_module() -> None:
    made = constructor(Thing, ["at"], {}, lambda names: [f"self.at = len(str({names[0]}))"])
    thing = Thing(0)
    made(thing, 12345)
    assert thing.at == 5
