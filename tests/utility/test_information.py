from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect import Band, Recode, ReorderRecords, Round, TopBottomCode
from discreet.utility import information_loss

AGES = st.lists(st.one_of(st.none(), st.integers(0, 90)), min_size=2, max_size=40).filter(
    lambda x: any(v is not None for v in x)
)


def file(n=400, seed=1):
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": draw.integers(16, 90, n),
            "pay": np.round(draw.lognormal(8, 1, n), 2),
            "region": draw.choice(["n", "e", "s", "w"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "ill": draw.choice(["yes", "no"], n),
        }
    )


@pytest.fixture
def people():
    return Microdata(file(), keys=["age", "region"], sensitive="ill")


def lost(before, after, **options):
    return information_loss(before, after, **options).value


def blanked(data, column, count, seed=3):
    rows = np.random.default_rng(seed).permutation(data.frame.height)[:count]
    gap = pl.Series(np.isin(np.arange(data.frame.height), rows))
    return data.with_frame(
        data.frame.with_columns(pl.when(gap).then(None).otherwise(pl.col(column)).alias(column))
    )


def test_an_unchanged_file_has_lost_nothing(people):
    found = information_loss(people, people)
    assert found.value == 0
    for name in ("records_changed", "cells_changed", "il1s", "mean_change", "correlation_change", "lm_loss"):
        assert found.figures[name] == 0
    assert found.figures["share_means_in_interval"] == 1
    assert found.figures["normalized_entropy"] == 0


@given(AGES, st.lists(st.sampled_from(["a", "b", None]), min_size=40, max_size=40))
@settings(max_examples=examples(60), deadline=None)
def test_the_loss_of_identical_files_is_zero_whatever_they_hold(ages, words):
    data = Microdata(
        pl.DataFrame({"age": ages, "word": words[: len(ages)]}, schema={"age": pl.Int64, "word": pl.String})
    )
    assert lost(data, data, aligned=True) == 0
    assert lost(data, data, aligned=False) == pytest.approx(0, abs=1e-12)


@given(AGES, st.randoms())
@settings(max_examples=examples(80), deadline=None)
def test_the_loss_is_a_share_whatever_the_release_holds(ages, random):
    before = Microdata(pl.DataFrame({"age": ages}, schema={"age": pl.Int64}))
    kinds = [
        [random.choice([None, 1, 50, -3]) for _ in ages],
        [random.choice([None, "x", "[0, 10)", "50"]) for _ in ages],
        [random.choice([None, 0.5, 7.25]) for _ in ages],
    ]
    for after in kinds:
        released = Microdata(pl.DataFrame({"age": after}, strict=False))
        for aligned in (True, False):
            assert 0 <= lost(before, released, aligned=aligned) <= 1
        shorter = Microdata(pl.DataFrame({"age": after[:1]}, strict=False))
        assert 0 <= lost(before, shorter) <= 1


@given(AGES, st.integers(1, 12), st.integers(2, 5), st.lists(st.booleans(), min_size=40, max_size=40))
@settings(max_examples=examples(100), deadline=None)
@pytest.mark.slow
def test_coarser_bands_never_lose_less_with_or_without_gaps(ages, width, factor, gaps):
    before = Microdata(pl.DataFrame({"age": ages}, schema={"age": pl.Int64}))

    def banded(by):
        made = Band(widths={"age": by}).apply(before).data.frame
        return before.with_frame(
            made.with_columns(
                pl.when(pl.Series(gaps[: len(ages)])).then(None).otherwise(pl.col("age")).alias("age")
            )
        )

    for aligned in (True, False):
        fine, coarse = (lost(before, banded(by), aligned=aligned) for by in (width, width * factor))
        assert coarse >= fine - 1e-12


