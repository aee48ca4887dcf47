from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.numerics import loss
from discreet.protect.optimal_generalization import OptimalGeneralization
from discreet.protect.privacy_models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    KMap,
    LDiversity,
    PrivacyModel,
    TCloseness,
)
from discreet.protect.treatment import Treatment

REGION = Hierarchy.from_tree({"north": {"n": ["a", "b"], "o": ["c"]}, "south": {"s": ["d", "e"]}})
AGE = Hierarchy.intervals([2, 4], lower=0, upper=8)
HIERARCHIES = {"region": REGION, "age": AGE}
KEYS = ["region", "age", "sex"]

PEOPLE = st.lists(
    st.tuples(
        st.sampled_from("abcde"),
        st.one_of(st.none(), st.integers(0, 7)),
        st.sampled_from("fm"),
        st.sampled_from("xyz"),
        st.integers(1, 5),
    ),
    min_size=2,
    max_size=30,
)
MODELS = st.sampled_from(
    [
        [KAnonymity(2)],
        [KAnonymity(4)],
        [KAnonymity(2), LDiversity("ill", 2)],
        [LDiversity("ill", 1.7, "entropy")],
        [KAnonymity(2), LDiversity("ill", 2, "recursive", c=1.5)],
        [TCloseness("ill", 0.3)],
        [TCloseness("pay", 0.25)],
        [TCloseness("ill", 0.4, "kl")],
        [AlphaK("ill", 0.6, 2)],
        [AlphaK("ill", 0.4, values=("x",))],
        [BetaLikeness("ill", 0.8)],
        [BetaLikeness("ill", 2.0, enhanced=True)],
        [DeltaDisclosure("ill", 0.7)],
        [DeltaDisclosure("ill", 1.0, "infinite")],
        [KMap(9, weight="pay")],
    ]
)


