import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Hierarchy, Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.dp import Stream, rational_epsilon, seeded_words
from discreet.microdata import Metadata
from discreet.protect.plan import Plan
from discreet.protect.sample_and_anonymize import (
    SampleAndAnonymize,
    _Choice,
    delta_of,
    highest_rate,
    sampling_plan,
    smallest_k,
    telling_share,
)

AGES = {"age": Hierarchy.intervals([10, 50])}


def people(records=6000, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(records)],
            "sex": rng.choice(["f", "m"], records),
            "age": rng.integers(0, 100, records),
            "job": rng.choice(["cook", "clerk", "judge"], records, p=[0.6, 0.39, 0.01]),
        }
    )


class OtherSample(Stream):
    """A stream whose sample, and nothing else, comes from another seed."""

    def __init__(self, other):
        super().__init__(1)
        self.other = other

    def words(self, *path):
        return Stream(self.other if path == ("sample",) else 1).words(*path)


def released(frame=None, seed=1, **options):
    given = {"epsilon": 2.0, "hierarchies": AGES, "keys": ["sex", "age", "job"], **options}
    return SampleAndAnonymize(**given).apply(Microdata(people() if frame is None else frame), seed=seed)


@settings(deadline=None, max_examples=examples(30))
@given(st.floats(0.2, 4), st.floats(1e-9, 1e-3), st.floats(0.05, 1))
def test_k_is_the_smallest_that_keeps_delta(epsilon, delta, part):
    rate = part * highest_rate(epsilon)
    k = smallest_k(epsilon, delta, rate)
    assert delta_of(k, epsilon, rate) <= delta
    assert k == 2 or delta_of(k - 1, epsilon, rate) > delta


@settings(deadline=None, max_examples=examples(20))
@given(st.floats(0.3, 3), st.floats(0.1, 1), st.integers(2, 60))
def test_no_class_size_tells_more_than_delta_says(epsilon, part, k):
    from scipy.stats import binom

    rate = part * highest_rate(epsilon)
    bound, gamma = delta_of(k, epsilon, rate), telling_share(epsilon, rate)
    most = np.exp(epsilon)
    for n in (*range(1, 120), 400):
        counts = np.arange(k, n + 1)
        # With one more person in a class of n - 1: how much likelier is each released size, or none?
        having = np.append(binom.pmf(counts, n, rate), binom.cdf(k - 1, n, rate))
        lacking = np.append(binom.pmf(counts, n - 1, rate), binom.cdf(k - 1, n - 1, rate))
        assert np.maximum(having - most * lacking, 0).sum() <= bound + 1e-12
        assert (lacking <= most * having * (1 + 1e-9)).all()
        telling = having[:-1] > most * lacking[:-1] * (1 + 1e-9)
        assert (counts[telling & (having[:-1] > 1e-200)] > gamma * n * (1 - 1e-9)).all()


def test_the_release_is_a_k_anonymous_sample_of_true_records_in_random_order():
    release = released(seed=None)
    frame, log = release.data.frame, release.log[0]
    assert frame.columns == ["sex", "age", "job"]
    assert frame.group_by(frame.columns).len()["len"].min() >= log.parameters["k"]
    assert log.internal["sampled"] == pytest.approx(6000 * log.parameters["sampling_rate"], rel=0.1)
    assert log.internal["released"] == frame.height == log.internal["sampled"] - log.internal["suppressed"]
    levels = log.parameters["levels"]
    truth = people().with_columns(
        AGES["age"].generalize(people()["age"], levels["age"]).cast(pl.String).alias("age")
    )
    if levels["sex"] == levels["job"] == 0:
        assert frame.join(truth, on=frame.columns, how="anti").is_empty()
    assert release.guarantee.startswith("(2, 1e-06)-differential privacy")


