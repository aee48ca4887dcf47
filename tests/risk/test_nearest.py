import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.identifiability import column_entropy, identifiability
from discreet.risk.nearest_neighbors import neighbors
from discreet.risk.shared_neighbors import clusters_of, shared_neighbors


def people(rows, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    table = pl.DataFrame(
        {
            "age": age,
            "income": np.round(np.exp(rng.normal(9, 0.6, rows)) * (1 + age / 100), 2),
            "sex": rng.choice(["f", "m"], rows),
            "job": rng.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    return Microdata(
        table.with_columns(
            pl.when(pl.Series(rng.random(rows) >= missing)).then(pl.col(name)).alias(name)
            for name in table.columns
        )
    )


def test_a_copy_of_the_original_is_found_out():
    original, holdout = people(300, 1), people(300, 2)
    found = neighbors(original, original, holdout=holdout, seed=1).figures
    assert found["dcr_median"] == 0
    assert found["identical_share"] == 1
    assert found["hitting_rate"] == 1
    assert found["nndr_median"] == 0
    assert found["dcr_share_closer_than_holdout"] == 1
    assert found["epsilon_identifiability"] == 1
    assert found["epsilon_excess_over_holdout"] > 0.3
    assert found["hitting_rate_excess"] > 0.5


def test_fresh_people_are_as_close_to_the_holdout_as_to_the_original():
    """Tolerance: four standard errors of a share of 1,000 records is 0.064."""
    found = neighbors(people(1000, 3), people(1000, 4), holdout=people(1000, 5), seed=1).figures
    assert found["dcr_share_closer_than_holdout"] == pytest.approx(0.5, abs=0.064)
    assert found["epsilon_excess"] == pytest.approx(0, abs=0.064)
    assert found["epsilon_excess_over_holdout"] == pytest.approx(0, abs=0.09)
    assert found["dcr_median"] == pytest.approx(found["dcr_holdout_median"], rel=0.15)


def test_a_smaller_holdout_is_held_against_a_sample_of_the_same_size():
    found = neighbors(people(1500, 3), people(1000, 4), holdout=people(300, 5), seed=1).figures
    assert found["dcr_share_closer_than_holdout"] == pytest.approx(0.5, abs=0.07)
    again = neighbors(people(1500, 3), people(1000, 4), holdout=people(300, 5), seed=1).figures
    assert found == again


def test_without_a_holdout_its_figures_are_undefined_and_a_caveat_says_so():
    found = neighbors(people(50, 1), people(40, 2))
    assert found.figures["dcr_share_closer_than_holdout"] is None
    assert found.value == found.figures["dcr_median"]
    assert any("hold-out" in caveat for caveat in found.caveats)


def test_hits_are_equal_categories_and_numbers_within_a_thirtieth_of_the_range():
    original = Microdata(pl.DataFrame({"x": [0.0, 10, 20, 30, None], "s": ["a", "a", "b", None, "a"]}))
    released = Microdata(pl.DataFrame({"x": [1.0, 11.5, 20, 29.5, None], "s": ["a", "a", "a", None, "a"]}))
    table = neighbors(original, released).detail["originals"]
    assert table["hit"].to_list() == [True, False, False, True, True]


def test_the_distance_table_names_the_nearest_original():
    original = Microdata(pl.DataFrame({"x": [0.0, 4.0, 10.0]}))
    released = Microdata(pl.DataFrame({"x": [1.0, 9.0]}))
    table = neighbors(original, released).detail["records"]
    assert table["nearest_original"].to_list() == [0, 2]
    assert table["dcr"].to_list() == pytest.approx([0.1, 0.1])
    assert table["nndr"].to_list() == pytest.approx([1 / 3, 1 / 5])


def test_a_record_on_top_of_two_originals_points_at_neither():
    original = Microdata(pl.DataFrame({"x": [1.0, 1.0, 5.0]}))
    assert neighbors(original, Microdata(pl.DataFrame({"x": [1.0]}))).figures["nndr_median"] == 1


def test_missing_values_count_as_a_value_and_are_reported():
    found = neighbors(people(200, 1, 0.1), people(200, 2, 0.1))
    assert any("missing values" in caveat for caveat in found.caveats)


def test_details_come_back_in_the_kind_of_frame_that_went_in():
    import pandas as pd

    frame = people(30, 1).frame.to_pandas()
    found = neighbors(Microdata(frame), Microdata(people(30, 2).frame.to_pandas()))
    assert all(isinstance(found.detail[name], pd.DataFrame) for name in found.detail)


def test_identifiers_and_weights_are_left_out_unless_the_columns_are_named():
    table = people(30, 1).frame.with_columns(id=pl.int_range(30), w=pl.lit(2.0))
    found = neighbors(Microdata(table, identifiers="id", weight="w"), Microdata(table))
    assert found.parameters["columns"] == ["age", "income", "sex", "job"]
    with pytest.raises(ColumnError, match="direct identifier"):
        neighbors(Microdata(table, identifiers="id"), Microdata(table), columns=["id"])


def test_bad_input_is_refused_with_the_way_out():
    data = people(20, 1)
    with pytest.raises(ColumnError, match="the release lacks it"):
        neighbors(data, Microdata(data.frame.drop("age")), columns=["age"])
    with pytest.raises(ColumnError, match="categorical"):
        neighbors(data, data, categorical=["agee"])
    with pytest.raises(ColumnError, match="varies"):
        neighbors(*[Microdata(pl.DataFrame({"x": [1.0, 1.0]}))] * 2)
    with pytest.raises(ParameterError, match="one record"):
        neighbors(Microdata(data.frame[:1]), data)
    with pytest.raises(ParameterError, match="hit_tolerance"):
        neighbors(data, data, hit_tolerance=-1)
    with pytest.raises(ParameterError, match="weights"):
        identifiability(data, data, weights="inverse")
    with pytest.raises(ColumnError, match="weights"):
        identifiability(data, data, weights={"agee": 1})
    with pytest.raises(ParameterError, match="similarity"):
        shared_neighbors(data, data, k=2, similarity=3)
    with pytest.raises(ParameterError, match="need at least"):
        shared_neighbors(Microdata(data.frame[:2]), Microdata(data.frame[:2]))


def test_people_with_a_twin_are_never_identified_and_are_counted():
    original = Microdata(pl.DataFrame({"x": [1.0, 1.0, 5.0, 9.0]}))
    found = identifiability(original, original, weights="none")
    assert found.figures["duplicates"] == 2
    assert found.figures["identified"] == 2


def test_entropy_weights_drop_a_constant_column_and_favour_even_spread():
    assert column_entropy(pl.Series(["a"] * 5)) == 0
    assert column_entropy(pl.Series([1, 2, 3, 4]), as_category=True) == pytest.approx(np.log(4))
    # Quartiles 1.75 and 3.25, so bins of 2 * 1.5 / cube root of 4: two of them on a range of 3.
    assert column_entropy(pl.Series([1.0, 2.0, 3.0, 4.0])) == pytest.approx(np.log(2))
    mostly_zero = pl.Series([0.0] * 90 + list(range(1, 11)))
    assert 0 < column_entropy(mostly_zero) < 1
    found = identifiability(
        Microdata(pl.DataFrame({"x": [1.0, 2, 3], "c": [7, 7, 7]})),
        Microdata(pl.DataFrame({"x": [1.0], "c": [7]})),
    )
    assert dict(found.detail["variables"].iter_rows())["c"] == 0


def test_noise_can_count_as_risky_and_clusters_need_enough_links():
    rng = np.random.default_rng(1)
    real = Microdata(pl.DataFrame(rng.normal(size=(60, 3)), schema=["a", "b", "c"]))
    fake = Microdata(pl.DataFrame(rng.normal(size=(60, 3)), schema=["a", "b", "c"]))
    quiet = shared_neighbors(real, fake, k=4, similarity=4)
    loud = shared_neighbors(real, fake, k=4, similarity=4, noise="risky")
    assert loud.value > quiet.value
    assert shared_neighbors(real, fake, min_points=50).figures["noise_share"] == 1


@settings(deadline=None, max_examples=examples(20))
@given(st.integers(12, 60), st.integers(4, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_clusters_follow_the_definition_pair_by_pair(n, k, similarity, min_points, seed):
    rng = np.random.default_rng(seed)
    lists = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    sets = [set(row) for row in lists]
    strength = np.zeros((n, n), dtype=int)
    for i in range(n):
        for j in range(n):
            if i != j and (j in sets[i] or i in sets[j]):
                strength[i, j] = len(sets[i] & sets[j]) + (j in sets[i] and i in sets[j])
    linked = strength >= similarity
    core = 1 + linked.sum(axis=1) >= min_points
    labels = clusters_of(lists, similarity, min_points)
    for i in range(n):
        reachable = linked[i] & core
        if core[i]:
            assert labels[i] >= 0
            assert set(labels[reachable]) <= {labels[i]}
        elif reachable.any():
            best = max(np.flatnonzero(reachable), key=lambda j: (strength[i, j], -j))
            assert labels[i] == labels[best]
        else:
            assert labels[i] == -1


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(5, 60), st.integers(2, 60), st.integers(0, 10**6))
def test_shares_stay_between_zero_and_one_whatever_the_files(rows, others, seed):
    found = neighbors(people(rows, seed, 0.2), people(others, seed + 1, 0.2), holdout=people(7, seed + 2))
    for name, figure in found.figures.items():
        if figure is not None and "excess" not in name and name != "identical_records":
            assert 0 <= figure <= 1, name
