import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.outliers import outliers


def people(rows, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "income": np.exp(rng.normal(9, 1.0, rows)),
            "home": rng.choice(["own", "rent"], rows),
        }
    )


def test_outliers_are_more_than_three_population_deviations_out_in_any_or_all_columns():
    table = people(2000, 1)
    z = np.abs((table["income"].to_numpy() - table["income"].mean()) / table["income"].std(ddof=0)) > 3
    old = np.abs((table["age"].to_numpy() - table["age"].mean()) / table["age"].std(ddof=0)) > 3
    data = Microdata(table)
    assert outliers(data, data).figures["outliers"] == (z | old).sum()
    assert outliers(data, data, combine="all").figures["outliers"] == (z & old).sum() == 0


def test_the_cutoff_is_strict():
    table = pl.DataFrame({"x": [0.0] * 8 + [10.0, -10.0]})
    at = 10 / table["x"].std(ddof=0)
    data = Microdata(table)
    assert outliers(data, data, cutoff=at * (1 - 1e-9)).figures["outliers"] == 2
    assert outliers(data, data, cutoff=at).figures["outliers"] == 0


def test_tukey_and_median_rules_find_the_far_point():
    data = Microdata(pl.DataFrame({"x": [*np.arange(20.0), 100.0]}))
    for rule in ("tukey", "mad"):
        found = outliers(data, data, rule=rule)
        assert found.detail["records"]["record"].to_list() == [20]


def test_nobody_stands_out_gives_zeros_not_a_crash():
    data = Microdata(pl.DataFrame({"x": np.arange(10.0)}))
    found = outliers(data, data)
    assert found.value == 0
    assert found.figures["matched_share"] is None
    assert "nobody" in found.meaning
    assert found.detail["pairs"].height == 0


def test_a_copy_gives_its_outliers_away_and_a_holdout_tells_chance():
    original, holdout = Microdata(people(1500, 2)), Microdata(people(1500, 3))
    found = outliers(original, original, holdout=holdout, offset=0.0, scale={"age": 0.5, "income": 10.0})
    assert found.figures["matched_share"] == 1
    assert found.figures["matched_share_holdout"] < 0.2
    assert found.figures["matched_share_excess"] > 0.8
    assert not any("hold-out file (holdout" in caveat for caveat in found.caveats)


def test_records_with_missing_values_are_left_out_and_counted():
    table = people(300, 4).with_columns(
        home=pl.when(pl.int_range(pl.len()) < 7).then(None).otherwise(pl.col("home"))
    )
    found = outliers(Microdata(table), Microdata(table))
    assert found.figures["excluded_original"] == found.figures["excluded_released"] == 7
    assert any("missing value" in caveat for caveat in found.caveats)


def test_copies_in_the_release_count_once_when_collapsed():
    original = Microdata(pl.DataFrame({"x": [1.0, 50.0]}))
    released = Microdata(pl.DataFrame({"x": [50.0, 50.0, 9.0]}))
    options = {"targets": [False, True], "offset": 1.0, "scale": 1.0}
    assert outliers(original, released, **options).figures["pairs"] == 2
    collapsed = outliers(original, released, collapse=True, **options)
    assert collapsed.value == 1
    assert collapsed.detail["pairs"].select("original", "released").row(0) == (1, 0)


def test_only_outliers_of_the_release_can_be_demanded():
    original = Microdata(pl.DataFrame({"x": [*np.zeros(30), 9.0], "y": [*np.arange(30.0), 3.0]}))
    every = outliers(original, original, columns=["y"], targets=[True] * 31, offset=0.0, scale=0.1)
    extreme = outliers(
        original,
        original,
        columns=["y"],
        targets=[True] * 31,
        offset=0.0,
        scale=0.1,
        sides="both",
        cutoff=1.5,
    )
    assert every.figures["matched"] == 31
    assert 0 < extreme.figures["matched"] < 31


