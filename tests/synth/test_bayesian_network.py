"""A network of columns: what it keeps, what it refuses, and what its noise is worth."""

from __future__ import annotations

import datetime as dt
import itertools
import math

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, ParameterError
from discreet.dp import rational_epsilon, seeded_words
from discreet.microdata import Microdata
from discreet.synth.bayesian_network import BayesianNetwork
from discreet.synth.bayesian_network_model import (
    BinLaw,
    CellLaw,
    Informations,
    automatic_parents,
    greedy_network,
    sensitivity,
)
from discreet.synth.synthesizer import load, load_plan, save_plan


def people(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    job = np.where(rng.random(n) < 0.2, "none", np.where(sex == "f", "nurse", "cook"))
    age = rng.integers(16, 90, n)
    wage = pl.Series(np.where(rng.random(n) < 0.3, 0, 1000 + 20 * age + rng.integers(0, 100, n)))
    return pl.DataFrame(
        {"sex": sex, "job": job, "age": age, "wage": wage.set(pl.Series(job == "none"), None)}
    )


def declared(n=3000):
    frame = people(n)
    return frame.with_columns(
        pl.col("sex").cast(pl.Enum(["f", "m"])),
        pl.col("job").cast(pl.Enum(["none", "nurse", "cook", "judge"])),
    )


DOMAIN = {"age": (0, 120), "wage": (0, 5000)}


def test_relations_between_columns_survive():
    made = BayesianNetwork().fit(Microdata(people()), seed=1).sample(seed=1).frame
    assert set(made.filter(pl.col("job") == "nurse")["sex"].unique()) == {"f"}
    assert (
        made.filter(pl.col("job") == "none")["wage"].null_count()
        == made.filter(pl.col("job") == "none").height
    )
    paid = made.filter(pl.col("wage") > 500)
    assert np.corrcoef(paid["age"], paid["wage"])[0, 1] > 0.9
    assert made.schema == people().schema


@pytest.mark.parametrize("way", ["uniform", "empirical", "histogram2", "spikes+uniform"])
def test_numbers_stay_within_their_range_and_types(way):
    made = BayesianNetwork(within_bin=way).fit(Microdata(people()), seed=2).sample(5000, seed=2).frame
    assert made["age"].dtype == pl.Int64
    assert made["age"].is_between(16, 89).all()
    share = (made["wage"] == 0).sum() / made["wage"].count()
    if way in ("empirical", "spikes+uniform"):
        assert abs(share - 0.3) < 0.05
    if way == "empirical":
        assert made["wage"].drop_nulls().is_in(people()["wage"].implode()).all()


def test_quantile_bins_are_about_equally_full():
    fitted = BayesianNetwork(bins_by="quantile", bins=10).fit(Microdata(people()), seed=1)
    age = next(a for a in fitted.attributes if a.name == "age")
    counts = np.bincount(age.encode(people()["age"]), minlength=10)
    assert counts.max() < 2 * counts.min()


def test_the_same_seed_gives_the_same_file_also_from_a_saved_model(tmp_path):
    fitted = BayesianNetwork(epsilon=1.0, domain=DOMAIN).fit(Microdata(declared()), seed=3)
    again = BayesianNetwork(epsilon=1.0, domain=DOMAIN).fit(Microdata(declared()), seed=3)
    assert fitted.sample(seed=4).frame.equals(again.sample(seed=4).frame)
    restored = load(fitted.save(tmp_path / "model.discreet"))
    assert restored.sample(seed=4).frame.equals(fitted.sample(seed=4).frame)
    assert (restored.guarantee, fitted.guarantee) == (None, None)
    assert "read from a file" in restored.why_none
    assert "drawn from a seed" in fitted.why_none
    plain = BayesianNetwork(within_bin="empirical").fit(Microdata(people()), seed=3)
    there = load(plain.save(tmp_path / "plain.discreet"))
    assert there.sample(7, seed=4).frame.equals(plain.sample(7, seed=4).frame)


def test_a_plan_file_holds_every_option(tmp_path):
    options = BayesianNetwork(parents=2, epsilon=2.0, domain={"sex": ["f", "m"]}, within_bin="histogram2")
    path = save_plan(options, tmp_path / "plan.toml")
    assert load_plan(path) == options


def test_epsilon_needs_a_declared_domain_and_nothing_read_off_the_data():
    with pytest.raises(ColumnError, match=r"epsilon cannot be honored.*'sex'"):
        BayesianNetwork(epsilon=1.0).fit(Microdata(people()), seed=1)
    with pytest.raises(ColumnError, match="'age'"):
        BayesianNetwork(epsilon=1.0, domain={"wage": (0, 5000)}).fit(Microdata(declared()), seed=1)
    for options in ({"within_bin": "empirical"}, {"within_bin": "spikes+uniform"}, {"bins_by": "quantile"}):
        with pytest.raises(ParameterError, match="epsilon cannot be honored"):
            BayesianNetwork(epsilon=1.0, **options)
    weighted = Microdata(declared().with_columns(w=pl.lit(2.0)), weight="w")
    with pytest.raises(ParameterError, match="weights='ignore'"):
        BayesianNetwork(epsilon=1.0, domain=DOMAIN).fit(weighted, seed=1)
    assert BayesianNetwork(epsilon=1.0, domain=DOMAIN, weights="ignore").fit(weighted).guarantee


def test_the_guarantee_says_what_it_is_about_and_is_none_without_noise():
    fitted = BayesianNetwork(epsilon=0.5, domain=DOMAIN).fit(Microdata(declared()))
    assert "0.5-differential privacy" in fitted.guarantee
    assert "replacement of one record" in fitted.guarantee
    assert "domain count as public" in fitted.guarantee
    assert BayesianNetwork().fit(Microdata(people()), seed=1).guarantee is None


def test_declared_levels_that_nobody_has_may_occur_and_numbers_fill_the_declared_range():
    fitted = BayesianNetwork(epsilon=0.05, domain=DOMAIN).fit(Microdata(declared(200)), seed=1)
    made = fitted.sample(5000, seed=1).frame
    assert (made["job"] == "judge").any()
    assert made["age"].max() > 95
    sizes = {a.name: a.size for a in fitted.attributes}
    assert sizes == {"sex": 3, "job": 5, "age": 21, "wage": 21}


def test_what_is_read_does_not_change_with_the_data_when_epsilon_is_given():
    options = BayesianNetwork(epsilon=1.0, domain=DOMAIN, never_missing=["age"])
    one = options.fit(Microdata(declared(500)), seed=1).attributes
    other = options.fit(Microdata(declared(500).filter(pl.col("sex") == "f")), seed=1).attributes
    for a, b in zip(one, other, strict=True):
        assert (a.size, a.has_missing) == (b.size, b.has_missing)
        assert a.edges is None or (a.edges == b.edges).all()


def test_much_budget_means_little_noise():
    frame = declared(20_000)
    options = {"domain": DOMAIN, "never_missing": ["sex", "job", "age"], "bins": 8, "parents": 2}
    gaps = []
    for epsilon in (0.05, 50.0):
        made = BayesianNetwork(epsilon=epsilon, **options).fit(Microdata(frame), seed=5).sample(seed=5).frame
        cells = [f.group_by("sex", "job").len().rename({"len": "n"}) for f in (frame, made)]
        both = cells[0].join(cells[1], on=["sex", "job"], how="full", coalesce=True).fill_null(0)
        gaps.append(float((both["n"] / 20_000 - both["n_right"] / 20_000).abs().sum() / 2))
    assert gaps[1] < 0.03 < gaps[0]


def test_noise_of_the_counts_has_the_scale_that_replacing_a_record_asks_for():
    """All of the d - j tables change by 2 in sum when one record is replaced, so the scale is 2 (d - j) / epsilon."""
    codes = np.zeros(10, dtype=np.int64)
    words = seeded_words(np.random.default_rng(1))
    law = CellLaw.noisy(codes, codes, (1, 200_001), rational_epsilon(1.0, 3), words)
    noise = np.diff(law.mass)
    # Above zero the two-sided geometric law is a geometric one; zero and what is below it become zero.
    above = math.exp(-1 / 3)
    assert noise[noise > 0].mean() == pytest.approx(1 / (1 - above), rel=0.02)
    assert (noise > 0).mean() == pytest.approx(above / (1 + above), abs=0.01)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_one_replaced_record_never_moves_the_information_further_than_the_bound(data):
    n = data.draw(st.integers(2, 9))
    levels = data.draw(st.integers(2, 4))
    parents = data.draw(st.integers(2, 4))
    x = np.array(data.draw(st.lists(st.integers(0, levels - 1), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.integers(0, parents - 1), min_size=n, max_size=n)))
    bound = sensitivity(n, binary=levels == 2 or parents == 2)
    before = Informations([x, y], [levels, parents]).of(0, (1,))
    for a, b in itertools.product(range(levels), range(parents)):
        x2, y2 = x.copy(), y.copy()
        x2[0], y2[0] = a, b
        assert abs(Informations([x2, y2], [levels, parents]).of(0, (1,)) - before) <= bound + 1e-12


@pytest.mark.slow
def test_the_exponential_mechanism_prefers_what_tells_more_in_the_stated_odds():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 400)
    b = np.where(rng.random(400) < 0.6, a, rng.integers(0, 2, 400))
    c = rng.integers(0, 2, 400)
    informations = Informations([a, b, c], [2, 2, 2])
    seen = {}
    for seed in range(4000):
        network = greedy_network(
            informations,
            parents=1,
            records=400,
            epsilon=1.0,
            max_cells=1000,
            rng=np.random.default_rng(seed),
            words=seeded_words(np.random.default_rng(seed + 1)),
        )
        if network[0].child == 0:
            seen[network[1].child] = seen.get(network[1].child, 0) + 1
    gap = informations.of(1, (0,)) - informations.of(2, (0,))
    odds = math.exp(gap / (2 * 2 * sensitivity(400, binary=True)))
    assert seen[1] / seen[2] == pytest.approx(odds, rel=0.2)


