import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.class_size_models import coded_sample
from discreet.risk.population_estimators import ESTIMATORS, _class_keys
from discreet.risk.superpopulation import known_population, population

KEYS = ["age", "job", "sex"]


def town(people, seed):
    rng = np.random.default_rng(seed)
    age = rng.binomial(60, 0.5, people)
    return pl.DataFrame(
        {
            "age": age,
            "job": np.array(list("abcdefghij"))[np.minimum(age // 5 + rng.integers(4, size=people), 9)],
            "sex": rng.choice(["f", "m"], people),
        }
    )


@pytest.fixture(scope="module")
def everybody():
    return Microdata(town(20_000, 1), keys=KEYS)


@pytest.fixture(scope="module")
def sample(everybody):
    return Microdata(everybody.frame.sample(2000, seed=2), keys=KEYS)


@pytest.fixture(scope="module")
def truth(sample, everybody):
    return known_population(sample, everybody).figures


@pytest.mark.parametrize("estimator", ["average", "gaussian", "d-vine", "log-linear", "ewens", "chao"])
def test_estimators_come_near_the_truth_of_a_simulated_town(sample, truth, estimator):
    found = population(sample, estimator=estimator, population_size=20_000, repeats=4, seed=1).figures
    assert found["A"] == pytest.approx(truth["A"])
    assert found["B"] == pytest.approx(truth["B"], abs=0.01)
    assert found["B_low"] <= found["B"] <= found["B_high"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_gives_all_figures_and_keeps_its_promises(sample, estimator):
    found = population(sample, estimator=estimator, sampling_fraction=0.1, repeats=3, seed=1)
    assert found.figures["population_size"] == 20_000
    assert found.value == found.figures["B"]
    assert set(found.detail) == {"estimates", "sensitivity", "sizes"}
    assert found.to_dict()["figures"]["A"] == pytest.approx(found.figures["classes"] / 20_000)
    if found.value is None:
        assert "Not estimable" in " ".join(found.caveats)
    else:
        assert 0 < found.value <= 1
        assert found.figures["worst"] >= found.value


def test_the_average_is_the_mean_of_its_two_copulas_and_its_interval_spans_both(sample):
    found = population(sample, population_size=20_000, repeats=3, seed=1)
    table = found.detail["estimates"]
    assert table["estimator"].to_list() == ["average", "gaussian", "d-vine"]
    assert found.figures["B"] == pytest.approx(table["B"][1:].mean())
    assert found.figures["B_low"] == table["B_low"][1:].min()
    assert found.figures["B_high"] == table["B_high"][1:].max()


def test_a_larger_population_means_a_lower_risk(sample):
    table = population(sample, estimator="ewens", population_size=20_000, seed=1).detail["sensitivity"]
    assert table["population_size"].to_list() == [10_000, 15_000, 20_000, 30_000, 40_000]
    assert table["A"].is_sorted(descending=True)
    assert table["B"].is_sorted(descending=True)


def test_the_sizes_table_sets_the_sample_beside_the_population(sample):
    table = population(sample, estimator="gaussian", population_size=20_000, repeats=3, seed=1).detail[
        "sizes"
    ]
    assert (table["class_size"] * table["sample_classes"]).sum() == 2000
    assert (table["class_size"] * table["population_classes"]).sum() == pytest.approx(20_000)


def test_the_same_seed_gives_the_same_answer_and_another_does_not(sample):
    first, same, other = (
        population(sample, estimator="gaussian", population_size=20_000, repeats=3, seed=seed).figures["B"]
        for seed in (5, 5, 6)
    )
    assert first == same != other


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_engines_agree(sample, kind):
    frame = sample.frame
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        arrow = frame.to_arrow()
        other = duckdb.from_arrow(arrow)
    else:
        pytest.importorskip(kind)
        other = frame.to_pandas() if kind == "pandas" else frame.to_arrow()
    options = {"estimator": "average", "population_size": 20_000, "repeats": 3, "seed": 1}
    ours, theirs = population(sample, **options), population(Microdata(other, keys=KEYS), **options)
    assert dict(theirs.figures) == pytest.approx(dict(ours.figures))


def test_survey_weights_give_the_population_and_shape_the_margins(sample):
    weighted = sample.frame.with_columns(w=pl.when(pl.col("sex") == "f").then(15.0).otherwise(5.0))
    found = population(Microdata(weighted, keys=KEYS, weight="w"), estimator="gaussian", repeats=3, seed=1)
    assert found.figures["population_size"] == round(weighted["w"].sum())
    assert any("sum of the survey weights" in caveat for caveat in found.caveats)
    assert any("equally" in caveat for caveat in found.caveats)


def test_missing_keys_are_a_level_or_left_out(sample):
    gaps = sample.frame.with_columns(job=pl.when(pl.int_range(pl.len()) % 4 > 0).then("job"))
    data = Microdata(gaps, keys=KEYS)
    kept = population(data, estimator="chao", population_size=20_000, seed=1)
    dropped = population(data, estimator="chao", population_size=20_000, missing="drop", seed=1)
    assert kept.figures["records"] == 2000
    assert dropped.figures["records"] == 1500
    assert dropped.figures["population_size"] == 15_000
    assert any("left out" in caveat for caveat in dropped.caveats)


def test_constant_keys_are_named_and_one_class_has_the_risk_of_one_in_n():
    one = Microdata(pl.DataFrame({"a": ["x"] * 50, "b": [1] * 50}), keys=["a", "b"])
    found = population(one, population_size=1000, repeats=3, seed=1)
    assert found.figures["B"] == pytest.approx(1 / 1000)
    assert sum("only one value" in caveat for caveat in found.caveats) == 2


def test_a_key_that_is_continuous_is_refused_by_the_copulas_by_name():
    rng = np.random.default_rng(1)
    data = Microdata(
        pl.DataFrame({"income": rng.permutation(5000)[:300], "sex": ["f", "m"] * 150}), keys=["income", "sex"]
    )
    with pytest.raises(ColumnError, match="'income'"):
        population(data, population_size=3000, seed=1)


def test_a_fit_that_fails_is_not_estimable_and_not_zero():
    alone = Microdata(pl.DataFrame({"a": range(100)}), keys="a")
    for estimator in ("pitman", "ewens", "snb"):
        found = population(alone, estimator=estimator, population_size=1000, seed=1)
        assert found.value is None
        assert found.figures["B"] is None
        assert found.figures["above_threshold"] is None
        assert "not estimable" in found.meaning
        assert any("not a risk of 0" in caveat for caveat in found.caveats)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"population_size": 100},
        {"sampling_fraction": 1.5},
        {"sampling_fraction": 0.1, "population_size": 20_000},
        {"sampling_fraction": 0.1, "missing": "wildcard"},
        {"sampling_fraction": 0.1, "estimator": "entropy"},
        {"sampling_fraction": 0.1, "repeats": 2},
        {"sampling_fraction": 0.1, "threshold": 9},
    ],
)
def test_bad_input_is_refused(sample, bad):
    with pytest.raises(ParameterError):
        population(sample, **bad)


