"""The risk part of the worked example of microdata and table measures for synthetic data.

Source: Kolb, Tang and Giessing, "Synthetic Data: Comparing Utility and Risk in Microdata and Tables", Table 2.
"""

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.correct_attribution import attribution
from discreet.risk.group_disclosure import group_disclosure

COLUMNS = ["Key1", "Key2", "target"]


def file(rows):
    return Microdata(
        pl.DataFrame(rows, schema=COLUMNS, orient="row"), keys=["Key1", "Key2"], sensitive="target"
    )


synthetic = file([(1, 2, 3), (1, 2, 5), *[(4, 12, 4)] * 3, (5, 12, 10)])
original = file([*[(1, 2, 3)] * 2, *[(4, 12, 4)] * 2, (4, 12, 9), (5, 12, 10)])


def test_weap_and_tcap_of_the_file():
    figures = attribution(original, synthetic).figures
    assert figures["weap_share"] == pytest.approx(4 / 6)
    assert figures["tcap_released"] == pytest.approx(0.75)
    assert figures["tcap_conditional"] == pytest.approx(0.75)
    assert figures["tcap_ratio"] == pytest.approx(1 / 2)


def test_weap_of_each_released_record():
    chances = attribution(synthetic).figures["cap_original"]
    assert chances == pytest.approx((0.5 + 0.5 + 4) / 6)
    assert attribution(original, synthetic).figures["cap_within_released"] == pytest.approx(chances)


def test_group_disclosure_with_the_full_key_and_with_all_subsets():
    full = group_disclosure(original, synthetic, subsets=False)
    assert (full.figures["released_cells"], full.figures["original_cells"]) == (2, 2)
    assert full.value == 0.5
    every = group_disclosure(original, synthetic)
    assert (every.figures["released_cells"], every.figures["common_cells"]) == (4, 2)
    assert every.value == 0.5
    assert every.figures["tables"] == 3