def test_without_noise_the_strongest_relation_comes_first():
    fitted = BayesianNetwork(parents=1).fit(Microdata(people()), seed=1)
    assert fitted.edges["sex"] == ("job",) or fitted.edges["job"] == ("sex",)
    assert next(iter(fitted.edges.values())) == ()
    assert {len(own) for own in fitted.edges.values()} == {0, 1}


@pytest.mark.parametrize(
    ("n", "d", "epsilon", "parents"),
    [(48842, 15, 1.0, 3), (5000, 15, 0.5, 2), (1000, 15, 0.1, 1), (10, 2, 1, 1)],
)
def test_the_number_of_parents_keeps_the_counts_useful(n, d, epsilon, parents):
    assert automatic_parents(n, d, epsilon) == parents


def test_keys_are_numbered_anew_and_long_texts_left_out():
    rng = np.random.default_rng(1)
    frame = people(400).with_row_index("number").with_columns(
        remark=pl.Series([f"remark {v}" for v in rng.integers(0, 10_000, 400)]), name=pl.format("p{}", "number")
    )  # fmt: skip
    fitted = BayesianNetwork().fit(Microdata(frame, identifiers="name"), seed=1)
    assert set(fitted.left_out) == {"name", "remark"}
    made = fitted.sample(5, seed=1).frame
    assert made["number"].to_list() == [1, 2, 3, 4, 5]


