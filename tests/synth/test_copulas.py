"""Gaussian and vine copulas as synthesizers, and the two baselines."""

import datetime as dt
import sys

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ExtraMissingError, ParameterError
from discreet.synth.baselines import Bootstrap, Independent
from discreet.synth.gaussian_copula import GaussianCopula
from discreet.synth.synthesizer import load, load_plan, save_plan
from discreet.synth.vine_copula import VineCopula

RNG = np.random.default_rng(3)
N = 600
AGE = RNG.integers(16, 90, N)
PEOPLE = pl.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "age": AGE,
        "region": RNG.choice(["north", "south", "west"], N),
        "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 9000, N)],
        "member": RNG.random(N) < 0.3,
        "hours": np.where(RNG.random(N) < 0.2, -8, RNG.integers(10, 60, N)),
        "country": ["X"] * N,
    }
).with_columns(
    pay=pl.when(pl.Series(RNG.random(N) < 0.2))
    .then(None)
    .otherwise(pl.Series(np.round(AGE * 20 + RNG.normal(0, 300, N), 2))),
    health=pl.Series(np.where(AGE + RNG.normal(0, 20, N) > 60, "poor", "good")).cast(
        pl.Enum(["poor", "good", "never"])
    ),
)
DATA = Microdata(PEOPLE, keys=["sex", "age"], sensitive="pay")
KINDS = {
    "latent": GaussianCopula(special_codes={"hours": [-8]}),
    "information": GaussianCopula(dependence="mutual-information", special_codes={"hours": [-8]}),
    "d-vine": VineCopula(special_codes={"hours": [-8]}),
    "r-vine": VineCopula("r-vine", pair_copulas="gaussian", truncate=2, special_codes={"hours": [-8]}),
    "c-vine": VineCopula("c-vine", pair_copulas="nonparametric", truncate=2, discrete="jitter"),
    "independent": Independent(),
    "bootstrap": Bootstrap(),
}
MODELS = {}


@pytest.fixture(params=list(KINDS))
def model(request):
    """Each kind, fitted once for all tests."""
    if request.param not in MODELS:
        MODELS[request.param] = KINDS[request.param].fit(DATA, seed=1)
    return MODELS[request.param]


def normal(n, correlation, seed=1):
    matrix = np.asarray(correlation, dtype=float)
    return np.random.default_rng(seed).multivariate_normal(np.zeros(len(matrix)), matrix, n)


def test_types_column_order_and_roles_survive(model):
    released = model.sample(seed=2)
    assert released.frame.schema == PEOPLE.schema
    assert released.roles == DATA.roles


@pytest.mark.parametrize("n", [1, 17, 2 * N])
def test_any_number_of_records_can_be_drawn(model, n):
    assert model.sample(n, seed=2).frame.height == n


def test_empirical_margins_give_observed_values_only(model):
    released = model.sample(2 * N, seed=5).frame
    for name in PEOPLE.columns:
        assert set(released[name].to_list()) <= set(PEOPLE[name].to_list())


def test_missing_values_and_codes_keep_their_shares(model):
    released = model.sample(20_000, seed=5).frame
    assert released["pay"].is_null().mean() == pytest.approx(PEOPLE["pay"].is_null().mean(), abs=0.02)
    assert (released["hours"] == -8).mean() == pytest.approx((PEOPLE["hours"] == -8).mean(), abs=0.02)


def test_the_same_seed_gives_the_same_bytes_and_copies_differ(model):
    first, second = model.sample(copies=2, seed=9)
    again = model.sample(copies=2, seed=9)
    assert first.frame.equals(again[0].frame)
    assert second.frame.equals(again[1].frame)
    assert not first.frame.equals(second.frame)


@pytest.mark.parametrize("kind", ["latent", "information", "d-vine", "r-vine"])
def test_the_same_seed_fits_the_same_model(kind):
    twice = [KINDS[kind].fit(DATA, seed=4).sample(50, seed=1).frame for _ in range(2)]
    assert twice[0].equals(twice[1])


