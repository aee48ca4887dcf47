"""Every method of the sequential synthesizer, by itself and in a file."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Sequential, load
from discreet.synth.column_forms import Variable
from discreet.synth.methods.glm_methods import Poisson
from discreet.synth.methods.method import JointMethod, Method, all_methods
from discreet.synth.methods.model_matrix import Design, newton_logit, newton_poisson
from discreet.synth.methods.normal_regression import least_squares
from discreet.synth.smoothing import sheather_jones, smoothed

RNG = np.random.default_rng(5)
N = 1500
AGE = RNG.integers(18, 80, N).astype(float)
SEX = RNG.integers(0, 2, N)
PAY = np.exp(6 + 0.01 * AGE + 0.4 * SEX + RNG.normal(0, 0.3, N))
HEALTH = np.clip(np.round(4 - AGE / 25 + RNG.normal(0, 0.7, N)), 0, 3).astype(int)
LEVELS = ["bad", "fair", "good", "best"]
FILE = (
    pl.DataFrame(
        {
            "age": AGE,
            "sex": np.array(["f", "m"])[SEX],
            "region": RNG.choice(["n", "s", "w"], N),
            "pay": np.round(PAY, 2),
            "health": pl.Series([LEVELS[h] for h in HEALTH], dtype=pl.Enum(LEVELS)),
            "visits": RNG.integers(1, 12, N),
            "zip": RNG.integers(0, 9, N).astype(str),
        }
    )
    .with_columns(
        zip=pl.col("region") + pl.col("zip"),
        no_shows=pl.Series(RNG.binomial(np.maximum(RNG.integers(1, 12, N), 0), 0.2)),
    )
    .with_columns(no_shows=pl.min_horizontal("no_shows", "visits"))
)
DATA = Microdata(FILE)


def draw(n=4000, data=DATA, **options):
    fitted = Sequential(**options).fit(data, seed=1)
    return fitted.sample(n, seed=2).frame


@pytest.mark.parametrize("method", ["cart", "ctree", "rf", "bag", "sample"])
def test_a_method_for_all_columns_keeps_their_means(method):
    drawn = draw(method=method)
    for name in ("age", "pay", "visits"):
        assert drawn[name].mean() == pytest.approx(FILE[name].mean(), rel=0.05)


@pytest.mark.parametrize("method", ["cart", "ctree", "rf", "bag", "parametric"])
def test_relations_survive(method):
    drawn = draw(method=method)
    gap = FILE.group_by("sex").agg(pl.col("pay").log().mean()).sort("sex")["pay"].diff()[1]
    kept = drawn.group_by("sex").agg(pl.col("pay").log().mean()).sort("sex")["pay"].diff()[1]
    assert kept == pytest.approx(gap, abs=0.08)


@pytest.mark.parametrize("method", ["norm", "lognorm", "sqrtnorm", "cubertnorm", "normrank", "pmm"])
@pytest.mark.parametrize("proper", [False, True])
def test_regressions_of_a_number_keep_its_mean_and_slope(method, proper):
    drawn = draw(method={"pay": method}, proper=proper)
    assert drawn["pay"].mean() == pytest.approx(FILE["pay"].mean(), rel=0.05)
    slope = np.polyfit(FILE["age"], FILE["pay"], 1)[0]
    assert np.polyfit(drawn["age"], drawn["pay"], 1)[0] == pytest.approx(slope, rel=0.35)


@pytest.mark.parametrize("method", ["normrank", "pmm"])
def test_rank_and_matching_methods_give_observed_values(method):
    assert set(draw(method={"pay": method})["pay"]) <= set(FILE["pay"])


def test_numbers_are_rounded_as_they_were_written():
    drawn = draw(method={"pay": "norm"})["pay"]
    assert ((drawn * 100).round(6) % 1 == 0).all()


@pytest.mark.parametrize(("column", "method"), [("sex", "logreg"), ("region", "polyreg"), ("health", "polr")])
def test_logistic_methods_keep_the_shares(column, method):
    drawn = draw(
        method={column: method},
        visit_sequence=["age", "pay", "sex", "region", "health", "visits", "zip", "no_shows"],
    )
    for level, share in FILE[column].cast(pl.String).value_counts(normalize=True).iter_rows():
        assert (drawn[column].cast(pl.String) == level).mean() == pytest.approx(share, abs=0.03)


def test_the_order_of_health_follows_age():
    drawn = draw(method={"health": "polr"})
    young = drawn.filter(pl.col("age") < 35)["health"].to_physical().mean()
    old = drawn.filter(pl.col("age") > 65)["health"].to_physical().mean()
    assert young > old + 0.8


def test_separation_does_not_send_coefficients_away():
    x = np.linspace(-1, 1, 200)
    data = Microdata(pl.DataFrame({"x": x, "y": np.where(x > 0, "b", "a")}))
    drawn = Sequential(method={"y": "logreg"}).fit(data, seed=1).sample(2000, seed=1).frame
    assert drawn.filter(pl.col("x") > 0.5)["y"].value_counts(sort=True)["y"][0] == "b"


def test_nested_columns_stay_within_their_group_and_predict_nothing():
    fitted = Sequential(method={"zip": "nested.region"}).fit(DATA, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert (drawn["zip"].str.slice(0, 1) == drawn["region"]).all()
    assert "zip" not in fitted.plan.predictors["no_shows"]


def test_satcat_draws_within_the_cross_of_its_predictors_and_refuses_unseen_ones():
    drawn = draw(method={"zip": "satcat"}, predictor_matrix={"zip": ["region", "sex"]})
    assert (drawn["zip"].str.slice(0, 1) == drawn["region"]).all()
    with pytest.raises(ColumnError, match="no observed record has"):
        draw(
            method={"zip": "satcat", "age": "norm"},
            visit_sequence=["sex", "region", "pay", "age", "zip", "health", "visits", "no_shows"],
        )


def test_a_count_out_of_another_column_never_exceeds_it():
    drawn = draw(denominators={"no_shows": "visits"})
    assert (drawn["no_shows"] <= drawn["visits"]).all()
    assert drawn["no_shows"].sum() / drawn["visits"].sum() == pytest.approx(
        FILE["no_shows"].sum() / FILE["visits"].sum(), abs=0.02
    )
    with pytest.raises(ColumnError, match="larger than it"):
        draw(
            denominators={"visits": "no_shows"},
            visit_sequence=["no_shows", *[c for c in FILE.columns if c != "no_shows"]],
        )


@pytest.mark.parametrize("method", ["catall", "ipf"])
def test_joint_tables_keep_pairs(method):
    first = {"sex": method, "region": method, "health": method}
    order = [*first, "age", "pay", "visits", "zip", "no_shows"]
    drawn = draw(20_000, method=first, visit_sequence=order)
    ours, theirs = (f.group_by("sex", "health").len().sort("sex", "health") for f in (FILE, drawn))
    assert np.abs(ours["len"] / N - theirs["len"] / 20_000).max() < 0.02


def test_numbers_enter_a_joint_table_by_groups():
    options = {"method": {"sex": "catall", "age": "catall"}, "number_groups": {"age": 4}}
    order = ["sex", "age", "region", "pay", "health", "visits", "zip", "no_shows"]
    drawn = draw(visit_sequence=order, **options)
    assert drawn["age"].mean() == pytest.approx(FILE["age"].mean(), rel=0.03)
    with pytest.raises(ParameterError, match="number_groups"):
        draw(method={"age": "catall"})


def test_a_joint_table_must_come_first():
    with pytest.raises(ParameterError, match="come first"):
        draw(method={"region": "catall"})


def test_a_privacy_parameter_is_honored_or_refused():
    declared = FILE.select(
        pl.col("sex").cast(pl.Enum(["f", "m"])), "health", pl.Series("x", RNG.random(N) < 0.4)
    )
    noisy = {"method": "catall", "method_options": {"catall": {"epsilon": 1.0}}}
    assert Sequential(**noisy).fit(Microdata(declared), seed=1).guarantee is None
    fitted = Sequential(**noisy).fit(Microdata(declared))
    assert "1-differential privacy" in fitted.guarantee
    assert fitted.sample(100, seed=1).frame.height == 100
    with pytest.raises(ColumnError, match="Declare them"):
        Sequential(**noisy).fit(Microdata(FILE.select("sex", "region")), seed=1)
    mixed = {"method": {"sex": "catall"}, "method_options": {"catall": {"epsilon": 1.0}}}
    with pytest.raises(ParameterError, match="cannot be honored"):
        Sequential(**mixed).fit(Microdata(declared), seed=1)


def test_a_smaller_epsilon_means_more_noise():
    declared = Microdata(FILE.select(pl.col("sex").cast(pl.Enum(["f", "m"])), "health"))
    gaps = []
    for epsilon in (0.001, 10.0):
        fitted = Sequential(method="catall", method_options={"catall": {"epsilon": epsilon}}).fit(
            declared, seed=1
        )
        drawn = fitted.sample(5000, seed=1).frame
        gaps.append(abs((drawn["sex"] == "f").mean() - (FILE["sex"] == "f").mean()))
    assert gaps[0] > gaps[1]


def test_survival_times_come_with_their_events():
    time = RNG.exponential(1 + 3 * SEX)
    event = time < 4
    data = Microdata(FILE.select("sex", "age").with_columns(time=np.minimum(time, 4.0).round(3), event=event))
    fitted = Sequential(events={"time": "event"}).fit(data, seed=1)
    assert fitted.plan.methods["event"] == "survival-tree"
    drawn = fitted.sample(6000, seed=1).frame
    assert drawn.filter(~pl.col("event"))["time"].min() == 4.0
    for sex in ("f", "m"):
        ours = data.frame.filter(pl.col("sex") == sex)["time"].mean()
        assert drawn.filter(pl.col("sex") == sex)["time"].mean() == pytest.approx(ours, rel=0.15)


def test_survival_refuses_an_event_in_the_visit_sequence_and_one_without_events():
    frame = FILE.select("sex", "age").with_columns(event=pl.lit(0))
    with pytest.raises(ColumnError, match="no events"):
        Sequential(events={"age": "event"}).fit(Microdata(frame), seed=1)
    with pytest.raises(ParameterError, match="drawn together"):
        Sequential(events={"age": "event"}, visit_sequence=["sex", "event", "age"]).fit(
            Microdata(frame), seed=1
        )


@pytest.mark.parametrize("kind", ["spline", "density", "running-mean"])
def test_smoothing_blurs_donors_and_stays_in_range(kind):
    drawn = draw(smoothing={"pay": kind})["pay"]
    assert len(set(drawn) & set(FILE["pay"])) < 0.5 * drawn.n_unique()
    assert FILE["pay"].min() <= drawn.min()
    assert drawn.max() <= FILE["pay"].max()
    assert drawn.mean() == pytest.approx(FILE["pay"].mean(), rel=0.05)


def test_spikes_and_top_codes_are_not_smoothed():
    values = np.concatenate([np.zeros(800), RNG.normal(50, 5, 150), np.full(50, 90.0)])
    blurred = smoothed(values, "density", low=0, high=90, rng=np.random.default_rng(1))
    assert (blurred == 0).sum() == 800
    assert (blurred == 90).sum() >= 50


def test_the_bandwidth_of_a_normal_sample_is_near_the_normal_rule():
    sample = np.random.default_rng(2).normal(size=20_000)
    assert sheather_jones(sample) == pytest.approx(1.06 * 20_000**-0.2, rel=0.1)


def test_smoothing_something_that_is_no_donor_is_refused():
    with pytest.raises(ParameterError, match="cannot be smoothed"):
        draw(smoothing={"sex": "spline"})


@pytest.mark.parametrize(
    ("column", "method"), [("sex", "norm"), ("region", "logreg"), ("pay", "polyreg"), ("age", "logreg")]
)
def test_a_method_that_does_not_fit_the_column_is_refused(column, method):
    with pytest.raises(ParameterError, match=f"'{method}' cannot model it"):
        draw(method={column: method})


def test_predictors_that_say_nothing_new_are_dropped_and_said_so():
    frame = FILE.select("age", "pay").with_columns(twice=pl.col("age") * 2 + 1, third=FILE["visits"])
    fitted = Sequential(
        method={"pay": "norm", "twice": "norm"}, visit_sequence=["age", "twice", "pay", "third"]
    ).fit(Microdata(frame), seed=1)
    assert fitted.plan.predictors["pay"] == ("age",)


def test_negative_values_have_no_logarithm():
    with pytest.raises(ColumnError, match="negative values"):
        draw(method={"pay": "lognorm"}, data=Microdata(FILE.with_columns(pay=pl.col("pay") - 5000)))


def test_every_method_can_be_saved_and_loaded(tmp_path):
    method = {
        "sex": "sample", "region": "polyreg", "pay": "normrank", "health": "polr", "visits": "pmm",
        "zip": "nested.region", "no_shows": "rf",
    }  # fmt: skip
    fitted = Sequential(method=method).fit(DATA, seed=1)
    again = load(fitted.save(tmp_path / "m.discreet"))
    assert again.sample(200, seed=3).frame.equals(fitted.sample(200, seed=3).frame)


SINGLE = sorted(
    name
    for name, kind in all_methods().items()
    if name
    not in (
        "",
        "keep",
        "near",
        "numbered",
        "stratum",
        "passive",
        "constant",
        "collinear",
        "nested",
        "binomial",
    )
    and not issubclass(kind, JointMethod)
)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", SINGLE)
def test_a_loaded_model_draws_what_the_fitted_one_does(method, weighted, tmp_path):
    small = FILE.head(300).select("region", "sex", "pay").with_columns(w=pl.Series(RNG.random(300) + 0.1))
    data = Microdata(small, weight="w") if weighted else Microdata(small.drop("w"))
    column = "pay" if "number" in all_methods()[method].targets else "sex"
    if method == "poisson":
        data = data.with_frame(data.frame.with_columns(pl.col("pay").round().cast(pl.Int64)))
    fitted = Sequential(method={column: method}, predictor_matrix={column: ["region"]}).fit(data, seed=1)
    again = load(fitted.save(tmp_path / "m.discreet"))
    assert again.sample(200, seed=3).frame.equals(fitted.sample(200, seed=3).frame)
    assert again.plan.to_dict() == fitted.plan.to_dict()


@pytest.mark.parametrize(
    "options",
    [
        {"events": {"visits": None}},
        {"denominators": {"no_shows": "visits"}},
        {"method": {"age": "catall", "sex": "catall"}, "number_groups": {"age": 3}},
        {
            "method": {"sex": "ipf", "region": "ipf"},
            "visit_sequence": ["sex", "region", "age", "visits", "no_shows"],
        },
        {"method": {"sex": "keep", "visits": "~age + 1"}},
        {"strata": ["sex", "region"], "min_stratum": 5, "smoothing": "density", "constraints": ["age < 70"]},
    ],
)
def test_a_loaded_model_of_many_parts_draws_what_the_fitted_one_does(options, tmp_path):
    data = Microdata(FILE.select("age", "sex", "region", "visits", "no_shows"))
    fitted = Sequential(**options).fit(data, seed=1)
    again = load(fitted.save(tmp_path / "m.discreet"))
    assert again.sample(seed=3).frame.equals(fitted.sample(seed=3).frame)


def test_a_method_is_written_and_read_as_plain_values():
    for name, kind in all_methods().items():
        made = kind()
        written = made.to_dict()
        assert Method.named(written.pop("method"), written) == made, name


def test_the_regression_of_the_worked_example():
    age = [22, 25, 28, 30, 35, 40, 45, 50, 55, 60]
    income = np.array([30, 35, 40, 45, 50, 60, 70, 80, 85, 90]) * 1000.0
    x = [Variable("age", np.array(age, dtype=float))]
    design = Design.of(x)
    fitted = least_squares(design, x, income)
    slope = fitted.beta[1] / design.scale[1]
    assert slope == pytest.approx(1646.341, abs=5e-4)
    assert fitted.beta[0] - slope * design.center[1] == pytest.approx(-5707.317, abs=5e-4)
    assert fitted.sigma**2 == pytest.approx(3_704_268.29, abs=0.01)
    assert least_squares(design, x, income, df_adjust=1).sigma ** 2 == pytest.approx(4_233_449.48, abs=0.01)


def test_the_weighted_fits_of_the_survey_examples():
    weights = np.array([10, 20, 30, 20, 20]) / 20.0
    x = [Variable("x", np.arange(1.0, 6.0))]
    design = Design.of(x, weights=weights)
    fitted = least_squares(design, x, np.array([2.1, 3.9, 6.2, 7.8, 10.1]), weights=weights)
    turn = np.array([[1, -design.center[1] / design.scale[1]], [0, 1 / design.scale[1]]])
    assert turn @ fitted.beta == pytest.approx([0.042308, 1.996154], abs=5e-7)
    assert fitted.sigma**2 == pytest.approx(0.0240769, abs=5e-8)
    covariance = turn @ fitted.root @ fitted.root.T @ turn.T
    assert covariance == pytest.approx(np.array([[0.036424, -0.009878], [-0.009878, 0.003087]]), abs=5e-7)
    beta, _ = newton_logit(design, x, np.array([0, 0, 1, 0, 1]), weights=weights)
    assert turn @ beta == pytest.approx([-2.980699, 0.930032], abs=5e-7)


@pytest.mark.parametrize("kind", ["logit", "poisson"])
def test_weighted_fits_and_their_sandwich_are_those_of_statsmodels(kind):
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=400), rng.uniform(0.2, 3, 400)
    weights *= 400 / weights.sum()
    y = rng.poisson(np.exp(0.3 + 0.5 * x)) if kind == "poisson" else rng.random(400) < 1 / (1 + np.exp(-x))
    family = sm.families.Poisson() if kind == "poisson" else sm.families.Binomial()
    given = [Variable("x", x)]
    design = Design.of(given, weights=weights)
    turn = np.array([[1, -design.center[1] / design.scale[1]], [0, 1 / design.scale[1]]])
    newton = newton_poisson if kind == "poisson" else newton_logit
    model = sm.GLM(y.astype(float), sm.add_constant(x), family=family, var_weights=weights)
    for sandwich, how in ((False, {}), (True, {"cov_type": "HC0"})):
        beta, root = newton(design, given, y.astype(float), weights=weights, sandwich=sandwich)
        wanted = model.fit(**how)
        assert turn @ beta == pytest.approx(wanted.params, abs=1e-6)
        assert turn @ root @ root.T @ turn.T == pytest.approx(wanted.cov_params(), rel=1e-4)


def test_weighted_counts_have_the_mean_of_the_population_and_say_when_they_vary_too_much():
    rng = np.random.default_rng(6)
    x = rng.normal(size=4000)
    visits = rng.poisson(np.exp(0.5 + 0.4 * x))
    frame = pl.DataFrame({"x": x, "visits": visits, "w": np.exp(0.5 * x)})
    fitted = Sequential(method={"visits": "poisson"}).fit(Microdata(frame, weight="w"), seed=1)
    made = fitted.sample(20_000, seed=1).frame["visits"]
    assert made.dtype == pl.Int64
    assert made.mean() == pytest.approx(np.average(visits, weights=frame["w"]), rel=0.05)
    assert not any("Poisson" in note for note in fitted.plan.warnings)
    heaped = Microdata(frame.select("x", visits=pl.col("visits") * 3))
    notes = Sequential(method={"visits": "poisson"}).fit(heaped, seed=1).plan.warnings
    assert any("'visits': the counts vary 3" in note and "cart" in note for note in notes)
    with pytest.raises(ColumnError, match=r"'visits' is negative or no whole number in 4,000"):
        Sequential(method={"visits": "poisson"}).fit(
            Microdata(frame.select("x", visits=pl.col("visits") + 0.5))
        )
    with pytest.raises(ParameterError, match="sandwich"):
        Sequential(method={"visits": Poisson(covariance="robust")})


def test_ranks_bent_by_a_value_that_most_records_share_are_told_with_the_way_out():
    rng = np.random.default_rng(11)
    x = rng.normal(size=1500)
    benefit = np.where(rng.random(1500) < 0.9, 0.0, rng.gamma(2, 100, 1500))
    data = Microdata(pl.DataFrame({"x": x, "benefit": benefit}))

    def made(**options):
        fitted = Sequential(method={"benefit": "normrank"}, **options).fit(data, seed=1)
        notes = [note for note in fitted.plan.warnings if "of the records share one value" in note]
        return notes, fitted.sample(20_000, seed=1).frame["benefit"].mean() / benefit.mean()

    notes, ratio = made()
    assert "semicontinuous" in notes[0]
    assert ratio < 0.3
    for way_out in (
        {"semicontinuous": {"benefit": [0]}},
        {"method_options": {"normrank": {"ties": "random"}}},
    ):
        notes, ratio = made(**way_out)
        assert not notes
        assert ratio == pytest.approx(1.0, abs=0.1)
