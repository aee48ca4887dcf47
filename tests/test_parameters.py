"""Every parameter of every method, wherever it is given, is held against what its annotation says."""

import contextlib
import dataclasses
import inspect
import math
import typing
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata, protect, risk, synth, tables, utility
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.parameters import check, checked, fault, function_hints
from discreet.hierarchy import Hierarchy
from discreet.protect.treatment import Treatment
from discreet.synth.methods.method import Method
from discreet.synth.synthesizer import Synthesizer
from discreet.tables.table_protection import TableProtection

HOSTILE = [
    True, -1, 10**400, 0.5, 1e308, math.nan, math.inf, "", "abc", "\0", [], [1], ["age"], [None], [[1]], {}, {"a": 1},
    {"age": "x"}, {"pay": [1, 2]}, (1, 2), b"x", object(), np.array([1.0]), pl.Series([1]), 3 + 2j, "3", {1: 2},
    [{"kind": "x"}],
]  # fmt: skip
MADE = [
    (name, kind)
    for known in (Treatment.known, Synthesizer.known, TableProtection.known, Method.known)
    for name, kind in known.items()
    if kind.__module__.startswith("discreet.")
]
FUNCTIONS = [
    getattr(room, name)
    for room in (risk, utility, tables)
    for name in room.__all__
    if inspect.isfunction(getattr(room, name))
]
PEOPLE = Microdata(
    pl.DataFrame({"age": [30, 31, 30, 44], "sex": ["f", "f", "m", "m"], "pay": [1.5, 2.0, 3.0, 4.0]}),
    keys=["age", "sex"],
    sensitive="pay",
)


@pytest.mark.parametrize(("name", "kind"), MADE, ids=[name for name, _ in MADE])
def test_a_hostile_parameter_is_refused_by_name_or_taken(name, kind):
    for item in dataclasses.fields(kind):
        if not item.init:
            continue
        for value in HOSTILE:
            try:
                kind(**{item.name: value})
            except DiscreetError:
                continue
            except TypeError as error:
                # A parameter without default that was left out is Python's to name.
                if "required positional argument" not in str(error):
                    raise


@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_every_public_function_is_checked_and_its_annotations_can_be_read(function):
    assert inspect.unwrap(function) is not function
    hints = function_hints(function)
    for name, takes in hints.items():
        if takes is bool or takes == int | None or takes is int:
            others = {other: PEOPLE for other in hints if other in ("data", "original", "released")}
            needed = [
                other
                for other, parameter in inspect.signature(function).parameters.items()
                if parameter.default is parameter.empty and other not in others and other != name
            ]
            if not needed:
                with pytest.raises(ParameterError, match=f"{name} must be"):
                    function(**{**others, name: "three"})


def test_the_same_fault_is_refused_in_python_in_a_plan_and_in_a_step():
    wrong = {"k": "3"}
    for make in (
        lambda: protect.LocalSuppression(**wrong),
        lambda: Treatment.named("local-suppression", wrong),
        lambda: protect.Plan.from_dict({"step": [{"treatment": "local-suppression", **wrong}]}),
    ):
        with pytest.raises(ParameterError, match="k must be a whole number or nothing, not a text"):
            make()


@pytest.mark.parametrize(
    ("synthesizer", "parameters", "named"),
    [
        ("sequential", {"few_values": "x"}, "few_values"),
        ("sequential", {"method_options": {"cart": {"min_leaf": "x"}}, "method": "cart"}, "min_leaf"),
        ("bayesian-network", {"epsilon": math.nan}, "epsilon"),
        ("all-others", {"sweeps": True}, "sweeps"),
    ],
)
def test_a_synthesizer_names_the_parameter(synthesizer, parameters, named):
    with pytest.raises(DiscreetError, match=named):
        Synthesizer.named(synthesizer, parameters).fit(PEOPLE, seed=1)


@given(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers()), st.binary()
    )
)
def test_what_fits_is_what_python_would_call_so(value):
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = isinstance(value, int) and not isinstance(value, bool)
    assert (fault(value, int) is None) == (whole and abs(value) < 2**64)
    assert (fault(value, float) is None) == (is_number and _finite(value))
    assert (fault(value, str) is None) == isinstance(value, str)
    assert (fault(value, bool | None) is None) == (value is None or isinstance(value, bool))
    small = isinstance(value, list) and all(abs(item) < 2**64 for item in value)
    assert (fault(value, list[int]) is None) == small
    assert fault(value, typing.Any) is None


def _finite(value):
    """Whole numbers must fit into arrays of whole numbers, too."""
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def test_choices_lists_and_tables_are_looked_into():
    assert fault("mean", Literal["mean", "median"]) is None
    assert fault(1, Literal["1"]) == "'1'"
    assert fault({"age": 1}, Mapping[str, float]) is None
    assert fault({"age": "1"}, Mapping[str, float]) == "a table of numbers"
    assert fault([["a"], ["b", 1]], Sequence[Sequence[str]]) == "a list of lists of texts"
    assert fault("age", Sequence[str]) is None
    assert fault((1, 2, 3), tuple[int, int]) == "a list of 2 whole numbers"


def test_a_value_is_never_shown():
    with pytest.raises(ParameterError) as caught:
        check("Smith, 14 Elm Street", int, "k", where="In the plan")
    assert "Smith" not in str(caught.value)
    assert str(caught.value) == "In the plan: k must be a whole number, not a text."


def test_a_frame_where_a_file_is_needed_is_told_how_to_become_one():
    with pytest.raises(ParameterError, match=r"data must be Microdata, not a DataFrame\. Wrap a frame first"):
        risk.k_anonymity(pl.DataFrame({"a": [1]}))


