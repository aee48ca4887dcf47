"""No answer hangs on the last bit: what could not be computed is an error or is named, never "constant" or "safe"."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.outputs.checks.total_checks import check_concentration
from discreet.outputs.model_outputs import _perfect
from discreet.synth import GaussianCopula
from discreet.tables import Suppression, Table, Threshold, linear_programs, primary
from discreet.tables.primary_rules import Rule
from discreet.utility.associations import changes, moments
from discreet.utility.propensity_learners import _Factor

PLACES = pl.DataFrame({"a": ["x"] * 40 + ["y"] * 2 + ["z"] * 30, "b": ["u", "v", "w"] * 24})


@settings(max_examples=examples(80), deadline=None)
@given(st.floats(-1e12, 1e12), st.integers(2, 60))
def test_a_constant_column_has_a_variance_of_zero_and_not_of_a_rounding_error(value, rows):
    found = moments(pl.DataFrame({"x": [value] * rows}), ["x"])
    assert found.variances[0] == 0
    assert found.means[0] == value


def test_columns_that_do_not_vary_are_named_and_do_not_blow_up_the_changes():
    before = pl.DataFrame({"x": [0.1] * 1000, "y": np.arange(1000.0)})
    after = before.with_columns(x=pl.col("x") + 1e-3)
    figures, caveats = changes(moments(before, ["x", "y"]), moments(after, ["x", "y"]), 0.95)
    assert figures["mean_change"] == 0
    assert any("1 numeric columns do not vary" in caveat for caveat in caveats)


def test_a_solver_without_an_answer_does_not_make_a_cell_protected(monkeypatch):
    table = primary(Table.from_microdata(PLACES, "a*b"), Threshold(3))
    monkeypatch.setattr(linear_programs.Program, "extreme", lambda self, at, weight, *, largest: float("nan"))
    with pytest.raises(InputError, match=r"could not|contradict"):
        Suppression(method="optimal").apply(table)


def test_an_infinite_bound_is_given_only_where_something_fits():
    from scipy import sparse

    one, free = np.ones(1), np.full(1, np.inf)
    nothing = linear_programs.Program(sparse.csc_matrix([[1.0]]), -one, -one, np.zeros(1), free)
    assert np.isnan(nothing.extreme(np.array([0]), one, largest=True))
    open_ = linear_programs.Program(sparse.csc_matrix([[0.0]]), np.zeros(1), np.zeros(1), np.zeros(1), free)
    assert open_.extreme(np.array([0]), one, largest=True) == np.inf


def test_a_rule_without_a_finite_protection_is_refused():
    class Unsure(Rule):
        name = "unsure"

        def sensitive(self, table):
            return np.ones(table.cells.height, dtype=bool)

        def protection(self, table):
            return np.full(table.cells.height, np.nan)

    with pytest.raises(ParameterError, match="no finite protection"):
        primary(Table.from_microdata(PLACES, "a"), Unsure())


def test_a_concentration_that_is_not_known_is_named_and_not_passed():
    assert check_concentration([40, 40], [0.2, np.nan]).status == "review"
    assert check_concentration([40], [np.nan]).status == "review"
    assert check_concentration([40, 0], [0.2, np.nan]).status == "pass"


def test_a_constant_outcome_is_a_perfect_fit_whatever_rounding_leaves():
    class Fitted:
        rsquared = float("nan")
        ssr = 3e-29

    assert _perfect(Fitted(), np.full(50, 0.1))
    Fitted.ssr = 1.0
    assert not _perfect(Fitted(), np.arange(50.0))


def test_a_curvature_that_cannot_be_factored_is_an_error():
    with pytest.raises(InputError, match="could not be factored"):
        _Factor(np.array([[1.0, 5.0], [5.0, 1.0]]))


def test_columns_without_records_in_common_are_unrelated_and_nothing_else_is(monkeypatch):
    apart = pl.DataFrame(
        {"x": [1.0, 2.0, 3.0, 4.0] * 10 + [None] * 40, "y": [None] * 40 + [1.0, 3.0, 2.0, 4.0] * 10}
    )
    assert GaussianCopula().fit(Microdata(apart), seed=1)
    monkeypatch.setattr("discreet.synth.gaussian_copula.mean_scores", lambda upto: np.full(len(upto), np.inf))
    whole = pl.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0)[::-1]})
    with pytest.raises(ParameterError, match="cannot be computed"), np.errstate(invalid="ignore"):
        GaussianCopula().fit(Microdata(whole), seed=1)
