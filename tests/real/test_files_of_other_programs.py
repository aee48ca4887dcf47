"""SD2011 against a synthesis that another program wrote: what is disclosed must not depend on its last digit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.risk import disclosure, replicated_uniques
from discreet.synth import Sequential
from discreet.workflow.comparison import compare


@pytest.fixture(scope="module")
def files(test_data):
    frame = pl.read_csv(test_data / "SD2011.csv", null_values="NA", infer_schema_length=None)
    columns = ["sex", "age", "placesize", "region", "height", "weight", "bmi"]
    original = Microdata(frame.select(columns), keys=["sex", "age", "placesize", "region"], sensitive="bmi")
    return original, Sequential(smoothing={}).fit(original, seed=1).sample(seed=2).frame


def rewritten(frame: pl.DataFrame, how: str) -> pl.DataFrame:
    values = [None if value is None else value for value in frame["bmi"]]
    if how == "fifteen digits":
        new = [None if value is None else float(f"{value:.15g}") for value in values]
    else:
        new = [None if value is None else float(str(np.float32(value))) for value in values]
    return frame.with_columns(pl.Series("bmi", new, dtype=pl.Float64))


@pytest.mark.parametrize("how", ["fifteen digits", "single precision"])
def test_disclosure_of_the_body_mass_index_is_that_of_the_file_itself(files, how):
    original, release = files
    other = Microdata(rewritten(release, how))
    true = disclosure(original, Microdata(release), "bmi", precision="exact").value
    bitwise = disclosure(original, other, "bmi", precision="exact").value
    found = disclosure(original, other, "bmi")
    assert bitwise < true / 5
    assert found.value == pytest.approx(true)
    assert any("'bmi'" in caveat and how.split()[-1] in caveat for caveat in found.caveats)
    keyed = original.with_roles(keys=["bmi", "age"], sensitive=())
    alike = replicated_uniques(keyed, Microdata(release)).figures["repU"]
    assert replicated_uniques(keyed, other).figures["repU"] == pytest.approx(alike, rel=0.01)
    assert replicated_uniques(keyed, other, precision="exact").figures["repU"] < alike / 10


def test_a_comparison_says_at_which_precision_it_looked(files):
    original, release = files
    other = Microdata(rewritten(release, "fifteen digits"))
    found = compare(original, other, measures=["disclosure", "near_copies", "attribution"])
    for name in ("disclosure", "near_copies", "attribution"):
        assert found.risk[name].parameters["precision"]["bmi"] == "15 significant digits"
    exact = compare(original, other, measures="disclosure", precision="exact")
    assert exact.risk["disclosure"].value < found.risk["disclosure"].value / 5
