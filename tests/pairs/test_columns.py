"""Whatever compares two files compares the same columns of them, and says what it left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, risk, utility
from discreet.core.errors import ColumnError
from discreet.pairs.side_by_side import compared_columns

COMPARING = {
    "dependence": utility.dependence,
    "margins": utility.margins,
    "near_copies": risk.near_copies,
    "neighbors": risk.neighbors,
    "new_rows": utility.new_rows,
    "outliers": risk.outliers,
    "pmse": utility.pmse,
    "tabular": utility.tabular,
    "transport": utility.transport,
}
ROLES = {"identifiers": "name", "household": "home", "weight": "w"}


def people(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n = 60
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "home": np.arange(n) // 2,
            "w": rng.uniform(1, 2, n),
            "age": rng.integers(20, 60, n),
            "pay": rng.normal(2000, 300, n).round(),
            "sex": rng.choice(["f", "m"], n),
        }
    )


@pytest.mark.parametrize("name", COMPARING)
def test_lost_and_added_columns_are_left_out_and_named(name):
    original = Microdata(people(1), **ROLES)
    released = Microdata(people(2).drop("sex", "home").with_columns(made=pl.lit(1)))
    found = COMPARING[name](original, released)
    said = " ".join(found.caveats)
    assert "Not compared, because the release does not have them: 'sex'." in said
    assert "Only in the release, and not compared: 'made'." in said


@pytest.mark.parametrize("name", COMPARING)
def test_numbers_of_units_weights_and_identifiers_are_not_compared(name):
    """The answer does not hang on what a household, a weight or a name is called in the release."""
    original = Microdata(people(1), **ROLES)
    plain = people(2)
    other = plain.with_columns(home=pl.int_range(pl.len(), dtype=pl.Int64) * 7, name=pl.lit("x"))
    one, two = (COMPARING[name](original, Microdata(frame)) for frame in (plain, other))
    assert one.value == two.value


@pytest.mark.parametrize("name", COMPARING)
def test_a_named_column_must_be_in_both_files(name):
    original = Microdata(people(1), **ROLES)
    with pytest.raises(ColumnError, match=r"'pay'.*lacks it"):
        COMPARING[name](original, Microdata(people(2).drop("pay")), columns=["age", "pay"])


def test_a_role_of_the_release_hides_a_column_too():
    original = Microdata(people(1))
    assert compared_columns(original, Microdata(people(2), **ROLES)).names == ("age", "pay", "sex")