def test_weights_count():
    frame = people().with_columns(w=pl.when(pl.col("sex") == "f").then(9.0).otherwise(1.0))
    made = BayesianNetwork().fit(Microdata(frame, weight="w"), seed=1).sample(seed=1).frame
    assert "w" not in made.columns
    assert (made["sex"] == "f").mean() == pytest.approx(0.9, abs=0.03)


def test_dates_and_missing_values_come_back():
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i % 300) for i in range(600)]
    frame = pl.DataFrame(
        {"day": [None if i % 10 == 0 else d for i, d in enumerate(days)], "x": ["a", "b"] * 300}
    )
    made = BayesianNetwork().fit(Microdata(frame), seed=1).sample(seed=1).frame
    assert made["day"].dtype == pl.Date
    assert made["day"].null_count() / 600 == pytest.approx(0.1, abs=0.04)
    domain = {"day": (dt.date(2019, 1, 1), dt.date(2021, 1, 1)), "x": ["a", "b"]}
    private = BayesianNetwork(epsilon=1.0, domain=domain).fit(Microdata(frame), seed=1).sample(seed=1).frame
    assert private["day"].dtype == pl.Date


def test_tables_stay_within_the_limit_and_mistakes_are_named():
    fitted = BayesianNetwork(parents=3, max_cells=500).fit(Microdata(people()), seed=1)
    sizes = {a.name: a.size for a in fitted.attributes}
    assert all(sizes[n] * math.prod(sizes[p] for p in own) <= 500 for n, own in fitted.edges.items())
    data = Microdata(people())
    with pytest.raises(ColumnError, match="max_cells"):
        BayesianNetwork(max_cells=4).fit(data, seed=1)
    with pytest.raises(ColumnError, match="'wages'"):
        BayesianNetwork(domain={"wages": (0, 1)}).fit(data, seed=1)
    with pytest.raises(ColumnError, match="never_missing"):
        BayesianNetwork(epsilon=1, domain=DOMAIN, never_missing="wage").fit(Microdata(declared()), seed=1)
    with pytest.raises(ColumnError, match="low below high"):
        BayesianNetwork(epsilon=1, domain=DOMAIN | {"age": (9, 1)}).fit(Microdata(declared()), seed=1)
    for wrong in ({"parents": 0}, {"epsilon": -1}, {"within_bin": "mean"}, {"bins": 1}, {"weights": "no"}):
        with pytest.raises(ParameterError):
            BayesianNetwork(**wrong)
    with pytest.raises(ParameterError, match="two columns"):
        BayesianNetwork().fit(Microdata(people().select("sex")), seed=1)


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=50), st.integers(0, 1000))
def test_a_number_drawn_within_a_bin_stays_in_it(values, seed):
    numbers, edges = np.array(values), np.linspace(0, 100, 6)
    codes = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, 4)
    for way in ("uniform", "empirical", "histogram2", "spikes+uniform"):
        law = BinLaw.fit(numbers, codes, edges, way=way, words=seeded_words(np.random.default_rng(0)))
        drawn = law.draw(codes, np.random.default_rng(seed))
        assert (drawn >= edges[codes]).all()
        assert (drawn <= edges[codes + 1]).all()
        if way == "empirical":
            assert np.isin(drawn, numbers).all()