def test_words_can_be_alike_instead_of_equal():
    original = Microdata(pl.DataFrame({"x": [1.0, 2.0], "job": ["teacher", "farmer"]}))
    released = Microdata(pl.DataFrame({"x": [1.0, 2.0], "job": ["teachers", "welder"]}))
    options = {"targets": [True, True], "offset": 0.1, "scale": 0.1}
    assert outliers(original, released, **options).figures["pairs"] == 0
    for likeness, score in (("levenshtein", 1 - 1 / 8), ("jaro_winkler", 0.975)):
        found = outliers(original, released, likeness=likeness, likeness_threshold=0.8, **options)
        assert found.detail["pairs"]["job score"].to_list() == pytest.approx([score])


def test_the_riskiest_of_several_releases_is_reported():
    original = people(800, 5)
    variants = {
        "fresh": Microdata(people(800, 6)),
        "copy": Microdata(original),
        "small": Microdata(people(50, 7)),
    }
    found = outliers(Microdata(original), variants, offset=0.0, scale={"age": 0.5, "income": 5.0})
    table = found.detail["variants"]
    assert table["variant"].to_list() == ["fresh", "copy", "small"]
    assert found.value == table["single_match"].max()
    assert "'copy'" in found.meaning


def test_a_column_without_spread_is_skipped_with_a_caveat():
    table = people(300, 1).with_columns(same=pl.lit(5.0))
    found = outliers(Microdata(table), Microdata(table))
    assert any("same" in caveat for caveat in found.caveats)


def test_bad_input_is_refused_with_the_way_out():
    data = Microdata(people(30, 1))
    flat = Microdata(pl.DataFrame({"x": [1.0, 1.0]}))
    for wrong in (
        {"combine": "some"},
        {"rule": "iqr"},
        {"cutoff": 0},
        {"kind": "cosine"},
        {"threshold": 0},
        {"likeness": "soundex"},
        {"sides": "none"},
        {"scale": 0},
        {"offset": -1},
        {"targets": [True]},
    ):
        with pytest.raises(ParameterError):
            outliers(data, data, **wrong)
    with pytest.raises(ColumnError, match="stand out"):
        outliers(flat, flat)
    with pytest.raises(ColumnError, match="stand out"):
        outliers(data, data, columns=["home"])
    with pytest.raises(ColumnError, match="offset names"):
        outliers(data, data, offset={"home": 1})
    with pytest.raises(ColumnError, match="text in another"):
        outliers(data, Microdata(people(5, 1).with_columns(age=pl.lit("old"))))
    with pytest.raises(ParameterError, match="no release"):
        outliers(data, {})


@settings(deadline=None, max_examples=examples(20))
@given(
    st.integers(2, 60),
    st.integers(1, 60),
    st.sampled_from(["gauss", "linear", "exp", "squared", "step"]),
    st.floats(0.05, 1.0),
    st.integers(0, 10**6),
)
def test_a_pair_is_a_match_exactly_when_every_score_reaches_the_threshold(
    rows, others, kind, threshold, seed
):
    from discreet.risk.fuzzy_match import similarity

    ours, theirs = people(rows, seed), people(others, seed + 1)
    tolerance = {"age": 6.0, "income": 4000.0}
    found = outliers(
        Microdata(ours),
        Microdata(theirs),
        targets=[True] * rows,
        kind=kind,
        threshold=threshold,
        offset=tolerance,
        scale=tolerance,
    )
    match = ours["home"].to_numpy()[:, None] == theirs["home"].to_numpy()[None]
    for name, size in tolerance.items():
        apart = np.abs(ours[name].to_numpy()[:, None] - theirs[name].to_numpy()[None])
        match &= similarity(apart, kind=kind, offset=size, scale=size) >= threshold - 1e-9
    assert found.figures["pairs"] == match.sum()
    assert found.figures["single_match"] == (match.sum(axis=1) == 1).sum()