def test_a_model_is_saved_and_loaded_and_draws_the_same_file(model, tmp_path):
    again = load(model.save(tmp_path / "model.discreet"))
    assert again.sample(50, seed=4).frame.equals(model.sample(50, seed=4).frame)


@pytest.mark.parametrize("kind", ["latent", "r-vine", "bootstrap"])
def test_a_plan_file_says_the_same(kind, tmp_path):
    plan = load_plan(save_plan(KINDS[kind], tmp_path / "plan.toml"))
    assert plan.to_dict() == KINDS[kind].to_dict()


def test_relations_survive_in_copulas_and_not_when_columns_are_drawn_apart():
    for kind, low, high in (("latent", 0.6, 0.85), ("information", 0.6, 0.85), ("independent", -0.1, 0.1)):
        released = KINDS[kind].fit(DATA, seed=1).sample(5000, seed=1).frame.drop_nulls()
        assert low < np.corrcoef(released["age"], released["pay"])[0, 1] < high


@pytest.mark.parametrize("options", [GaussianCopula(), GaussianCopula(dependence="mutual-information")])
def test_latent_correlations_are_found_behind_numbers_and_groups(options):
    z = normal(20_000, [[1, 0.7, -0.4], [0.7, 1, -0.2], [-0.4, -0.2, 1]])
    table = pl.DataFrame(
        {"amount": np.exp(z[:, 0]), "grade": np.digitize(z[:, 1], [-1, 0.3, 1.0]), "flag": z[:, 2] > 0.5}
    )
    found = options.fit(Microdata(table), seed=1).correlation
    assert found["grade"][0] == pytest.approx(0.7, abs=0.03)
    assert found["flag"][0] == pytest.approx(-0.4, abs=0.04)
    assert found["flag"][1] == pytest.approx(-0.2, abs=0.04)


def test_the_d_vine_of_normal_columns_is_their_gaussian_copula():
    z = normal(30_000, [[1, 0.6, 0.3], [0.6, 1, 0.5], [0.3, 0.5, 1]])
    table = Microdata(pl.DataFrame({f"x{i}": z[:, i] for i in range(3)}))
    found = VineCopula(groups=8).fit(table, seed=1).correlation
    assert found["x1"][0] == pytest.approx(0.6, abs=0.03)
    assert found["x2"][0] == pytest.approx(0.3, abs=0.05)
    assert found["x2"][1] == pytest.approx(0.5, abs=0.03)


def test_an_r_vine_follows_a_leaning_relation_that_a_gaussian_copula_misses():
    rng = np.random.default_rng(1)
    u, w = rng.random(4000), rng.random(4000)
    # Clayton with parameter 4: small values go together, large ones hardly.
    v = (u**-4.0 * (w ** (-4 / 5) - 1) + 1) ** -0.25
    table = Microdata(pl.DataFrame({"u": u, "v": v}))

    def low(frame):
        return ((frame["u"] < 0.05) & (frame["v"] < 0.05)).mean()

    vine = VineCopula("r-vine").fit(table, seed=1).sample(50_000, seed=1).frame
    normal_one = GaussianCopula().fit(table, seed=1).sample(50_000, seed=1).frame
    assert low(vine) == pytest.approx(low(table.frame), abs=0.006)
    assert low(normal_one) < low(table.frame) - 0.006


def test_levels_without_an_order_are_put_where_they_go_best():
    rng = np.random.default_rng(1)
    place = rng.integers(0, 5, 4000)
    order = np.array([2, 4, 0, 3, 1])
    names = np.array(["a", "b", "c", "d", "e"])[order[place]]
    table = Microdata(pl.DataFrame({"town": names, "rent": place + rng.normal(0, 0.5, 4000)}))

    def spread(options):
        frame = options.fit(table, seed=1).sample(8000, seed=1).frame
        return frame.group_by("town").agg(pl.col("rent").mean())["rent"].std()

    true = table.frame.group_by("town").agg(pl.col("rent").mean())["rent"].std()
    assert spread(GaussianCopula()) > 0.9 * true
    assert spread(GaussianCopula(level_order="given")) < 0.6 * true


