import json
import re

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.policy import Policy
from discreet.protect import AddNoise
from discreet.workflow.comparison import compare


def people(n=400, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "income": np.round(np.exp(7 + age / 60 + rng.normal(0, 0.5, n)), 2),
            "ill": np.where(rng.random(n) < age / 150, "yes", "no"),
        }
    )


def data(frame=None, **roles):
    return Microdata(
        people() if frame is None else frame, **(roles or {"keys": ["age", "sex"], "sensitive": "ill"})
    )


@pytest.fixture(scope="module")
def found():
    return compare(data(), Microdata(people(seed=2)))


def test_a_comparison_holds_utility_risk_verdict_and_what_went_wrong(found):
    document = found.to_dict()
    assert {"utility", "risk", "verdict", "worst", "alignment", "skipped"} <= set(document)
    assert {"margins", "tabular", "dependence", "pmse", "information_loss"} <= set(document["utility"])
    assert {"replicated_uniques", "attribution", "disclosure", "neighbors", "new_rows"} <= set(
        document["risk"]
    )
    assert json.loads(found.to_json()) == json.loads(json.dumps(document))
    assert document["verdict"] is None


def test_it_prints_as_a_table_and_renders_in_a_notebook(found):
    text = str(found)
    assert text.startswith("No policy was named")
    assert "What it costs" in text
    assert "What it gives away" in text
    assert "<table>" in found._repr_html_()


def test_a_measure_that_was_left_out_says_why(found):
    with pytest.raises(ParameterError, match="not linked"):
        found["linkage"]
    assert found["margins"].name == "margins"
    with pytest.raises(ParameterError, match="Did you mean 'margins'"):
        found["margin"]


@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000), st.integers(2, 120))
def test_identical_files_differ_in_nothing(seed, n):
    frame = people(n, seed)
    same = compare(
        data(frame),
        Microdata(frame),
        measures=["margins", "tabular", "dependence", "information_loss", "pmse", "new_rows"],
    )
    assert same.utility["margins"].value == 0
    assert same.utility["tabular"].value in (0, None)
    assert same.utility["information_loss"].value == 0
    if "dependence" in same.utility:
        assert same.utility["dependence"].figures["largest_change"] in (0, None)
    if "pmse" in same.utility:
        assert same.utility["pmse"].value == pytest.approx(0, abs=1e-12)
    assert same.risk["new_rows"].value == 0


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000))
def test_the_order_of_rows_and_columns_changes_nothing(seed):
    frame, other = people(150, seed), people(150, seed + 1)
    wanted = [
        "margins",
        "tabular",
        "dependence",
        "pmse_logit",
        "replicated_uniques",
        "attribution",
        "new_rows",
    ]
    turned = other.sample(fraction=1, shuffle=True, seed=seed).select(reversed(other.columns))
    ours = compare(data(frame), Microdata(other), measures=wanted)
    theirs = compare(data(frame), Microdata(turned), measures=wanted)
    assert theirs.alignment.reordered
    for name, measure in {**ours.utility, **ours.risk}.items():
        for figure, value in measure.figures.items():
            if isinstance(value, float):
                assert theirs[name].figures[figure] == pytest.approx(value, rel=1e-6, abs=1e-9), figure


def test_the_same_seed_gives_the_same_answer(found):
    again = compare(data(), Microdata(people(seed=2)))
    ours, theirs = found.to_dict(), again.to_dict()
    for document in (ours, theirs):
        document.pop("about")
    assert ours == theirs


def test_linked_records_are_recognized_and_compared_one_by_one():
    original = data()
    noisy = AddNoise(columns=["income"], level=0.1).apply(original, seed=1)
    linked = compare(original, noisy)
    assert linked.alignment.linked
    assert linked.risk["linkage"].figures["linked_share"] > 0.2
    assert linked.utility["information_loss"].parameters["aligned"] is True
    denied = compare(original, noisy, aligned=False, measures=["information_loss", "linkage"])
    assert "linkage" not in denied.risk


def test_noise_that_leaves_no_value_as_it_was_is_still_seen_as_linked():
    frame = people().select("income")
    moved = frame.with_columns(pl.col("income") + np.random.default_rng(1).normal(0, 300, frame.height))
    assert compare(Microdata(frame), Microdata(moved), measures="margins").alignment.linked


