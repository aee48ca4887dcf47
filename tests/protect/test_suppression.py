"""Local suppression: what is promised holds, and nothing else is touched."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import Microdata, engine
from discreet.core.errors import ColumnError, DiscreetError, ParameterError
from discreet.engine.wildcard import neighborhood_sizes
from discreet.protect import (
    suppression_merging,
    suppression_regrouping,
    suppression_search,
    suppression_solving,
)
from discreet.protect.local_suppression import LocalSuppression
from discreet.protect.suppression_counts import Alike, CountedRows
from discreet.protect.treatment import Treatment
from discreet.risk import k_anonymity, linkage, uniqueness

KEYS = ["a", "b", "c"]


def people(n: int = 300, seed: int = 1, *, gaps: float = 0.0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": random.integers(0, 5, n),
            "b": random.geometric(0.4, n).clip(1, 7),
            "c": random.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
            "w": random.uniform(1, 40, n),
            "h": random.integers(0, n // 3, n),
            "s": random.choice(["north", "south"], n),
        }
    )
    holes = [pl.when(pl.Series(random.random(n) >= gaps)).then(pl.col(key)).alias(key) for key in KEYS]
    return frame.with_columns(holes)


def smallest_company(frame: pl.DataFrame, keys: list[str], missing: str) -> int:
    """Count by definition, pair by pair; records that show nothing need no company.

    Gaps as values: the records with the same values. Gaps as wildcards: those that agree wherever both show a value
    and that show no fewer values, so that a complete record has only its complete equals.
    """
    rows = list(zip(*[frame[key].cast(pl.String).to_list() for key in keys], strict=True))
    if missing == "category":
        found = Counter(rows)
        return min((found[row] for row in rows if set(row) != {None}), default=len(rows))
    gaps = [row.count(None) for row in rows]
    return min(
        sum(
            theirs <= own and all(x is None or y is None or x == y for x, y in zip(left, right, strict=True))
            for right, theirs in zip(rows, gaps, strict=True)
        )
        for left, own in zip(rows, gaps, strict=True)
    )


def smallest_complete_class(frame: pl.DataFrame, keys: list[str]) -> int:
    """Count how many complete records equal the complete record that has fewest equals."""
    sizes = frame.drop_nulls(keys).group_by(keys).len()["len"]
    return int(sizes.min()) if len(sizes) else frame.height


@settings(max_examples=examples(40), deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 3)) for _ in KEYS]), min_size=6, max_size=40
    ),
    k=st.integers(2, 5),
    missing=st.sampled_from(["wildcard", "category"]),
)
def test_every_record_has_company_of_k_whatever_the_file(rows, k, missing):
    frame = pl.DataFrame(rows, schema=dict.fromkeys(KEYS, pl.Int64), orient="row").with_columns(d=pl.lit(1))
    data = Microdata(frame, keys=["d", *[key for key in KEYS if frame[key].null_count() < frame.height]])
    release = LocalSuppression(k=k, missing=missing).apply(data, seed=0)
    treated = release.data.frame
    keys = list(data.roles.keys)
    assert smallest_company(treated, keys, missing) >= k
    assert smallest_complete_class(treated, keys) >= k
    kept = treated.select((pl.col(key).is_null() | (pl.col(key) == frame[key])).all() for key in KEYS)
    assert all(kept.row(0))


@settings(max_examples=examples(25), deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 2)) for _ in KEYS], st.integers(0, 9)),
        min_size=6,
        max_size=40,
    ),
    k=st.integers(2, 4),
)
def test_company_is_counted_in_people_whatever_the_file(rows, k):
    schema = {**dict.fromkeys(KEYS, pl.Int64), "who": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(d=pl.lit(1))
    assume(frame["who"].n_unique() >= k)
    keys = ["d", *[key for key in KEYS if frame[key].null_count() < frame.height]]
    release = LocalSuppression(k=k).apply(Microdata(frame, keys=keys, person="who"))
    shown = release.data.frame.filter(pl.any_horizontal(pl.col(keys).is_not_null()))
    people = shown.group_by(keys).agg(pl.col("who").n_unique())["who"]
    assert len(people) == 0 or int(people.min()) >= k


def test_three_records_each_of_three_people_are_no_company_of_nine():
    frame = pl.DataFrame(
        {"a": [1] * 3 + [2] * 3 + [3] * 3, "b": ["x"] * 9, "who": [1] * 3 + [2] * 3 + [3] * 3}
    )
    data = Microdata(frame, keys=["a", "b"], person="who")
    release = LocalSuppression(k=3).apply(data)
    assert release.data.frame["a"].null_count() == 9
    assert "at least 3 people" in release.guarantee
    with pytest.raises(ParameterError, match="cannot be reached: the file has only 3 people"):
        LocalSuppression(k=4).apply(data)
    with pytest.raises(ParameterError, match="Use missing='category'"):
        LocalSuppression(k=3, missing="wildcard").apply(data)


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from(["wildcard", "category"]))
def test_every_key_subset_reaches_its_k(seed, missing):
    data = Microdata(people(80, seed, gaps=0.05), keys=KEYS)
    treated = LocalSuppression(subsets={1: 6, 2: 4}, k=2, missing=missing).apply(data).data.frame
    for size, k in ((1, 6), (2, 4), (3, 2)):
        for keys in combinations(KEYS, size):
            assert smallest_company(treated, list(keys), missing) >= k


@pytest.mark.parametrize("missing", ["wildcard", "category"])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_the_count_agrees_with_the_engine(missing, gaps):
    data = Microdata(people(gaps=gaps), keys=KEYS)
    release = LocalSuppression(k=4, missing=missing).apply(data)
    assert int(engine.class_table(release.data, KEYS, missing)["class_size"].min()) >= 4


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_company_is_counted_within_strata(missing):
    data = Microdata(people(), keys=KEYS)
    treated = LocalSuppression(k=3, strata="s", missing=missing).apply(data).data.frame
    for part in treated.partition_by("s"):
        assert smallest_company(part, KEYS, missing) >= 3


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_no_individual_risk_stays_above_the_threshold(missing):
    from discreet.risk.negative_binomial_risk import mean_reciprocal

    data = Microdata(people(), keys=KEYS, weight="w")
    treated = LocalSuppression(risk_threshold=0.03, missing=missing).apply(data).data.frame
    table = treated.group_by(KEYS).agg(records=pl.len().cast(pl.Int64), weights=pl.col("w").sum())
    size, weight = table["records"], table["weights"]
    if missing == "wildcard":
        size = neighborhood_sizes(table, KEYS)
        weight = neighborhood_sizes(table.select(*KEYS, records="weights"), KEYS)
    assert mean_reciprocal(size.to_numpy(), weight.to_numpy()).max() <= 0.03


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_household_keys_are_suppressed_for_the_whole_household(missing):
    frame = people(200)
    release = LocalSuppression(k=4, household_keys="a", missing=missing).apply(
        Microdata(frame, keys=KEYS, household="h")
    )
    gone = release.data.frame.group_by("h").agg(
        some=pl.col("a").is_null().any(), every=pl.col("a").is_null().all()
    )
    assert gone["some"].to_list() == gone["every"].to_list()
    assert gone["some"].any()
    assert smallest_company(release.data.frame, KEYS, missing) >= 4


def test_ghost_columns_follow_their_key():
    frame = people().with_columns(region=pl.col("a") * 10, office=pl.col("c").str.to_uppercase())
    release = LocalSuppression(k=4, ghosts={"a": ["region"], "c": ["office"]}).apply(
        Microdata(frame, keys=KEYS)
    )
    treated = release.data.frame
    assert treated["region"].is_null().to_list() == treated["a"].is_null().to_list()
    assert treated["office"].is_null().to_list() == treated["c"].is_null().to_list()
    assert treated["a"].null_count() > 0
    assert release.log[0].suppressed_cells["region"] == release.log[0].suppressed_cells["a"]


def test_the_most_important_key_loses_least():
    data = Microdata(people(400), keys=KEYS)
    for first in KEYS:
        order = [first, *[key for key in KEYS if key != first]]
        log = LocalSuppression(k=5, importance=order).apply(data).log[0]
        equal = LocalSuppression(k=5).apply(data).log[0]
        assert log.suppressed_cells.get(first, 0) <= equal.suppressed_cells.get(first, 0)
    dear = LocalSuppression(k=5, importance={"b": 1000.0}).apply(data).log[0]
    assert dear.suppressed_cells.get("b", 0) <= 2


def test_a_file_that_is_safe_already_is_left_alone():
    frame = pl.concat([people(50)] * 3)
    log = LocalSuppression(k=3).apply(Microdata(frame, keys=KEYS)).log[0]
    assert sum(log.suppressed_cells.values()) == 0


def test_gaps_as_wildcards_never_cost_more_than_gaps_as_values():
    data = Microdata(people(500), keys=KEYS)
    cells = [
        sum(LocalSuppression(k=4, missing=missing).apply(data).log[0].suppressed_cells.values())
        for missing in ("wildcard", "category")
    ]
    assert 0 < cells[0] <= cells[1]


def test_only_records_without_company_lose_cells_to_gaps_that_match_anything():
    frame = people(400)
    treated = LocalSuppression(k=3, missing="wildcard").apply(Microdata(frame, keys=KEYS)).data.frame
    size = frame.select(pl.len().over(KEYS)).to_series()
    touched = treated.select(pl.any_horizontal(pl.col(KEYS).is_null())).to_series()
    assert int(size.filter(touched).max()) < 3


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_no_cell_can_be_given_back_without_leaving_somebody_alone(missing):
    frame = people(60, seed=5)
    treated = LocalSuppression(k=3, missing=missing).apply(Microdata(frame, keys=KEYS)).data.frame
    cells = [(row, key) for key in KEYS for row in treated[key].is_null().arg_true().to_list()]
    assert cells
    for row, key in cells:
        values = treated[key].to_list()
        values[row] = frame[key][row]
        restored = treated.with_columns(pl.Series(key, values, dtype=frame[key].dtype))
        assert smallest_company(restored, KEYS, missing) < 3


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_types_survive_in_polars_and_pandas(missing):
    frame = people().with_columns(
        a=pl.col("a").cast(pl.UInt32),
        b=pl.col("b").cast(pl.String).cast(pl.Enum([str(i) for i in range(10)])),
        c=pl.col("c").cast(pl.Categorical),
    )
    release = LocalSuppression(k=5, missing=missing).apply(Microdata(frame, keys=KEYS))
    assert release.data.frame.schema == frame.schema
    table = people().to_pandas()
    table["c"] = table["c"].astype("category")
    treated = LocalSuppression(k=5, missing=missing).apply(Microdata(table, keys=KEYS)).data.frame
    assert isinstance(treated, pd.DataFrame)
    assert pd.api.types.is_integer_dtype(treated["a"].dtype)
    assert list(treated["c"].cat.categories) == list(table["c"].cat.categories)


def test_the_same_file_gives_the_same_release():
    data = Microdata(people(300, gaps=0.1), keys=KEYS)
    treatment = LocalSuppression(k=4, subsets={2: 6}, strata=["s"])
    assert treatment.apply(data, seed=1).data.frame.equals(treatment.apply(data, seed=2).data.frame)


def test_a_plan_file_can_hold_it():
    treatment = LocalSuppression(
        k=3, importance=["a", "b", "c"], subsets={2: 4}, ghosts={"a": ["w"]}, household_keys=["a"], keys=KEYS
    )
    again = Treatment.named("local-suppression", treatment.to_dict())
    assert again.to_dict() == treatment.to_dict()
    assert again.subsets == {2: 4}


def test_the_log_says_what_gaps_as_wildcards_leave_open():
    frame = people()
    release = LocalSuppression(k=3, missing="wildcard").apply(Microdata(frame, keys=KEYS))
    before, after = frame.select(KEYS).rows(), release.data.frame.select(KEYS).rows()
    touched = [i for i, row in enumerate(after) if None in row]
    fitting = [
        sum(all(y is None or x == y for x, y in zip(before[i], row, strict=True)) for row in after)
        for i in touched
    ]
    said = (
        f"For {sum(found < 3 for found in fitting):,} of the {len(touched):,} records with suppressed cells"
    )
    assert any(note.startswith(said) for note in release.log[0].notes)
    assert "No k is promised against somebody who knows a suppressed value" in release.guarantee
    assert "complete equals" in release.guarantee


def test_gaps_as_values_leave_k_records_that_fit_everybody():
    frame = people()
    release = LocalSuppression(k=3).apply(Microdata(frame, keys=KEYS))
    before, after = frame.select(KEYS).rows(), release.data.frame.select(KEYS).rows()
    for old in before:
        assert sum(all(y is None or x == y for x, y in zip(old, row, strict=True)) for row in after) >= 3
    assert release.guarantee.startswith(
        "k-anonymity, counted on the treated file: every record has the same key"
    )


def test_the_k_that_is_promised_is_the_k_that_is_measured():
    release = LocalSuppression(k=4).apply(Microdata(people(), keys=KEYS))
    assert k_anonymity(release.data).value >= 4
    assert uniqueness(release.data).figures["unique_records"] == 0


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_a_hundred_people_of_whom_all_are_unique_are_not_hidden_by_four_gaps(missing):
    number = np.arange(100)
    frame = pl.DataFrame({"age": number % 20, "job": number // 20, "town": number * 7 % 10})
    data = Microdata(frame, keys=frame.columns)
    release = LocalSuppression(k=5, missing=missing).apply(data)
    assert smallest_company(release.data.frame, frame.columns, missing) >= 5
    assert smallest_complete_class(release.data.frame, frame.columns) >= 5
    assert linkage(data, release.data, seed=1).value < 0.3
    emptied = [key for key in frame.columns if release.data.frame[key].null_count() == 100]
    assert emptied
    assert any("Suppressed in every record" in note for note in release.log[0].notes)
    assert release.data.roles.keys == tuple(key for key in frame.columns if key not in emptied)


@settings(max_examples=examples(30), deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.one_of(st.none(), st.integers(0, 2)) for _ in KEYS]), min_size=3, max_size=30
    )
)
def test_company_is_counted_as_it_is_defined(rows):
    codes = np.array([[0 if value is None else value + 1 for value in row] + [1] for row in rows], np.int32)
    counted = CountedRows(codes, np.ones(len(codes)), wildcard=True)
    shown = (codes > 0).sum(axis=1)
    for among, counts in (
        ("showing as much", lambda i: shown >= shown[i]),
        ("showing all of it", lambda i: ((codes > 0) | (codes[i] == 0)).all(axis=1)),
        ("all", lambda i: np.ones(len(codes), bool)),
    ):
        size, weight = counted.company(codes, among=among)
        for i, own in enumerate(codes):
            agrees = ((codes == own) | (codes == 0) | (own == 0)).all(axis=1)
            assert size[i] == weight[i] == (agrees & counts(i)).sum()


def test_an_unproven_file_is_never_released(monkeypatch):
    monkeypatch.setattr(suppression_solving, "solve", lambda problem: Alike(problem.codes, problem.weights))
    with pytest.raises(DiscreetError, match="Internal error"):
        LocalSuppression(k=3).apply(Microdata(people(), keys=KEYS))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs an aim"),
        ({"k": 1}, "k must be"),
        ({"k": 2.5}, "k must be"),
        ({"subsets": {}, "k": None}, "needs an aim"),
        ({"subsets": {"two": 3}}, "subsets must be"),
        ({"subsets": {2: 1}}, "subsets must be a table of whole numbers of at least 2"),
        ({"risk_threshold": 1.5}, "risk_threshold"),
        ({"k": 3, "missing": "drop"}, "missing must be"),
        ({"k": 3, "importance": {"a": 0}}, "importance"),
        ({"k": 3, "importance": ["a", "a"]}, "twice"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        LocalSuppression(**parameters)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"k": 3, "keys": ["A"]}, ColumnError, "Did you mean 'a'"),
        ({"k": 3, "importance": ["s"]}, ColumnError, "importance"),
        ({"k": 3, "strata": "a"}, ColumnError, "both a key and a stratum"),
        ({"k": 3, "ghosts": {"s": ["w"]}}, ColumnError, "ghosts"),
        ({"k": 3, "ghosts": {"a": ["b"]}}, ColumnError, "cannot also follow"),
        ({"k": 3, "household_keys": ["a"]}, ParameterError, "household="),
        ({"k": 301}, ParameterError, "cannot be reached"),
        ({"subsets": {4: 2}}, ParameterError, "only 3 keys"),
        ({"risk_threshold": 0.1}, ParameterError, "weight"),
        ({"risk_threshold": 1e-9, "weight": "w"}, ParameterError, "cannot be reached"),
    ],
)
def test_what_does_not_fit_the_file_is_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        LocalSuppression(**parameters).apply(Microdata(people(), keys=KEYS))


@pytest.mark.parametrize("missing", ["wildcard", "category"])
def test_keys_go_one_at_a_time_where_there_are_too_many_sets_to_try(missing, monkeypatch):
    for module in (suppression_search, suppression_regrouping, suppression_merging):
        monkeypatch.setattr(module, "too_many_sets", lambda tried, rows: tried > 12)
    random = np.random.default_rng(3)
    frame = pl.DataFrame({f"key{i}": random.integers(0, 3, 60) for i in range(12)})
    release = LocalSuppression(k=3, missing=missing).apply(Microdata(frame, keys=frame.columns))
    assert smallest_company(release.data.frame, frame.columns, missing) >= 3


def test_a_risk_threshold_next_to_nothing_is_refused_as_one_nobody_can_meet():
    people = Microdata(pl.DataFrame({"sex": ["f", "f", "m"], "w": [2.0, 3.0, 4.0]}), keys=["sex"])
    with pytest.raises(ParameterError):
        LocalSuppression(risk_threshold=5e-324, weight="w").apply(people)
