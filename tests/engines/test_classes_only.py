"""Measures whose card says class-wise bring home classes, and no record."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, risk, utility
from discreet.cards import card_of
from engines.test_row_wise import nothing_collected

ONE_FILE = ("uniqueness", "k_anonymity", "reidentification", "key_contributions", "l_diversity", "alpha_k")
ONE_FILE += ("t_closeness", "beta_likeness", "delta_disclosure", "individual", "special_uniques", "isolation")
TWO_FILES = ("attribution", "disclosure", "group_disclosure", "replicated_uniques", "k_map", "delta_presence")


def people(seed: int) -> Microdata:
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "age": rng.integers(0, 4, 4000),
            "job": rng.choice(["clerk", "cook"], 4000),
            "ill": rng.choice(["y", "n"], 4000),
            "weight": np.full(4000, 2.5),
        }
    )
    return Microdata(table.lazy(), keys=["age", "job"], sensitive="ill", weight="weight")


@pytest.mark.parametrize("name", ONE_FILE + TWO_FILES)
def test_class_wise_measures_of_risk_collect_classes_only(name):
    files = [people(1), people(2)][: 1 if name in ONE_FILE else 2]
    assert card_of(name).work == "class-wise"
    with nothing_collected():
        getattr(risk, name)(*files)


def test_margins_are_compared_where_the_data_is():
    assert card_of("margins").work == "class-wise"
    with nothing_collected():
        utility.margins(people(1), people(2), columns=["age", "job", "ill"])