@given(AGES, st.sampled_from([None, 3, 10, 200]), st.lists(st.integers(0, 2), min_size=40, max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_more_suppression_never_loses_less(ages, width, stage):
    before = Microdata(pl.DataFrame({"age": ages}, schema={"age": pl.Int64}))
    table = before.frame if width is None else Band(widths={"age": width}).apply(before).data.frame
    stages = pl.Series(stage[: len(ages)])
    losses = [
        lost(
            before,
            before.with_frame(table.with_columns(pl.when(stages >= limit).then(pl.col("age")).alias("age"))),
            aligned=True,
        )
        for limit in (0, 1, 2, 3)
    ]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(losses))
    known = sum(age is not None for age in ages) / len(ages)
    assert losses[-1] == pytest.approx(known)


@given(
    st.lists(st.sampled_from("abcdef"), min_size=2, max_size=40),
    st.lists(st.integers(0, 2), min_size=40, max_size=40),
)
@settings(max_examples=examples(100), deadline=None)
def test_grouped_categories_lose_more_when_merged_and_more_when_suppressed(words, stage):
    before = Microdata(pl.DataFrame({"word": words}))
    pairs = {"a": "A", "b": "A", "c": "C", "d": "C", "e": "E", "f": "E"}
    halves = {**pairs, "a": "X", "b": "X", "c": "X", "d": "X"}
    losses = []
    for table in (pairs, halves):
        labels = pl.Series([table[word] for word in words])
        per_stage = [
            lost(
                before,
                before.with_frame(
                    pl.DataFrame(
                        {
                            "word": pl.select(
                                pl.when(pl.Series(stage[: len(words)]) >= s).then(labels)
                            ).to_series()
                        }
                    )
                ),
                aligned=True,
            )
            for s in (0, 1, 2)
        ]
        assert all(a <= b + 1e-12 for a, b in itertools.pairwise(per_stage))
        losses.append(per_stage)
    assert all(a <= b + 1e-12 for a, b in zip(*losses, strict=True))


def test_a_label_for_everything_has_lost_everything(people):
    one = people.with_frame(people.frame.with_columns(pl.lit("*").alias("age"), pl.lit("*").alias("region")))
    variables = information_loss(people, one).detail["variables"]
    assert variables.filter(pl.col("column").is_in(["age", "region"]))["loss"].to_list() == [1, 1]


def test_rounding_to_fives_costs_about_as_much_as_bands_of_five(people):
    rounded = lost(people, Round({"age": 5}).apply(people).data, columns="age")
    banded = lost(people, Band(widths={"age": 5}).apply(people).data, columns="age")
    assert rounded == pytest.approx(banded, rel=0.35)


def test_more_noise_loses_more_and_shuffling_most(people):
    draw = np.random.default_rng(2)
    table = people.frame
    losses = [
        lost(
            people,
            people.with_frame(table.with_columns(pay=table["pay"] + draw.normal(0, sd, table.height))),
            columns="pay",
        )
        for sd in (1, 100, 1000, 10_000)
    ]
    assert losses == sorted(losses)
    shuffled = people.with_frame(table.with_columns(pay=pl.Series(draw.permutation(table["pay"].to_numpy()))))
    assert lost(people, shuffled, columns="pay", aligned=True) == pytest.approx(0.77, abs=0.05)


def test_exchanged_categories_lose_their_share_and_a_shuffled_column_everything(people):
    draw = np.random.default_rng(2)
    region = people.frame["region"].to_numpy()
    tenth = draw.random(len(region)) < 0.1
    few = np.where(tenth, draw.permutation(region), region)
    some = lost(people, people.with_frame(people.frame.with_columns(region=pl.Series(few))), columns="region")
    share = float((few != region).mean())
    assert share < some < 4 * share
    mixed = people.with_frame(people.frame.with_columns(region=pl.Series(draw.permutation(region))))
    assert lost(people, mixed, columns="region", aligned=True) > 0.7


def test_swapped_names_that_are_all_different_have_lost_everything():
    names = [f"p{i}" for i in range(50)]
    before = Microdata(pl.DataFrame({"name": names}))
    after = Microdata(pl.DataFrame({"name": names[1:] + names[:1]}))
    assert lost(before, after, aligned=True) == 1


def test_removed_records_are_found_by_their_ids_and_count_as_lost(people):
    table = people.frame.with_row_index("id")
    before = Microdata(table, keys=["age", "region"])
    after = Microdata(table.sample(300, shuffle=True, seed=4), keys=["age", "region"])
    found = information_loss(before, after, ids="id")
    assert found.value == pytest.approx(0.25)
    assert found.figures["records_removed"] == 100
    assert found.figures["records_changed"] == 0
    assert found.detail["records"]["removed"].sum() == 100
    assert (
        information_loss(before.with_frame(table.drop("id")), after.with_frame(after.frame.drop("id"))).value
        >= 0.25
    )


def test_a_reordered_file_is_noticed_and_compared_as_a_sample(people):
    after = ReorderRecords().apply(people, seed=1).data
    found = information_loss(people, after)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.parameters["aligned"] is False
    assert found.figures["records_changed"] is None
    assert any("another order" in caveat for caveat in found.caveats)
    with pytest.raises(ParameterError, match="ids="):
        found.detail["records"]


def test_a_dropped_column_has_lost_everything(people):
    found = information_loss(people, people.with_frame(people.frame.drop("pay")))
    assert found.value == 0.25
    assert found.figures["columns_dropped"] == 1


def test_codes_can_be_named_as_categories():
    before = Microdata(pl.DataFrame({"job": [1, 2, 3, 4] * 25}))
    after = Recode({"job": {2: 1, 4: 3}}).apply(before).data
    assert lost(before, after, categorical="job") == pytest.approx(1 / 3)


def test_figures_of_classes_and_labels_use_the_hierarchy(people):
    hierarchy = Hierarchy.intervals([10, 50])
    after = Band(widths={"age": 10}).apply(people).data
    found = information_loss(people, after, hierarchies={"age": hierarchy})
    assert found.figures["generalization_intensity"] == pytest.approx(1 / 3)
    assert found.figures["discernibility"] > found.figures["discernibility_original"]
    assert found.figures["average_class_size"] > found.figures["average_class_size_original"]
    assert found.figures["misclassification"] >= found.figures["misclassification_original"]
    assert 0 < found.figures["normalized_entropy"] < 1
    assert information_loss(people, after).figures["generalization_intensity"] is None


def test_near_singular_columns_are_said_to_be_so_instead_of_a_huge_number(people):
    table = people.frame.with_columns(total=pl.col("age") + pl.col("pay"))
    before = Microdata(table)
    after = Microdata(table.with_columns(pl.col("pay") * 1.1))
    found = information_loss(before, after)
    assert found.figures["eigenvalue_loss"] is None
    assert found.figures["eigenvalue_change"] < 2
    assert any("combination of each other" in caveat for caveat in found.caveats)


def test_weights_move_the_moments_and_not_the_headline(people):
    weighted = Microdata(people.frame.with_columns(w=pl.int_range(1, 401)), keys=["age"], weight="w")
    after = TopBottomCode(top={"pay": 5000}).apply(weighted).data
    plain = information_loss(people, TopBottomCode(top={"pay": 5000}).apply(people).data)
    found = information_loss(weighted, after)
    assert found.value == pytest.approx(plain.value)
    row = found.detail["variables"].filter(pl.col("column") == "pay").row(0, named=True)
    weights = np.arange(1, 401)
    assert row["mean_before"] == pytest.approx(np.average(people.frame["pay"].to_numpy(), weights=weights))


def test_a_constant_column_has_no_correlation_or_r2():
    before = Microdata(pl.DataFrame({"a": [1.0, 1.0, 1.0], "b": [1.0, 2.0, 4.0]}))
    found = information_loss(before, before)
    assert found.value == 0
    assert found.detail["variables"]["r2"].to_list() == [None, 1.0]
    assert found.detail["correlations"]["correlation_before"].to_list() == [None]


def test_numbers_read_as_text_and_dates_are_compared_as_what_they_are():
    from datetime import date

    before = Microdata(pl.DataFrame({"age": [30, 40], "day": [date(2024, 1, 1), date(2024, 6, 1)]}))
    after = Microdata(pl.DataFrame({"age": ["30", "40"], "day": ["2024", "2024"]}))
    variables = information_loss(before, after).detail["variables"]
    assert variables["loss"].to_list() == [0, 1]
    assert variables["kind"].to_list() == ["number", "bands"]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_other_engines_give_the_same_loss(people, kind):
    table = people.frame.with_row_index("id").cast({"id": pl.Int64})
    after = blanked(people, "age", 50).frame.with_columns(id=table["id"])

    def held(frame):
        if kind == "pandas":
            return frame.to_pandas()
        if kind == "pyarrow":
            return frame.to_arrow()
        duckdb = pytest.importorskip("duckdb")
        return duckdb.from_arrow(frame.to_arrow())

    expected = lost(Microdata(table), Microdata(after), ids="id")
    assert lost(Microdata(held(table)), Microdata(held(after)), ids="id") == pytest.approx(expected)


def test_bad_input_is_refused_with_the_way_out(people):
    shorter = people.with_frame(people.frame.head(10))
    with pytest.raises(ParameterError, match="ids="):
        information_loss(people, shorter, aligned=True)
    with pytest.raises(ColumnError, match="Did you mean 'pay'"):
        information_loss(people, people, columns="pays")
    with pytest.raises(InputError, match="apart"):
        information_loss(people, people, ids="age")
    inf = people.with_frame(people.frame.with_columns(pay=pl.lit(float("inf"))))
    with pytest.raises(ColumnError, match="infinite"):
        information_loss(people, inf)
    for wrong in ({"level": 2}, {"groups": 0}, {"divisor": "k"}, {"closed": "both"}):
        with pytest.raises(ParameterError):
            information_loss(people, people, **wrong)
    with pytest.raises(ParameterError, match="increasing"):
        information_loss(people, people, groups={"age": [3, 1]})