def test_missingness_has_relations_of_its_own():
    rng = np.random.default_rng(1)
    age = rng.integers(15, 80, 6000)
    pay = np.where(rng.random(6000) < np.where(age > 60, 0.7, 0.05), np.nan, 3000 - 20 * np.abs(age - 45.0))
    table = Microdata(pl.DataFrame({"age": age, "pay": pl.Series(pay).fill_nan(None)}))
    released = GaussianCopula().fit(table, seed=1).sample(seed=1).frame
    old, young = (
        released.filter(part)["pay"].is_null().mean() for part in (pl.col("age") > 60, pl.col("age") <= 60)
    )
    assert old > 0.5
    assert young < 0.2


def test_a_value_tied_to_its_own_state_keeps_its_margin():
    from scipy.special import ndtr

    from discreet.numerics.copula import EmpiricalMargin
    from discreet.synth.copula_columns import given_a_value

    z = normal(200_000, [[1, 0.6], [0.6, 1]])
    states = EmpiricalMargin(np.array([1, 0]), np.array([0.3, 0.7]))
    uniform = given_a_value(ndtr(z[:, 1]), states, 0.6, ordinary=1)
    ranks = uniform[states.quantile(ndtr(z[:, 0])) == 0]
    assert np.abs(np.histogram(ranks, 10, (0, 1))[0] / len(ranks) - 0.1).max() < 0.004


def test_weights_make_the_file_like_the_population():
    rng = np.random.default_rng(1)
    x = rng.normal(size=8000)
    weight = np.where(x > 0, 4.0, 1.0)
    table = Microdata(pl.DataFrame({"x": x, "y": x + rng.normal(size=8000), "w": weight}), weight="w")
    for options in (
        GaussianCopula(),
        VineCopula(),
        VineCopula("r-vine", pair_copulas="gaussian"),
        Bootstrap(),
    ):
        released = options.fit(table, seed=1).sample(20_000, seed=1)
        assert list(released.columns) == ["x", "y"]
        assert (released.frame["x"] > 0).mean() == pytest.approx(0.8, abs=0.02)
    plain = GaussianCopula(weights="ignore").fit(table, seed=1).sample(20_000, seed=1)
    assert (plain.frame["x"] > 0).mean() == pytest.approx(0.5, abs=0.02)


def test_strata_are_fitted_and_drawn_apart():
    z = normal(4000, [[1, 0.8], [0.8, 1]])
    table = pl.DataFrame({"group": ["up", "down"] * 2000, "x": z[:, 0], "y": z[:, 1]}).with_columns(
        y=pl.when(pl.col("group") == "up").then("y").otherwise(-pl.col("y"))
    )
    released = GaussianCopula(strata="group").fit(Microdata(table), seed=1).sample(6000, seed=1).frame
    for name, sign in (("up", 1), ("down", -1)):
        part = released.filter(pl.col("group") == name)
        assert np.corrcoef(part["x"], part["y"])[0, 1] == pytest.approx(sign * 0.8, abs=0.05)


def test_parametric_margins_keep_no_value_and_smoothed_ones_stay_in_range():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"amount": rng.lognormal(2, 0.7, 3000), "x": rng.normal(5, 2, 3000)})
    by_family = GaussianCopula(margins="parametric").fit(Microdata(table), seed=1).sample(seed=1).frame
    assert not set(by_family["amount"].to_list()) & set(table["amount"].to_list())
    assert by_family["amount"].min() > 0
    assert by_family["amount"].median() == pytest.approx(table["amount"].median(), rel=0.05)
    smooth = GaussianCopula(margins={"amount": "smoothed"}).fit(Microdata(table), seed=1).sample(seed=1).frame
    assert table["amount"].min() <= smooth["amount"].min()
    assert smooth["amount"].max() <= table["amount"].max()
    assert set(smooth["x"].to_list()) <= set(table["x"].to_list())


