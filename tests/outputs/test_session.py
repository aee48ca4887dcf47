from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.outputs import OutputPolicy, Session


@pytest.fixture
def people():
    rng = np.random.default_rng(7)
    n = 600
    sex = rng.choice(["f", "m"], n)
    region = rng.choice(["north", "south", "east"], n)
    pay = rng.lognormal(7, 0.5, n)
    return pl.DataFrame(
        {
            "sex": sex,
            "region": region,
            "pay": pay,
            "age": rng.integers(18, 65, n),
            "ill": rng.random(n) < 0.3,
            "months": rng.integers(1, 25, n),
            "who": np.arange(n) // 2,
        }
    )


def test_a_safe_table_passes_and_comes_back_in_the_kind_of_the_data(people):
    import pandas as pd

    with Session(data=people) as s:
        assert s.crosstab("sex", "region").status == "pass"
        assert isinstance(s.crosstab("sex", data=people.to_pandas()).result, pd.DataFrame)
        assert isinstance(s["output_1"].result, pl.DataFrame)


def test_people_are_counted_not_records(people):
    small = people.filter(pl.col("who") < 8)
    with Session(data=Microdata(small, person="who")) as s:
        found = s.crosstab("sex", margins=True)
    with Session(data=small) as s:
        rows = s.crosstab("sex", margins=True)
    assert found.table["count"][-1] == 8
    assert rows.table["count"][-1] == 16


def test_a_declared_level_that_nobody_has_is_an_empty_cell(people):
    with Session(data=people) as s:
        found = s.crosstab("sex", levels={"sex": ["f", "m", "x"]})
    assert found.checked.cells("empty cell") == ((2,),)


def test_levels_of_a_category_column_are_restored(people):
    frame = people.with_columns(pl.col("sex").cast(pl.Enum(["f", "m", "x"])))
    with Session(data=frame) as s:
        assert s.crosstab("sex").checked.cells("empty cell") == ((2,),)
        as_pandas = frame.to_pandas()
        assert s.crosstab("sex", data=as_pandas).checked.cells("empty cell") == ((2,),)