def test_independent_and_shuffled_and_sorted_files_are_not_taken_for_linked(found):
    assert not found.alignment.linked
    frame = people()
    shuffled = compare(
        data(frame), Microdata(frame.sample(fraction=1, shuffle=True, seed=3)), measures="margins"
    )
    assert not shuffled.alignment.linked
    as_float = people(seed=2).with_columns(pl.col("age").cast(pl.Float64))
    assert not compare(data(frame), Microdata(as_float), measures="margins").alignment.linked
    ours, theirs = frame.sort("age"), people(seed=2).sort("age")
    assert not compare(data(ours), Microdata(theirs), measures="margins").alignment.linked


def test_records_are_linked_by_an_id_in_any_order():
    frame = people().with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))
    changed = frame.with_columns(income=pl.col("income") * 1.1).sample(fraction=1, shuffle=True, seed=1)
    linked = compare(data(frame), Microdata(changed), ids="id", measures=["information_loss", "linkage"])
    assert linked.utility["information_loss"].figures["cells_changed"] == frame.height
    assert linked.risk["linkage"].figures["linked_share"] > 0.2
    assert "id" not in linked.alignment.columns


def test_what_was_aligned_and_left_out_is_said():
    frame = people().with_columns(
        code=pl.lit(None, dtype=pl.String), here=pl.lit(1), born=pl.lit("2000-01-01").str.to_date()
    )
    other = people(seed=2).with_columns(
        age=pl.col("age").cast(pl.String),
        sex=pl.col("sex").cast(pl.Categorical),
        code=pl.lit(None, dtype=pl.Int64),
        here=pl.lit(1.0),
        born=pl.lit("2000-01-01"),
        new=pl.lit("x"),
    )
    found = compare(data(frame), Microdata(other.drop("income")))
    told = found.alignment
    assert told.only_original == ("income",)
    assert told.only_released == ("new",)
    assert told.left_out == {"code": "it has no value in either file"}
    assert set(told.converted) == {"age", "born"}
    assert any("Constant in both files" in note for note in told.notes)
    assert any("lacks column 'income'" in sentence for sentence in found.worst.sentences)
    kept = compare(data(people()), Microdata(people(seed=2)), columns=["age", "sex", "ill"])
    assert found["attribution"].value == pytest.approx(kept["attribution"].value)
    assert found["margins"].figures["max_distance"] == pytest.approx(kept["margins"].figures["max_distance"])
    # A column that was not released has lost everything.
    assert found["information_loss"].figures["columns_dropped"] == 1


def banded():
    young = pl.when(pl.col("age") < 50).then(pl.lit("young")).otherwise(pl.lit("old"))
    return people().with_columns(age=young.cast(pl.Enum(["young", "old"])))


def test_the_original_is_recoded_where_linked_values_became_coarser_labels():
    found = compare(data(), Microdata(banded()))
    assert "72 values became 2" in found.alignment.converted["age"]
    assert found["margins"].value == 0
    assert found["attribution"].value == pytest.approx(found["attribution"].figures["cap_original"])
    assert 0 < found["information_loss"].value < 1


def test_labels_for_numbers_of_files_that_are_not_linked_are_compared_as_labels():
    found = compare(data(), Microdata(banded().sample(fraction=1, shuffle=True, seed=1)))
    assert "labels" in found.alignment.converted["age"]
    assert "labels of its own in 'age'" in found.skipped["attribution"]
    assert any("'age'" in caveat for caveat in found["new_rows"].caveats)
    assert found["information_loss"].value > 0


def test_a_tree_that_finds_no_first_question_is_no_praise():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 2000)
    frame = pl.DataFrame({"a": a, "b": a}).cast(pl.String)
    broken = pl.DataFrame({"a": rng.permutation(a), "b": rng.permutation(a)}).cast(pl.String)
    found = compare(Microdata(frame), {"broken": Microdata(broken)})
    assert found["pmse"].figures["ratio"] in (0, None)
    assert found.main.figure("pmse", "ratio") is None
    assert any("no first question" in text for text in found.worst.sentences)
    assert "'a' and 'b' weakened" in " ".join(found.worst.sentences)


