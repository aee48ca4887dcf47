"""Numbers that pile up, and cells that hardly anybody shares: what a network without noise makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Microdata
from discreet.synth.bayesian_network import BayesianNetwork
from discreet.synth.bayesian_network_model import CellLaw
from discreet.synth.synthesizer import load


def earners(n=4000, seed=1):
    """Nine of ten without gains, the others from 114 to far above; hours pile up at 40."""
    rng = np.random.default_rng(seed)
    gain = np.where(rng.random(n) < 0.9, 0, 114 + np.exp(rng.normal(8, 1, n)).astype(np.int64))
    hours = np.where(rng.random(n) < 0.5, 40, rng.integers(1, 100, n))
    return pl.DataFrame({"gain": gain, "hours": hours, "kind": rng.choice(["a", "b"], n)})


def test_numbers_that_pile_up_stay_what_they_are():
    frame = earners()
    made = BayesianNetwork().fit(Microdata(frame), seed=1).sample(20_000, seed=1).frame
    assert not made["gain"].is_between(1, 113).any()  # between the pile and the least other value
    for name, value in (("gain", 0), ("hours", 40)):
        share = float((frame[name] == value).mean())
        error = (share * (1 - share) * (1 / 20_000 + 1 / 4_000)) ** 0.5
        # Hours are drawn beside the pile too: at 40 as often as at any other number.
        assert abs(float((made[name] == value).mean()) - share) < 5 * error + 0.01
    assert made["gain"].max() <= frame["gain"].max()
    plain = BayesianNetwork(heap=None, bins_by="width").fit(Microdata(frame), seed=1)
    assert plain.sample(seed=1).frame["gain"].is_between(1, 113).any()  # as it was published


def test_bins_by_quantile_give_every_whole_number_of_theirs_the_same_chance():
    frame = pl.DataFrame({"age": np.repeat(np.arange(20, 60), 50), "kind": ["a", "b"] * 1000})
    fitted = BayesianNetwork(bins=8).fit(Microdata(frame), seed=1)
    (age,) = (own for own in fitted.attributes if own.name == "age")
    assert age.heaps is None
    assert (np.mod(age.edges, 1) == 0.5).all()
    counts = fitted.sample(40_000, seed=1).frame["age"].value_counts()
    assert counts.height == 40
    assert (counts["count"].cast(pl.Int64) - 1000).abs().max() < 5 * 1000**0.5


def test_with_epsilon_only_declared_heaps_have_a_code_whatever_the_data_say():
    domain = {"gain": (0, 100_000), "hours": (0, 100), "kind": ["a", "b"]}
    declared = BayesianNetwork(epsilon=1.0, domain=domain, semicontinuous={"gain": [0]})
    for frame in (earners(), earners().with_columns(pl.lit(7).alias("gain"), pl.lit(3).alias("hours"))):
        gain, hours, _ = declared.fit(Microdata(frame), seed=1).attributes
        assert (gain.heaps.tolist(), gain.size) == ([0.0], 22)
        assert (hours.heaps, hours.size) == (None, 21)
    made = replace(declared, epsilon=50.0).fit(Microdata(earners()), seed=1).sample(seed=1).frame
    assert float((made["gain"] == 0).mean()) > 0.8


def test_declared_heaps_are_held_to_their_column():
    data = Microdata(earners())
    with pytest.raises(ColumnError, match=r"named under semicontinuous"):
        BayesianNetwork(semicontinuous={"gains": [0]}).fit(data, seed=1)
    with pytest.raises(ColumnError, match=r"'kind', which holds no numbers"):
        BayesianNetwork(semicontinuous={"kind": [0]}).fit(data, seed=1)
    with pytest.raises(ColumnError, match=r"'gain' that are no numbers of its type"):
        BayesianNetwork(semicontinuous={"gain": ["none"]}).fit(data, seed=1)
    for options in ({"heap": 0.0}, {"heap": 1.5}, {"least_records": 0}, {"bins_by": "size"}):
        with pytest.raises(ParameterError, match=next(iter(options))):
            BayesianNetwork(**options)
    rare = BayesianNetwork(heap=None, semicontinuous={"hours": [99, 7]}).fit(data, seed=1)
    assert rare.attributes[1].heaps.tolist() == [7.0, 99.0]


def test_columns_with_many_levels_that_say_nothing_are_no_parents():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.integers(0, 150, 2000).astype(str) for name in "abc"})
    assert set(BayesianNetwork().fit(Microdata(frame), seed=1).edges.values()) == {()}


def test_nobody_is_copied_who_is_alone_with_the_values_of_the_parents(tmp_path):
    rng = np.random.default_rng(2)
    town, job = rng.integers(0, 40, 3000), rng.integers(0, 40, 3000)
    # A job says much of the pay; town and job together say it all, by records that are alone there.
    pay = np.where(rng.random(3000) < 0.7, job, rng.integers(0, 40, 3000))
    frame = pl.DataFrame({"town": town.astype(str), "job": job.astype(str), "pay": pay.astype(str)})
    whole = set(frame.rows())
    shares = []
    for least in (1, 5):
        fitted = BayesianNetwork(parents=2, least_records=least).fit(Microdata(frame), seed=1)
        made = fitted.sample(seed=1).frame
        shares.append(np.mean([row in whole for row in made.rows()]))
        again = load(fitted.save(tmp_path / f"{least}.discreet"))
        assert again.sample(50, seed=3).frame.equals(fitted.sample(50, seed=3).frame)
    assert shares[1] <= shares[0]


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 200))
def test_no_cell_is_drawn_from_that_fewer_records_share(seed, least, n):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 7, 3)]
    codes = [rng.integers(0, size, n) for size in sizes]
    parents = (codes[0] * sizes[1] + codes[1]) * sizes[2] + codes[2]
    child = rng.integers(0, 5, n)
    law = CellLaw.counted(parents, child, 5, None, sizes=sizes, least=least)
    drawn = law.draw(np.arange(np.prod(sizes)), np.random.default_rng(1))
    assert set(drawn.tolist()) <= set(child.tolist())
    level, own = law, parents
    while level is not None:
        company = dict(zip(*np.unique(own, return_counts=True), strict=True))
        assert all(company[cell] >= least for cell in level.cells) or level.fewer is None
        own, level = own // level.last, level.fewer
