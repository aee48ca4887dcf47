import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.protect.plan import Plan
from discreet.protect.record_swapping import RecordSwap


def village(households=400, seed=0):
    """Draw households with members, in towns of counties."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, households)
    town = rng.integers(0, 12, households)
    hh = np.repeat(np.arange(households), sizes)
    n = len(hh)
    return pl.DataFrame(
        {
            "hh": hh,
            "county": town[hh] // 4,
            "town": town[hh] % 4,  # the same name in every county: only both together say where
            "grid": town[hh] * 10,
            "age": rng.integers(0, 9, n),
            "sex": rng.choice(["f", "m"], n),
            "origin": rng.choice(["here", "there", "far"], n, p=[0.9, 0.09, 0.01]),
        }
    )


def swapped(frame, **options):
    given = {"geography": ["county", "town"], "household": "hh", "keys": ["age", "sex", "origin"], **options}
    release = RecordSwap(**given).apply(Microdata(frame), seed=5)
    return release.data.frame, release.log[0]


@settings(deadline=None, max_examples=examples(25))
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.floats(0, 1),
    st.sampled_from([None, [["sex"], []], [["age"]]]),
)
def test_swapping_keeps_totals_of_places_and_all_that_is_said_about_a_household(seed, k, share, match):
    frame = village(60, seed)
    made, _ = swapped(frame, k=k, share=share, match=match, carry=["grid"])
    places = ["county", "town", "grid"]
    assert made.select(places).sort(places).equals(frame.select(places).sort(places))
    homes = made.group_by("hh").agg(pl.struct(places).n_unique().alias("homes"))
    assert homes["homes"].max() == 1
    assert made.drop(places).equals(frame.drop(places))
    assert (
        made.unique("hh")
        .group_by(places)
        .len()
        .sort(places)
        .equals(frame.unique("hh").group_by(places).len().sort(places))
    )


def test_households_that_stand_out_in_a_county_leave_it_and_the_others_at_least_their_town():
    frame = village()
    made, log = swapped(frame, k=2, share=0.0)
    keys = ["age", "sex", "origin"]
    risky = {
        level: frame.filter(pl.len().over([*places, *keys]) < 2)["hh"].unique()
        for level, places in (("county", ["county"]), ("town", ["county", "town"]))
    }
    assert log.parameters["units_at_risk"] == len(risky["town"])
    before, after = frame.unique("hh").sort("hh"), made.unique("hh").sort("hh")
    in_county = before["hh"].is_in(risky["county"].implode())
    in_town = before["hh"].is_in(risky["town"].implode())
    assert log.parameters["units_at_risk_swapped"] == len(risky["town"])
    assert (before["county"] != after["county"]).filter(in_county).all()
    moved = (before["county"] != after["county"]) | (before["town"] != after["town"])
    assert moved.filter(in_town).all()


def test_partners_agree_in_the_first_list_of_match_for_which_there_is_one():
    frame = village()
    made, _ = swapped(frame, k=1, share=0.5, match=[["age", "sex"], ["sex"]])
    looks = frame.group_by("hh", maintain_order=True).agg(pl.col("sex").sort().str.join(), pl.len())
    homes = (
        pl.DataFrame({"hh": made["hh"], "home": made["county"] * 10 + made["town"]}).unique("hh").sort("hh")
    )
    old = (
        pl.DataFrame({"hh": frame["hh"], "old": frame["county"] * 10 + frame["town"]}).unique("hh").sort("hh")
    )
    table = looks.join(homes, on="hh").join(old, on="hh")
    by_look = table.group_by("sex", "home").len().sort("sex", "home")
    assert by_look.equals(table.group_by("sex", home="old").len().sort("sex", "home"))


def test_the_share_is_a_floor_that_random_households_fill():
    frame = village()
    for share in (0.1, 0.5):
        _, log = swapped(frame, k=1, share=share)
        assert log.parameters["units_at_risk"] == 0
        assert 0 <= log.parameters["units_swapped"] - share * 400 <= 2


def test_a_household_prefers_a_town_where_it_does_not_stand_out():
    rare = pl.DataFrame({"hh": [0], "town": ["A"], "origin": ["far"]})
    plain = pl.DataFrame(
        {"hh": range(1, 60), "town": ["A"] * 19 + ["B"] * 20 + ["C"] * 20, "origin": ["here"] * 59}
    )
    many = pl.DataFrame({"hh": range(60, 65), "town": ["C"] * 5, "origin": ["far"] * 5})
    data = Microdata(pl.concat([rare, plain, many]))
    treatment = RecordSwap(geography=["town"], household="hh", keys=["origin"], k=3, share=0)
    for seed in range(10):
        made = treatment.apply(data, seed=seed).data.frame
        assert made.filter(pl.col("hh") == 0)["town"].item() == "C"


def test_records_without_households_and_flags_of_risk_work_too():
    frame = village().with_columns(flag=pl.col("origin") == "far")
    given = RecordSwap(geography=["county", "town"], at_risk="flag", share=0)
    made = given.apply(Microdata(frame.drop("hh")), seed=1)
    assert made.log[0].parameters["units_at_risk"] == frame["flag"].sum()
    flagged = frame["flag"]
    moved = (made.data.frame["county"] != frame["county"]) | (made.data.frame["town"] != frame["town"])
    assert moved.filter(flagged).all()


def test_households_without_a_place_take_no_part():
    frame = village().with_columns(town=pl.when(pl.col("hh") % 5 == 0).then(None).otherwise("town"))
    made, _ = swapped(frame, k=3, share=1.0)
    assert made["town"].is_null().to_list() == frame["town"].is_null().to_list()
    still = frame["town"].is_null()
    assert made["county"].filter(still).equals(frame["county"].filter(still))


def test_who_finds_no_partner_stays_and_the_log_says_so():
    frame = pl.DataFrame({"hh": [1, 2, 2], "town": ["A", "B", "B"], "origin": ["far", "here", "here"]})
    release = RecordSwap(geography="town", household="hh", keys=["origin"], k=2, share=1).apply(
        Microdata(frame), seed=1
    )
    assert release.data.frame.equals(frame)
    assert "found no partner" in " ".join(release.log[0].notes)
    assert "was not reached" in " ".join(release.log[0].notes)


def test_roles_name_places_keys_and_household_and_a_plan_file_brings_the_swap_back():
    frame = village()
    data = Microdata(frame, keys=["age", "sex", "town"], location=["county", "town"], household="hh")
    plan = Plan([RecordSwap(match=[["sex"], []], k=2, share=0.2)])
    one = plan.apply(data, seed=9).data.frame
    assert one.equals(Plan.from_dict(plan.to_dict()).apply(data, seed=9).data.frame)
    assert one.schema == frame.schema
    back = plan.apply(
        Microdata(frame.to_pandas(), keys=["age", "sex"], location=["county", "town"], household="hh"), seed=9
    )
    assert pl.from_pandas(back.data.frame).equals(one)


def test_bad_requests_are_refused():
    frame = village()
    with pytest.raises(ParameterError, match="who stands out"):
        swapped(frame, keys=[])
    with pytest.raises(ParameterError, match="list of lists"):
        RecordSwap(match=["age"])
    with pytest.raises(ParameterError, match="share"):
        RecordSwap(share=2)
    with pytest.raises(ParameterError, match="k must be"):
        RecordSwap(k=0)
    with pytest.raises(ParameterError, match="to be exchanged"):
        swapped(frame, match=[["town"]])
    with pytest.raises(ColumnError, match="differs between records"):
        swapped(frame, carry=["age"])
    with pytest.raises(ColumnError, match="true and false"):
        swapped(frame, at_risk="age")
    with pytest.raises(ColumnError, match="Did you mean 'county'"):
        swapped(frame, geography=["countyy"])