def test_the_order_and_the_pandas_index_say_nothing():
    frame = people().with_columns(
        sex=pl.when(pl.int_range(pl.len()) < 3000).then(pl.lit("f")).otherwise(pl.lit("m"))
    )
    made = released(frame.to_pandas(), keys=["sex"], hierarchies={}, epsilon=2).data.frame
    assert isinstance(made, pd.DataFrame)
    assert list(made.index) == list(range(len(made)))
    assert made["sex"].nunique() == 1 or (made["sex"].iloc[: len(made) // 4] == "m").any()


def test_labels_of_bands_nobody_in_the_release_has_do_not_travel():
    made = released().data.frame
    assert made.schema["age"] == pl.String


def test_same_seed_same_bytes_and_a_plan_file_brings_it_back():
    plan = Plan([SampleAndAnonymize(epsilon=2, hierarchies=AGES, keys=["sex", "age"], sampling_rate=0.3)])
    data = Microdata(people())
    one = plan.apply(data, seed=3)
    assert one.data.frame.equals(Plan.from_dict(plan.to_dict()).apply(data, seed=3).data.frame)
    assert one.guarantee is None
    assert "drawn from a seed" in one.why_none
    assert plan.apply(data).guarantee is not None
    assert not one.data.frame.equals(plan.apply(data, seed=4).data.frame)


def test_levels_are_chosen_on_a_sample_that_is_not_the_one_released():
    asked, data = SampleAndAnonymize(epsilon=2, hierarchies=AGES, keys=["sex", "age"]), Microdata(people())
    made = [asked.treat(data, OtherSample(other)) for other in (1, 2, 3)]
    assert len({change.keep.sum() for change in made}) > 1
    assert len({str(change.parameters["levels"]) for change in made}) == 1
    ledger = made[0].parameters["ledger"]
    assert ledger["levels"]["epsilon"] + ledger["release"]["epsilon"] == pytest.approx(2)


def choice(sample, keys, k, score="granularity", targets=(), heights=(1,), **options):
    asked = SampleAndAnonymize(epsilon=1, score=score, target=targets or None, keys=keys, **options)
    return _Choice(asked, sample, keys, targets, heights=heights, k=k)


rows = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("HL")), min_size=2, max_size=30
)


@settings(deadline=None, max_examples=examples(60))
@given(rows, st.integers(2, 6), st.sampled_from(["granularity", "classification", "group-size"]))
def test_one_record_moves_no_score_by_more_than_its_sensitivity(records, k, score):
    frame = pl.DataFrame(records, schema=["p", "q", "t"], orient="row")
    targets = ("t",) if score == "classification" else ()
    one, two = (choice(f, ["p", "q"], k, score, targets, heights=(1, 1)) for f in (frame, frame[:-1]))
    for node in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert abs(one._scored(node) - two._scored(node)) <= one.sensitivity + 1e-9


def test_better_nodes_are_chosen_more_often_by_the_factor_of_the_mechanism():
    frame = pl.DataFrame({"p": ["a"] * 6 + ["b"] * 2})
    chooser = choice(frame, ["p"], 3)
    words = seeded_words(np.random.default_rng(0))
    drawn = [chooser._mechanism([(0,), (1,)], rational_epsilon(1.5), words) for _ in range(4000)]
    gain = chooser._scored((0,)) - chooser._scored((1,))
    odds = drawn.count((0,)) / drawn.count((1,))
    assert gain == pytest.approx(6)
    assert odds == pytest.approx(np.exp(1.5 * 6 / (2 * 2)), rel=0.25)


def test_a_large_lattice_is_walked_and_the_end_is_chosen_privately(monkeypatch):
    monkeypatch.setattr("discreet.protect.sample_and_anonymize._SMALL_LATTICE", 3)
    log = released(steps=5).log[0]
    assert set(log.parameters["levels"]) == {"sex", "age", "job"}
    assert released(steps=5000).log[0].parameters["levels"].keys() == log.parameters["levels"].keys()


def test_a_target_is_released_as_it_is_and_counts_for_the_classes():
    release = released(keys=["sex", "age"], score="classification", target="job")
    frame = release.data.frame
    assert set(frame.columns) == {"sex", "age", "job"}
    assert frame.group_by(frame.columns).len()["len"].min() >= release.log[0].parameters["k"]


