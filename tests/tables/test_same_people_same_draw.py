"""The same people are rounded alike, whatever table, filter, level or method they are counted by."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect import StochasticRound
from discreet.tables import ControlledRounding, NoisyCounts, RandomRounding, SmallCountRounding, Table
from discreet.tables.record_keys import drawn_for_cells

KEY = b"a secret of at least sixteen bytes"


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", KEY.decode())


def people(seed, n=40):
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 4, n)
    return pl.DataFrame(
        {
            "id": [f"p{i}" for i in rng.permutation(n)],
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(0, 6, n),
            "place": [f"place {p}" for p in place],
            # The last county has one place: both hold the same people.
            "county": ["north" if p < 3 else "south" for p in place],
            "one": "all",
        }
    )


ROUTES = (
    ("place", None),
    ("place*sex", None),
    ("sex*place*age", None),
    ("place*age + sex*age", None),
    ("one*place", None),
    ("place", pl.col("sex") == "f"),
    ("place*age", pl.col("sex") == "f"),
    ("sex", pl.col("age") >= 3),
    ("age*sex", pl.col("age") >= 3),
    ("county*age", pl.col("county") == "south"),
)


def who_is_in(table, frame):
    """The identifiers of the people in every cell."""
    found = []
    for codes in table.cells.select(table.dimensions).iter_rows(named=True):
        inside = frame
        for name, code in codes.items():
            if code != "Total":
                same = pl.col(name).cast(pl.String) == code
                inside = inside.filter(same | (pl.col("county") == code) if name == "place" else same)
        found.append(frozenset(inside["id"]))
    return found


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 1_000_000), st.booleans(), st.randoms())
def test_any_route_to_the_same_people_gives_the_same_draw(seed, named, shuffler):
    everybody = people(seed)
    draws = {}
    for formula, part in ROUTES:
        frame = everybody if part is None else everybody.filter(part)
        if not frame.height:
            continue
        frame = frame.sample(fraction=1.0, shuffle=True, seed=shuffler.randint(0, 1000))
        table = Table.from_microdata(
            frame, formula, hierarchies={"place": "county"} if "place" in formula else {}
        )
        drawn, inner = drawn_for_cells(table, KEY, id="id" if named else None)
        for who, number in zip(who_is_in(table, frame), drawn.tolist(), strict=True):
            assert draws.setdefault(who, number) == number
        cell = dict(zip(table.keys, drawn.tolist(), strict=True))
        for key, number in zip(table.inner.select(table.dimensions).rows(), inner.tolist(), strict=True):
            assert cell.get(key, number) == number
    assert len(set(draws.values())) == len(draws)


def test_a_table_of_women_shows_what_the_table_by_sex_shows():
    everybody = people(4, n=30)
    women = Table.from_microdata(everybody.filter(pl.col("sex") == "f"), "place")
    by_sex = Table.from_microdata(everybody, "place*sex")
    for rounding in (
        SmallCountRounding(k=9, margins="independent"),
        RandomRounding(base=7, margins="independent", id="id"),
    ):
        one, other = rounding.apply(women).table, rounding.apply(by_sex).table
        for place in ("Total", "place 0", "place 1", "place 2", "place 3"):
            shown = one.cells["count"][one.find(place=place)]
            assert shown == other.cells["count"][other.find(place=place, sex="f")]


def test_an_identifier_keeps_the_draws_where_columns_come_and_go():
    everybody = people(5)
    fewer = everybody.select("id", "place")
    tables = [Table.from_microdata(frame, "place") for frame in (everybody, fewer)]
    with_id = [drawn_for_cells(table, KEY, id="id")[0] for table in tables]
    without = [drawn_for_cells(table, KEY)[0] for table in tables]
    assert (with_id[0] == with_id[1]).all()
    assert not (without[0] == without[1]).any()
    assert "id=" in " ".join(SmallCountRounding().apply(tables[0]).notes)
    assert "id=" not in " ".join(SmallCountRounding(id="id").apply(tables[0]).notes)


def test_people_who_say_the_same_are_alike_and_who_is_missing_matters():
    twins = pl.DataFrame({"place": ["a", "a", "a", "b"], "sex": ["f", "f", "m", "f"]})
    full = Table.from_microdata(twins, "place*sex")
    fewer = Table.from_microdata(twins[1:], "place*sex")
    one, other = drawn_for_cells(full, KEY)[0], drawn_for_cells(fewer, KEY)[0]
    assert one[full.find(place="a", sex="m")] == other[fewer.find(place="a", sex="m")]
    assert one[full.find(place="a", sex="f")] != other[fewer.find(place="a", sex="f")]


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1_000_000), st.sampled_from(["", "hospital"]), st.sampled_from([None, "7"]))
def test_a_file_of_counts_is_rounded_alike_as_a_file_and_as_a_table(seed, subset, run):
    rng = np.random.default_rng(seed)
    rows = [(age, sex) for age in (20, 30, None) for sex in "fm"]
    frame = pl.DataFrame(rows, schema={"age": pl.Int64, "sex": pl.String}, orient="row").with_columns(
        deaths=pl.Series(rng.integers(0, 6, len(rows))), run=pl.lit(7)
    )
    file = StochasticRound(
        columns="deaths", k=5, cell=["sex", "age"], subset=subset, run="run" if run else None
    )
    by_file = file.apply(Microdata(frame)).data.frame.select("age", "sex", "deaths")
    plan = SmallCountRounding(k=5, subset=subset, run=run or "")
    tables = [Table.from_microdata(frame, "age*sex", count="deaths")]
    known = frame.drop_nulls("age")
    tables.append(Table.from_cells(known, ["sex", "age"], count="deaths"))
    for table in tables:
        made = plan.apply(table).table
        for age, sex, deaths in by_file.rows():
            if age is None and table is tables[1]:
                continue
            assert (
                made.cells["count"][made.find(age="Missing" if age is None else str(age), sex=sex)] == deaths
            )
        assert "made from cells" in " ".join(plan.apply(table).notes)


def test_small_count_and_random_rounding_to_the_same_base_agree_on_small_counts():
    table = Table.from_microdata(people(6), "place*age", zeros="all")
    small = SmallCountRounding(k=4).apply(table).table.inner["count"]
    base = RandomRounding(base=4).apply(table).table.inner["count"]
    few = table.inner["count"] < 4
    assert few.sum() > 10
    assert (small.filter(few) == base.filter(few)).all()


def test_a_group_of_one_code_and_a_total_of_one_are_that_code_in_a_table_of_cells():
    frame = pl.DataFrame({"place": ["a", "b", "c"], "county": ["n", "n", "s"], "year": 2020, "n": [2, 4, 1]})
    table = Table.from_cells(frame, ["place", "year"], count="n", hierarchies={"place": "county"})
    drawn, _ = drawn_for_cells(table, KEY)
    same = [
        table.find(place="s", year="2020"),
        table.find(place="c", year="2020"),
        table.find(place="c"),
        table.find(place="s"),
    ]
    assert len(set(drawn[same])) == 1
    assert drawn[table.find(place="a")] != drawn[table.find(place="n")]


def test_keyed_controlled_rounding_of_a_table_is_the_same_whenever_it_is_asked_for(monkeypatch):
    table = Table.from_microdata(people(7), "place*sex")
    keyed = ControlledRounding(base=5, method="unbiased", draws="keyed", id="id")
    first, again = (keyed.apply(table).published for _ in range(2))
    assert first.equals(again)
    monkeypatch.setenv("DISCREET_KEY", "another secret of sixteen bytes")
    others = [keyed.apply(Table.from_microdata(people(seed), "place*sex")).published for seed in range(7, 12)]
    assert not all(first.equals(other) for other in others)


def test_noise_with_a_guarantee_is_drawn_anew_and_says_what_several_draws_cost():
    frame = people(8)
    codes = {name: {"All": sorted(frame[name].unique())} for name in ("place", "sex")}
    table = Table.from_microdata(frame, "place*sex", hierarchies=codes, zeros="all")
    plan = NoisyCounts(epsilon=1, domain="public")
    assert not plan.apply(table).published.equals(plan.apply(table).published)
    made = plan.apply(table)
    assert "no other table of these people" in made.guarantee
    assert any("spends as much privacy again" in note for note in made.notes)


def test_what_gives_no_key_is_refused(monkeypatch):
    table = Table.from_microdata(people(9).with_columns(twice=pl.lit("x")), "place")
    with pytest.raises(ColumnError, match="does not tell the records apart"):
        SmallCountRounding(id="twice").apply(table)
    with pytest.raises(ParameterError, match="made from cells"):
        SmallCountRounding(id="id").apply(
            Table.from_cells(pl.DataFrame({"a": ["x"], "n": [3]}), ["a"], count="n")
        )
    nested = people(9).with_columns(visits=pl.lit([1, 2]))
    with pytest.raises(ColumnError, match="visits"):
        SmallCountRounding().apply(Table.from_microdata(nested, "place"))
    assert SmallCountRounding(id="id").apply(Table.from_microdata(nested, "place")).published.height == 5
    monkeypatch.delenv("DISCREET_KEY")
    with pytest.raises(ParameterError, match="secret key"):
        SmallCountRounding().apply(table)
