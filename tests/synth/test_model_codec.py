"""Models as documents: every declared kind comes back as it was, and nothing else is made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.saved_models import (
    MisfitError,
    Parts,
    decoded,
    encoded,
    name_in,
    stored,
    stored_as,
    unstored,
)


class Shape:
    """Shapes of which one is declared and others are stored."""


@stored("test-point")
@dataclass(frozen=True)
class Point(Shape):
    x: float
    y: float | None = None


@stored("test-line")
@dataclass(frozen=True)
class Line(Shape):
    points: tuple[Point, ...]
    ends: tuple[str, int]
    way: Literal["straight", "bent"] = "straight"

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a line without points")


@stored("test-everything")
@dataclass(frozen=True, eq=False)
class Everything:
    shape: Shape
    either: Point | Line | Floats | None
    whole: bool
    many: list[int]
    few: Sequence[str]
    by_name: Mapping[str, Point]
    by_place: Mapping[tuple[float, float], str]
    by_number: dict[int, Sequence[bool]]
    numbers: Floats
    places: Integers
    flags: Flags
    texts: Array
    column: pl.Series
    table: pl.DataFrame
    kind: pl.DataType
    settings: Mapping[str, Any]


class Celsius:
    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


stored_as(
    "test-celsius", Celsius, dict[str, float], lambda own: {"degrees": own.degrees}, lambda d: Celsius(**d)
)


@stored("test-cached")
@dataclass(frozen=True)
class Cached:
    number: int
    cache: Any = field(default=None, metadata=unstored())
    trees: Any = field(default=None, metadata=unstored("Trees of another library are not kept."))


NUMBERS = st.floats(allow_nan=False)
POINTS = st.builds(Point, NUMBERS, st.none() | NUMBERS)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
LINES = st.builds(
    Line,
    st.lists(POINTS, min_size=1).map(tuple),
    st.tuples(TEXTS, st.integers()),
    st.sampled_from(["straight", "bent"]),
)
COLUMNS = st.sampled_from(
    [
        pl.Series("a", [1, None], dtype=pl.Int8),
        pl.Series("", [], dtype=pl.Datetime("ms", "UTC")),
        pl.Series("$column", ["x", None], dtype=pl.Enum(["x", "y"])),
        pl.Series("f", [0.1, float("inf")]),
    ]
)
TYPES = st.sampled_from(
    [pl.Int8(), pl.Enum(["x", "y"]), pl.Datetime("us", "CET"), pl.Date(), pl.Decimal(9, 2)]
)
EVERYTHING = st.builds(
    Everything,
    POINTS | LINES,
    st.none() | POINTS | LINES | st.just(np.array([1.5])),
    st.booleans(),
    st.lists(st.integers()),
    st.lists(TEXTS).map(tuple),
    st.dictionaries(TEXTS | st.sampled_from(["$array", "test-point"]), POINTS),
    st.dictionaries(st.tuples(NUMBERS, NUMBERS), TEXTS),
    st.dictionaries(st.integers(), st.lists(st.booleans()).map(tuple)),
    st.lists(NUMBERS).map(lambda own: np.array(own, dtype=np.float64)),
    st.lists(st.integers(-5, 5)).map(lambda own: np.array(own, dtype=np.int32)),
    st.just(np.array([[True], [False]])),
    st.sampled_from([np.array(["a", "bc"]), np.array(3.0), np.zeros((0, 2))]),
    COLUMNS,
    st.lists(COLUMNS, unique_by=lambda own: own.name).map(
        lambda own: pl.DataFrame({c.name: c.head(1) for c in own if len(c)} or {"": []})
    ),
    TYPES,
    st.dictionaries(TEXTS, st.none() | TEXTS | NUMBERS | st.lists(st.integers())),
)


def written(value, kind=object):
    parts = Parts()
    document = json.loads(json.dumps(encoded(value, kind, parts)))
    return document, Parts(parts.content)


def again(value, kind=object):
    document, parts = written(value, kind)
    made = decoded(document, kind, parts)
    assert not parts.unused
    return made


def alike(one, other):
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, pl.Series):
        return one.name == other.name and one.dtype == other.dtype and one.equals(other)
    if isinstance(one, pl.DataFrame):
        return one.schema == other.schema and one.equals(other)
    return type(one) is type(other) and one == other


@given(EVERYTHING)
def test_what_is_read_is_what_was_written(value):
    made = again(value)
    assert all(alike(own, vars(made)[name]) for name, own in vars(value).items())


@given(EVERYTHING)
def test_a_document_is_the_same_whenever_it_is_written(value):
    document, parts = written(value)
    assert written(decoded(document, object, parts))[0] == document


def test_numbers_of_numpy_are_plain_numbers():
    assert again(Point(np.float32(0.5), np.int64(2))) == Point(0.5, 2)


def test_a_class_in_another_form_comes_back():
    assert again(Celsius(4.0)).degrees == 4.0


def test_an_array_that_is_pointed_to_twice_stands_there_once():
    numbers = np.arange(3.0)
    document, parts = written((numbers, numbers), tuple[Floats, Floats])
    assert len(parts.content) == 1
    one, two = decoded(document, tuple[Floats, Floats], parts)
    assert one is two


def test_a_field_that_is_not_stored_is_empty_after_reading():
    assert again(Cached(1, cache=2)) == Cached(1)
    with pytest.raises(ParameterError, match="another library"):
        written(Cached(1, trees=object()))


def test_what_is_not_declared_cannot_be_written():
    for value in (Point("1"), Point(True), Line((Point(1.0),), ("a", 1), "round"), Cached(1.5), object()):
        with pytest.raises(TypeError):
            written(value)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        "test-point",
        {"nothing": {}},
        {"test-point": {}},
        {"test-point": {"x": 1.0}},
        {"test-point": {"x": 1.0, "y": 1.0, "z": 1.0}},
        {"test-point": {"x": "1", "y": 1.0}},
        {"test-point": {"x": True, "y": None}},
        {"test-point": {"x": 1.0, "y": {"$array": "array-0"}}},
        {"test-point": [], "test-line": []},
        {"test-celsius": {"degrees": 1.0}},
        {"test-line": {"points": [], "ends": ["a"], "way": "straight"}},
        {"test-line": {"points": [{"test-cached": {"number": 1}}], "ends": ["a", 1], "way": "straight"}},
        {"test-line": {"points": [{"test-point": {"x": 1, "y": 1}}], "ends": ["a", 1], "way": "round"}},
        {"test-line": {"points": [{"test-point": {"x": 1, "y": 1}}], "ends": ["a", 1], "way": ["bent"]}},
    ],
)
def test_other_documents_make_nothing(document):
    with pytest.raises(MisfitError):
        decoded(document, Shape, Parts({"array-0": np.zeros(1)}))


def test_a_class_checks_its_own_fields():
    with pytest.raises(ValueError, match="without points"):
        decoded({"test-line": {"points": [], "ends": ["a", 1], "way": "straight"}}, Shape, Parts())


@pytest.mark.parametrize("part", [np.array([True]), np.array(["x"]), pl.Series([1.0])])
def test_an_array_of_another_type_is_refused(part):
    with pytest.raises(MisfitError):
        decoded({"$array": "p"}, Floats, Parts({"p": part}))


def test_the_name_of_what_a_document_holds():
    assert name_in({"test-point": 3}, Shape) == "test-point"
    assert name_in({"test-cached": 3}, Shape) is None
    assert name_in({"test-point": 3, "more": 4}, Shape) is None
