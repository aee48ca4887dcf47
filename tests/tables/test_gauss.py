"""The compiled elimination against the plain one, its roles, reasons, arithmetic and bad input."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from discreet.core.compiling import Patience
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.tables import gauss
from discreet.tables.gauss import elimination_runs
from discreet.tables.gauss.elimination_runs import run_big

from .plain_elimination import plain_secondary


@pytest.fixture(autouse=True, scope="module")
def _compiled_from_the_start():
    """Small tables are begun in plain Python elsewhere; here the compiled loops are tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimination_runs, "PATIENCE", Patience(-1))
        yield


def table_of(rows, columns, keep=None):
    """A two-way table with margins; of the inner cells only some may exist."""
    inner = [(r, c) for r in range(rows) for c in range(columns)]
    if keep is not None:
        inner = [cell for cell, kept in zip(inner, keep, strict=True) if kept]
    cells = [(r, c) for r in [*range(rows), None] for c in [*range(columns), None]]
    x = np.array([[int(c[0] in (None, i[0]) and c[1] in (None, i[1])) for c in cells] for i in inner])
    x = x[:, x.any(axis=0)] if inner else np.zeros((0, 0), dtype=int)
    return x[:, np.sort(np.unique(x, axis=1, return_index=True)[1])]


@st.composite
def tables(draw):
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    keep = draw(
        st.lists(st.sampled_from([True, True, True, False]), min_size=rows * columns, max_size=rows * columns)
    )
    if not any(keep):
        keep[0] = True
    x = table_of(rows, columns, keep)
    y = np.array(draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 9, 30]), min_size=len(x), max_size=len(x))))
    order = draw(st.permutations(range(x.shape[1])))
    return x, y, order


ZEROS = [("none", False), ("subspace", False), ("subspace", True), ("any_sum", False)]


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(150), deadline=None)
@given(tables(), st.sampled_from(ZEROS))
def test_zeros_are_treated_as_the_plain_version_treats_them(case, how):
    x, y, order = case
    method, strict = how
    z = x.T @ y
    primary = np.flatnonzero(z <= 2)
    candidates = [c for c in order if z[c] > 2]
    special = np.flatnonzero(y == 0)
    found = gauss.secondary(x, primary, candidates, zero_method=method, strict=strict, special_rows=special)
    if len(primary) == 0:
        assert len(found.secondary) == 0
        return
    expected = plain_secondary(
        x, primary, candidates, zero_method=method, strict=strict, special_rows=special
    )
    assert found.secondary.tolist() == expected


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(60), deadline=None)
@given(tables(), st.sampled_from(ZEROS), st.integers(0, 60))
def test_plain_python_compiled_loops_and_a_change_between_them_give_the_same(case, how, portion):
    x, y, order = case
    method, strict = how
    z = x.T @ y
    candidates, special = [c for c in order if z[c] > 2], np.flatnonzero(y == 0)
    found = []
    for entries, first in ((-1, 0), (10**6, 10**9), (10**6, portion)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(elimination_runs, "PATIENCE", Patience(entries))
            patch.setattr(elimination_runs, "FIRST_PORTION", first)
            found.append(
                gauss.secondary(
                    x,
                    np.flatnonzero(z <= 2),
                    candidates,
                    zero_method=method,
                    strict=strict,
                    special_rows=special,
                )
            )
    compiled, plain, changed = (repr(one) for one in found)
    assert compiled == plain == changed


SINGLES = [
    ("within",),
    ("within", "parallel"),
    ("within", "combinations"),
    ("within", "parallel", "combinations"),
]


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(150), deadline=None)
@given(
    tables(),
    st.sampled_from(SINGLES),
    st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=20, max_size=20),
)
def test_single_contributors_are_treated_as_the_plain_version_treats_them(case, methods, who):
    x, _, order = case
    who = who[: len(x)]
    primary = np.flatnonzero(
        [any(who[r] for r in np.flatnonzero(column)) and column.sum() == 1 for column in x.T]
    )
    candidates = [c for c in order if c not in set(primary)]
    found = gauss.secondary(
        x, primary, candidates, contributors=who, singleton_method=methods, protect_missing_singletons=False
    )
    if len(primary):
        expected = plain_secondary(x, primary, candidates, contributors=who, singleton_method=methods)
        assert found.secondary.tolist() == expected


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(80), deadline=None)
@given(st.integers(0, 10_000))
def test_matrices_with_any_whole_numbers_give_what_the_plain_version_gives(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, size=(6, 12)) * (rng.random((6, 12)) < 0.6)
    x = x[:, np.sort(np.unique(x, axis=1, return_index=True)[1])]
    x = x[:, x.any(axis=0)]
    primary, candidates = [0, 1], list(range(2, x.shape[1]))
    assert gauss.secondary(x, primary, candidates).secondary.tolist() == plain_secondary(
        x, primary, candidates
    )


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(60), deadline=None)
@given(tables(), st.sampled_from(ZEROS))
def test_big_integers_and_the_compiled_sweep_decide_alike(case, how):
    x, y, order = case
    z = x.T @ y
    seen = []

    def both(problem, report=None):
        one, other = compiled(problem, report), run_big(problem, report)
        assert one.verdict.tolist() == other.verdict.tolist()
        assert (one.left.sizes == 0).tolist() == (other.left.sizes == 0).tolist()
        seen.append(True)
        return other

    compiled = elimination_runs.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.tables.gauss.elimination.run", both)
        gauss.secondary(x, np.flatnonzero(z <= 2), order, zero_method=how[0], strict=how[1],
                        special_rows=np.flatnonzero(y == 0), forced=[order[0]])  # fmt: skip
    assert seen