def test_copulas_warn_below_the_fractions_that_were_studied(sample):
    def warned(size):
        caveats = population(sample, estimator="gaussian", population_size=size, repeats=3, seed=1).caveats
        return any("less than 5" in caveat for caveat in caveats)

    assert warned(100_000)
    assert not warned(20_000)


def test_a_population_file_smaller_than_the_sample_is_refused(sample):
    with pytest.raises(ParameterError, match="fewer records"):
        known_population(sample, Microdata(sample.frame.head(100)))


def test_the_threshold_is_held_against_the_larger_risk(sample):
    low = population(sample, estimator="chao", population_size=20_000, threshold=0.0, seed=1)
    high = population(sample, estimator="chao", population_size=20_000, threshold=1.0, seed=1)
    assert low.figures["above_threshold"] is True
    assert high.figures["above_threshold"] is False


def test_keys_of_many_levels_are_hashed_without_merging_classes():
    rng = np.random.default_rng(1)
    codes = [rng.integers(1000, size=5000) for _ in range(8)]
    cuts = [np.arange(999.0)] * 8
    assert len(np.unique(_class_keys(codes, cuts))) == len(np.unique(np.stack(codes), axis=1).T)


def test_leaving_groups_out_removes_every_record_once(sample):
    coded = coded_sample(sample, KEYS, "category", population_size=20_000, sampling_fraction=None)
    groups = coded.leave_out(5, np.random.default_rng(1))
    assert sum(coded.counts - group.counts for group in groups).tolist() == coded.counts.tolist()


@settings(deadline=None, max_examples=examples(25))
@given(
    st.lists(st.sampled_from("abcdef"), min_size=12, max_size=60),
    st.integers(0, 500),
    st.sampled_from(["gaussian", "zayatz", "chao", "mu-argus"]),
)
def test_the_risk_is_between_its_logical_bounds(jobs, more, estimator):
    data = Microdata(pl.DataFrame({"job": jobs}), keys="job")
    n = len(jobs)
    found = population(data, estimator=estimator, population_size=n + more, repeats=3, seed=1).figures
    assert found["A"] == pytest.approx(len(set(jobs)) / (n + more))
    assert 0 < found["B"] <= 1 + 1e-12
    if estimator in ("gaussian", "chao"):
        assert found["A"] - 1e-12 <= found["B"] <= (len(set(jobs)) + more) / (n + more) + 1e-12


def test_a_recoding_of_another_type_is_refused_by_the_name_of_its_key():
    sample = Microdata(pl.DataFrame({"age": [1, 2, 3]}), keys="age")
    with pytest.raises(ColumnError, match="recoding of 'age'"):
        known_population(sample, Microdata(pl.DataFrame({"age": [1, 2, 3, 4]})), recoding={"age": {"a": "b"}})


def test_a_population_beyond_counting_is_refused():
    people = Microdata(town(50, 1), keys=KEYS)
    for fraction in (5e-324, 1e-300):
        with pytest.raises(ParameterError, match="sampling_fraction would make"):
            population(people, sampling_fraction=fraction)
