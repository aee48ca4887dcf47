"""Tables that were made apart and are protected together."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import DiscreetWarning, InputError, ParameterError
from discreet.tables import (
    ControlledRounding,
    Dominance,
    Suppression,
    Table,
    Threshold,
    audit,
    equations,
    expanded,
    primary,
)
from discreet.tables.exact_disclosure import computable
from discreet.tables.feasibility_intervals import feasible_bounds
from discreet.tables.table_linking import ring

CODES = {"a": ["a1", "a2", "a3"], "b": ["b1", "b2"], "c": ["c1", "c2", "c3"]}
CROSS = pl.DataFrame([dict(zip(CODES, key, strict=True)) for key in product(*CODES.values())])


def cube(counts):
    return CROSS.with_columns(n=pl.Series(counts))


def aggregated(frame, dimensions, **options):
    """A table made apart, from a file with its totals."""
    whole = Table.from_microdata(frame, "*".join(dimensions), count="n")
    cells = whole.cells.select(*dimensions, pl.col("count").alias("n"))
    return Table.from_cells(cells, dimensions, count="n", **options)


def linked(frame, *layouts):
    return Table.link([aggregated(frame, layout) for layout in layouts])


def from_records(frame, *layouts):
    """The same tables with the crossing of all dimensions as inner cells, in the order of the linked cells."""
    return Table.from_microdata(frame, "+".join("*".join(layout) for layout in layouts), count="n")


def places(table, like):
    keys = {frozenset(zip(table.dimensions, key, strict=True)): i for i, key in enumerate(table.keys)}
    return np.array([keys[frozenset(zip(like.dimensions, key, strict=True))] for key in like.keys])


LAYOUTS = {
    "chain": (["a", "b"], ["b", "c"]),
    "apart": (["a"], ["b"], ["c"]),
    "ring": (["a", "b"], ["b", "c"], ["a", "c"]),
    "inside": (["a", "b"], ["a"], ["a", "c"]),
}


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_what_can_be_computed_is_what_the_crossing_of_all_dimensions_would_say(name, seed, share):
    rng = np.random.default_rng(seed)
    frame = cube(rng.integers(1, 9, CROSS.height))
    ours, theirs = linked(frame, *LAYOUTS[name]), from_records(frame, *LAYOUTS[name])
    at = places(theirs, ours)
    assert ours.cells.height == theirs.cells.height
    assert (ours.values == theirs.values[at]).all()
    hidden = rng.random(ours.cells.height) < share
    joined = np.flatnonzero(hidden)
    x = np.hstack([ours.x.toarray(), ours.joined.ties.toarray()])
    published = np.concatenate([~hidden, np.ones(ours.joined.ties.shape[1], dtype=bool)])
    found = computable(x, published, joined).cells
    expected = computable(theirs.x[:, at], ~hidden, joined).cells
    assert found.tolist() == expected.tolist()


@settings(max_examples=examples(10), deadline=None)
@given(st.sampled_from(["chain", "apart", "inside"]), st.integers(0, 2**32 - 1))
def test_intervals_are_those_of_the_crossing_where_tables_do_not_overlap_in_a_ring(name, seed):
    rng = np.random.default_rng(seed)
    frame = cube(rng.integers(1, 9, CROSS.height))
    ours, theirs = linked(frame, *LAYOUTS[name]), from_records(frame, *LAYOUTS[name])
    at = places(theirs, ours)
    hidden = np.flatnonzero(rng.random(ours.cells.height) < 0.5)
    flagged = ours.with_cells(primary=np.isin(np.arange(ours.cells.height), hidden))
    found = audit(flagged, intervals=True).intervals
    shown = np.setdiff1d(np.arange(ours.cells.height), hidden)
    # Nobody knows that every combination of all dimensions occurs, only that those of each table do: bounds from 0.
    expected = feasible_bounds(theirs.x[:, at], theirs.inner["count"].to_numpy(), shown, hidden)
    assert (found["upper"].to_numpy() <= expected.upper + 1e-6).all()
    assert (found["lower"].to_numpy() >= expected.lower - 1e-6).all()
    own = np.hstack([ours.x.toarray(), ours.joined.ties.toarray()])
    both = np.concatenate([shown, np.arange(ours.cells.height, own.shape[1])])
    plain = feasible_bounds(own, ours.inner["count"].to_numpy(), both, hidden)
    assert np.allclose(plain.lower, expected.lower, atol=1e-6)
    assert np.allclose(plain.upper, expected.upper, atol=1e-6)


@settings(max_examples=examples(15), deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.lists(st.integers(0, 6), min_size=18, max_size=18))
def test_a_protected_set_of_linked_tables_gives_no_sensitive_cell_away(name, counts):
    if sum(counts) == 0:
        return
    frame = cube(counts).filter(pl.col("n") > 0)
    table = primary(linked(frame, *LAYOUTS[name]), Threshold(3))
    if not table.cells["primary"].any() or table.cells["primary"].all():
        return
    result = Suppression().apply(table)
    assert result.audit.exact.height == 0


def test_shared_cells_occur_once_and_go_out_with_all_tables_or_with_none():
    frame = cube([9, 1, 8, 7, 2, 9, 8, 8, 1, 9, 7, 9, 1, 9, 9, 8, 7, 9])
    table = linked(frame, ["a", "b"], ["b", "c"])
    assert table.cells.height == 12 + 12 - 3
    assert table.tables == ("a*b", "b*c")
    result = Suppression().apply(primary(table, Threshold(18)))
    assert result.secondary
    assert result.audit.safe
    one, other = result.published_in("a*b"), result.published_in("b*c")
    assert one.columns == ["a", "b", "count", "status"]
    assert (one.height, other.height) == (12, 12)
    shared = one.filter(pl.col("a") == "Total").select("b", "status").sort("b")
    assert shared.equals(other.filter(pl.col("c") == "Total").select("b", "status").sort("b"))


def test_each_table_by_itself_would_be_safe_and_both_together_are_not():
    frame = cube([9, 1, 8, 7, 2, 9, 8, 8, 1, 9, 7, 9, 1, 9, 9, 8, 7, 9])
    table = linked(frame, ["a", "b"], ["b", "c"])
    one, other = aggregated(frame, ["a", "b"]), aggregated(frame, ["b", "c"])
    secret = {"a": "a1", "b": "b1"}
    left_out = [secret, {"b": "b1"}, {"a": "a1"}, {"b": "b2"}, {"a": "a1", "b": "b2"}]
    flagged = one.with_cells(primary=np.arange(one.cells.height) == one.find(**secret))
    assert audit(flagged, left_out).safe
    # The other table publishes the totals of b, of which the first withholds one.
    both = table.with_cells(primary=np.arange(table.cells.height) == table.find(**secret))
    assert not audit(both, [secret]).safe
    assert other.cells.height == 12


def test_sums_of_every_table_are_known_once():
    table = linked(cube(range(1, 19)), ["a", "b"], ["b", "c"])
    sums = equations(table)
    assert (abs(sums @ table.values) == 0).all()
    assert sums.shape[0] == len({row.tobytes() for row in sums.toarray()}) == 3 + 4 + 3 + 4 - 1


def test_rules_may_be_given_before_or_after():
    frame = cube(range(1, 19))
    before = Table.link(
        [primary(aggregated(frame, layout), Threshold(12)) for layout in (["a", "b"], ["b", "c"])]
    )
    after = primary(linked(frame, ["a", "b"], ["b", "c"]), Threshold(12))
    assert before.cells["primary"].to_list() == after.cells["primary"].to_list()
    assert before.cells["rule"].to_list() == after.cells["rule"].to_list()


def test_tables_may_stop_at_different_levels():
    tree = {"X": ["a1", "a2"], "Y": ["a3"]}
    fine = pl.DataFrame({"a": ["a1", "a2", "a3", "X", "Y", "Total"], "n": [4, 5, 6, 9, 6, 15]})
    coarse = pl.DataFrame(
        {
            "a": ["X", "Y", "Total"] * 3,
            "c": ["c1"] * 3 + ["c2"] * 3 + ["Total"] * 3,
            "n": [5, 3, 8, 4, 3, 7, 9, 6, 15],
        }
    )
    table = Table.link(
        [
            Table.from_cells(coarse, ["a", "c"], count="n"),
            Table.from_cells(fine, ["a"], count="n", hierarchies={"a": tree}),
        ]
    )
    assert table.hierarchy["a"].codes == ("Total", "X", "a1", "a2", "Y", "a3")
    assert table.cells.height == 9 + 3
    assert (table.x.T @ table.inner["count"].to_numpy() == table.values).all()
    # X by c1 follows from X (in the fine table alone) and X by c2.
    flagged = table.with_cells(primary=np.arange(12) == table.find(a="X", c="c1"))
    assert not audit(flagged, [{"a": "X", "c": "c1"}, {"a": "X"}, {"c": "c1"}]).safe


def test_what_lies_outside_a_part_bounds_the_part():
    country = pl.DataFrame({"size": ["s", "l", "Total"], "n": [10, 20, 30]})
    east = pl.DataFrame(
        {
            "size": ["s", "l", "Total"] * 3,
            "place": ["e1"] * 3 + ["e2"] * 3 + ["East"] * 3,
            "n": [6, 2, 8, 3, 7, 10, 9, 9, 18],
        }
    )
    table = Table.link(
        [
            Table.from_cells(country, ["size"], count="n"),
            Table.from_cells(east, ["size", "place"], count="n", total={"place": "East"}),
        ],
        total={"place": "Total"},
    )
    assert table.hierarchy["place"].codes[:2] == ("Total", "East")
    assert table.inner.filter(pl.col("place") == "not East")["count"].sort().to_list() == [1, 11]
    left_out = [{"size": "s", "place": p} for p in ("e1", "e2", "East")]
    left_out += [{"size": "l", "place": p} for p in ("e1", "e2", "East")]
    flagged = table.with_cells(primary=np.arange(table.cells.height) == table.find(size="s", place="East"))
    found = audit(flagged, left_out, intervals=True)
    assert found.safe
    # At most 10 in the whole country are small, and the remainder holds somebody.
    assert found.intervals["upper"].to_list() == [9.0]


def test_tables_that_disagree_are_reported_and_flagged():
    one = Table.from_cells(pl.DataFrame({"a": ["x", "y", "Total"], "n": [3, 4, 7]}), ["a"], count="n")
    other = Table.from_cells(pl.DataFrame({"b": ["u", "v", "Total"], "n": [3, 5, 8]}), ["b"], count="n")
    with pytest.warns(DiscreetWarning, match="do not agree on 1 of 1 shared"):
        table = Table.link([one, other])
    assert table.cells.filter(~pl.col("agree")).select("a", "b", "count").rows() == [("Total", "Total", 7)]
    assert Table.link([one, other], tolerance=1).cells["agree"].all()


def test_what_cannot_be_linked_is_refused_with_the_way_out():
    one = Table.from_cells(pl.DataFrame({"a": ["x", "y"], "n": [3, 4]}), ["a"], count="n")
    with pytest.raises(ParameterError, match="two or more tables"):
        Table.link([one])
    money = pl.DataFrame({"a": ["x", "y"], "n": [3, 4], "m": [1.0, 2.0]})
    with pytest.raises(ParameterError, match="different columns"):
        Table.link([one, Table.from_cells(money, ["a"], count="n", measure="m")])
    with pytest.raises(ParameterError, match="total of column 'a' has different codes"):
        Table.link(
            [
                one,
                Table.from_cells(pl.DataFrame({"a": ["x", "y"], "n": [3, 4]}), ["a"], count="n", total="All"),
            ]
        )
    apart = Table.from_microdata(pl.DataFrame({"b": ["u", "v"]}), "b - 1")
    with pytest.raises(InputError, match="share no cell"):
        Table.link([Table.from_microdata(pl.DataFrame({"a": ["u", "v"]}), "a - 1"), apart])


def test_protections_that_need_the_crossing_are_refused():
    table = linked(cube(range(1, 19)), ["a", "b"], ["b", "c"])
    with pytest.raises(ParameterError, match="one formula"):
        _ = table.leaves
    with pytest.raises(ParameterError, match="The protection controlled-rounding needs the crossing"):
        ControlledRounding(base=5).apply(table)
    with pytest.raises(ParameterError, match="one formula"):
        expanded(table)


def test_rings_of_tables_are_noticed():
    assert ring([frozenset("ab"), frozenset("bc"), frozenset("cd"), frozenset("da")])
    assert not ring([frozenset("ab"), frozenset("bc"), frozenset("abc")])


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.integers(0, 2**32 - 1), st.floats(0.3, 0.8), st.floats(0.2, 0.8))
def test_empty_combinations_say_what_the_possible_crossings_say(name, seed, empty, share):
    rng = np.random.default_rng(seed)
    frame = cube(np.where(rng.random(CROSS.height) < empty, 0, rng.integers(1, 9, CROSS.height)))
    frame = frame.filter(pl.col("n") > 0)
    if frame.height < 3:
        return
    layouts = LAYOUTS[name]
    ours = linked(frame, *layouts)
    assert "ring" not in " ".join(ours.notes)
    possible = CROSS
    for layout in layouts:
        possible = possible.join(frame.select(layout).unique(), on=layout, how="semi")
    theirs = from_records(possible.with_columns(n=pl.lit(1)), *layouts)
    at = places(theirs, ours)
    hidden = rng.random(ours.cells.height) < share
    x = np.hstack([ours.x.toarray(), ours.joined.ties.toarray()])
    published = np.concatenate([~hidden, np.ones(ours.joined.ties.shape[1], dtype=bool)])
    found = computable(x, published, np.flatnonzero(hidden)).cells
    expected = computable(theirs.x[:, at], ~hidden, np.flatnonzero(hidden)).cells
    assert found.tolist() == expected.tolist()


def test_two_sums_that_share_no_cell_are_known_to_be_equal_where_nothing_else_is_possible():
    # a1 is only in b1 and b1 only in a1, so that a1 by c and b1 by c are the same people.
    frame = pl.DataFrame(
        {
            "a": ["a1", "a1", "a2", "a2", "a3", "a3", "a2", "a3"],
            "b": ["b1", "b1", "b2", "b3", "b3", "b2", "b3", "b2"],
            "c": ["c1", "c2", "c1", "c2", "c1", "c2", "c1", "c1"],
            "n": [2, 9, 12, 14, 11, 13, 15, 16],
        }
    )
    table = linked(frame, ["a", "b"], ["b", "c"], ["a", "c"])
    secret = np.array([key == ("a1", "Total", "c1") for key in table.keys])
    flagged = table.with_cells(primary=secret)
    hidden = [{"a": "a1", "c": "c1"}, {"a": "a1", "c": "c2"}, {"a": "a2", "c": "c1"}, {"a": "a2", "c": "c2"}]
    assert not audit(flagged, hidden).safe
    result = Suppression().apply(flagged)
    assert result.audit.safe
    assert {("Total", "b1", "c1"), ("Total", "b1", "c2")} <= set(result.secondary)


def test_a_ring_whose_crossings_cannot_be_listed_is_said_to_be_one():
    frame = cube(range(1, 19))
    tree = {"X": ["a1", "a2"], "Y": ["a3"]}
    fine = Table.from_microdata(frame, "a*b", count="n", hierarchies={"a": tree})
    grouped = frame.with_columns(a=pl.col("a").replace_strict({"a1": "X", "a2": "X", "a3": "Y"}))
    coarse = Table.from_microdata(grouped, "a*c", count="n")
    table = Table.link([fine, coarse, Table.from_microdata(frame, "b*c", count="n")])
    assert table.joined.ring
    assert "overlap in a ring" in " ".join(table.notes)


def test_one_contributor_alone_in_two_tables_is_one_and_the_same():
    def table(name):
        rows = {name: ["x", "y", "z", "Total"], "n": [1, 5, 6, 12], "m": [7.0, 20.0, 30.0, 57.0]}
        rows["top"] = [7.0, 5.0, 6.0, 7.0]
        return Table.from_cells(pl.DataFrame(rows), [name], count="n", measure="m", largest="top")

    both = Table.link([table("a"), table("b")])
    assert both.inner["single"].drop_nulls().n_unique() == 1
    result = Suppression().apply(primary(both, Dominance(1, 85)))
    assert result.audit.safe
    assert set(result.secondary) <= {
        ("y", "Total"),
        ("Total", "y"),
        ("z", "Total"),
        ("Total", "z"),
    }
