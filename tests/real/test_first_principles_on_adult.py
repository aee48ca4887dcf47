"""Samplers on a real file: margins, types and dependence survive; copies are seen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from discreet.datasets import adult
from discreet.synth.distributions import bootstrap, closeness, fit_family, interpolate, smote
from discreet.utility.row_novelty import new_rows


@pytest.fixture(scope="module")
def people():
    return adult()


def test_interpolated_people_keep_margins_and_relations(people):
    drawn = interpolate(people, spikes={"capital-gain": [0], "capital-loss": [0]}, seed=1).values
    assert drawn.frame.schema == people.frame.schema
    for name in ("age", "fnlwgt", "hours-per-week", "capital-gain"):
        assert stats.ks_2samp(people.frame[name], drawn.frame[name]).statistic < 0.02
    real, made = (
        np.corrcoef(frame["age"], frame["hours-per-week"])[0, 1] for frame in (people.frame, drawn.frame)
    )
    assert made == pytest.approx(real, abs=0.02)


def test_interpolation_moves_what_the_bootstrap_copies(people):
    shares = {
        name: new_rows(people, draws.values, tolerance=0.0).value
        for name, draws in {
            "bootstrap": bootstrap(people, 5000, seed=1),
            "moved": interpolate(people, 5000, seed=1),
        }.items()
    }
    assert shares["bootstrap"] == 0
    assert shares["moved"] > 0.75


def test_smote_makes_people_of_the_rare_class_close_to_real_ones(people):
    few = people.with_frame(people.frame.head(4000).drop("fnlwgt"))
    drawn = smote(few, classes="income", percent={">50K": 100}, seed=1)
    assert drawn.values.frame["income"].unique().to_list() == [">50K"]
    near = closeness(few, drawn).figures
    assert near["dcr_median"] < near["dcr_original_median"] * 2


def test_a_family_is_chosen_for_a_real_column(people):
    gains = people.frame.filter(pl.col("capital-gain") > 0)["capital-gain"].to_numpy()
    fit = fit_family(gains, ["norm", "expon", "lognorm", "gamma"])
    assert fit.family == "lognorm"
