import itertools

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk import record_links
from discreet.risk.linkage import linkage


def people(rows, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "age": rng.integers(18, 90, rows).astype(float),
            "income": np.exp(rng.normal(9, 0.7, rows)),
            "sex": rng.choice(["f", "m"], rows),
        }
    )


def noisy(table, share, seed=2):
    rng = np.random.default_rng(seed)
    return table.with_columns(
        pl.col(name) + pl.Series(rng.normal(0, share * table[name].std(), table.height))
        for name in ("age", "income")
    )


COLUMNS = ["age", "income", "sex"]


def test_an_untouched_file_is_led_back_completely():
    table = people(200)
    for method in ("distance", "assignment", "interval", "rank", "robust"):
        columns = COLUMNS if method in ("distance", "assignment") else ["age", "income"]
        assert linkage(Microdata(table), Microdata(table), method=method, columns=columns, seed=1).value == 1


def test_more_noise_means_fewer_links_and_pairing_everybody_once_finds_more():
    table = people(400)
    original = Microdata(table)
    shares = {}
    for method in ("distance", "assignment"):
        for noise in (0.02, 0.2, 1.0):
            release = Microdata(noisy(table, noise))
            shares[method, noise] = linkage(original, release, method=method, columns=COLUMNS, seed=1).value
        assert shares[method, 0.02] > shares[method, 0.2] > shares[method, 1.0]
    assert shares["assignment", 0.2] > shares["distance", 0.2]


def test_equally_near_originals_share_the_hit():
    original = Microdata(pl.DataFrame({"age": [30, 30, 30, 60]}))
    released = Microdata(pl.DataFrame({"age": [30, 31, 29, 60]}))
    found = linkage(original, released)
    assert found.detail["records"]["probability"].to_list() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert found.value == pytest.approx(0.5)
    assert found.figures["certain_share"] == 0.25
    assert linkage(original, released, method="assignment", seed=1).value == pytest.approx(0.5)


def test_a_column_can_say_who_is_who_whatever_the_order_of_the_rows():
    table = people(150)
    release = noisy(table, 0.05)
    by_row = linkage(Microdata(table), Microdata(release), columns=COLUMNS)
    shuffled = release.sample(fraction=1, shuffle=True, seed=3)
    by_id = linkage(Microdata(table, identifiers="id"), Microdata(shuffled), ids="id")
    assert by_id.value == pytest.approx(by_row.value)
    assert by_id.parameters["columns"] == COLUMNS


def test_released_records_without_an_original_cannot_be_linked_and_are_counted():
    table = people(50)
    stranger = table[:10].with_columns(id=pl.lit("x") + pl.col("id"))
    found = linkage(Microdata(table), Microdata(pl.concat([table, stranger])), ids="id", columns=COLUMNS)
    assert found.figures["linkable"] == 50
    assert found.value == pytest.approx(50 / 60)
    assert any("no original" in caveat for caveat in found.caveats)


def test_blanks_are_ignored_as_an_intruder_would():
    table = people(100)
    blank = table.with_columns(income=pl.lit(None, dtype=pl.Float64))
    ignoring = linkage(Microdata(table), Microdata(blank), columns=COLUMNS).value
    without = linkage(Microdata(table), Microdata(table), columns=["age", "sex"]).value
    assert ignoring == pytest.approx(without)


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_the_pairing_is_the_cheapest_of_all(rows, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=rows), rng.normal(size=rows)
    found = linkage(
        Microdata(pl.DataFrame({"x": x})), Microdata(pl.DataFrame({"x": y})), method="assignment", seed=1
    )
    cost = found.detail["records"]["distance"].sum() * np.ptp(x)
    best = min(np.abs(y - x[list(order)]).sum() for order in itertools.permutations(range(rows)))
    assert cost == pytest.approx(best)


@pytest.mark.parametrize("distance", ["gower", "euclidean"])
def test_weighing_only_near_candidates_finds_as_cheap_a_pairing_where_noise_is_small(monkeypatch, distance):
    """Sums of absolute differences have several cheapest pairings, so there only the cost must be the same."""
    table = people(300)
    files = Microdata(table), Microdata(noisy(table, 0.1))
    options = {"method": "assignment", "columns": COLUMNS, "distance": distance, "seed": 1}
    full = linkage(*files, **options).detail["records"]
    monkeypatch.setattr(record_links, "FULL_ASSIGNMENT", 10)
    near = linkage(*files, **options)
    assert "nearest" in near.parameters["solver"]
    assert near.detail["records"]["distance"].sum() == pytest.approx(full["distance"].sum())
    if distance == "euclidean":
        assert near.detail["records"]["linked_to"].equals(full["linked_to"])


def test_the_order_of_rows_does_not_help_when_nothing_tells_records_apart():
    """Two values, so half of 100 records look alike: about 2 of 100 are right, whatever the pairing."""
    table = pl.DataFrame({"sex": ["f", "m"] * 50})
    for method in ("distance", "assignment"):
        assert linkage(Microdata(table), Microdata(table), method=method, seed=1).value == pytest.approx(0.02)


def test_intervals_are_so_many_standard_deviations_to_each_side():
    x = np.array([0.0, 10.0, 20.0, 30.0])
    shift = np.array([0.0, 1.0, 2.0, 5.0])
    original = Microdata(pl.DataFrame({"x": x, "y": x}))
    released = Microdata(pl.DataFrame({"x": x + shift, "y": x}))
    width = 2.0 / x.std()
    found = linkage(original, released, method="interval", width=width)
    assert found.detail["records"]["inside"].to_list() == [True, True, True, False]
    assert found.figures["interval_share_mean"] == pytest.approx((0.75 + 1) / 2)
    assert dict(found.detail["variables"].iter_rows()) == {"x": 0.75, "y": 1.0}


