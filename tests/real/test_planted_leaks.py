"""Real people planted into clean files: counted and said at every level, refused from the level a template states.

Clean files are people of the same file who were not used, and a synthesis by trees with smoothed numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import Microdata, Policy
from discreet.core.results import Measure, Scenario
from discreet.policy import MAIN
from discreet.risk import near_copies, neighbors
from discreet.synth import Sequential
from discreet.workflow.comparison import compare
from discreet.workflow.comparison_results import Alignment, worst_of

LEVELS = (0.001, 0.01, 0.05, 0.1, 1.0)
NOISES = (0.0, 0.001, 0.01)
REFUSED_FROM = {0.0: 0.05, 0.001: 0.1, 0.01: 0.1}
"""By noise on the numbers: the planted share from which the template for synthetic files surely refuses."""


@dataclass(frozen=True)
class Halves:
    """A file of which one half was used and the other was not."""

    used: pl.DataFrame
    unused: pl.DataFrame
    keys: tuple[str, ...]
    numbers: tuple[str, ...]

    @property
    def original(self) -> Microdata:
        """The used half, with its roles."""
        return Microdata(self.used, keys=self.keys)

    def planted(self, share: float, noise: float, clean: pl.DataFrame | None = None) -> Microdata:
        """Put people of the used half in the place of others, their numbers blurred, all in another order."""
        rng = np.random.default_rng(round(1e6 * share) + round(1e4 * noise))
        base = self.unused if clean is None else clean
        size = self.used.height
        count = round(share * size)
        people = self.used[rng.permutation(size)[:count]]
        if noise:
            people = people.with_columns(
                pl.col(name) * (1 + noise * pl.Series(rng.standard_normal(count))) for name in self.numbers
            )
        file = pl.concat([base.head(size - count), people], how="vertical_relaxed")
        return Microdata(file.sample(fraction=1, shuffle=True, seed=1))

    @property
    def smoothed(self) -> pl.DataFrame:
        """A synthesis of the used half by trees, its numbers smoothed."""
        makers = Sequential(smoothing=dict.fromkeys(self.numbers, "density"))
        return makers.fit(Microdata(self.used), seed=1).sample(seed=2).frame.select(self.used.columns)


def halves_of(frame: pl.DataFrame, keys: tuple[str, ...], numbers: tuple[str, ...]) -> Halves:
    order = np.random.default_rng(5).permutation(frame.height)
    middle = frame.height // 2
    return Halves(frame[order[:middle]], frame[order[middle : 2 * middle]], keys, numbers)


@cache
def file_of(name: str, folder: Path) -> Halves:
    if name == "firms":
        frame = pl.read_csv(folder / "rtauargus_indiv_dt.csv.gz", infer_schema_length=None).drop("WEIGHT")
        return halves_of(frame, ("A21", "NUTS2", "SIZE", "CJ"), ("TURNOVER", "PRODUCTION"))
    if name == "survey":
        frame = pl.read_csv(folder / "SD2011.csv", null_values="NA", infer_schema_length=None)
        return halves_of(frame, ("sex", "age", "region", "edu"), ("income", "height", "weight", "bmi"))
    frame = discreet.datasets.adult().frame
    return halves_of(frame, ("age", "sex", "race", "native-country"), ("age", "fnlwgt", "hours-per-week"))


def refused(found: Measure, template: str) -> bool:
    """Hold the rules of a template that speak of copies against what was found."""
    rules = [rule for rule in Policy.load(template).comparison if rule.measure == "near_copies"]
    scenario = Scenario(MAIN, (), {"near_copies": found}, {})
    return not all(rule.check(scenario).passed for rule in rules)


def said(found: Measure) -> str:
    alignment = Alignment((), (), (), {}, {}, False, False)
    return "\n".join(worst_of({"near_copies": found}, alignment, show_values=False).sentences)


QUICK = (("firms", 0.0), ("firms", 0.01), ("survey", 0.001))
FILES = ["firms", "survey", pytest.param("adult", marks=pytest.mark.slow)]


@pytest.mark.parametrize(
    ("name", "noise"),
    [
        pytest.param(name, noise, marks=() if (name, noise) in QUICK else pytest.mark.slow)
        for name in ("firms", "survey", "adult")
        for noise in NOISES
    ],
)
def test_every_planted_leak_is_said_and_refused_from_the_stated_level(name, noise, test_data):
    halves = file_of(name, test_data)
    clean = near_copies(halves.original, Microdata(halves.unused)).figures
    for share in LEVELS:
        found = near_copies(halves.original, halves.planted(share, noise))
        planted = round(share * halves.used.height)
        beyond = found.figures["copied"] - clean["copied"] * (1 - share)
        assert beyond >= (0.5 if noise == 0.01 else 0.85) * planted - 3
        assert f"{found.figures['copied']:,} pe" in said(found)
        assert "Nothing stands out" not in said(found)
        if share >= REFUSED_FROM[noise]:
            assert refused(found, "synthetic-file")
        if share == 1 and (name == "survey" or not noise):
            assert refused(found, "public-use-file")
        if share == 1 and name == "survey":
            assert refused(found, "scientific-use-file")
        # A safe setting holds real records: they are counted, and no limit is set on them.
        assert not refused(found, "safe-setting")


@pytest.mark.parametrize("name", FILES)
def test_clean_files_are_not_refused(name, test_data):
    halves = file_of(name, test_data)
    for clean in (halves.unused, halves.smoothed):
        found = near_copies(halves.original, Microdata(clean))
        for template in ("synthetic-file", "safe-setting"):
            assert not refused(found, template), template
    strangers = near_copies(halves.original, Microdata(halves.unused))
    for template in Policy.templates():
        assert not refused(strangers, template), template


@pytest.mark.parametrize(
    "name", ["firms", *(pytest.param(name, marks=pytest.mark.slow) for name in ("survey", "adult"))]
)
def test_leaks_into_a_synthesis_are_said_and_refused_as_well(name, test_data):
    halves = file_of(name, test_data)
    clean = halves.smoothed
    for share, noise in ((0.001, 0.0), (0.05, 0.0), (0.1, 0.001), (1.0, 0.01)):
        found = near_copies(halves.original, halves.planted(share, noise, clean))
        assert f"{found.figures['copied']:,} pe" in said(found)
        assert refused(found, "synthetic-file") == (share >= REFUSED_FROM[noise])


@pytest.mark.parametrize("holdout", [0.5, 0.25, 0.1, 0.05])
@pytest.mark.parametrize("name", ["firms", pytest.param("survey", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_copy_scores_as_one_and_strangers_as_strangers_at_every_size_of_the_hold_out(
    name, holdout, test_data
):
    halves = file_of(name, test_data)
    everybody = pl.concat([halves.used, halves.unused])
    strangers, rest = everybody.head(1500), everybody.tail(everybody.height - 1500)
    size = round(holdout * rest.height)
    unused, used = Microdata(rest.head(size)), rest.tail(rest.height - size)
    copy = used.sample(min(3000, used.height), shuffle=True, seed=1)
    scores = {
        kind: near_copies(Microdata(used), Microdata(file), holdout=unused).figures
        for kind, file in (("copy", copy), ("strangers", strangers))
    }
    # Two people of the survey are the same in every column, and one of them is held out now and then.
    assert scores["copy"]["closer_share"] > 0.99
    assert scores["strangers"]["closer_low"] - 0.03 < 0.5 < scores["strangers"]["closer_high"] + 0.03


@pytest.mark.slow
def test_neighbors_score_a_copy_alike_at_every_size_of_the_hold_out(test_data):
    people = file_of("survey", test_data).used.head(1000)
    for holdout in (0.5, 0.25, 0.1, 0.05):
        size = round(holdout * people.height)
        used = people.tail(people.height - size)
        found = neighbors(Microdata(used), Microdata(used), holdout=Microdata(people.head(size)))
        assert found.value > 0.99


def test_values_of_the_largest_firms_are_found_in_a_synthesis_by_trees(test_data):
    frame = pl.read_csv(test_data / "rtauargus_indiv_dt.csv.gz", infer_schema_length=None).drop("WEIGHT")
    firms = Microdata(frame, keys=["A21", "NUTS2", "SIZE", "CJ"])
    donors = Sequential(smoothing={}).fit(firms, seed=1).sample(seed=2)
    found = near_copies(firms, donors)
    assert found.figures["whole"] / frame.height > 0.04
    assert found.figures["largest_found"] > 50
    assert found.figures["telling_share"] > 0.5
    assert "largest" in said(found)
    assert refused(found, "synthetic-file")
    assert refused(found, "public-use-file")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The key 'age' holds decimal numbers")
def test_the_original_with_a_little_noise_meets_no_template_that_looks_at_copies():
    adult = discreet.datasets.adult()
    rng = np.random.default_rng(1)
    blurred = adult.frame.with_columns(
        pl.col(name) * (1 + 0.001 * pl.Series(rng.standard_normal(adult.frame.height)))
        for name in ("age", "fnlwgt", "hours-per-week")
    ).sample(fraction=1, shuffle=True, seed=2)
    for template in ("synthetic-file", "public-use-file", "scientific-use-file"):
        found = compare(adult, Microdata(blurred), policy=template, measures=["near_copies", "margins"])
        assert not found.verdict.meets
        assert found.worst.sentences[0].startswith(("Of the 4,88", "48,"))
        assert not any("Nothing stands out" in sentence for sentence in found.worst.sentences)