def frame_of(rows):
    schema = {"region": pl.String, "age": pl.Int64, "sex": pl.String, "ill": pl.String, "pay": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def labels_at(frame, node):
    """The released keys, by the hierarchies themselves; at the top nobody is told from anybody."""
    found = []
    for key, level in zip(KEYS, node, strict=True):
        hierarchy = HIERARCHIES.get(key)
        if level == (hierarchy.height if hierarchy else 1):
            found.append(["*"] * frame.height)
        elif level == 0:
            found.append(frame[key].to_list())
        else:
            found.append(hierarchy.generalize(frame[key], level).cast(pl.String).to_list())
    return list(zip(*found, strict=True))


def total_variation(p, q):
    return sum(max(p.get(v, 0) - q.get(v, 0), 0) for v in {*p, *q})


def fulfils(model, rows, file):
    """Plain textbook definitions on one class."""
    if isinstance(model, KAnonymity):
        return len(rows) >= model.k
    if isinstance(model, KMap):
        return sum(row["pay"] for row in rows) >= model.k
    counts = Counter(row[model.sensitive] for row in rows)
    p = {v: c / len(rows) for v, c in counts.items()}
    whole = Counter(row[model.sensitive] for row in file)
    q = {v: c / len(file) for v, c in whole.items()}
    if isinstance(model, LDiversity):
        if model.kind == "distinct":
            return len(counts) >= model.l
        if model.kind == "entropy":
            return -sum(x * math.log(x) for x in p.values()) >= math.log(model.l) - 1e-12
        ranked = sorted(counts.values(), reverse=True)
        return ranked[0] < model.c * sum(ranked[int(model.l) - 1 :])
    if isinstance(model, AlphaK):
        shares = [x for v, x in p.items() if model.values is None or v in model.values]
        return len(rows) >= model.k and max(shares, default=0) <= model.alpha + 1e-12
    if isinstance(model, BetaLikeness):
        gains = {v: (x - q[v]) / q[v] for v, x in p.items()}
        return all(
            g <= (min(model.beta, -math.log(q[v])) if model.enhanced else model.beta) + 1e-12
            for v, g in gains.items()
        )
    if isinstance(model, DeltaDisclosure):
        if model.absent == "infinite" and len(p) < len(q):
            return False
        return all(abs(math.log(x / q[v])) <= model.delta + 1e-12 for v, x in p.items())
    if model.distance == "kl":
        return sum(x * math.log(x / q[v]) for v, x in p.items()) <= model.t + 1e-12
    if model.sensitive == "pay":
        values = sorted(q)
        gap = np.cumsum([p.get(v, 0) - q[v] for v in values])
        return len(values) < 2 or np.abs(gap).sum() / (len(values) - 1) <= model.t + 1e-12
    return total_variation(p, q) <= model.t + 1e-12


def loss_of(kind, frame, node, heights, classes, kept_classes, suppressed):
    kept_sizes = [len(classes[c]) for c in kept_classes]
    if kind == "discernibility":
        return loss.discernibility(kept_sizes, len(suppressed))
    if kind == "average-class-size":
        return loss.average_class_size(kept_sizes, len(suppressed))
    if kind == "classification":
        target = frame["ill"].to_list()
        largest = [max(Counter(target[i] for i in classes[c]).values()) for c in kept_classes]
        return loss.classification_loss(largest, frame.height)
    if kind == "precision":
        return loss.precision_loss(node, heights, len(suppressed) / frame.height)
    if kind == "coverage":
        shares = []
        for key, level in zip(KEYS, node, strict=True):
            hierarchy = HIERARCHIES.get(key)
            if hierarchy is None:
                each = np.full(frame.height, 1.0 if level else 1 / frame[key].n_unique())
            else:
                each = hierarchy.leaf_share(frame[key], level).cast(pl.Float64).to_numpy().copy()
            each[list(suppressed)] = np.nan
            shares.append(each)
        return loss.coverage(np.column_stack(shares))
    released = list(zip(*labels_at(frame, node), strict=True))
    original = [[str(v) for v in frame[key]] for key in KEYS]

    def codes(values):
        order = {v: i for i, v in enumerate(dict.fromkeys(map(str, values)))}
        return np.array([order[str(v)] for v in values])

    gone = np.isin(np.arange(frame.height), list(suppressed))
    return loss.normalized_entropy(
        [codes(column) for column in original], [codes(column) for column in released], gone
    )


def exhaustive(frame, models, limit, kind):
    file = frame.to_dicts()
    heights = (REGION.height, AGE.height, 1)
    best = math.inf
    for node in itertools.product(*(range(h + 1) for h in heights)):
        classes = defaultdict(list)
        for i, label in enumerate(labels_at(frame, node)):
            classes[label].append(i)
        kept = [
            label
            for label, members in classes.items()
            if all(fulfils(model, [file[i] for i in members], file) for model in models)
        ]
        suppressed = {i for label, members in classes.items() if label not in set(kept) for i in members}
        if len(suppressed) <= math.floor(limit * len(file) + 1e-9):
            best = min(best, loss_of(kind, frame, node, heights, classes, kept, suppressed))
    return best


TASKS = (PEOPLE, MODELS, st.sampled_from([0.0, 0.1, 0.3]), st.sampled_from(loss.LOSSES))


@settings(max_examples=examples(30), deadline=None)
@given(*TASKS)
def test_the_search_equals_exhaustive_search(rows, models, limit, kind):
    check_against_exhaustive_search(rows, models, limit, kind)


@pytest.mark.slow
@settings(max_examples=examples(500), deadline=None)
@given(*TASKS)
def test_the_search_equals_exhaustive_search_on_many_files(rows, models, limit, kind):
    check_against_exhaustive_search(rows, models, limit, kind)


def check_against_exhaustive_search(rows, models, limit, kind):
    frame = frame_of(rows)
    if frame["age"].null_count() == frame.height:
        return
    if any(getattr(model, "values", None) == ("x",) for model in models) and "x" not in frame["ill"]:
        return
    data = Microdata(frame, keys=KEYS, sensitive=["ill", "pay"])
    best = exhaustive(frame, models, limit, kind)
    treatment = OptimalGeneralization(
        models, HIERARCHIES, limit, kind, target="ill" if kind == "classification" else None
    )
    if best == math.inf:
        with pytest.raises(ParameterError, match="suppression_limit"):
            treatment.apply(data)
        return
    found = treatment.apply(data, seed=1).log[0].parameters
    assert found["proven"]
    assert found["loss_reached"] == pytest.approx(best, abs=1e-10)


@settings(max_examples=examples(30), deadline=None)
@given(PEOPLE, st.integers(1, 5), st.sampled_from([0.0, 0.2, 0.5]))
def test_every_released_class_has_k_records_and_suppressed_ones_say_nothing(rows, k, limit):
    frame = frame_of(rows)
    if frame["age"].null_count() == frame.height or k > frame.height:
        return
    release = OptimalGeneralization([KAnonymity(k)], HIERARCHIES, limit).apply(
        Microdata(frame, keys=KEYS), seed=0
    )
    after = release.data.frame
    suppressed = release.log[0].parameters["suppressed_records"]
    assert suppressed <= limit * frame.height
    gone = after.select(pl.all_horizontal(pl.col(KEYS).is_null())).to_series()
    assert int(gone.sum()) == suppressed
    kept = after.filter(~gone)
    assert kept.is_empty() or kept.group_by(KEYS).len()["len"].min() >= k
    assert after.height == frame.height
    assert after.drop(KEYS).equals(frame.drop(KEYS))


def town():
    return pl.DataFrame(
        {
            "region": ["a", "b", "c", "d", "e", "a", "b", "d"],
            "age": [1, 1, 2, 5, 6, 1, 0, 5],
            "sex": list("ffmmffmm"),
            "ill": list("xyxyxxyy"),
        }
    )


def test_suppressed_records_can_be_removed():
    data = Microdata(town(), keys=KEYS)
    kept = OptimalGeneralization([KAnonymity(2)], HIERARCHIES, 0.4, suppressed="remove").apply(data, seed=1)
    hidden = OptimalGeneralization([KAnonymity(2)], HIERARCHIES, 0.4).apply(data, seed=1)
    count = hidden.log[0].parameters["suppressed_records"]
    assert count > 0
    assert kept.data.frame.height == 8 - count
    assert kept.log[0].removed_records == count
    assert "proven" in kept.log[0].parameters


def test_a_small_group_of_suppressed_records_is_named_and_takes_the_guarantee_away():
    frame = pl.DataFrame({"sex": ["f"] * 5 + ["m"]})
    release = OptimalGeneralization([KAnonymity(2)], suppression_limit=0.2).apply(
        Microdata(frame, keys="sex")
    )
    assert release.guarantee is None
    assert "suppressed='remove'" in release.log[0].notes[-1]
    removed = OptimalGeneralization([KAnonymity(2)], suppression_limit=0.2, suppressed="remove").apply(
        Microdata(frame, keys="sex")
    )
    assert "k-anonymity" in removed.guarantee


def test_k_map_counts_the_people_of_the_population():
    frame = town().head(3)
    people = pl.concat([town(), town()])
    release = OptimalGeneralization([KMap(2, population=Microdata(people))], HIERARCHIES).apply(
        Microdata(frame, keys=KEYS), seed=1
    )
    assert release.data.frame.equals(frame), "everybody has a twin in the population"
    harder = OptimalGeneralization([KMap(9, population=Microdata(people))], HIERARCHIES)
    released = harder.apply(Microdata(frame, keys=KEYS), seed=1).log[0].parameters["levels"]
    node = tuple(released.values())
    behind = Counter(labels_at(people, node))
    assert min(behind[label] for label in labels_at(frame, node)) >= 9


def test_a_population_that_lacks_a_key_is_refused():
    model = KMap(2, population=Microdata(town().drop("age")))
    with pytest.raises(ColumnError, match="population"):
        OptimalGeneralization([model], HIERARCHIES).apply(Microdata(town(), keys=KEYS))


def test_missing_values_stay_missing_until_the_key_says_nothing():
    frame = pl.DataFrame({"region": ["a", "b", None, None, "a", "b"]})
    release = OptimalGeneralization([KAnonymity(2)], {"region": REGION}).apply(
        Microdata(frame, keys="region"), seed=1
    )
    assert release.data.frame.equals(frame)
    top = OptimalGeneralization([KAnonymity(5)], {"region": REGION}).apply(
        Microdata(frame, keys="region"), seed=1
    )
    assert top.data.frame["region"].to_list() == ["*"] * 6


def test_weights_protect_the_important_key():
    frame = pl.DataFrame({"one": list("aabb"), "two": list("cdcd")})
    for important, other in (("one", "two"), ("two", "one")):
        levels = (
            OptimalGeneralization([KAnonymity(2)], weights={important: 5})
            .apply(Microdata(frame, keys=["one", "two"]), seed=1)
            .log[0]
            .parameters["levels"]
        )
        assert levels == {important: 0, other: 1}


def test_pandas_comes_back_as_pandas_with_index_and_untouched_columns():
    frame = town().to_pandas().set_index(pd.Index(range(10, 18)))
    after = (
        OptimalGeneralization([KAnonymity(2)], HIERARCHIES)
        .apply(Microdata(frame, keys=KEYS), seed=1)
        .data.frame
    )
    assert list(after.index) == list(range(10, 18))
    assert after["ill"].equals(frame["ill"])


def test_a_plan_file_rebuilds_the_treatment():
    treatment = OptimalGeneralization(
        [
            KAnonymity(2),
            LDiversity("ill", 2),
            TCloseness("ill", 0.5, hierarchy=REGION, ground="hierarchical"),
        ],
        HIERARCHIES,
        0.1,
        "discernibility",
    )
    again = Treatment.named("optimal-generalization", treatment.to_dict())
    assert again == treatment


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(3),
        LDiversity("ill", 2, "recursive", c=3.0),
        TCloseness("ill", 0.2, "tv"),
        AlphaK("ill", 0.5, 3, ("x",)),
        BetaLikeness("ill", 1.0, enhanced=True),
        DeltaDisclosure("ill", 1.0, "infinite"),
        KMap(5, weight="w"),
        KMap(5, population="people.parquet"),
    ],
)
def test_every_model_survives_a_plan_file(model):
    described = model.to_dict()
    assert described["model"] == model.name
    assert PrivacyModel.from_dict(described) == model


