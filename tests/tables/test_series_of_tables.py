"""Tables of two years, and a second table of the same people with a coarser dimension."""

import numpy as np
import polars as pl
import pytest

from discreet.core.randomness import generator
from discreet.tables import Suppression, Table, Threshold, audit, primary

PLACES = [f"m{i}" for i in range(12)]
COUNTY = {place: f"c{i // 4}" for i, place in enumerate(PLACES)}
BRANCHES = ["farm", "shop", "mill", "bank"]


@pytest.fixture(scope="module")
def year():
    """People of one year: place, county, branch."""

    def people(number, *, seed=1):
        rng = generator(seed, "year", str(number))
        sizes = rng.permutation(np.r_[np.arange(1, 13), np.arange(1, 13)])[:12]
        place = np.repeat(PLACES, 12 * sizes)
        branch = rng.choice(BRANCHES, len(place), p=[0.5, 0.3, 0.17, 0.03])
        frame = pl.DataFrame({"place": place, "branch": branch})
        return frame.with_columns(county=pl.col("place").replace_strict(COUNTY))

    return people


def detailed(frame):
    return primary(Table.from_microdata(frame, "place*branch", hierarchies={"place": "county"}), Threshold(3))


def by_county(frame):
    """The same column at a coarser level, as it may be published in another year."""
    return Table.from_microdata(frame.select(place="county", branch="branch"), "place*branch")


def moved(frame, seed):
    """The next year: some people left, some came."""
    rng = generator(seed, "moved")
    stay = frame.filter(pl.Series(rng.random(frame.height) < 0.9))
    return pl.concat([stay, frame.sample(frame.height // 8, seed=seed)])


def test_last_years_cells_are_published_again_where_that_is_safe(year):
    first = Suppression().apply(detailed(year(1)))
    table = detailed(moved(year(1), 2))
    plain = Suppression().apply(table)
    again = Suppression(previous=[first]).apply(table)
    assert again.audit.exact.height == plain.audit.exact.height == 0
    names = dict(zip(first.table.keys, first.suppressed, strict=True))

    def kept(result):
        return sum(
            not names[key] and not out
            for key, out in zip(result.table.keys, result.suppressed, strict=True)
            if key in names
        )

    assert kept(again) >= kept(plain)


def test_cells_that_changed_by_a_few_people_are_listed_and_may_be_left_out_of_the_check(year):
    before, now = year(1), moved(year(1), 2)
    first, table = Suppression().apply(detailed(before)), detailed(now)
    result = Suppression(previous=[first]).apply(table)
    found = audit(table, result.suppressed, previous=[(first.table, first.suppressed)])
    assert found.successive.height > 0
    change = (found.successive["now"] - found.successive["before"]).abs()
    assert change.max() < 3
    quiet = audit(table, result.suppressed, previous=[(first.table, first.suppressed)], successive=0)
    assert quiet.safe
    assert "not compared" in quiet.checks["successive"]


def test_a_year_with_a_coarser_dimension_is_compared_where_codes_are_the_same(year):
    before, now = year(1), moved(year(1), 2)
    first = Suppression().apply(detailed(before))
    coarse = primary(by_county(now), Threshold(3))
    found = audit(coarse, previous=[(first.table, first.suppressed)], successive=10**6)
    # Counties, branches and totals have the same codes in both years.
    shared = set(coarse.keys) & set(first.table.keys)
    assert len(shared) == coarse.cells.height
    assert found.successive.height > 0


def test_a_coarser_table_of_the_same_people_is_combined_with_the_finer_one(year):
    people = year(1)
    table = detailed(people)
    coarse = by_county(people)
    # Of the finer table everything is left out but the places of one county, except one place.
    secret = next(
        key for key, hit in zip(table.keys, table.cells["primary"], strict=True) if hit and "m" in key[0]
    )
    county = COUNTY[secret[0]]
    siblings = [(place, secret[1]) for place in PLACES if COUNTY[place] == county and place != secret[0]]
    left_out = [key for key in table.keys if key not in siblings]
    flagged = table.with_cells(primary=np.array([key == secret for key in table.keys]))
    assert audit(flagged, left_out).safe
    found = audit(flagged, left_out, previous=[(coarse, [])])
    assert found.exact.height == 1


def test_the_finer_table_after_the_coarser_one_keeps_its_sums_in_view(year):
    people = year(1)
    coarse = by_county(people)
    table = detailed(people)
    alone = Suppression().apply(table)
    after = Suppression(previous=[(coarse, [])]).apply(table)
    assert after.audit.exact.height == 0
    counties = [i for i, key in enumerate(table.keys) if key in set(coarse.keys)]
    # What the coarser table printed is printed.
    secret = table.cells["primary"].to_numpy()
    assert not after.suppressed[[i for i in counties if not secret[i]]].any()
    assert alone.suppressed[counties].sum() >= after.suppressed[counties].sum()