def test_numbers_beyond_64_bits_fall_back_to_big_integers():
    rng = np.random.default_rng(1)
    x = rng.integers(-(10**9), 10**9, size=(9, 14))
    found = gauss.secondary(x, [0, 1], list(range(2, 14)))
    assert found.figures["arithmetic"] == "big"
    assert found.secondary.tolist() == plain_secondary(x, [0, 1], list(range(2, 14)))


def test_equal_columns_share_one_fate():
    x = table_of(2, 2)
    doubled = np.hstack([x, x])
    n = x.shape[1]
    alone = gauss.secondary(x, [0], values=[1, 5, 6, 7, 8, 15, 8, 13, 21])
    both = gauss.secondary(doubled, [0], values=[1, 5, 6, 7, 8, 15, 8, 13, 21] * 2)
    assert set(both.secondary.tolist()) == {n} | {c + k for c in alone.secondary for k in (0, n)}
    equal = next(reason for reason in both.reasons if reason.cell == n)
    assert (equal.rule, equal.primary) == ("is equal to a primary cell", 0)


def test_forced_cells_are_published_and_the_primary_cells_they_give_away_are_named():
    x = table_of(2, 2)
    found = gauss.secondary(x, [0], forced=[1, 2])
    assert found.unsafe.tolist() == [0]
    assert found.published[[1, 2]].all()
    assert len(gauss.secondary(x, [0], forced=[1]).unsafe) == 0


def test_a_forced_sum_of_zeros_gives_every_zero_away():
    x = table_of(2, 3)
    y = np.array([0, 0, 4, 5, 6, 7])
    total_of_zeros = np.zeros((6, 1), dtype=int)
    total_of_zeros[:2] = 1
    x = np.hstack([x, total_of_zeros])
    forced = [x.shape[1] - 1]
    for method in ("any_sum", "subspace"):
        found = gauss.secondary(
            x, [0, 1], values=x.T @ y, forced=forced, zero_method=method, special_rows=[0, 1]
        )
        assert found.unsafe.tolist() == [0, 1]