def test_a_checked_function_still_looks_like_itself():
    @checked
    def half(number: float, *, up: bool = False) -> float:
        """Halve."""
        return number / 2

    assert half.__doc__ == "Halve."
    assert list(inspect.signature(half).parameters) == ["number", "up"]
    assert half(3) == 1.5
    with pytest.raises(TypeError):
        half()
    assert synth.Sequential(few_values=np.int64(3)).few_values == 3


HIERARCHIES = {
    "table": {"rows": [["a", "x"], ["b", "x"]]},
    "tree": {"tree": {"x": ["a", "b"]}},
    "csv": {"path": "nowhere.csv", "separator": ";", "header": False, "encoding": "utf-8"},
    "intervals": {"widths": [5, 10], "origin": 0, "lower": 0, "upper": 90, "closed": "left"},
    "breaks": {"breaks": [[1, 2]], "labels": None, "closed": "left"},
    "prefixes": {"keep": [2, 1], "mask": "*"},
    "dates": {"levels": ["month"]},
}


@pytest.mark.parametrize("kind", HIERARCHIES)
def test_a_hostile_description_of_a_hierarchy_is_refused_or_makes_one(kind):
    deep = ["a"]
    for _ in range(3_000):
        deep = {"x": deep}
    more = [
        deep,
        [[None]],
        [["a"], ["b", "c"]],
        [[math.nan]],
        [2**70],
        ["x"],
        [[]],
        {"x": {"y": None}},
        {5: [1]},
    ]
    for name in HIERARCHIES[kind]:
        for value in (*HOSTILE, *more):
            with contextlib.suppress(DiscreetError):
                Hierarchy.from_dict({"kind": kind, **HIERARCHIES[kind], name: value})
    for value in HOSTILE:
        with pytest.raises(DiscreetError):
            Hierarchy.from_dict({"kind": value})
        with pytest.raises(DiscreetError):
            Hierarchy.from_dict(value)


@pytest.mark.parametrize("given_as", [np.array, pl.Series, list, tuple])
def test_a_list_may_be_an_array_and_an_empty_one_is_empty(given_as):
    assert risk.k_anonymity(PEOPLE, keys=given_as(["sex"])).value == 2
    synth.GaussianCopula(leave_out=given_as([])).fit(PEOPLE, seed=1)
    with pytest.raises(ParameterError, match="leave_out must be a text, a list of texts"):
        synth.GaussianCopula(leave_out=given_as([1.0]))


def test_a_column_named_twice_is_refused():
    with pytest.raises(ParameterError, match="named twice for add-noise"):
        protect.AddNoise(columns=["pay"], strata=["sex", "sex"]).apply(PEOPLE, seed=1)


@pytest.mark.parametrize("previous", [["y", 5], [5], [("a", "b")], [()], [None]])
def test_what_is_no_earlier_release_is_refused(previous):
    table = tables.primary(tables.Table.from_microdata(PEOPLE, "age*sex"), tables.Threshold(2))
    with pytest.raises(ParameterError, match="previous"):
        tables.Suppression(previous=previous).apply(table)
    with pytest.raises(ParameterError, match="previous"):
        tables.audit(table, previous=previous)


def test_a_record_is_no_code_of_a_column():
    with pytest.raises(DiscreetError, match="special_codes"):
        synth.Sequential(special_codes={"age": [{"age": {"a": 1}}]}).fit(PEOPLE, seed=1)


def test_values_of_other_types_than_their_column_are_refused():
    with pytest.raises(ParameterError, match="values must be of one type"):
        risk.alpha_k(PEOPLE, alpha=0.5, values=[False, "a"])
    dated = Microdata(pl.DataFrame({"sex": ["f", "m"] * 4, "day": pl.Series(range(8)).cast(pl.Date)}))
    table = tables.Table.from_microdata(dated, "sex")
    with pytest.raises(ParameterError, match=r"'day' is .*; the rule looks for values of another type"):
        tables.primary(table, tables.MinimumContributors(minimum=7, waiver="day"))


def test_only_a_synthesizer_that_goes_column_by_column_has_orders_to_compare():
    for other in (5, synth.GaussianCopula()):
        with pytest.raises(ParameterError, match="synthesizer must be a Sequential"):
            utility.cost_of_order(PEOPLE, synthesizer=other)


@pytest.mark.parametrize("name", sorted(Treatment.known))
def test_a_step_that_lacks_what_it_needs_is_refused_or_taken(name):
    for told in ({}, {"hierarchies": {"age": {"kind": "intervals", "widths": [10]}}}):
        with contextlib.suppress(DiscreetError):
            Treatment.named(name, told)


def test_a_number_of_more_digits_than_arrays_hold_is_refused_as_such():
    with pytest.raises(ParameterError, match="not one of so many digits"):
        check(10**30, float, "alpha", where="rule")
    assert fault(1e30, float) is None


def _takes_columns():
    for function in FUNCTIONS:
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        hints = function_hints(function)
        for parameter in parameters:
            others = [p for p in needed if p is not parameter]
            if parameter.name in ("by", "columns", "keys", "known") and all(
                hints.get(p.name) is Microdata for p in others
            ):
                yield pytest.param(
                    function, parameter.name, len(others), id=f"{function.__name__}-{parameter.name}"
                )


@pytest.mark.parametrize(("function", "name", "files"), list(_takes_columns()))
def test_a_column_that_is_named_twice_is_refused_in_words(function, name, files):
    with pytest.raises(DiscreetError):
        function(*[PEOPLE] * files, **{name: [PEOPLE.columns[0], PEOPLE.columns[0]]})
