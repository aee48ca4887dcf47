"""People of real files who were never in the original: other parts of the same file, whole households at a time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.core.verdicts import Check, Verdict
from discreet.datasets import adult

FILES = {
    "adult": (
        "",
        {"keys": ["age", "sex", "race", "marital-status", "native-country"], "sensitive": "income"},
        (),
    ),
    "eusilcS": (
        "eusilcS.csv.gz",
        {"keys": ["age", "rb090", "db040", "hsize"], "sensitive": ["pl030", "netIncome"]},
        ("db030", "db090", "rb050"),
    ),
    "SD2011": ("SD2011.csv", {"keys": ["age", "sex", "region"], "sensitive": ["smoke", "depress"]}, ()),
    "CASCrefmicrodata": ("CASCrefmicrodata.csv", {"keys": ["AGI"], "sensitive": "FEDTAX"}, ()),
    "ghanaS": (
        "ghanaS.csv.gz",
        {"keys": ["region", "age", "sex", "ethnic", "religion"], "sensitive": "occupation"},
        ("hhid", "weight"),
    ),
    "testdata": (
        "testdata.csv",
        {"keys": ["urbrur", "sex", "age", "relat"], "sensitive": ["roof", "income"]},
        ("ori_hid", "sampling_weight", "household_weights"),
    ),
}


@cache
def whole(name: str, folder: Path | None) -> pl.DataFrame:
    file = FILES[name][0]
    if not file:
        return adult().frame
    assert folder is not None
    return pl.read_csv(folder / file, null_values="NA", infer_schema_length=None)


def parts(
    name: str, rows: int, seed: int, many: int, folder: Path | None = None
) -> list[pl.DataFrame] | None:
    """Cut a file into parts that share no household; None where it has too few people."""
    frame, aside = whole(name, folder), FILES[name][2]
    rng = np.random.default_rng([seed, rows])
    if aside:
        units = frame[aside[0]].unique().sort()
        place = frame[aside[0]].replace_strict(units, pl.Series(rng.permutation(len(units)) % many))
    else:
        place = pl.Series(rng.permutation(frame.height) % many)
    cut = [frame.filter(place == part).drop(aside) for part in range(many)]
    cut = [part[rng.permutation(part.height)[:rows]] for part in cut]
    return cut if min(part.height for part in cut) == rows else None


def roles(name: str) -> dict[str, object]:
    return FILES[name][1]


def original(name: str, frame: pl.DataFrame) -> Microdata:
    return Microdata(frame, **roles(name))


def refused(verdict: Verdict) -> list[Check]:
    """The rules about the two files that do not hold."""
    return [check for check in verdict.failed if check.table == "comparison"]