def test_contradicting_pairs_are_mended_and_said():
    rng = np.random.default_rng(1)
    table = {name: [None] * 900 for name in "abc"}
    for at, (one, other, sign) in enumerate((("a", "b", 1), ("b", "c", 1), ("a", "c", -1))):
        z = rng.normal(size=300)
        table[one][300 * at : 300 * at + 300] = z.tolist()
        table[other][300 * at : 300 * at + 300] = (sign * z + 0.2 * rng.normal(size=300)).tolist()
    fitted = GaussianCopula().fit(Microdata(pl.DataFrame(table)), seed=1)
    assert any("contradict" in note for note in fitted.notes)
    values = fitted.correlation.drop("dimension").to_numpy()
    assert np.linalg.eigvalsh(values)[0] > -1e-8


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-5, 5)),
            st.one_of(st.none(), st.integers(-(10**6), 10**6).map(lambda thousandths: thousandths / 1000)),
            st.sampled_from(["a", "b", "c", None]),
        ),
        min_size=3,
        max_size=40,
    ),
    st.sampled_from(["latent", "information", "d-vine"]),
    st.integers(0, 1000),
)
@settings(max_examples=examples(25), deadline=None)
def test_any_small_file_gives_its_own_types_and_values(rows, kind, seed):
    table = pl.DataFrame(
        rows, schema={"whole": pl.Int16, "number": pl.Float64, "kind": pl.String}, orient="row"
    )
    options = {
        "latent": GaussianCopula(),
        "information": GaussianCopula(dependence="mutual-information"),
        "d-vine": VineCopula(),
    }[kind]
    fitted = options.fit(Microdata(table), seed=seed)
    first = fitted.sample(20, seed=seed).frame
    assert first.schema == table.schema
    assert first.equals(fitted.sample(20, seed=seed).frame)
    for name in table.columns:
        assert set(first[name].to_list()) <= set(table[name].to_list())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianCopula(dependence="latnt"), "latent"),
        (lambda: GaussianCopula(margins="empircal"), "empirical"),
        (lambda: GaussianCopula(groups=1), "groups"),
        (lambda: GaussianCopula(matching="exactly"), "matching"),
        (lambda: VineCopula("r-vine", pair_copulas="information"), "D-vines"),
        (lambda: VineCopula("tree"), "structure"),
        (lambda: VineCopula(pair_copulas="all"), "pair copulas"),
        (lambda: VineCopula(order="random"), "order"),
        (lambda: VineCopula("r-vine", pair_copulas=["clayto"]).fit(DATA), "clayton"),
        (lambda: VineCopula(order=["age"]).fit(DATA), "every column"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_unknown_columns_are_named():
    for options in (
        GaussianCopula(margins={"agee": "smoothed"}),
        GaussianCopula(strata="agee"),
        GaussianCopula(leave_out="agee"),
        GaussianCopula(special_codes={"agee": [1]}),
    ):
        with pytest.raises(ColumnError, match="'age'"):
            options.fit(DATA)


def test_without_the_library_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvinecopulib", None)
    with pytest.raises(ExtraMissingError, match=r"discreet\[vines\]"):
        VineCopula("r-vine").fit(DATA)


# --- categories that one scale cannot hold ------------------------------------------------------------------------


def households(n=6000, seed=3):
    """People whose place in the household says sex for some and age for others."""
    rng = np.random.default_rng(seed)
    sex, married = rng.choice(["f", "m"], n), rng.random(n) < 0.5
    age = np.where(married, rng.integers(30, 80, n), rng.integers(18, 60, n))
    alone = np.where(age < 30, "child", np.where(rng.random(n) < 0.7, "alone", "other"))
    place = np.where(married, np.where(sex == "m", "husband", "wife"), alone)
    return pl.DataFrame(
        {
            "place": place,
            "sex": sex,
            "age": age,
            "married": np.where(married, "yes", "no"),
            "pay": age + rng.integers(0, 9, n),
        }
    )


PLACES = households()


def wrong_sex(frame):
    wrong = (pl.col("place") == "wife") & (pl.col("sex") == "m")
    wrong |= (pl.col("place") == "husband") & (pl.col("sex") == "f")
    return frame.filter(pl.col("place").is_in(["wife", "husband"])).select(wrong.mean()).item()


def test_husbands_are_men_and_wives_are_women_though_no_order_of_the_levels_says_so():
    found = {
        splits: GaussianCopula(splits=splits).fit(Microdata(PLACES), seed=1).sample(20_000, seed=2).frame
        for splits in (False, True)
    }
    assert wrong_sex(found[False]) > 0.25
    assert wrong_sex(found[True]) < 0.12
    for frame in found.values():
        unmarried = frame.filter(pl.col("place").is_in(["wife", "husband"]))["married"] == "no"
        assert unmarried.mean() < 0.1


def test_the_levels_of_a_divided_category_keep_their_shares():
    model = GaussianCopula().fit(Microdata(PLACES), seed=1)
    assert sum(label.startswith("place: part") for label in model.labels) >= 2
    drawn = model.sample(100_000, seed=5).frame
    for level, share in PLACES["place"].value_counts(normalize=True).rows():
        assert (drawn["place"] == level).mean() == pytest.approx(share, abs=0.006)
    one_by_one = [model.sample(1, seed=seed).frame["place"][0] for seed in range(60)]
    assert len(set(one_by_one)) > 3


def test_a_model_with_divided_categories_is_saved_and_loaded_and_fitted_the_same_again(tmp_path):
    model = GaussianCopula().fit(Microdata(PLACES), seed=1)
    drawn = model.sample(200, seed=4).frame
    assert load(model.save(tmp_path / "model.discreet")).sample(200, seed=4).frame.equals(drawn)
    assert GaussianCopula().fit(Microdata(PLACES), seed=1).sample(200, seed=4).frame.equals(drawn)


def test_strata_divide_their_categories_each_in_its_own_way():
    large = PLACES.with_columns(area=pl.lit("town"))
    small = households(300, seed=9).with_columns(area=pl.lit("village"))
    model = GaussianCopula(strata="area").fit(Microdata(pl.concat([large, small])), seed=1)
    assert len({len(part.coupling.correlation) for part in model.models}) == 2
    assert model.correlation.height == len(model.labels)
    drawn = model.sample(8000, seed=1).frame
    assert wrong_sex(drawn.filter(pl.col("area") == "town")) < 0.12


def test_a_category_that_one_scale_holds_is_left_on_it():
    size = np.random.default_rng(1).integers(0, 60, 4000)
    table = pl.DataFrame({"size": size, "class": [f"{'dacbfe'[s // 10]}" for s in size]})
    assert GaussianCopula().fit(Microdata(table), seed=1).labels == ("size", "class")
    assert GaussianCopula(level_order="given").fit(Microdata(PLACES), seed=1).labels == tuple(PLACES.columns)


def test_weights_missing_levels_and_long_lists_of_levels_are_no_trouble_for_divided_categories():
    weight = pl.when(pl.col("place") == "wife").then(3.0).otherwise(1.0)
    gaps = pl.when(pl.col("age") % 7 != 0).then(pl.col("place"))
    table = PLACES.with_columns(
        w=weight, place=gaps, code=(pl.col("pay") * 37 + pl.col("age")).cast(pl.String)
    )
    drawn = GaussianCopula().fit(Microdata(table, weight="w"), seed=1).sample(20_000, seed=1).frame
    for level in ("wife", "alone", None):
        share = table.select(
            pl.col("w").filter(pl.col("place").eq_missing(level)).sum() / pl.col("w").sum()
        ).item()
        assert drawn["place"].eq_missing(pl.Series([level])).mean() == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"families": ("gama",)}, "'gamma'"),
        ({"families": "nrom"}, "'norm'"),
        ({"few_values": -1}, "few_values"),
        ({"groups": "many"}, "groups"),
    ],
)
def test_shared_parameters_that_make_no_sense_are_refused(options, message):
    for kind in (GaussianCopula, VineCopula):
        with pytest.raises(ParameterError, match=message):
            kind(**options)


def test_one_family_may_be_named_without_a_list():
    drawn = GaussianCopula(margins="parametric", families="norm").fit(
        Microdata(PLACES.select("age", "pay")), seed=1
    )
    assert drawn.sample(500, seed=1).frame["age"].n_unique() > 40
