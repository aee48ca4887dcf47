"""Suppression of whole tables: the audit holds, by either method, with intervals, contributors and earlier releases."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import DiscreetWarning, InputError, ParameterError
from discreet.tables import Dominance, Protection, Suppression, Table, Threshold, audit, primary
from discreet.tables.optimal_suppression import cheapest

from .test_table_audit import people

TREE = {"north": ["a", "b"], "south": ["c", "d", "e"]}
REGION = {leaf: region for region, leaves in TREE.items() for leaf in leaves}


def records(seed, n=60, firms=None):
    rng = np.random.default_rng(seed)
    place = rng.choice(list("abcde"), size=n, p=[0.5, 0.05, 0.2, 0.15, 0.1])
    frame = pl.DataFrame(
        {
            "place": place,
            "region": [REGION[p] for p in place],
            "kind": rng.choice(["x", "y", "z"], size=n, p=[0.6, 0.3, 0.1]),
            "sex": rng.choice(["f", "m"], size=n),
            "turnover": np.round(rng.lognormal(3, 1.5, size=n), 1) + 0.1,
        }
    )
    return frame if firms is None else frame.with_columns(firm=pl.Series(rng.integers(0, firms, size=n)))


FORMULAS = ["place*kind", "place*kind + place*sex", "place*kind*sex", "(place+region)*kind"]


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(FORMULAS), st.booleans())
def test_an_audited_table_of_counts_never_discloses(seed, formula, zeros):
    hierarchies = {} if "region" in formula else {"place": "region"}
    table = Table.from_microdata(
        records(seed), formula, hierarchies=hierarchies, zeros="all" if zeros else "observed"
    )
    table = primary(table, Threshold.up_to(3, zeros=zeros))
    result = Suppression().apply(table)
    assert result.audit.exact.height == 0
    assert result.audit.by_contributors.height == 0
    x = table.x.toarray()
    open_columns = x[:, ~result.suppressed]
    rank = np.linalg.matrix_rank(open_columns) if open_columns.size else 0
    for cell in np.flatnonzero(table.cells["primary"].to_numpy()):
        assert np.linalg.matrix_rank(np.hstack([open_columns, x[:, [cell]]])) > rank


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 100_000), st.sampled_from([None, 12, 30]))
def test_an_audited_table_of_sums_discloses_to_no_contributor(seed, firms):
    table = Table.from_microdata(
        records(seed, firms=firms), "place*kind", measure="turnover", hierarchies={"place": "region"},
        contributor="firm" if firms else None,
    )  # fmt: skip
    result = Suppression().apply(primary(table, Dominance(1, 85)))
    assert result.audit.exact.height == 0
    assert result.audit.by_contributors.height == 0


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 100_000))
def test_with_intervals_every_primary_cell_keeps_its_distance_or_is_named_unsafe(seed):
    table = Table.from_microdata(
        records(seed, n=200), "place*kind", measure="turnover", hierarchies={"place": "region"}
    )
    table = primary(table, Dominance(1, 85))
    result = Suppression(intervals=True, protection=0.2).apply(table)
    narrow = result.audit.intervals.filter(~pl.col("wide_enough"))["cell"].to_list()
    assert set(narrow) <= set(result.unsafe.tolist())
    assert result.audit.exact.height == 0


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 100_000))
def test_the_optimum_is_no_dearer_than_the_elimination_and_protects(seed):
    table = primary(
        Table.from_microdata(records(seed, n=200), "place*kind", hierarchies={"place": "region"}),
        Threshold(4),
    )
    if not table.cells["primary"].any():
        return
    best = Suppression(method="optimal").apply(table)
    quick = Suppression(intervals=True).apply(table)
    assert best.figures["proved_optimal"]
    assert best.audit.safe
    if quick.audit.safe:
        assert best.figures["secondary_value"] <= quick.figures["secondary_value"] + 1e-9


def brute_force(x, y, secret, price):
    """The cheapest set of cells after which no primary cell is pinned to one value."""
    from itertools import product

    from discreet.tables.feasibility_intervals import feasible_bounds

    others = [c for c in range(x.shape[1]) if c not in secret]
    best = np.inf
    for flags in product([False, True], repeat=len(others)):
        out = [c for c, flag in zip(others, flags, strict=True) if flag]
        cost = sum(price[c] for c in out)
        if cost >= best:
            continue
        published = [c for c in others if c not in out]
        found = feasible_bounds(x, y, published, secret)
        if (found.upper - found.lower >= 1 - 1e-9).all():
            best = cost
    return best


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_what_trying_every_choice_gives(seed):
    rng = np.random.default_rng(seed)
    x = np.array([[1, 0, 0, 0, 1, 0, 1, 0, 1], [0, 1, 0, 0, 1, 0, 0, 1, 1], [0, 0, 1, 0, 0, 1, 1, 0, 1],
                  [0, 0, 0, 1, 0, 1, 0, 1, 1]])  # fmt: skip
    y = rng.integers(1, 9, size=4)
    found = cheapest(x, y, [0], lower=0, upper=0, sliding=1)
    assert found.proved
    assert found.cost == pytest.approx(brute_force(x, y, [0], x.T @ y))


def small():
    return primary(Table.from_microdata(people((8, 1), (4, 4), (9, 7)), "place*sex"), Threshold(3))


def test_the_published_frame_has_no_suppressed_value_and_does_not_tell_which_cells_are_primary():
    result = Suppression().apply(small())
    out = result.published.filter(pl.col("status") == "suppressed")
    assert out.height == 1 + len(result.secondary)
    assert out["count"].null_count() == out.height
    assert set(result.published.columns) == {"place", "sex", "count", "status"}


def test_a_result_sums_itself_up_and_goes_to_json():
    result = Suppression().apply(small())
    assert "1 of 12 cells are primary by threshold(3), 3 more are left out" in result.summary()
    assert "8 are published" in result.summary()
    assert result.to_dict()["audit"]["safe"] is True
    assert len(result.reasons) == 3


def test_forced_cells_stay_and_hidden_cells_go():
    table = small()
    forced = Suppression(forced=[{"place": "b", "sex": "m"}]).apply(table)
    assert ("b", "m") not in forced.secondary
    hidden = Suppression(hidden=[{"place": "b"}]).apply(table)
    assert hidden.table.cells.filter(pl.col("suppressed") == "hidden").height == 1


def test_the_cost_column_decides_what_is_left_out():
    table = small()
    plain = Suppression().apply(table)
    worth = (
        pl.when((pl.col("place") == "b") & (pl.col("sex") != "Total")).then(10_000).otherwise(pl.col("count"))
    )
    priced = Suppression(cost="worth").apply(
        table.with_cells(worth=table.cells.select(worth.alias("w"))["w"])
    )
    assert any(key[0] == "b" for key in plain.secondary)
    assert not any(key[0] == "b" and key[1] != "Total" for key in priced.secondary)


def test_what_an_earlier_release_published_stays_published():
    before = Suppression().apply(small())
    more = Table.from_microdata(people((8, 2), (4, 4), (9, 7)), "place*sex")
    after = Suppression(previous=[before]).apply(primary(more, Threshold(3)))
    open_before = {key for key, out in zip(before.table.keys, before.suppressed, strict=True) if not out}
    open_after = {key for key, out in zip(after.table.keys, after.suppressed, strict=True) if not out}
    assert open_before <= open_after
    assert after.audit.successive is not None


def test_an_earlier_release_of_the_same_people_counts_as_published():
    data = people((8, 1), (4, 4), (9, 7))
    before = Suppression().apply(primary(Table.from_microdata(data, "place*sex"), Threshold(3)))
    now = primary(Table.from_microdata(data, "place*sex"), Threshold(3))
    after = Suppression(previous=[before]).apply(now)
    assert set(after.secondary) == set(before.secondary)
    assert after.audit.safe


def test_repair_mends_what_the_plain_elimination_leaves_to_contributors():
    table = Table.from_microdata(
        records(2, n=120), "place*kind", measure="turnover", hierarchies={"place": "region"}
    )
    table = primary(table, Dominance(1, 85))
    broken = Suppression(singleton_method=("virtual",), repair=False, tries=1).apply(table)
    mended = Suppression(singleton_method=("virtual",), tries=1).apply(table)
    assert broken.audit.by_contributors.height > 0
    assert mended.audit.by_contributors.height == 0
    assert mended.figures["repaired"] > 0


def test_asymmetric_and_sliding_protection():
    table = Table.from_microdata(
        records(3, n=200), "place*kind", measure="turnover", hierarchies={"place": "region"}
    )
    table = primary(table, Dominance(1, 85))
    for wish in (Protection(lower=0.1, upper=0.4), Protection(sliding=0.5)):
        found = Suppression(intervals=True, protection=wish).apply(table).audit.intervals
        width = found["upper"] - found["lower"]
        assert (width >= 0.5 * found["value"] - 1e-4 * (1 + found["value"])).all()


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="method"):
        Suppression(method="hypercube")
    with pytest.raises(ParameterError, match="tries"):
        Suppression(tries=0)
    with pytest.raises(ParameterError, match="no primary cells yet"):
        Suppression().apply(Table.from_microdata(people((3, 3)), "place*sex"))
    with pytest.raises(ParameterError, match="worht"):
        Suppression(cost="worht").apply(small())
    x = np.array([[1, 0, 1], [0, 1, 1]])
    with pytest.raises(InputError, match="too narrow"):
        cheapest(x, [3, 4], [0], lower=1, upper=1, forced=[1, 2])
    with pytest.raises(ParameterError, match="cost"):
        cheapest(x, [3, 4], [0], lower=1, upper=1, cost=[1.0])


def test_a_table_given_to_the_audit_by_its_result_column_is_the_same_table():
    result = Suppression().apply(small())
    flagged = result.table.with_cells(out=pl.Series(result.suppressed))
    assert audit(flagged, "out").safe


def test_totals_that_are_no_sums_are_warned_about():
    table = small()
    counts = table.cells["count"].to_list()
    counts[0] += 2
    with pytest.warns(DiscreetWarning, match="1 of 12 cells are not the sum"):
        Suppression().apply(table.with_cells(count=pl.Series(counts)))


@pytest.mark.parametrize("options", [{"cost": "place"}, {"protection": "place"}, {"forced": "place"}])
def test_a_column_of_cells_that_holds_something_else_is_named(options):
    table = Table.from_microdata(pl.DataFrame({"place": ["a", "a", "b"]}), "place")
    with pytest.raises(ParameterError, match=r"'place' of table\.cells"):
        Suppression(**options).apply(primary(table, Threshold(3)))
