"""A column may have the name that an engine gives to what it counts."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, assess, attack, compare, protect, risk, suggest, synth, utility
from discreet.core.errors import DiscreetError

NAMES = ("count", "n", "size", "share", "level", "records", "own", "group", "code", "len", "index", "literal")


def people(names, n=120):
    rng = np.random.default_rng(3)
    columns = {name: rng.choice(["a", "b", "NA", "d"], n).tolist() for name in names[:4]}
    columns |= {name: rng.integers(0, 9, n) for name in names[4:8]}
    columns |= {name: rng.normal(50, 9, n).round(1) for name in names[8:]}
    return pl.DataFrame(columns)


ORDERS = [NAMES, NAMES[4:] + NAMES[:4], NAMES[8:] + NAMES[:8]]


VERBS = {
    "preflight": lambda data, made: synth.preflight(data),
    "assess": lambda data, made: assess(data, progress=False),
    "compare": lambda data, made: compare(data, made, progress=False),
    "category coverage": lambda data, made: utility.category_coverage(data, made),
    "identifiability": lambda data, made: risk.identifiability(data, made),
    "Sequential": lambda data, made: synth.Sequential().fit(data, seed=1).sample(20, seed=2),
    "Microaggregate": lambda data, made: protect.Microaggregate(columns=list(data.schema)[8:], k=3).apply(
        data, seed=1
    ),
    "membership": lambda data, made: attack.membership(data, made, holdout=made, seed=1),
}


@pytest.mark.parametrize("names", ORDERS, ids=["texts", "whole numbers", "numbers"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_no_verb_stumbles_over_a_name(names, verb):
    frame = people(names)
    data = Microdata(frame, keys=list(names[:3]), sensitive=[names[3]])
    made = data.with_frame(frame.sample(fraction=1.0, shuffle=True, seed=4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            verb(data, made)
        except DiscreetError:
            return  # refused in words; what is tried here is that no engine gives up


def test_suggest_takes_columns_of_any_name():
    frame = people(NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert suggest(
            Microdata(frame, keys=list(NAMES[:3]), sensitive=[NAMES[3]]), "public-use-file", progress=False
        )