def test_an_expired_time_limit_gives_the_best_so_far_and_an_honest_gap():
    generator = np.random.default_rng(1)
    frame = pl.DataFrame({f"k{i}": generator.integers(0, 64, 400) for i in range(14)})
    hierarchies = {f"k{i}": Hierarchy.intervals([2, 4, 8, 16, 32]) for i in range(14)}
    release = OptimalGeneralization([KAnonymity(3)], hierarchies, 0.1, time_limit=0.3).apply(
        Microdata(frame, keys=list(hierarchies)), seed=1
    )
    found = release.log[0].parameters
    assert found["nodes"]["lattice"] == 7**14
    assert not found["proven"]
    assert 0 < found["gap"] < found["loss_reached"]
    kept = release.data.frame.filter(~pl.all_horizontal(pl.all().is_null()))
    assert kept.group_by(pl.all()).len()["len"].min() >= 3


def test_the_frontier_trades_suppressed_records_for_loss():
    parameters = (
        OptimalGeneralization([KAnonymity(2)], HIERARCHIES, 0.5)
        .apply(Microdata(town(), keys=KEYS), seed=1)
        .log[0]
        .parameters
    )
    frontier = parameters["frontier"]
    assert [f["suppressed"] for f in frontier] == sorted(f["suppressed"] for f in frontier)
    assert [f["loss"] for f in frontier] == sorted((f["loss"] for f in frontier), reverse=True)
    assert min(f["loss"] for f in frontier) == pytest.approx(parameters["loss_reached"])


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: OptimalGeneralization([]), "models"),
        (lambda: OptimalGeneralization([5]), "models"),
        (lambda: OptimalGeneralization([KAnonymity(2)], suppression_limit=5), "suppression_limit"),
        (lambda: OptimalGeneralization([KAnonymity(2)], loss="coverag"), "coverage"),
        (lambda: OptimalGeneralization([KAnonymity(2)], loss="classification"), "target"),
        (lambda: OptimalGeneralization([KAnonymity(2)], {"age": 3}), "hierarchies"),
        (lambda: OptimalGeneralization([KAnonymity(2)], weights={"age": -1}), "weights"),
        (lambda: OptimalGeneralization([KAnonymity(2)], time_limit=0), "time_limit"),
        (lambda: OptimalGeneralization([{"model": "k-anonimity", "k": 2}]), "k-anonymity"),
        (lambda: KAnonymity(0), "k must"),
        (lambda: KAnonymity(2.5), "whole"),
        (lambda: LDiversity("ill", 0), "l must"),
        (lambda: LDiversity("ill", 2, "odd"), "kind"),
        (lambda: TCloseness("ill", -1), "t must"),
        (lambda: TCloseness("ill", 0.2, ground="hierarchical"), "hierarchy"),
        (lambda: AlphaK("ill", 1.5), "alpha"),
        (lambda: BetaLikeness("ill", 0), "beta"),
        (lambda: DeltaDisclosure("ill", 1, "never"), "absent"),
        (lambda: KMap(3), "population"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(make, word):
    with pytest.raises(ParameterError, match=word):
        make()


def test_unknown_columns_are_refused_with_near_misses():
    data = Microdata(town(), keys=KEYS)
    with pytest.raises(ColumnError, match="'age'"):
        OptimalGeneralization([KAnonymity(2)], {"agee": AGE}).apply(data)
    with pytest.raises(ColumnError, match="'ill'"):
        OptimalGeneralization([LDiversity("il", 2)]).apply(data)


def test_a_value_to_protect_that_never_occurs_is_refused():
    with pytest.raises(ParameterError, match="'ill'"):
        OptimalGeneralization([AlphaK("ill", 0.5, values=("typo",))]).apply(Microdata(town(), keys=KEYS))


def test_a_goal_out_of_reach_is_refused_with_the_way_out():
    with pytest.raises(ParameterError, match="suppression_limit"):
        OptimalGeneralization([KAnonymity(9)], HIERARCHIES).apply(Microdata(town(), keys=KEYS))


def test_packed_codes_beyond_64_bits_still_tell_classes_apart():
    generator = np.random.default_rng(2)
    frame = pl.DataFrame({f"k{i}": generator.integers(0, 300, 500) for i in range(10)})
    release = OptimalGeneralization([KAnonymity(1)], {}).apply(Microdata(frame, keys=frame.columns), seed=1)
    assert release.data.frame.equals(frame)
