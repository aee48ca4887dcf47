"""What a demanding user tries with a sequential synthesis: wrong settings, and files at the edge of the possible."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Sequential, load
from discreet.synth.smoothing import sheather_jones

N = 400
RNG = np.random.default_rng(5)
AGE, TRIES = RNG.integers(18, 90, N), RNG.integers(0, 20, N)
FILE = pl.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "age": AGE,
        "tries": TRIES,
        "wins": RNG.binomial(TRIES, 0.3),
        "pay": (AGE * 30 + RNG.normal(0, 200, N)).round(0),
        "smokes": pl.Series(np.where(AGE > 80, None, RNG.choice(["no", "yes"], N)), dtype=pl.String),
    }
)


def drawn(frame: pl.DataFrame, n: int | None = None, **options) -> pl.DataFrame:
    return Sequential(**options).fit(Microdata(frame), seed=1).sample(n, seed=2).frame


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": {"sex": "constant"}}, ParameterError, "'sex' has several values"),
        ({"method": {"sex": "stratum"}}, ParameterError, "'sex' under strata"),
        ({"method": "keep"}, ParameterError, "nothing to synthesize"),
        ({"method": {"pay": "survival-tree"}}, ParameterError, "events={'pay'"),
        ({"method": {"pay": "binomial"}}, ParameterError, "denominators={'pay'"),
        ({"method": {"pay": "collinear"}}, ParameterError, "found by themselves"),
        ({"method": {"pay": "nested.sexx"}}, ColumnError, "Did you mean 'sex'"),
        ({"method": {"pay": "nested"}}, ParameterError, "'nested.other'"),
        ({"method": {"pay": "~"}}, ParameterError, "'pay' is to be computed"),
        ({"method": {"smokes": "logreg"}}, ParameterError, "3 levels, missing being one"),
        ({"method": {5: "cart"}}, ColumnError, "no column '5'"),
        ({"visit_sequence": [1, 2]}, ParameterError, "visit_sequence must be"),
        ({"otherwise": "crat"}, ParameterError, "Did you mean 'cart'"),
        ({"method_options": {"cart": 5}}, ParameterError, "method_options of 'cart'"),
        (
            {"method_options": {"cart": {"min_leaf": "ten"}}},
            ParameterError,
            "min_leaf must be a whole number",
        ),
        ({"method_options": {"cart": {"min_leaf": 2.5}}}, ParameterError, "min_leaf must be a whole number"),
        ({"method_options": {"rf": {"n_trees": 0}}}, ParameterError, "n_trees"),
        ({"method_options": {"norm": {"ridge": "x"}}}, ParameterError, "ridge must be a number"),
        (
            {"method_options": {"catall": {"epsilon": -1}}},
            ParameterError,
            "epsilon must be a number of more than 0",
        ),
        ({"predictor_matrix": {"pay": 5}}, ParameterError, "predictor_matrix of 'pay'"),
        ({"predictor_matrix": [[0, 0], [1, 0, 0]]}, ParameterError, "rows of different length"),
        ({"method": {"pay": {"ridge": 0.1}}}, ParameterError, "do not say of which method"),
        ({"leave_out": 5}, ParameterError, "leave_out must be the name of a column"),
        ({"strata": 5}, ParameterError, "strata must be the name of a column"),
        ({"constraints": 5}, ParameterError, "constraints must be a condition"),
        ({"rules": {"pay": [("age < 'x'", 1)]}}, ColumnError, "In the rule of column 'pay'"),
        ({"denominators": {"wins": "tries"}, "method": {"wins": "cart"}}, ParameterError, "out of one"),
        ({"denominators": {"pay": "triess"}}, ColumnError, "Did you mean 'tries'"),
        ({"leave_out": FILE.columns[1:]}, ParameterError, "only the column 'sex'. 5 are left out"),
    ],
)
def test_a_wrong_setting_is_named_with_a_way_out(options, error, words):
    with pytest.raises(error, match=words):
        drawn(FILE, **options)


@pytest.mark.parametrize(
    ("columns", "words"), [([], "there is no column"), (["sex"], "only the column 'sex'")]
)
def test_a_file_with_too_few_columns_is_refused(columns, words):
    with pytest.raises(ParameterError, match=words):
        drawn(FILE.select(columns))


def test_one_joint_table_has_one_method():
    with pytest.raises(ParameterError, match="share one method"):
        drawn(FILE.select("sex", "smokes"), method={"sex": "catall", "smokes": "ipf"})


def test_a_margin_of_one_column_may_be_written_as_its_name():
    options = {"method": "ipf", "method_options": {"ipf": {"margins": ["sex", "smokes"]}}}
    assert drawn(FILE.select("sex", "smokes"), **options).height == N


def test_kept_records_stay_in_their_strata_where_small_ones_are_pooled(tmp_path):
    options = Sequential(method={"age": "keep"}, strata="sex", min_stratum=1000)
    fitted = options.fit(Microdata(FILE), seed=1)
    made = fitted.sample(seed=2).frame
    assert made["sex"].equals(FILE["sex"])
    assert made["age"].equals(FILE["age"])
    assert not made["pay"].equals(FILE["pay"])
    assert load(fitted.save(tmp_path / "model")).sample(seed=2).frame.equals(made)


@pytest.mark.parametrize("options", [{"method": {"height": "norm"}}, {"smoothing": {"height": "density"}}])
def test_a_column_on_a_straight_line_stays_on_it_where_its_source_takes_new_values(options, tmp_path):
    rng = np.random.default_rng(1)
    height = rng.normal(170, 10, N).round(1)
    people = pl.DataFrame(
        {"sex": rng.choice(["f", "m"], N), "height": height, "inches": (height / 2.54).round(4)}
    )
    fitted = Sequential(**options).fit(Microdata(people), seed=1)
    assert fitted.plan.methods["inches"] == "collinear"
    made = fitted.sample(5000, seed=2).frame
    assert not set(made["height"]) <= set(people["height"])
    assert (made["inches"] - made["height"] / 2.54).abs().max() < 1e-3
    assert load(fitted.save(tmp_path / "model")).sample(5000, seed=2).frame.equals(made)


def test_a_column_is_not_looked_up_from_one_whose_rules_bring_in_values_that_no_record_has():
    grade = pl.Series("grade", AGE // 10)
    people = pl.DataFrame({"sex": FILE["sex"], "grade": grade, "label": "g" + grade.cast(pl.String)})
    plain = Sequential().plan(Microdata(people))
    ruled = Sequential(rules={"grade": [("sex == 'f'", None)]}).plan(Microdata(people))
    assert (plain.methods["label"], ruled.methods["label"]) == ("collinear", "cart")


def test_counts_out_of_the_same_number_everywhere_are_drawn():
    made = drawn(FILE.with_columns(tries=pl.lit(20)), 5000, denominators={"wins": "tries"})
    assert made["wins"].max() <= 20
    assert made["wins"].mean() == pytest.approx(FILE["wins"].mean(), rel=0.05)


def test_counts_that_are_not_whole_are_refused():
    with pytest.raises(ColumnError, match="whole numbers"):
        drawn(FILE.with_columns(pl.col("wins") / 2), denominators={"wins": "tries"})


SURVIVAL = pl.DataFrame(
    {
        "arm": RNG.choice(["a", "b"], N),
        "time": RNG.exponential(5, N).round(2),
        "died": RNG.integers(0, 2, N),
    }
)


@pytest.mark.parametrize("kind", [pl.Int64, pl.Boolean, pl.Float64])
def test_events_that_all_happened_are_no_error(kind):
    made = drawn(SURVIVAL.with_columns(died=pl.lit(1).cast(kind)), events={"time": "died"}, few_values=5)
    assert made["died"].cast(pl.Int64).unique().to_list() == [1]
    assert made["died"].dtype == kind


def test_a_stratum_without_events_is_drawn():
    died = pl.when(pl.col("arm") == "a").then(0).otherwise("died")
    made = drawn(SURVIVAL.with_columns(died=died), events={"time": "died"}, strata="arm")
    assert made.filter(pl.col("arm") == "a")["died"].sum() == 0
    assert made.filter(pl.col("arm") == "b")["died"].sum() > 0


def test_events_that_are_not_told_by_0_and_1_are_refused_however_they_are_modelled():
    with pytest.raises(ColumnError, match="must hold 0 and 1"):
        drawn(SURVIVAL.with_columns(pl.col("died") + 1), events={"time": "died"}, few_values=5)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (np.arange(N), True),
        (np.arange(N)[::-1] * 1000, True),
        (np.random.default_rng(2).permutation(N), True),
        (AGE, False),
        (np.random.default_rng(3).choice(10**6, N, replace=False), False),
    ],
)
def test_a_column_that_numbers_the_records_is_pointed_out(numbers, told):
    plan = Sequential().plan(Microdata(FILE.with_columns(person=pl.Series(numbers))))
    assert any("as identifiers have: person" in note for note in plan.warnings) is told


def test_a_household_that_is_synthesized_is_pointed_out():
    homes = Microdata(FILE.with_columns(home=pl.Series(np.arange(N) // 3)), household="home")
    assert any("share 'home' are drawn together" in note for note in Sequential().plan(homes).warnings)
    alone = Sequential(method={"home": "sample"}).plan(homes).warnings
    assert any("share 'home' in the synthetic file have nothing else to do" in note for note in alone)
    assert not any("household" in note for note in Sequential(leave_out="home").plan(homes).warnings)


@pytest.mark.parametrize("unit", [1e-60, 1e-12, 1e6, 1e60])
def test_the_bandwidth_does_not_depend_on_the_unit(unit):
    values = np.random.default_rng(1).lognormal(0, 1, 500)
    assert sheather_jones(values * unit) == pytest.approx(unit * sheather_jones(values), rel=1e-6)


HUGE = FILE.with_columns(far=pl.Series(np.random.default_rng(1).normal(size=N) * 1e300))


@pytest.mark.parametrize("options", [{"method": {"far": "norm"}}, {"method": {"far": "pmm"}}])
def test_numbers_that_cannot_be_squared_are_refused_by_regressions(options):
    with pytest.raises(ColumnError, match="'far' has values that are too large"):
        drawn(HUGE, **options)


@pytest.mark.parametrize("options", [{}, {"method": {"far": "normrank"}}, {"smoothing": {"far": "density"}}])
def test_numbers_that_cannot_be_squared_are_drawn_from_donors(options):
    assert np.isfinite(drawn(HUGE, **options)["far"].to_numpy()).all()


def test_proportional_odds_that_do_not_converge_are_said_to_be_fitted_without_an_order(tmp_path):
    graded = FILE.with_columns(grade=pl.Series(AGE // 25).cast(pl.String).cast(pl.Enum(["0", "1", "2", "3"])))
    options = Sequential(method={"grade": "polr"}, method_options={"polr": {"max_iterations": 1}})
    fitted = options.fit(Microdata(graded), seed=1)
    assert any("'grade': proportional odds (polr) did not converge" in note for note in fitted.plan.warnings)
    assert load(fitted.save(tmp_path / "model")).sample(seed=2).frame.equals(fitted.sample(seed=2).frame)
