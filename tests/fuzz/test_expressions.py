"""Any text about columns is read or refused, soon, and what is read can be computed."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from discreet.expressions import parse
from fuzz.campaign import fuzzed
from fuzz.frames import NAMES, TEXTS, frames
from fuzz.harness import refused_or_done

_COLUMN = st.one_of(
    st.sampled_from(["age", "pay", "sex", "day", "`age`", "`*`", "`^a.*$`", "missing", "nope"]),
    NAMES.map(lambda name: f"`{name}`"),
)
_CONSTANT = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    TEXTS.map(repr),
    st.sampled_from(
        [
            "'2024-12-31'",
            "'9999-99-99'",
            "0",
            "1e999",
            "2**63",
            "9" * 400,
            "None",
            "True",
            "0x10",
            "1_0",
            "1j",
        ]
    ),
)
_LEAVES = st.one_of(_COLUMN, _COLUMN, _CONSTANT)
_HOSTILE = st.sampled_from(
    ["__import__('os').system('x')", "().__class__", "[x for x in y]", "lambda: 0", "f'{age}'", "age if sex else pay",
     "age := 3", "age.real", "age[0]", "*", "#", "age # > 3", "ａge > 3", "age >", "(" * 300, "not " * 400 + "age",
     "age == " + "1 + " * 2000 + "1", "age in [" + "1, " * 2900 + "2]", "sex in ['a', 5, missing]", "age in []",
     "-" * 500 + "age", "age ** age ** age ** 9999", "1 < 2 < 3 < age", "\\", "\x00", "age\n> 3", "'" * 7,
     "b'x' == sex",
     "max()", "min(age)", "sum(age, pay, sex)", "sqrt(-1) == age", "exp(99999)", "log(0)", "abs('x')", "open('x')"]
)  # fmt: skip


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.sampled_from(
        ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in", "is",
         "@", "&"]
    )  # fmt: skip
    one = st.sampled_from(
        ["not {}", "-{}", "({})", "{} is missing", "{} is not missing", "isnull({})", "abs({})", "+{}"]
    )
    function = st.sampled_from(
        ["min", "max", "sum", "round", "floor", "ceil", "sqrt", "exp", "log", "ismissing", "nope"]
    )
    return st.one_of(
        st.tuples(inner, two, inner).map(" ".join),
        st.tuples(one, inner).map(lambda parts: parts[0].format(parts[1].replace("{", "").replace("}", ""))),
        st.tuples(function, st.lists(inner, max_size=3)).map(
            lambda parts: f"{parts[0]}({', '.join(parts[1])})"
        ),
        st.tuples(inner, st.lists(inner, max_size=4)).map(
            lambda parts: f"{parts[0]} in [{', '.join(parts[1])}]"
        ),
    )


EXPRESSIONS = st.one_of(st.recursive(_LEAVES, _joined, max_leaves=8), _HOSTILE, st.text(max_size=30))
PEOPLE = pl.DataFrame(
    {
        "age": pl.Series([12, 127, None], dtype=pl.Int8),
        "pay": [1e308, float("nan"), -0.0],
        "sex": ["f", None, ""],
        "day": pl.Series(["2024-12-31", None, "0001-01-01"]).str.to_date(strict=False),
        "*": [2**63 - 1, 0, -1],
    }
)


def _computed(text: str, frame: pl.DataFrame) -> None:
    found = parse(text, frame.schema)
    assert len(frame.select(found.value)) <= max(1, frame.height)
    if found.kind == "condition":
        assert frame.select(found.condition.alias("holds"))["holds"].null_count() == 0


@fuzzed(EXPRESSIONS, quick=120, share=0.1)
def test_an_expression_is_computed_or_refused(text: str) -> None:
    refused_or_done(lambda: _computed(text, PEOPLE))


@fuzzed(st.tuples(frames(), EXPRESSIONS), quick=20, share=0.03)
def test_an_expression_on_any_frame_is_computed_or_refused(case) -> None:
    frame, text = case
    named = f"`{frame.columns[0]}` == {text}"
    refused_or_done(lambda: _computed(text, frame))
    refused_or_done(lambda: _computed(named, frame))
