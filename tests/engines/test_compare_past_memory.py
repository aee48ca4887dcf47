"""Two files that are too large to hold are compared where they are; what needs records takes a stated sample."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, compare, utility
from discreet.core.errors import ParameterError
from discreet.engine import shared_tables
from discreet.protect import AddNoise, Band, Plan, Pram, Recode
from discreet.utility import associations, column_distributions, counted_loss
from discreet.workflow.policy_judgment import judge
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import nothing_collected

ROLES = {"keys": ["age", "area", "kids"], "sensitive": "ill", "identifiers": "id"}
PLAN = Plan([Band(widths={"age": 10}), Pram(["job"]), AddNoise("pay")])
COUNTED = ("margins", "tabular", "dependence", "replicated_uniques", "attribution", "disclosure", "new_rows")
SAMPLED = ("pmse", "pmse_logit")
ROWS = 8_000


def people(seed: int, rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, rows)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "area": rng.choice(["n", "s", None], rows, p=[0.5, 0.45, 0.05]).tolist(),
            "job": rng.choice(["clerk", "cook", "nurse"], rows),
            "age": age,
            "pay": pl.Series(age * 10 + rng.lognormal(3, 1, rows)).set(
                pl.Series(rng.random(rows) < 0.1), None
            ),
            "kids": rng.integers(0, 4, rows),
            "ill": rng.choice(["a", "b"], rows),
        }
    )


@pytest.fixture
def nothing_small(monkeypatch):
    """Treat files of the tests as if they were large."""
    monkeypatch.setattr(shared_tables, "_MOST_IN_MEMORY", 0)
    monkeypatch.setattr(shared_tables, "_MOST_LISTED", 500)
    monkeypatch.setattr(column_distributions, "MOST_LISTED", 500)
    monkeypatch.setattr(column_distributions, "_SAMPLED", 4000)
    monkeypatch.setattr(associations, "SAMPLED", 4000)
    monkeypatch.setattr(counted_loss, "LISTED", 500)


@pytest.fixture(scope="module")
def expected():
    data = Microdata(people(1), **ROLES)
    return only(compare(data, PLAN.apply(data, seed=1).data))


def only(comparison):
    (release,) = comparison.releases.values()
    return release


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_large_files_are_counted_where_they_are_and_only_a_sample_comes_home(kind, nothing_small, expected):
    data = Microdata(in_kind(people(1), kind), **ROLES)
    released = PLAN.apply(data, seed=1).data
    with nothing_collected(most=4600):
        found = only(compare(data, released, rows=4000))
    measures = {**found.utility, **found.risk}
    whole = {**expected.utility, **expected.risk}
    # The records of a database stand in no order, so that nothing links them here.
    sampled = [*(["information_loss"] if kind == "duckdb" else []), *SAMPLED]
    assert [name for name in measures if "sample" in measures[name].parameters] == sampled
    assert set(measures) == {*COUNTED, *SAMPLED, "information_loss"}
    for name in ("tabular", "replicated_uniques", "attribution", "disclosure"):
        assert measures[name].value == pytest.approx(whole[name].value, abs=1e-9), name
    for name in ("new_share_exact", "copied_share"):
        assert measures["new_rows"].figures[name] == pytest.approx(whole["new_rows"].figures[name], abs=1e-12)
    assert measures["margins"].value == pytest.approx(whole["margins"].value, abs=1 / 4096 + 1e-9)
    assert measures["dependence"].figures["pearson_change"] == pytest.approx(
        whole["dependence"].figures["pearson_change"], abs=1e-9
    )
    for name in sampled:
        assert measures[name].parameters["sample"]["of_records"] == ROWS
        assert "random sample" in measures[name].caveats[0]
    said = " ".join(found.alignment.sentences)
    counted = "'margins', 'tabular'" if kind == "duckdb" else "'information_loss', 'margins', 'tabular'"
    assert f"Counted over all records, where the data is: {counted}" in said
    assert f"each with an interval: '{sampled[0]}'" in said
    assert found.about["rows"] == ROWS


@pytest.mark.parametrize(("kind", "ids"), [("polars-lazy", None), ("polars-lazy", "id"), ("duckdb", "id")])
def test_the_loss_of_linked_files_is_counted_over_all_records(kind, ids, expected, nothing_small):
    data = Microdata(in_kind(people(1), kind), **ROLES)
    released = PLAN.apply(data, seed=1).data
    with nothing_collected(most=4600):
        compared = only(compare(data, released, rows=4000, ids=ids, measures="information_loss"))
    found, whole = (each.utility["information_loss"] for each in (compared, expected))
    assert found.parameters["counted"]["records"] == ROWS
    assert "sample" not in found.parameters
    assert abs(found.value - whole.value) <= min(found.parameters["counted"]["off"], 1e-4)
    for name, value in whole.figures.items():
        if name not in ("loss", "largest_column_loss"):
            assert alike(found.figures[name], value), name
    assert found.meaning == whole.meaning
    assert compared.alignment.linked


def alike(found, known):
    return found is known if known is None else found == pytest.approx(known, rel=1e-7, abs=1e-9)


def linked_files(rows, removed):
    """Make a small file of awkward cells and a release of it, in which some records may be gone."""
    names = {"x": pl.Float64, "label": pl.String, "still": pl.Int64, "y": pl.Float64, "shown": pl.String}
    table = (
        pl.DataFrame(rows, schema=names, orient="row")
        .with_row_index("id")
        .with_columns(pl.col("id").cast(pl.Int64))
    )
    ours = table.select("id", "x", "label", "still", when=pl.date(2020, 1, 1) + pl.duration(days="still"))
    theirs = table.select("id", x="y", label="shown", still="still", when="shown")
    return ours, theirs.filter(pl.col("id") % 7 != 3) if removed else theirs


CELLS = st.tuples(
    st.sampled_from([0.0, 1.0, 2.5, -4.0, 1e6, None]),
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 2),
    st.sampled_from([0.0, 1.0, 3.5, 1e6, None]),
    st.sampled_from(["a", "b", "a or b", None]),
)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(CELLS, min_size=20, max_size=60),
    removed=st.booleans(),
    kind=st.sampled_from(["polars-lazy", "duckdb"]),
)
def test_what_is_counted_of_linked_records_equals_what_is_measured_in_memory(rows, removed, kind):
    ours, theirs = linked_files(rows, removed)
    roles = {"keys": ["x", "label"], "identifiers": "id"}
    files = Microdata(ours, **roles), Microdata(theirs, **roles)
    whole = utility.information_loss(*files, ids="id")
    if kind == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        queries = [connection.from_arrow(table.to_arrow()) for table in (ours, theirs)]
    else:
        queries = [table.lazy() for table in (ours, theirs)]
    counted = counted_loss.over_all_records(
        whole, files, tuple(Microdata(query, **roles) for query in queries), {}
    )
    assert counted.value == pytest.approx(whole.value, rel=1e-9, abs=1e-12)
    for name, value in whole.figures.items():
        assert alike(counted.figures[name], value), name
    told, known = (each.detail["variables"] for each in (counted, whole))
    for name in ("loss", "changed", "suppressed", "il1s", "mean_after", "sd_after"):
        assert all(map(alike, told[name], known[name])), name


def test_a_loss_past_memory_is_counted_and_one_of_unlinked_files_sampled(monkeypatch, expected):
    from discreet.utility import loss_of_information

    monkeypatch.setattr(loss_of_information, "_MOST_CELLS", 1000)
    monkeypatch.setattr(loss_of_information, "_SAMPLED", 4000)
    data = Microdata(people(1).lazy(), **ROLES)
    found = utility.information_loss(data, PLAN.apply(data, seed=1).data)
    assert found.value == pytest.approx(expected.utility["information_loss"].value, abs=1e-9)
    apart = utility.information_loss(data, Microdata(people(2, 15_000).lazy()))
    assert apart.parameters["sample"]["of_records"] == ROWS


def test_risks_that_a_sample_would_hide_are_left_out_by_name(expected):
    data = Microdata(people(1).lazy(), **ROLES)
    hidden = ["linkage", "near_copies", "neighbors"]
    found = only(compare(data, PLAN.apply(data, seed=1).data, rows=4000, measures=hidden))
    for name in hidden:
        assert name in expected.risk
        assert "too large to hold" in found.skipped[name]


def test_a_rule_on_a_risk_that_a_sample_would_hide_is_not_met(expected):
    data = Microdata(people(1).lazy(), **ROLES)
    asked = {"measures": "margins", "policy": "public-use-file"}
    found = only(compare(data, PLAN.apply(data, seed=1).data, rows=4000, **asked))
    failed = {check.measure for check in found.verdict.checks if not check.passed}
    assert found.verdict.meets is not True
    assert "near_copies" in failed


def test_values_that_the_sample_does_not_show_keep_a_column_from_being_counted():
    table = people(1).with_columns(job=pl.when(pl.col("id") == 7).then(pl.lit("spy")).otherwise("job"))
    data = Microdata(table.lazy(), **ROLES)
    recode = Recode({"job": {"clerk": "office", "spy": "office", "cook": "care", "nurse": "care"}})
    found = only(compare(data, recode.apply(data).data, rows=4000, measures=["margins", "tabular"]))
    measures = {**found.utility, **found.risk}
    assert "job" not in measures["tabular"].parameters["columns"]
    assert "'job'" in measures["tabular"].caveats[0]
    assert any(
        "Compared on the sample only" in said and "'job'" in said for said in found.alignment.sentences
    )


def test_labels_that_the_sample_explains_are_counted_over_all_records():
    data = Microdata(people(1).lazy(), **ROLES)
    recode = Recode({"job": {"clerk": "office", "cook": "care", "nurse": "care"}})
    found = only(compare(data, recode.apply(data).data, rows=4000, measures=["margins", "tabular"]))
    assert found.utility["margins"].value == 0
    assert "job" in found.utility["tabular"].parameters["columns"]


def test_small_queries_are_compared_as_files_in_memory_are(expected):
    data = Microdata(people(1).lazy(), **ROLES)
    found = only(compare(data, PLAN.apply(data, seed=1).data))
    assert {**found.utility, **found.risk}.keys() == {**expected.utility, **expected.risk}.keys()
    assert found.utility["information_loss"].value == expected.utility["information_loss"].value


def test_a_file_in_memory_is_held_against_a_large_one_and_copies_are_too(nothing_small):
    ours, copies = Microdata(people(1), **ROLES), [Microdata(people(seed).lazy()) for seed in (2, 3)]
    found = only(compare(ours, copies, rows=4000, measures="tabular"))
    whole = only(compare(ours, [Microdata(people(seed)) for seed in (2, 3)], measures="tabular"))
    assert found.utility["tabular"].value == pytest.approx(whole.utility["tabular"].value, abs=1e-9)
    assert not found.alignment.linked


def test_the_same_seed_takes_the_same_sample():
    data = Microdata(people(1).lazy(), **ROLES)
    released = PLAN.apply(data, seed=1).data
    values = [
        only(compare(data, released, rows=4000, measures="pmse", seed=seed)).utility["pmse"].value
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_too_small_a_sample_is_refused():
    data = Microdata(people(1, 300).lazy(), **ROLES)
    with pytest.raises(ParameterError, match="rows must be a whole number of at least"):
        compare(data, data, rows=10)


def test_a_large_release_is_judged_without_being_collected(monkeypatch):
    from discreet.workflow import aligning

    monkeypatch.setattr(aligning, "MOST_CELLS", 1000)
    data = Microdata(people(1).lazy(), **ROLES)
    released = Band(widths={"age": 10}).apply(data).data
    verdict = judge(released, "safe-setting", data)
    assert verdict.checks


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_margins_of_fine_numbers_are_those_of_all_records_within_an_interval(kind, weight, nothing_small):
    rng = np.random.default_rng(3)
    frames = [people(seed).with_columns(w=pl.Series(rng.random(ROWS))) for seed in (1, 2)]
    asked = {"columns": ["pay", "age"], "weight": weight}
    whole = utility.margins(*map(Microdata, frames), **asked).detail["variables"].sort("column")
    found = utility.margins(*(Microdata(in_kind(frame, kind)) for frame in frames), **asked)
    ours = found.detail["variables"].sort("column")
    assert sum("intervals of it" in said for said in found.caveats) == 1
    for name in ("ks", "missing_before", "missing_after", "outside_range", "range_coverage"):
        assert ours[name].to_list() == pytest.approx(whole[name].to_list(), abs=1 / 2048), name
    for name in ("mean_before", "mean_after", "sd_before", "gini_before", "wasserstein"):
        assert ours[name].to_list() == pytest.approx(whole[name].to_list(), rel=0.02), name


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_compares_where_the_data_is(spark_session, nothing_small):
    frames = [people(1, 5000), people(2, 5000)]
    ours, theirs = (Microdata(in_kind(frame, "pyspark", spark_session).repartition(3)) for frame in frames)
    asked = {"measures": ["margins", "tabular", "replicated_uniques", "information_loss"], "seed": 1}
    named = {"keys": ["age", "area", "kids"], "columns": ["area", "job", "age", "pay", "kids"]}
    with nothing_collected(most=4600):
        found = only(compare(ours, theirs, rows=1500, **asked, **named))
    whole = only(compare(*map(Microdata, frames), **asked, **named))
    assert found.utility["tabular"].value == pytest.approx(whole.utility["tabular"].value, abs=1e-9)
    assert found.utility["margins"].value == pytest.approx(whole.utility["margins"].value, abs=1 / 2048)
    assert found.risk["replicated_uniques"].value == whole.risk["replicated_uniques"].value
    assert found.utility["information_loss"].parameters["sample"]["of_records"] == 5000


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_adds_the_loss_of_linked_records_up_on_its_executors(spark_session, nothing_small):
    table = people(1, 5000)
    treated = PLAN.apply(Microdata(table, **ROLES), seed=1).data.frame
    texts = treated.with_columns(pl.col("age", "job").cast(pl.String))
    asked = {"measures": "information_loss", "ids": "id", "seed": 1}
    ours, theirs = (in_kind(frame, "pyspark", spark_session).repartition(3) for frame in (table, texts))
    with nothing_collected(most=4600):
        found = only(compare(Microdata(ours, **ROLES), Microdata(theirs), rows=1500, **asked))
    whole = only(compare(Microdata(table, **ROLES), Microdata(texts), **asked)).utility["information_loss"]
    told = found.utility["information_loss"]
    assert told.parameters["counted"]["records"] == 5000
    assert abs(told.value - whole.value) <= min(told.parameters["counted"]["off"], 1e-3)
    for name in ("il1s", "cells_changed", "records_changed", "covariance_change", "normalized_entropy"):
        assert told.figures[name] == pytest.approx(whole.figures[name], rel=1e-7), name


def with_copies(table, other, copies):
    """Put original records among those of other people."""
    leaked = pl.concat([other.head(other.height - copies), table.sample(copies, seed=3)])
    return leaked.sample(fraction=1, shuffle=True, seed=1)


def two_files(rows=ROWS):
    return [
        people(seed, rows).drop("id").with_columns(pay=pl.col("pay").fill_null(0.0).round(2))
        for seed in (1, 2)
    ]


LEAK_ROLES = {"keys": ["age", "area", "kids"], "sensitive": "ill"}


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_originals_that_were_copied_into_a_large_release_are_found_and_not_cleared(kind, nothing_small):
    table, other = two_files()
    data = Microdata(in_kind(table, kind), **LEAK_ROLES)
    released = Microdata(in_kind(with_copies(table, other, 600), kind))
    with nothing_collected(most=4600):
        found = only(compare(data, released, rows=4000, policy="public-use-file", measures="new_rows"))
    assert found.verdict.meets is not True
    assert {check.measure for check in found.verdict.checks if check.passed is None} == {
        "near_copies",
        "knowable_uniques",
    }
    figures = found.risk["new_rows"].figures
    assert figures["copied"] > 590
    assert figures["copied"] - figures["copied_by_chance"] > 400
    assert figures["copied_beyond_chance"] > 0.05
    first = found.worst.sentences[0]
    assert first.startswith(
        f"{figures['copied']} people who are like no other come back in the release whole"
    )
    assert "'new_rows'" in " ".join(found.alignment.sentences)


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_other_people_raise_no_alarm_although_some_are_alike_by_chance(kind):
    table, other = two_files()
    data, released = (Microdata(in_kind(frame, kind)) for frame in (table, other))
    found = only(compare(data.with_roles(**LEAK_ROLES), released, rows=4000, measures="new_rows"))
    figures = found.risk["new_rows"].figures
    assert figures["copied"] > 20
    assert figures["copied_beyond_chance"] == 0
    assert "come back in the release whole" in found.worst.sentences[-1]
    assert not any("come back" in said for said in found.worst.sentences[:-1])


def test_a_few_copies_among_very_many_records_are_the_first_thing_said():
    table, other = two_files(300_000)
    clean, leaky = (
        only(compare(Microdata(table.lazy()), Microdata(held.lazy()), rows=20_000, measures="new_rows"))
        for held in (other, with_copies(table, other, 600))
    )
    assert clean.risk["new_rows"].figures["copied_beyond_chance"] == 0
    assert not any("equal a real one" in said for said in clean.worst.sentences)
    assert leaky.risk["new_rows"].figures["copied_beyond_chance"] > 0
    assert "people who are like no other come back" in leaky.worst.sentences[0]


def test_people_who_come_back_are_reported_once_where_near_copies_were_looked_for():
    table, other = two_files(2000)
    data, released = Microdata(table, **LEAK_ROLES), Microdata(with_copies(table, other, 300))
    found = only(compare(data, released, measures=["near_copies", "new_rows"]))
    assert sum("who are like no other come back" in said for said in found.worst.sentences) == 1
    assert "copied" not in found.risk["new_rows"].figures


def test_a_release_of_the_same_people_is_no_copy_of_them():
    data = Microdata(people(1).lazy(), **ROLES)
    banded = Band(widths={"age": 10}).apply(data).data
    found = only(compare(data, banded, rows=4000, measures="new_rows"))
    said = [sentence for sentence in found.worst.sentences if "people" in sentence]
    assert any("The records are those of the same people" in sentence for sentence in said)
    assert not any("come back" in sentence for sentence in said)


def test_hold_out_and_copies_are_counted_and_a_tolerance_is_not_used():
    table, other = two_files()
    unused = people(3).drop("id").with_columns(pay=pl.col("pay").fill_null(0.0).round(2))
    copies = [with_copies(table, other, 600), other]
    asked = {"measures": {"new_rows": {"tolerance": 0.0}}, "holdout": Microdata(unused.lazy())}
    found = only(compare(Microdata(table.lazy()), [Microdata(c.lazy()) for c in copies], rows=4000, **asked))
    settings_of = {"tolerance": 0.0, "holdout": Microdata(unused)}
    known = [utility.new_rows(Microdata(table), Microdata(copy), **settings_of).figures for copy in copies]
    for name in ("new_share", "new_share_exact", "copied_share", "new_share_holdout", "excess_matches"):
        # The first copy is the worse one.
        assert found.risk["new_rows"].figures[name] == pytest.approx(known[0][name], abs=1e-12), name
    asked["measures"] = {"new_rows": {"tolerance": 0.5, "scale": "range", "columns": ["pay", "age"]}}
    loose = only(compare(Microdata(table.lazy()), Microdata(other.lazy()), rows=4000, **asked))
    assert loose.risk["new_rows"].value is None
    assert loose.risk["new_rows"].parameters["columns"] == ["pay", "age"]
    assert any("Not used here: tolerance, scale" in said for said in loose.risk["new_rows"].caveats)


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
def test_spark_finds_copies_without_bringing_a_record_home(spark_session, nothing_small):
    table, other = two_files(5000)
    leaky = with_copies(table, other, 300)
    ours, theirs = (
        Microdata(in_kind(frame, "pyspark", spark_session).repartition(3)) for frame in (table, leaky)
    )
    with nothing_collected(most=2500):
        found = only(compare(ours, theirs, rows=1500, measures="new_rows", seed=1))
    whole = only(compare(Microdata(table), Microdata(leaky), measures="new_rows"))
    told, known = (each.risk["new_rows"].figures for each in (found, whole))
    for name in ("new_share_exact", "copied_share"):
        assert told[name] == pytest.approx(known[name], abs=1e-12), name
    assert "people who are like no other come back" in found.worst.sentences[0]
