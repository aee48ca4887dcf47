"""Companies of people, records without keys and households are counted alike on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, risk
from engines.agreement import KINDS, assert_engines_agree, assert_measures_agree, in_kind

pytestmark = [
    pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning"),
    pytest.mark.filterwarnings("ignore"),
]


def panel(rows=80):
    """Several records a person, with gaps in the keys, in the persons and in the sensitive values."""
    rng = np.random.default_rng(12)
    with_gaps = lambda values, share: [  # noqa: E731
        None if gone else value for value, gone in zip(values, rng.random(rows) < share, strict=True)
    ]
    who = rng.integers(0, 25, rows)
    return pl.DataFrame(
        {
            "who": with_gaps([f"p{x}" for x in who], 0.05),
            "home": with_gaps((who // 3).tolist(), 0.05),
            "sex": with_gaps(np.where(rng.random(rows) < 0.9, who % 2, 1 - who % 2).tolist(), 0.2),
            "area": with_gaps([f"a{x}" for x in who % 3], 0.2),
            "ill": with_gaps(rng.choice(["flu", "cold", "gout"], rows).tolist(), 0.1),
            "w": rng.integers(1, 50, rows).astype(float),
        }
    )


ROLES = {"keys": ["sex", "area"], "sensitive": "ill", "person": "who", "household": "home"}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind == "pyspark" else kind for kind in KINDS]
)
def test_people_are_counted_alike(kind, session_of):
    chosen = ("k_anonymity", "l_diversity", "t_closeness") if kind == "pyspark" else (
        "k_anonymity", "uniqueness", "key_contributions", "l_diversity", "l_diversity recursive", "t_closeness",
        "beta_likeness",
    )  # fmt: skip
    ways = ("category",) if kind == "pyspark" else ("category", "wildcard", "drop")
    assert_engines_agree(panel(), ROLES, kind, session_of(kind), measures=chosen, missing=ways)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pyspark"])
def test_weighted_and_attributed_people_are_counted_alike(kind):
    table, roles = panel(), ROLES | {"weight": "w"}
    reference, data = Microdata(table, **roles), Microdata(in_kind(table, kind), **roles)
    for measure in (risk.individual, risk.special_uniques, risk.unsafe_combinations):
        assert_measures_agree(measure(data), measure(reference), kind, ())
    found, expected = (
        risk.attribution(file.with_roles(weight=None), reference.with_roles(weight=None))
        for file in (data, reference)
    )
    assert found.figures == pytest.approx(expected.figures)