def test_other_columns_can_stay_at_the_price_of_the_guarantee():
    release = released(others="keep")
    assert release.guarantee is None
    assert release.data.frame.columns == people().columns
    assert "no guarantee" in " ".join(release.log[0].notes)


def test_missing_keys_are_a_class_of_their_own():
    frame = people().with_columns(sex=pl.when(pl.int_range(pl.len()) % 3 > 0).then("sex"))
    log = released(frame, keys=["sex"], hierarchies={}, epsilon=3, search_fraction=0.5)
    assert log.data.frame["sex"].null_count() > 0 or log.log[0].parameters["levels"]["sex"] == 1


def test_an_empty_release_is_a_warning_and_too_small_a_file_is_told_the_house_alone(recwarn):
    release = released(people(20), delta=1e-6)
    assert release.data.frame.height == 0
    assert [str(w.message) for w in recwarn] == ["Every sampled record was suppressed: the release is empty."]
    assert any("nearly everything will be suppressed" in said for said in release.log[0].internal["warnings"])
    large = released(delta=0.01).log[0]
    assert "above one in the number of records" in large.internal["warnings"][0]
    assert "number of records" not in str(large.to_dict())


FEW = {"epsilon": 2.0, "delta": 1e-3, "sampling_rate": 0.6, "keys": ["town"], "search_fraction": 0.5}


def with_unknown_towns():
    """Enough of one town to pass any threshold, and many towns of one person that no hierarchy knows."""
    return pl.DataFrame({"town": ["Ulm"] * 3000 + [f"village {i}" for i in range(610)]})


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_values_that_a_hierarchy_does_not_know_are_never_released(kind):
    towns = {"town": Hierarchy.from_tree({"south": ["Ulm", "Bonn"]})}
    frame = with_unknown_towns()
    made = frame if kind == "polars" else frame.to_pandas() if kind == "pandas" else frame.to_arrow()
    seen = set()
    for seed in range(8):
        release = released(made, seed=seed, hierarchies=towns, **FEW)
        out = pl.DataFrame(release.data.frame)["town"].to_list()
        seen.add(release.log[0].parameters["levels"]["town"])
        assert not [town for town in out if town and town.startswith("village")]
    assert 0 in seen


def test_lists_of_levels_of_the_file_do_not_travel():
    frame = with_unknown_towns().to_pandas().astype("category")
    made = released(frame, seed=1, hierarchies={}, **FEW).data.frame
    assert "village 1" not in str(getattr(made["town"].dtype, "categories", made["town"].unique()))
    listed = with_unknown_towns()
    listed = listed.select(pl.col("town").cast(pl.Enum(listed["town"].unique(maintain_order=True))))
    assert released(listed, seed=1, hierarchies={}, **FEW).data.frame.schema == {"town": pl.String}


@settings(deadline=None, max_examples=examples(20))
@given(st.lists(st.sampled_from([1.0, 2.0, -0.0, 0.0, 2.5, float("nan"), None]), min_size=1, max_size=40))
def test_what_is_released_is_what_was_counted(values):
    """Every combination that goes out has k records that are alike to the last character, whatever the type was."""
    frame = pl.DataFrame({"town": pl.Series(values * 60, dtype=pl.Float64)})
    release = released(frame, seed=2, hierarchies={}, **FEW)
    out, k = release.data.frame, release.log[0].parameters["k"]
    assert out.schema == {"town": pl.String}
    assert (out.group_by("town").len()["len"] >= k).all()
    assert not {"-0", "-0.0", "1.0", "NaN"} & set(out["town"].to_list())


def test_one_decimal_number_does_not_turn_a_released_column():
    whole = pl.DataFrame({"town": [1, 2] * 2000})
    odd = pl.concat([whole.cast(pl.Float64), pl.DataFrame({"town": [2.5]})])
    made, other = (released(frame, seed=3, hierarchies={}, **FEW).data.frame for frame in (whole, odd))
    assert made.schema == other.schema
    assert set(made["town"]) | set(other["town"]) <= {"1", "2", "*"}


