"""Tables of three columns, released side by side under one salt: how near are they to the NIST excerpt?"""

from __future__ import annotations

from itertools import combinations

import polars as pl
import pytest

from discreet import Microdata, synth, utility


@pytest.mark.slow
def test_every_area_is_alike_in_every_pair_of_columns(test_data):
    """Published for this method: 956 of 1,000, for 231 tables as here; industry codes are not among them."""
    frame = pl.read_csv(test_data / "nist-dce" / "national2019.csv", infer_schema_length=None)
    frame = frame.drop("INDP").with_columns(pl.col("PINCP", "POVPIP").cast(pl.Int64, strict=False))
    others = [name for name in frame.columns if name != "PUMA"]
    sets = [["PUMA", *pair] for pair in combinations(others, 2)]
    assert len(sets) == 231
    release = synth.MultiTable(columns=sets).release(Microdata(frame), seed=1)
    found = utility.k_marginal(
        Microdata(frame), release, group="PUMA", top_codes={"POVPIP": 501}, sampling=False
    )
    assert found.value >= 955