def test_of_copies_the_worst_is_shown_and_several_releases_stand_side_by_side():
    copies = [Microdata(people(seed=seed)) for seed in (2, 3)]
    found = compare(data(), {"good": copies, "bad": Microdata(people(seed=4).with_columns(age=pl.lit(30)))})
    assert list(found.releases) == ["good", "bad"]
    assert found.releases["good"].about["copies"] == 2
    rows = {row["release"]: row for row in found.side_by_side}
    assert rows["good"]["margins.max_distance"] < rows["bad"]["margins.max_distance"]
    assert found["new_rows"].caveats[0].startswith("Of 2 copies the worst is shown")
    assert list(found.to_dict()["releases"]) == ["bad"]
    assert found.plot().axes


def test_a_policy_gives_a_verdict_for_each_release():
    policy = Policy.from_dict(
        {
            "name": "Ours",
            "comparison": {
                "margins.max_distance": {"at_most": 0.3},
                "neighbors.dcr_share_closer_than_holdout": {"at_most": 0.6},
            },
        }
    )
    bad = Microdata(people(seed=4).with_columns(age=pl.lit(30)))
    found = compare(
        data(),
        {"good": Microdata(people(seed=2)), "bad": bad},
        holdout=Microdata(people(seed=9)),
        policy=policy,
    )
    assert found.releases["good"].verdict.meets
    assert not found.releases["bad"].verdict.meets
    assert found.meets is False
    assert found.line.splitlines()[0] == "good: Meets policy 'Ours' (2 checks passed)."
    without = compare(data(), Microdata(people(seed=2)), policy=policy)
    assert without.verdict.checks[1].passed is None


def test_templates_can_be_held_against_a_release():
    for template in Policy.templates():
        verdict = compare(data(), Microdata(people(seed=2)), policy=template, measures="margins").verdict
        assert all(check.passed is not None for check in verdict.checks)


def test_rules_about_the_release_by_itself_are_judged_too():
    policy = Policy.from_dict({"name": "Old", "rules": {"k_anonymity": {"at_least": 3}}})
    found = compare(data(), Microdata(people(seed=2)), policy=policy)
    assert [(check.measure, check.table) for check in found.verdict.checks] == [("k_anonymity", "rules")]


def test_a_measure_of_one_file_is_refused_among_the_rules_for_comparisons():
    wrong = Policy.from_dict({"name": "Odd", "comparison": {"k_anonymity": {"at_least": 3}}})
    with pytest.raises(ParameterError, match="k_anonymity"):
        compare(data(), Microdata(people(seed=2)), policy=wrong)


def test_the_worst_column_relation_and_cell_are_named_without_values_unless_asked():
    frame = people()
    bad = frame.with_columns(
        income=pl.Series(np.random.default_rng(5).permutation(frame["income"])),
        sex=pl.lit("f"),
    ).sample(fraction=1, shuffle=True, seed=1)
    found = compare(data(frame), Microdata(bad))
    told = " ".join(found.worst.sentences)
    assert "'sex'" in told
    assert "gone from 'sex'" in told
    assert "'age' and 'income'" in told
    assert found.worst.variables[0]["column"] == "sex"
    assert all("cell" not in cell for cell in found.worst.cells)
    shown = compare(data(frame), Microdata(bad), show_values=True, measures="tabular")
    assert all("cell" in cell for cell in shown.worst.cells)


def test_copies_of_real_people_are_noticed():
    frame = people()
    copied = frame.sample(fraction=1, with_replacement=True, seed=1)
    found = compare(data(frame), Microdata(copied), holdout=Microdata(people(seed=8)))
    told = " ".join(found.worst.sentences)
    assert "equal a real one in every compared column" in told
    assert "closer to the people they were made from" in told


def test_models_and_further_measures_are_asked_for_by_name():
    found = compare(
        data(),
        Microdata(people(seed=2)),
        models="income ~ age + sex",
        measures={"gini_change": {"target": "ill"}, "pmse": {"n_perm": 2}},
    )
    assert found.utility["compare_model"].figures["coefficients"] == 3
    assert "gini_change" in found.utility
    assert found.utility["pmse"].parameters["n_perm"] == 2
    alone = compare(data(), Microdata(people(seed=2)), measures="margins")
    assert list(alone.utility) == ["margins"]
    assert not alone.risk


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"measures": "margin"}, ParameterError, "Did you mean 'margins'"),
        ({"measures": {"pmse": {"perms": 3}}}, ParameterError, "n_perm"),
        ({"keys": "agee"}, ColumnError, "Did you mean 'age'"),
        ({"columns": []}, ParameterError, "columns is empty"),
        ({"missing": "wildcard"}, ParameterError, "category"),
        ({"policy": "nowhere"}, InputError, "no policy file"),
        ({"categorical": "sexx"}, ColumnError, "categorical"),
        ({"holdout": Microdata(people().drop("age"))}, ColumnError, "hold-out lacks 'age'"),
    ],
)
def test_wrong_parameters_are_refused(parameters, error, says):
    with pytest.raises(error, match=says):
        compare(data(), Microdata(people(seed=2)), **parameters)