def test_one_record_does_not_decide_whether_a_key_may_be_empty():
    empty = pl.DataFrame({"town": pl.Series([None] * 400, dtype=pl.String)})
    one = pl.concat([empty, pl.DataFrame({"town": ["Ulm"]})])
    towns = {"town": Hierarchy.from_tree({"south": ["Ulm", "Bonn"]})}
    for seed in range(4):
        outs = [released(frame, seed=seed, hierarchies=towns, **FEW).data.frame for frame in (empty, one)]
        assert {*outs[0]["town"]} <= {None, "*"}
        assert {*outs[1]["town"]} <= {None, "*"}


def test_a_file_with_several_records_a_person_is_refused():
    data = Microdata(people().with_columns(who=pl.int_range(pl.len()) // 2), person="who")
    with pytest.raises(ParameterError, match="one for records"):
        SampleAndAnonymize(epsilon=2, keys=["sex"]).apply(data)


def test_the_release_knows_neither_checksum_nor_size_of_the_file():
    data = Microdata(people()).with_metadata(Metadata("people.csv", checksum="ab12", reading={"rows": 6000}))
    made = SampleAndAnonymize(epsilon=2, keys=["sex"]).apply(data).data
    assert made.metadata == Metadata("people.csv")


def test_the_planner_looks_at_the_budget_only_and_its_answer_is_its_best_row():
    plan = sampling_plan(1.8, 1e-6)
    assert plan.k / plan.rate == plan.table["k_per_rate"].min()
    assert released(delta=1e-6).log[0].parameters["plan"] == plan.table.to_dicts()


def test_arx_takes_one_more():
    assert released(arx_compatible=True).log[0].parameters["k"] == released().log[0].parameters["k"] + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"sampling_rate": 0.99}, "sampling_rate must be above 0 and at most 0.8347"),
        ({"sampling_rate": 0}, "sampling_rate"),
        ({"sampling_rate": "most"}, "'auto' or 'max'"),
        ({"search_fraction": 1}, "search_fraction"),
        ({"score": "best"}, "score must be"),
        ({"score": "classification"}, "needs a target"),
        ({"steps": 0}, "steps"),
        ({"others": "some"}, "others"),
    ],
)
def test_bad_parameters_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        released(**options)


def test_hierarchies_have_to_fit_the_keys_and_their_types():
    with pytest.raises(ColumnError, match="In hierarchies"):
        released(keys=["sex"])
    with pytest.raises(ColumnError, match="'job'"):
        released(hierarchies={"job": Hierarchy.intervals([10])})


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(0, 199), st.sampled_from(["acrobat", "diver", None]))
def test_one_record_never_decides_whether_there_is_a_release(place, job):
    """A hierarchy that does not know somebody's value is no reason to refuse: the refusal would tell of them."""
    jobs = Hierarchy.from_tree({"indoors": ["cook", "clerk"], "court": ["judge"]})
    asked = SampleAndAnonymize(
        epsilon=2.0, delta=0.004, hierarchies={"job": jobs}, keys=["sex", "job"], sampling_rate=0.3
    )
    usual = people(200)
    odd = usual.with_columns(
        job=pl.when(pl.int_range(200) == place).then(pl.lit(job, dtype=pl.String)).otherwise("job")
    )
    made = asked.apply(Microdata(odd), seed=1)
    counted = made.log[0].internal["unknown_to_hierarchies"]
    assert counted == {"job": int(job is not None)}
    assert "acrobat" not in made.data.frame["job"].cast(pl.String).to_list()
    # What the record is taken for is a matter of the record alone.
    same = usual.with_columns(job=pl.when(pl.int_range(200) != place).then("job"))
    assert made.data.frame.equals(asked.apply(Microdata(same), seed=1).data.frame)
