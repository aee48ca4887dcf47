"""Sequential synthesis of Adult and SD2011: quality by two-way tables, against the published and the naive."""

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import Microdata, utility
from discreet.synth import Sequential

TEN = ["sex", "income", "age", "edu", "socprof", "trust", "height", "weight", "smoke", "region"]


@pytest.fixture(scope="module")
def survey(test_data):
    frame = pl.read_csv(test_data / "SD2011.csv", null_values=["", "NA"], infer_schema_length=None)
    return Microdata(frame.select(TEN))


def worst_pair(original, released, **options):
    return utility.tabular(original, released, ways=2, **options).value


@pytest.mark.parametrize("seed", [1, 2])
def test_cart_keeps_all_pairs_of_ten_survey_columns(survey, seed):
    codes = {"income": [-8]}
    drawn = Sequential(special_codes=codes).fit(survey, seed=seed).sample(seed=seed)
    assert worst_pair(survey, drawn, special_codes=codes) < 4


@pytest.mark.parametrize(
    ("files", "least"),
    [
        pytest.param(8, 2.0, marks=pytest.mark.slow),
        pytest.param(120, 3.0, marks=pytest.mark.slow, id="published"),
    ],
)
def test_parametric_synthesis_is_about_three_times_as_far_off_as_cart(survey, files, least):
    # Published for one file each of synthpop, by rpart: 0.0383 and 0.0085. A single file of either method is off by a
    # quarter, so the mean of many is compared; of 120 files ours are 0.0285 (0.0004) and 0.0094 (0.0002).
    codes = {"income": [-8]}
    published = {
        "model": "cart",
        "tree": {"minbucket": 5, "minsplit": 15},
        "null": "permutation",
        "n_perm": 2,
    }
    distance = {}
    for method in ("cart", "parametric"):
        found = []
        for seed in range(4):
            fitted = Sequential(method=method, special_codes=codes).fit(survey, seed=seed)
            found += [
                utility.pmse(survey, drawn, seed=1, **published).value
                for drawn in fitted.sample(copies=files // 4, seed=100 + seed)
            ]
        distance[method] = np.mean(found)
    assert distance["parametric"] > least * distance["cart"]
    assert distance["cart"] < 0.012


@pytest.mark.slow
def test_the_worst_pair_of_a_parametric_synthesis_is_three_times_worse_than_that_of_cart(survey):
    # Published for synthpop: 31 and below 3.
    codes = {"income": [-8]}
    worst = {}
    for method in ("cart", "parametric"):
        copies = Sequential(method=method, special_codes=codes).fit(survey, seed=1).sample(copies=4, seed=1)
        worst[method] = np.mean([worst_pair(survey, drawn, special_codes=codes) for drawn in copies])
    assert worst["parametric"] > 3 * worst["cart"]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.slow
def test_cart_keeps_all_pairs_of_adult_in_the_order_it_chooses(seed):
    adult = discreet.datasets.adult()
    drawn = Sequential(visit_sequence="auto").fit(adult, seed=seed).sample(seed=seed)
    assert worst_pair(adult, drawn) < 4


@pytest.mark.slow
def test_cart_is_no_worse_than_naive_scikit_learn_trees():
    adult = discreet.datasets.adult()
    ours = Sequential(visit_sequence="auto").fit(adult, seed=1).sample(seed=1)
    table = utility.tabular(adult, ours, ways=2)
    naive = utility.tabular(adult, Microdata(naive_trees(adult.frame, seed=1)), ways=2)
    assert table.value < naive.value
    assert table.detail["tables"]["S_pMSE"].mean() < naive.detail["tables"]["S_pMSE"].mean()


def test_a_number_that_follows_from_a_category_still_does(test_data):
    # NIST's excerpts give each area one population density: more areas than a tree has groups of values.
    frame = pl.read_csv(
        test_data / "nist-dce" / "national2019.csv", null_values=["N"], infer_schema_length=None
    )
    frame = frame.select("PUMA", "AGEP", "SEX", "OWN_RENT", "DENSITY", "INDP_CAT", "PINCP")
    drawn = Sequential().fit(Microdata(frame), seed=1).sample(seed=1)
    pairs = frame.select("PUMA", "DENSITY").unique()
    assert drawn.frame.join(pairs, on=["PUMA", "DENSITY"], how="anti").height == 0


@pytest.mark.slow
def test_cart_keeps_pairs_better_than_the_synthpop_release_of_the_same_file(test_data):
    # NIST's collection holds a release that synthpop made of 21 columns of this file by CART: 12.7 and 2.20.
    folder = test_data / "nist-dce"
    original, theirs = (
        pl.read_csv(folder / name, null_values=["N"], infer_schema_length=None)
        for name in ("national2019.csv", "crc-releases/cart_cf21.csv.gz")
    )
    data = Microdata(original.select(theirs.columns))
    released = Microdata(theirs.cast(dict(data.frame.schema)))
    ours = Sequential(visit_sequence="auto").fit(data, seed=1).sample(seed=1)
    pairs = {
        maker: utility.tabular(data, release, ways=2)
        for maker, release in (("ours", ours), ("theirs", released))
    }
    assert pairs["ours"].value < pairs["theirs"].value
    assert pairs["ours"].figures["mean_S_pMSE"] < 0.75 * pairs["theirs"].figures["mean_S_pMSE"]


@pytest.mark.parametrize(
    ("file", "without"),
    [
        pytest.param("tabular/bank_marketing.csv.gz", [], marks=pytest.mark.slow),
        pytest.param("tabular/creditcard_default.csv.gz", [], marks=pytest.mark.slow),
    ],
)
def test_groups_of_values_keep_pairs_better_than_variance_does(test_data, file, without):
    data = Microdata(pl.read_csv(test_data / file, infer_schema_length=None).drop(without))
    mean = {}
    for groups in (0, 10):
        fitted = Sequential(method_options={"cart": {"groups": groups}}).fit(data, seed=1)
        mean[groups] = utility.tabular(data, fitted.sample(seed=1), ways=2).figures["mean_S_pMSE"]
    assert mean[10] < mean[0]


@pytest.mark.slow
def test_the_whole_survey_is_synthesized_in_file_order(test_data):
    data = discreet.read(test_data / "SD2011.csv")
    drawn = Sequential().fit(data, seed=1).sample(seed=1)
    for name in data.columns:
        ours, theirs = (
            f.frame.lazy().select(pl.col(name).is_null().mean()).collect().item() for f in (data, drawn)
        )
        assert theirs == pytest.approx(ours, abs=0.02)


def naive_trees(frame, seed):
    """Donors from scikit-learn trees on codes in alphabetical order, in the order of the file."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng, n = np.random.default_rng(seed), frame.height
    numbers = [name for name in frame.columns if frame[name].dtype.is_numeric()]
    coded = {
        name: frame[name].cast(pl.Float64).fill_null(-1e6).to_numpy()
        if name in numbers
        else frame[name].fill_null("missing").rank("dense").to_numpy().astype(float)
        for name in frame.columns
    }
    rows, drawn = {}, {}
    for at, name in enumerate(frame.columns):
        if at == 0:
            rows[name] = rng.integers(n, size=n)
        else:
            before = frame.columns[:at]
            kind = DecisionTreeRegressor if name in numbers else DecisionTreeClassifier
            tree = kind(min_samples_leaf=5, min_samples_split=15, random_state=seed)
            tree.fit(np.column_stack([coded[b] for b in before]), coded[name])
            home = tree.apply(np.column_stack([coded[b] for b in before]))
            fall = tree.apply(np.column_stack([drawn[b] for b in before]))
            order = np.argsort(home, kind="stable")
            first = np.searchsorted(home[order], fall, "left")
            size = np.searchsorted(home[order], fall, "right") - first
            rows[name] = order[first + (rng.random(n) * size).astype(int)]
        drawn[name] = coded[name][rows[name]]
    return pl.DataFrame({name: frame[name][rows[name]] for name in frame.columns})
