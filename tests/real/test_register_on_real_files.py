"""What two releases of real people say together: US census records, and a table of social assistance."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, datasets, outputs
from discreet.tables import EarlierTable, Suppression, Table, Threshold, audit, primary, suppressed_beside
from discreet.workflow.earlier_releases import with_earlier

KEYS = ["age", "sex", "race", "education"]


@pytest.fixture(scope="module")
def people(test_data):
    return pl.read_csv(test_data / "adult" / "adult_train.csv.gz", null_values="?")[:12_000]


def banded(frame, width, shift=0):
    return frame.with_columns(age=((pl.col("age") + shift) // width * width).cast(pl.String))


def exposed(one, other, k=3):
    both = pl.DataFrame(
        {f"{key}{side}": frame[key] for side, frame in enumerate((one, other)) for key in KEYS}
    )
    sizes = [
        both.select(pl.len().over([name for name in both.columns if name[-1] in sides])).to_series()
        for sides in ("0", "1", "01")
    ]
    return int(((sizes[0] >= k) & (sizes[1] >= k) & (sizes[2] < k)).sum())


@pytest.mark.parametrize("mixed", [False, True])
def test_two_codings_of_age_expose_whom_the_definition_counts(people, mixed):
    """In an order of its own the release is laid beside the other by its sampling weight and hours, where one can."""
    one, other = banded(people, 10), banded(people, 15, 5)
    new = one.sample(fraction=1, shuffle=True, seed=1) if mixed else one
    found = with_earlier(None, Microdata(new, keys=KEYS), {"other.csv": Microdata(other)})
    (check,) = found.failed
    true = exposed(one, other)
    assert true > 40
    assert (
        check.actual == true if not mixed else 0.8 * true <= check.actual <= 1.2 * true
    )  # few cannot be laid beside


def test_the_same_coding_of_the_same_people_exposes_nobody(people):
    one = banded(people, 10)
    mixed = one.sample(fraction=1, shuffle=True, seed=1)
    assert with_earlier(None, Microdata(mixed, keys=KEYS), {"other.csv": Microdata(one)}).meets is True


def test_tables_of_social_assistance_keep_the_cells_of_an_earlier_one_with_another_choice():
    frame = datasets.social_assistance().frame
    table = primary(Table.from_microdata(frame, "region*main_income", count="freq"), Threshold(4))
    before = Suppression(intervals=False).apply(table)
    earlier = EarlierTable(before.table, ~before.suppressed, before.suppressed, "first.csv")
    coarse = primary(Table.from_microdata(frame, "county*main_income", count="freq"), Threshold(4))
    for other in (table, coarse):
        found = suppressed_beside(Suppression(intervals=False), other, [earlier])
        assert found.audit.safe
        both = audit(
            before.table, before.suppressed, primary=before.suppressed, intervals=False,
            previous=[(other, found.suppressed)],
        )  # fmt: skip
        assert both.safe


def test_a_mean_of_real_people_before_and_after_one_value_became_0(people, tmp_path):
    place = tmp_path / "adult.register.jsonl"
    first = outputs.Session(data=people, register=place)
    assert first.summary("hours-per-week", ["sex"], statistics=["mean"]).status == "pass"
    first.save(tmp_path / "first")
    changed = people.with_columns(
        pl.when(pl.int_range(pl.len()) == 99).then(0).otherwise("hours-per-week").alias("hours-per-week")
    )
    found = outputs.Session(data=changed, register=place).summary(
        "hours-per-week", ["sex"], statistics=["mean"]
    )
    assert found.status == "fail"
    again = outputs.Session(data=people, register=place).summary(
        "hours-per-week", ["sex"], statistics=["mean"]
    )
    assert again.status == "pass"
