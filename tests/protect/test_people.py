"""Treatments that promise company promise people, where a role says whose the records are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Hierarchy, Microdata, protect, risk
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect import KAnonymity, LDiversity

quiet = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))

NINE = pl.DataFrame(
    {
        "who": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "sex": ["f"] * 3 + ["m"] * 6,
        "age": [30] * 3 + [40] * 3 + [50] * 3,
        "ill": ["flu"] * 3 + ["cold"] * 3 + ["gout"] * 3,
        "pay": [10.0, 11.0, 12.0, 50.0, 51.0, 52.0, 90.0, 91.0, 92.0],
    }
)
AGES = {"age": Hierarchy.intervals([20, 40])}


def nine(**roles):
    return Microdata(NINE, keys=["sex", "age"], sensitive="ill", **({"person": "who"} | roles))


@pytest.mark.parametrize(
    "treatment",
    [
        protect.Mondrian(k=3),
        protect.Mondrian(k=2, strict=False),
        protect.OptimalGeneralization([KAnonymity(3)], AGES),
        protect.OptimalGeneralization([KAnonymity(2)], AGES, suppression_limit=0.4),
    ],
    ids=lambda treatment: type(treatment).__name__,
)
def test_three_people_with_three_records_each_get_the_company_of_people(treatment):
    asked = treatment.k if isinstance(treatment, protect.Mondrian) else treatment.models[0].k
    release = treatment.apply(nine(), seed=1)
    assert risk.k_anonymity(release.data).value >= asked
    # By the record nothing had to be done at all.
    alone = treatment.apply(nine(person=None), seed=1).data
    assert risk.k_anonymity(alone.with_roles(person="who")).value == 1


def test_diversity_is_that_of_people():
    release = protect.Mondrian(k=1, models=[LDiversity("ill", 2)]).apply(nine())
    assert risk.l_diversity(release.data).value >= 2


def test_suppressed_records_of_a_generalization_do_not_make_k_one():
    release = protect.OptimalGeneralization([KAnonymity(2)], AGES, suppression_limit=0.4).apply(nine())
    found = risk.k_anonymity(release.data)
    assert release.log[0].parameters["suppressed_records"] == found.figures["all_suppressed"] == 3
    assert found.value == 2
    again = protect.OptimalGeneralization([KAnonymity(2)], suppression_limit=0).apply(release.data)
    assert again.log[0].parameters["suppressed_records"] == 0  # they are in no class, and stay as they are


def test_groups_of_microaggregation_hold_k_people():
    release = protect.Microaggregate(k=3, columns=["pay"]).apply(nine())
    assert release.guarantee == "Every combination of pay is shared by at least 3 people."
    assert release.data.frame["pay"].n_unique() == 1
    assert (
        protect.Microaggregate(k=3, columns=["pay"]).apply(nine(person=None)).data.frame["pay"].n_unique()
        == 3
    )
    named = Microdata(NINE.with_columns(street=pl.col("who")), person="who")
    with pytest.raises(ParameterError, match="fewer than k = 3 people"):
        protect.Microaggregate(k=3, columns=["pay"], method="labels", labels="street").apply(named)


def test_robin_hood_wants_one_record_a_person():
    with pytest.raises(ColumnError, match="one record a person"):
        protect.RobinHood(fairness="sex", k_target=3).apply(nine())


@st.composite
def panels(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    rows = draw(st.integers(12, 60))
    who = rng.integers(0, max(rows // draw(st.integers(1, 4)), 6), rows)
    return pl.DataFrame(
        {
            "who": who,
            "sex": rng.choice(["f", "m"], rows),
            "age": rng.integers(20, 60, rows),
            "ill": rng.choice(["flu", "cold", "gout"], rows),
            "pay": rng.normal(size=rows),
        }
    )


@quiet
@given(panels())
def test_whatever_the_panel_every_released_class_holds_k_people(frame):
    data = Microdata(frame, keys=["sex", "age"], sensitive="ill", person="who")
    if frame["who"].n_unique() < 3:
        return
    for treatment in (
        protect.Mondrian(k=3),
        protect.OptimalGeneralization([KAnonymity(3)], AGES, suppression_limit=0.2),
    ):
        released = treatment.apply(data, seed=1).data
        sizes = (
            released.frame.filter(~pl.all_horizontal(pl.col("sex", "age").is_null()))
            .group_by("sex", "age")
            .agg(people=pl.col("who").n_unique())["people"]
        )
        assert sizes.min() >= 3
        assert risk.k_anonymity(released).value == sizes.min()
    averaged = protect.Microaggregate(k=3, columns=["pay"]).apply(data)
    people = averaged.data.frame.group_by("pay").agg(people=pl.col("who").n_unique())["people"]
    assert averaged.guarantee is not None
    assert people.min() >= 3