def test_hidden_cells_are_neither_published_nor_protected():
    x = table_of(2, 2)
    found = gauss.secondary(x, [0], hidden=[1, 3, 4])
    assert not found.published[[0, 1, 3, 4]].any()
    assert len(found.secondary) == 0


def test_an_extra_primary_column_is_protected():
    x = table_of(3, 3)
    pair = np.zeros((9, 1), dtype=int)
    pair[[0, 4]] = 1
    found = gauss.secondary(x, [], values=np.arange(16), extra_primary=sparse.csc_matrix(pair))
    assert len(found.secondary) > 0
    published = x[:, found.published]
    assert np.linalg.matrix_rank(np.hstack([published, pair])) > np.linalg.matrix_rank(published)
    assert found.reasons[0].virtual == "extra primary cell"


def test_zero_cells_that_are_not_primary_are_made_primary():
    x = table_of(2, 3)
    y = np.array([0, 0, 4, 5, 6, 7])
    found = gauss.secondary(x, [0], values=x.T @ y, zero_method="any_sum", special_rows=[0, 1])
    assert found.converted.tolist() == [1]
    assert found.primary.tolist() == [0, 1]


def test_a_single_contributor_without_a_cell_of_its_own_is_protected():
    x = table_of(2, 3)
    who = ["a", None, None, None, None, None]
    found = gauss.secondary(x[:, 1:], [0], contributors=who, singleton_method=("within", "parallel"))
    assert found.figures["virtual"] == 1
    bare = gauss.secondary(
        x[:, 1:],
        [0],
        contributors=who,
        singleton_method=("within", "parallel"),
        protect_missing_singletons=False,
    )
    assert bare.figures["virtual"] == 0


def test_no_primary_cell_suppresses_nothing():
    found = gauss.secondary(table_of(3, 3), [])
    assert len(found.secondary) == 0
    assert found.published.all()


def test_the_run_reports_and_can_be_stopped():
    calls = []
    gauss.secondary(table_of(3, 3), [0], progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gauss.secondary(table_of(3, 3), [0], progress=stop)


def test_small_portions_and_little_room_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    x = table_of(8, 9, rng.random(72) < 0.8)
    z = x.T @ rng.integers(1, 30, size=len(x))
    whole = gauss.secondary(x, z <= 4, values=z)
    monkeypatch.setattr(elimination_runs, "PORTION", 10)
    assert gauss.secondary(x, z <= 4, values=z).secondary.tolist() == whole.secondary.tolist()


def test_structurally_empty_primary_cells_are_warned_about():
    x = np.hstack([table_of(2, 2), np.zeros((4, 1), dtype=int)])
    with pytest.warns(DiscreetWarning, match="no inner cells"):
        found = gauss.secondary(x, [x.shape[1] - 1])
    assert found.unsafe.tolist() == [x.shape[1] - 1]


def test_a_table_that_loses_every_cell_is_warned_about():
    x = np.array([[1, 1], [0, 1]])
    with pytest.warns(DiscreetWarning, match="Every cell is suppressed"):
        gauss.secondary(x, [0, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((2, 2))}, "whole numbers"),
        ({"primary": [9]}, "outside of"),
        ({"primary": [True]}, "mask of length 1"),
        ({"primary": ["a"]}, "positions"),
        ({"zero_method": "zeros"}, "zero method"),
        ({"zero_method": "any_sum"}, "needs special_rows"),
        ({"singleton_method": ["within"]}, "needs contributors"),
        ({"singleton_method": ["inside"]}, "singleton method"),
        ({"singleton_method": ["within"], "contributors": ["a"]}, "1 entries"),
        ({"values": [1]}, "values has 1 entries"),
        ({"extra_primary": np.ones((9, 1), dtype=int)}, "extra_primary has 9 rows"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(change, message):
    given_values = {"x": table_of(2, 2), "primary": [0]} | change
    with pytest.raises(ParameterError, match=message):
        gauss.secondary(**given_values)