def test_structural_zeros_are_declared_by_name(people):
    frame = people.with_columns(
        pregnant=pl.when(pl.col("sex") == "f").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    frame = frame.with_columns(pregnant=pl.when(pl.col("age") > 40).then(pl.lit("no")).otherwise("pregnant"))
    with Session(data=frame) as s:
        assert s.crosstab("sex", "pregnant").status == "fail"
        declared = s.crosstab("sex", "pregnant", structural_zeros=[{"sex": "m", "pregnant": "yes"}])
        assert declared.status == "pass"
        with pytest.raises(ColumnError, match="dimension"):
            s.crosstab("sex", structural_zeros=[{"region": "north"}])


@pytest.mark.parametrize("how", ["suppress", "round", "collapse"])
def test_a_failing_table_can_be_mended_and_is_checked_again(people, how):
    rare = people.with_columns(region=pl.when(pl.col("who") < 2).then(pl.lit("isle")).otherwise("region"))
    with Session(OutputPolicy(round_base=10), data=rare) as s:
        assert s.crosstab("region", "sex").status == "fail"
        mended = s.crosstab("region", "sex", mitigate=how, margins=how != "collapse")
    assert mended.status == "pass"


def test_secondary_suppression_keeps_true_margins_unless_they_are_too_small_themselves(people):
    frame = people.with_columns(
        region=pl.when((pl.col("who") < 14) & (pl.col("sex") == "f")).then(pl.lit("isle")).otherwise("region")
    ).with_columns(
        region=pl.when((pl.col("who") < 60) & (pl.col("sex") == "m")).then(pl.lit("isle")).otherwise("region")
    )
    with Session(OutputPolicy(threshold=20, zeros_are_disclosive=False), data=frame) as s:
        mended = s.crosstab("region", "sex", mitigate="secondary-suppress", margins=True)
        assert mended.status == "pass"
        assert mended.table["Total"][-1] == frame.height
        assert "D" in mended.flags.to_dict(as_series=False)["m"]
        tiny = people.with_columns(region=pl.when(pl.col("who") < 2).then(pl.lit("isle")).otherwise("region"))
        assert (
            s.crosstab("region", "sex", data=tiny, mitigate="secondary-suppress", margins=True).status
            == "fail"
        )


def test_suppressed_records_are_not_in_the_margins(people):
    rare = people.with_columns(region=pl.when(pl.col("who") < 2).then(pl.lit("isle")).otherwise("region"))
    with Session(data=rare) as s:
        found = s.crosstab("region", "sex", mitigate="suppress", margins=True)
    row = found.table.filter(pl.col("region") == "isle")
    assert row["Total"][0] is None
    inner = found.table.filter(~pl.col("region").is_in(["Total", "isle"]))
    total = found.table.filter(pl.col("region") == "Total")
    assert total["Total"][0] == inner["Total"].sum()
    assert set(found.flags.filter(pl.col("region") == "isle").row(0)[1:]) <= {"A", "C"}


def test_shares_are_checked_by_their_complement(people):
    frame = people.with_columns(
        rare=pl.when(pl.int_range(pl.len()) < 5).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    with Session(OutputPolicy(zeros_are_disclosive=False), data=frame) as s:
        found = s.crosstab("sex", "rare", normalize="rows")
    assert {"numerator", "complement"} <= {f.check for f in found.findings if f.status == "fail"}


def test_weighted_counts_are_held_against_unweighted_people(people):
    heavy = people.head(9).with_columns(w=pl.lit(1000.0))
    with Session(OutputPolicy(zeros_are_disclosive=False), data=heavy) as s:
        found = s.crosstab("sex", weight="w", margins=True)
        by_role = s.crosstab("sex", data=Microdata(heavy, weight="w"), margins=True)
    assert found.status == "fail"
    assert found.table["weighted count"][-1] == by_role.table["weighted count"][-1] == 9000


def test_every_statistic_is_checked_by_its_own_barn(people):
    with Session(data=people) as s:
        found = s.summary("pay", "region", statistics=["count", "mean", "sd", "max", "median"])
    assert set(found.barns) == {"a", "d", "i", "c", "b"}
    assert found.status == "fail"
    assert {f.check for f in found.findings if f.status == "fail"} == {"maximum"}


def test_a_dominated_mean_fails_and_suppression_mends_it(people):
    frame = people.with_columns(pay=pl.when(pl.int_range(pl.len()) == 0).then(1e9).otherwise("pay"))
    with Session(data=frame) as s:
        found = s.summary("pay", "region", statistics=["mean"])
        assert {"dominance", "p%"} <= {f.check for f in found.findings if f.status == "fail"}
        assert s.summary("pay", "region", statistics=["mean"], mitigate="suppress").status == "pass"
        s.remove("output_2")
        assert s.summary("pay", "region", statistics=["mean"], mitigate="top-code").status == "pass"


def test_totals_and_means_are_those_of_polars(people):
    with Session(data=people) as s:
        found = s.summary("pay", ["sex", "region"], statistics=["count", "total", "mean", "sd", "median"])
    ours = found.table.sort("sex", "region")
    theirs = people.group_by("sex", "region").agg(
        pl.len().alias("count"), pl.col("pay").sum().alias("total"), pl.col("pay").mean().alias("mean"),
        pl.col("pay").std().alias("sd"), pl.col("pay").median().alias("median"),
    ).sort("sex", "region")  # fmt: skip
    for name in ("count", "total", "mean", "sd", "median"):
        assert ours[name].to_list() == pytest.approx(theirs[name].to_list())


def test_missing_values_are_counted_and_shown_to_a_human_where_the_policy_says_so(people):
    frame = people.with_columns(pay=pl.when(pl.col("who") > 20).then("pay"))
    with Session(OutputPolicy(check_missing=True), data=frame) as s:
        found = s.summary("pay", "sex", statistics=["mean"])
    assert found.status == "review"
    assert "42 of 600" in found.draft.notes[0]


def test_quantiles_histograms_and_curves(people):
    with Session(data=people) as s:
        assert s.quantiles("age", "region").status == "pass"
        assert (
            s.quantiles("pay", where={"region": "north"}, probabilities=np.arange(0.02, 1, 0.02)).status
            == "fail"
        )
        coarse = s.quantiles(
            "pay",
            where={"region": "north"},
            probabilities=np.arange(0.02, 1, 0.02),
            mitigate="coarser-quantiles",
        )
        assert coarse.status == "pass"
        assert s.quantiles("pay", mitigate="round").status == "pass"
        assert s.histogram("pay", bins=40).status == "fail"
        assert s.histogram("age", bins=40, mitigate="collapse").status == "pass"
        assert s.lorenz("pay", points=100).status == "fail"
        assert s.lorenz("pay", points=100, mitigate="coarser-curve").status == "pass"
        assert s.gini("pay", "region").status == "pass"
        assert s.hhi("pay", "region").status == "pass"
        assert s.concentration("pay", "sex", n=4).status == "pass"


def test_a_histogram_whose_ends_are_somebodys_values_is_for_a_human(people):
    low, high = people["pay"].min(), people["pay"].max()
    with Session(data=people) as s:
        found = s.histogram("pay", edges=[low, 1000, high])
    assert {f.check for f in found.findings if f.status == "review"} == {"axis ends"}


def test_survival_curves_are_grouped_and_cut(people):
    with Session(data=people) as s:
        raw = s.survival("months", "ill", "sex")
        safe = s.survival("months", "ill", "sex", mitigate="group-times", show_counts=False)
    assert raw.status == "fail"
    assert safe.status == "pass"
    assert safe.table.columns == ["sex", "time", "survival"]
    both = safe.table.join(raw.table, on=["sex", "time"], suffix=" raw")
    assert both["survival"].to_list() == both["survival raw"].to_list()


def test_ratios_correlations_and_tests(people):
    with Session(data=people) as s:
        assert s.odds_ratio("sex", "ill").status == "pass"
        assert s.risk_ratio(counts=[[20, 80], [10, 90]]).table["risk ratio"][0] == 2.0
        assert s.odds_ratio(counts=[[12, 40], [8, 60]]).status == "fail"
        assert s.correlation(["pay", "age", "months"], method="spearman").status == "pass"
        assert (
            s.correlation(["age", "twice"], data=people.with_columns(twice=2 * pl.col("age"))).status
            == "fail"
        )
        for kind, columns in (
            ("t", ("pay", "sex")), ("welch", ("pay", "sex")), ("paired-t", ("age", "months")), ("ks", ("pay", "sex")),
            ("mann-whitney", ("pay", "sex")), ("anova", ("pay", "region")), ("kruskal", ("pay", "region")),
            ("levene", ("pay", "region")), ("shapiro", ("pay",)), ("chi2", ("sex", "region")),
            ("fisher", ("sex", "ill")), ("wilcoxon", ("age", "months")),
        ):  # fmt: skip
            assert s.test(kind, *columns).status == "pass"
        assert s.test("t", "pay", "sex", data=people.head(8)).status == "fail"
        with pytest.raises(ParameterError, match="test"):
            s.test("tee", "pay")


def test_models_of_statsmodels_are_checked(people):
    frame = people.with_columns(sick=pl.col("ill").cast(pl.Int8))
    with Session(data=frame) as s:
        found = s.ols("pay ~ age + C(region)")
        assert found.status == "pass"
        assert found.result.rsquared < 1
        assert found.table["term"].to_list()[0] == "Intercept"
        assert "fit" in found.tables
        table = s.logit("sick ~ C(sex)")
        assert "a" in table.barns
        assert s.probit("sick ~ age").status == "pass"
        assert s.poisson("months ~ age").status == "pass"
        assert s.ols("pay ~ age", where={"region": "north"}).table.height == 2
        assert s.ols("pay ~ age + months", data=people.head(12)).status == "fail"
        assert s.ols("pay ~ age", shown=["residuals"]).status == "fail"
        perfect = s.ols("twice ~ age", data=people.with_columns(twice=2 * pl.col("age")))
        assert "perfectly" in " ".join(perfect.reasons)
        with pytest.raises(ColumnError, match="nothing_here"):
            s.ols("pay ~ nothing_here + age")
        with pytest.raises(ParameterError, match="no column"):
            s.ols("y ~ x")


def test_panel_models_count_people(people):
    with Session(data=Microdata(people.head(22), person="who")) as s:
        assert s.ols("pay ~ age").findings[0].figures["dof"] == 9


def test_models_of_scikit_learn_are_checked(people):
    from sklearn.cluster import KMeans
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    X, y = people.select("age", "months", "pay").to_numpy(), people["ill"].to_numpy().astype(int)
    with Session() as s:
        assert s.sklearn(LinearRegression().fit(X, y), X, y).status == "pass"
        assert s.sklearn(LogisticRegression(max_iter=2000).fit(X, y), X, y).status == "pass"
        assert s.sklearn(LinearRegression().fit(X[:10], y[:10]), X[:10], y[:10]).status == "fail"
        assert s.sklearn(DecisionTreeClassifier().fit(X, y), X, y).status == "fail"
        assert s.sklearn(SVC().fit(X, y), X, y).status == "fail"
        # Its leaves hold one person each, as those of the tree above do.
        assert s.sklearn(RandomForestClassifier(5, random_state=0).fit(X, y), X, y).status == "fail"
        broad = RandomForestClassifier(5, min_samples_leaf=20, bootstrap=False, random_state=0).fit(X, y)
        assert s.sklearn(broad, X, y).status == "review"
        assert s.sklearn(KMeans(2, n_init=1, random_state=0).fit(X), X).barns == ("m",)


def test_outputs_are_named_explained_renamed_and_withdrawn(people):
    clock = iter(datetime.datetime(2026, 1, 1, 12, i, tzinfo=datetime.UTC) for i in range(30))
    with Session(data=people, clock=lambda: next(clock)) as s:
        s.crosstab("sex", name="by sex", comment="first")
        s.explain("by sex", "needed for the paper")
        s.comment("by sex", "second")
        s.rename("by sex", "sexes")
        assert s["sexes"].exception == "needed for the paper"
        assert s["sexes"].comments == ("first", "second")
        assert s["sexes"].created == "2026-01-01T12:01:00+00:00"
        with pytest.raises(ParameterError, match="already"):
            s.crosstab("region", name="sexes")
        with pytest.raises(ParameterError, match="file name"):
            s.crosstab("region", name="../up")
        with pytest.raises(ParameterError, match="reason"):
            s.explain("sexes", "  ")
        s.remove("sexes")
        assert len(s) == 0
        with pytest.raises(ParameterError, match="output"):
            s["sexes"]


def test_mistakes_are_named(people):
    with Session(data=people) as s:
        with pytest.raises(ColumnError, match="region"):
            s.crosstab("regoin")
        with pytest.raises(ColumnError, match="not a number"):
            s.summary("sex", "region")
        with pytest.raises(ParameterError, match="statistic"):
            s.summary("pay", "sex", statistics=["meen"])
        with pytest.raises(ParameterError, match="mitigation"):
            s.crosstab("sex", mitigate="drop-tail")
        with pytest.raises(ParameterError, match="twice"):
            s.crosstab("sex", "sex")
        with pytest.raises(ParameterError, match="missing"):
            s.crosstab("sex", missing="wild")
        with pytest.raises(ParameterError, match="option"):
            s.gini("pay", weigth="w")
    with pytest.raises(ParameterError, match="no data"):
        Session().crosstab("sex")
    with pytest.raises(ParameterError, match="read"):
        Session(data="people.csv")


def test_custom_files_are_for_a_human_and_blocked_kinds_are_refused(tmp_path, people):
    picture, drawing = tmp_path / "a.png", tmp_path / "a.svg"
    picture.write_bytes(b"\x89PNG")
    drawing.write_text("<svg/>")
    with Session(data=people) as s:
        assert s.custom(picture, comment="map").status == "review"
        with pytest.raises(InputError, match="vector"):
            s.custom(drawing)
        with pytest.raises(InputError, match="no file"):
            s.custom(tmp_path / "none.png")
