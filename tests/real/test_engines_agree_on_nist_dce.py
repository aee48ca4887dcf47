"""The engines agree on a census extract with its own codes for missing (NIST Diverse Communities Excerpts)."""

from __future__ import annotations

import polars as pl
import pytest
from engines.agreement import KINDS, assert_engines_agree


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow) if kind == "pyspark" else kind for kind in KINDS],
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_nist_dce_gives_the_same_answer_on_every_engine(kind, test_data, session_of):
    table = pl.read_csv(test_data / "nist-dce" / "ma2019.csv", null_values="N", infer_schema_length=None)
    roles = {"keys": ["PUMA", "AGEP", "SEX", "MSP", "RAC1P"], "sensitive": ["PINCP_DECILE", "EDU"]}
    names = ("uniqueness", "k_anonymity", "l_diversity entropy", "t_closeness", "delta_disclosure")
    assert_engines_agree(
        table.select(*roles["keys"], *roles["sensitive"]),
        roles,
        kind,
        session_of(kind),
        measures=names,
    )