def test_rank_intervals_reach_so_many_ranks_to_each_side():
    released = np.arange(0, 100, 10.0)
    original = released + np.array([0, 9, 11, -9, -11, 0, 0, 0, 0, 30])
    found = linkage(
        Microdata(pl.DataFrame({"x": original})),
        Microdata(pl.DataFrame({"x": released})),
        method="rank",
        width=0.1,
    )
    inside = [True, True, False, True, False, True, True, True, True, False]
    assert found.detail["records"]["inside"].to_list() == inside


def test_robust_intervals_are_wider_for_people_far_out_and_crowds_hide():
    rng = np.random.default_rng(5)
    centre = rng.normal(size=(200, 2))
    far = np.array([[8.0, 8.0], [9.0, -7.0]])
    x = np.vstack([centre, far])
    table = pl.DataFrame(x, schema=["a", "b"])
    moved = table.with_columns(pl.col("a") + 0.5)
    found = linkage(Microdata(table), Microdata(moved), method="robust", width=0.01, seed=1)
    records = found.detail["records"]
    assert records["inside"].to_list()[-2:] == [True, True]
    assert records["inside"][:200].mean() < 0.05
    assert found.figures["weighted_share"] > found.figures["interval_share"]
    wide = linkage(Microdata(table), Microdata(table), method="robust", crowd_width=0.5, seed=1)
    assert wide.figures["uncrowded_share"] < wide.figures["interval_share"] == 1
    assert not wide.detail["records"]["crowded"].to_list()[-1]


def test_missing_numbers_are_left_out_of_the_intervals_and_counted():
    original = Microdata(pl.DataFrame({"x": [1.0, 2.0, None], "y": [1.0, 9.0, 3.0]}))
    released = Microdata(pl.DataFrame({"x": [1.0, None, None], "y": [1.0, 9.0, 3.0]}))
    found = linkage(original, released, method="interval")
    assert found.value == 1
    assert any("2 values are missing" in caveat for caveat in found.caveats)


def test_bad_input_is_refused_with_the_way_out():
    table = people(30)
    data = Microdata(table)
    with pytest.raises(ParameterError, match="method"):
        linkage(data, data, method="magic")
    with pytest.raises(ParameterError, match="ids="):
        linkage(data, Microdata(table[:20]))
    with pytest.raises(ColumnError, match="both"):
        linkage(data, data, ids="nobody")
    with pytest.raises(ColumnError, match="not unique"):
        linkage(data, data, ids="sex")
    with pytest.raises(ColumnError, match="counterpart"):
        linkage(data, Microdata(table.with_columns(id=pl.lit("y") + pl.col("id"))), ids="id")
    with pytest.raises(ColumnError, match="not numeric"):
        linkage(data, data, method="interval", columns=["sex"])
    with pytest.raises(ParameterError, match="width must be a number of at least 0"):
        linkage(data, data, method="interval", columns=["age"], width=-1)
    with pytest.raises(ParameterError, match="complete records"):
        linkage(Microdata(table[:5]), Microdata(table[:5]), method="robust", columns=["age", "income"])
    twice = Microdata(table.with_columns(twice=pl.col("age") * 2))
    with pytest.raises(ParameterError, match="functions of one another"):
        linkage(twice, twice, method="robust", columns=["age", "twice"])
    flat = Microdata(pl.DataFrame({"x": [0.0] * 25 + [1.0] * 5, "y": np.arange(30.0)}))
    with pytest.raises(ColumnError, match="same"):
        linkage(flat, flat, method="robust")
    with pytest.raises(ParameterError, match="Nothing is left"):
        linkage(data, data, columns=["id"], ids="id")


def test_rows_of_a_query_engine_have_no_order_and_need_a_linking_column():
    duckdb = pytest.importorskip("duckdb")
    table = people(40)
    connection = duckdb.connect()
    connection.register("people", table.to_arrow())
    relation = connection.sql("select * from people")
    with pytest.raises(ParameterError, match="no order"):
        linkage(Microdata(relation), Microdata(table), columns=COLUMNS)
    found = linkage(Microdata(relation, identifiers="id"), Microdata(table), ids="id")
    assert found.value == 1


class TestProbabilistic:
    pytest.importorskip("splink", reason="the extra 'linkage' (splink) is not installed")

    @pytest.mark.slow
    def test_it_links_as_well_as_distances_and_its_links_are_mostly_right(self):
        table = people(250)
        release = noisy(table, 0.03)
        found = linkage(Microdata(table), Microdata(release), method="probabilistic", columns=COLUMNS, seed=1)
        assert found.value > 0.3
        assert found.figures["compared_pairs"] == 250 * 250
        assert found.figures["links"] == 0 or found.figures["precision"] > 0.5
        again = linkage(Microdata(table), Microdata(release), method="probabilistic", columns=COLUMNS, seed=1)
        assert found.figures == again.figures

    def test_blocking_compares_only_records_that_agree(self):
        table = people(120)
        found = linkage(
            Microdata(table),
            Microdata(table),
            method="probabilistic",
            columns=COLUMNS,
            blocking=["sex"],
            seed=1,
        )
        men = (table["sex"] == "m").sum()
        assert found.figures["compared_pairs"] == men**2 + (120 - men) ** 2
        assert found.value == 1

    def test_bad_blocking_and_thresholds_are_refused(self):
        data = Microdata(people(20))
        for wrong, error in (
            ({"blocking": ["sexx"]}, ColumnError),
            ({"blocking": COLUMNS}, ParameterError),
            ({"threshold": 1.5}, ParameterError),
        ):
            with pytest.raises(error):
                linkage(data, data, method="probabilistic", columns=COLUMNS, **wrong)