@pytest.mark.parametrize(
    ("released", "error", "says"),
    [
        (
            people().rename({name: f"x_{name}" for name in people().columns}),
            InputError,
            "no column in common",
        ),
        (people().head(1), InputError, "1 record"),
        (people().head(0), InputError, "no records|0 record"),
        ([people(), people().drop("age")], ColumnError, "Copy 2"),
        ([people(), people().head(30)], InputError, "Copy 2 has 30 records"),
        ([], ParameterError, "empty list"),
        ({}, ParameterError, "released is empty"),
    ],
)
def test_files_that_cannot_be_compared_are_refused(released, error, says):
    def wrapped(frame):
        return Microdata(frame) if isinstance(frame, pl.DataFrame) else type(frame)(map(wrapped, frame))

    with pytest.raises(error, match=says):
        compare(data(), wrapped(released))


def test_files_of_constants_and_gaps_are_compared_as_far_as_they_can_be():
    flat = pl.DataFrame({"a": ["x"] * 20, "b": [1.0] * 20})
    found = compare(Microdata(flat), Microdata(flat.with_columns(b=pl.lit(None, dtype=pl.Float64))))
    assert "information_loss" in found.utility
    assert any("Without any value in the release: 'b'" in note for note in found.alignment.notes)
    assert found.skipped
    assert str(found)


def test_a_frame_that_is_no_microdata_is_refused():
    with pytest.raises(ParameterError, match="released"):
        compare(data(), people())


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "lazy", "duckdb"])
def test_every_engine_gives_the_same_answer(kind, found):
    def of_kind(frame):
        if kind == "pandas":
            return frame.to_pandas()
        if kind == "pyarrow":
            return frame.to_arrow()
        if kind == "lazy":
            return frame.lazy()
        duckdb = pytest.importorskip("duckdb")
        return duckdb.connect().from_arrow(frame.to_arrow())

    wanted = ["margins", "tabular", "attribution", "replicated_uniques", "new_rows"]
    other = compare(data(of_kind(people())), Microdata(of_kind(people(seed=2))), measures=wanted)
    for name in wanted:
        assert other[name].value == pytest.approx(found[name].value)


def test_large_files_are_sampled_for_the_slow_measures_and_say_so():
    found = compare(data(people(6000)), Microdata(people(6000, seed=2)), measures=["neighbors"], seed=3)
    assert "5,000 records drawn at random" in found["neighbors"].caveats[0]
    assert found["neighbors"].figures["identical_share"] is None
    assert "equal one exactly" not in found["neighbors"].meaning


def test_a_relation_of_few_known_records_that_differs_by_chance_is_not_what_went_wrong():
    rng = np.random.default_rng(1)
    rows = 4000
    frame = pl.DataFrame(
        {"a": rng.normal(size=rows), "b": rng.normal(size=rows), "c": rng.normal(size=rows)}
    ).with_columns(a=pl.when(pl.int_range(pl.len()) < 60).then("a"))
    half = frame.filter(pl.int_range(pl.len()) % 3 == 0)
    found = compare(Microdata(frame), Microdata(half), measures=["dependence"])
    row = found["dependence"].detail["pairs"].row(0, named=True)
    assert abs(row["difference"]) > 0.1, row
    assert not any("relation" in sentence and "'a'" in sentence for sentence in found.worst.sentences)


def test_what_went_wrong_names_the_column_that_is_guessed_and_how_many_can_be_looked_up():
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"town": rng.integers(0, 40, 400), "pay": rng.integers(0, 9, 400)})
    frame = frame.with_columns(pay=pl.col("town") % 9)
    original = Microdata(frame, keys="town", sensitive="pay")
    told = " ".join(compare(original, Microdata(frame.filter(pl.col("town") > 3))).worst.sentences)
    assert re.search(
        r"guesses 'pay' right for 100 % of those who can be looked up \([\d.]+ % of all people\)", told
    )
