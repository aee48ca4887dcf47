"""Worked examples of the method note on reconstruction and re-identification of published tables, section 5."""

import polars as pl
import pytest

from discreet.tables.noisy_counts import epsilon_meaning
from discreet.tables.putative_links import putative_links
from discreet.tables.table_cells import possible_cells
from discreet.tables.table_reconstruction import reconstruct

RACES = ["White", "Black", "AIAN", "Asian", "NHPI", "Other", "Two or more"]
BLOCK = {
    "White": (377, 355, 22), "Black": (10, 9, 1), "AIAN": (1, 1, 0), "Asian": (80, 80, 0), "NHPI": (0, 0, 0),
    "Other": (6, 2, 4), "Two or more": (9, 8, 1),
}  # fmt: skip
WOMEN = {"White": 44, "Asian": 5, "Other": 1}


def block_tables():
    everyone = pl.DataFrame(
        [
            {"race": race, "ethnicity": ethnicity, "count": count}
            for race, counts in BLOCK.items()
            for ethnicity, count in zip([None, "NH", "H"], counts, strict=True)
        ]
    )
    women = pl.DataFrame(
        [{"group": "F 22-24", "race": race, "ethnicity": None, "count": WOMEN.get(race, 0)} for race in RACES]
        + [
            {"group": "F 22-24", "race": "White", "ethnicity": "NH", "count": 43},
            {"group": "F 22-24", "race": None, "ethnicity": "H", "count": 2},
        ],
        schema_overrides={"race": pl.String, "ethnicity": pl.String},
    )
    return everyone, women


DIMENSIONS = {"group": ["F 22-24", "others"], "race": RACES, "ethnicity": ["NH", "H"]}


@pytest.mark.parametrize("solver", ["propagate", "lp", "ip"])
def test_the_women_of_one_block_are_rebuilt_exactly(solver):
    found = reconstruct(block_tables(), dimensions=DIMENSIONS, solver=solver)
    women = found.cells.filter(pl.col("group") == "F 22-24")
    if solver != "propagate":
        assert women["solved"].all()
    sure = {row[1:3]: row[3] for row in women.filter("solved").rows()}
    expected = {
        ("White", "H"): 1,
        ("Other", "H"): 1,
        ("White", "NH"): 43,
        ("Asian", "NH"): 5,
        ("Other", "NH"): 0,
    }
    for key, count in expected.items():
        if key in sure or solver != "propagate":
            assert sure[key] == count
    if solver == "ip":
        assert found.units["solutions"].to_list() == [1]
        assert women.filter(pl.col("ethnicity") == "NH")["lower"].sum() == 48


def test_printed_totals_that_leave_out_a_category_are_noticed():
    everyone, women = block_tables()
    printed = pl.DataFrame({"ethnicity": [None, "NH", "H"], "count": [474, 447, 27]})
    found = reconstruct([everyone, women, printed], dimensions=DIMENSIONS, solver="lp")
    assert found.figures["units_contradictory"] == 1
    assert found.units["conflicts"][0] > 0
    assert (sum(c[0] for c in BLOCK.values()), sum(c[1] for c in BLOCK.values())) == (483, 455)


def test_ten_women_alike_can_be_linked_at_random_and_never_provably():
    women = pl.DataFrame({"sex": ["f"] * 10, "age": ["22-24"] * 10, "race": ["NH White"] * 10})
    people = women.with_row_index("id").select("id", "sex", "age")
    truth = women.with_row_index("id")
    found = putative_links(
        women,
        people,
        on=["sex", "age"],
        identifier="id",
        truth=truth,
        confirm=["race"],
        policy="all_random",
        seed=1,
    )
    assert found.figures["unique_share"] == 0
    assert found.figures["provable_rate"] == 0
    assert found.figures["putative_rate"] == 1
    assert found.figures["circular_rate"] == 1
    assert found.figures["random_precision"] == pytest.approx(0.1)


def test_a_mere_list_of_members_is_confirmed_circularly_in_full():
    members = pl.DataFrame({"block": [1] * 7})
    people = members.with_row_index("id")
    found = putative_links(
        members, people, on=["block"], identifier="id", truth=people, policy="all_random", seed=2
    )
    assert found.figures["circular_rate"] == 1
    assert found.figures["provable_rate"] == 0


def test_share_of_putative_links_that_are_not_provable():
    assert pytest.approx(0.82, abs=0.005) == 1 - 17.4 / 97


@pytest.mark.parametrize(
    ("epsilon", "odds"),
    [(0.01, 1.0101), (0.1, 1.1052), (4.2, 66.69), (39.91, 2.1513e17), (10.4, 32_860), (19.6, 325_215_956)],
)
def test_what_an_epsilon_allows(epsilon, odds):
    found = epsilon_meaning(epsilon)
    assert found.figures["odds"] == pytest.approx(odds, rel=1e-4)
    assert found.value == pytest.approx(odds / (1 + odds), rel=1e-4)


def test_two_printed_odds_belong_to_other_epsilons_than_the_printed_ones():
    # The table prints 32,860 under 10.6 and 325,215,956 under 19.61; the text says 19.41 for the latter.
    odds = epsilon_meaning([10.61, 19.61, 19.41]).detail["epsilons"]["odds"]
    assert [round(value) for value in odds] == [40_538, 328_484_431, 268_940_305]


def test_the_histogram_from_the_bottom_up_has_161_billion_cells():
    assert possible_cells([6_207_027, 2, 103, 63, 2]) == 161_109_592_812


def test_claims_about_blocks_and_confirmed_links_follow_from_their_parts():
    assert round(5_462_028 / 6_207_027, 5) == 0.87997
    assert round(0.97 * 0.78, 3) == 0.757
