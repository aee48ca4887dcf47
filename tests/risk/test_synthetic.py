"""Disclosure from synthetic data: what must always hold, the checks, the exclusions and what is refused."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.attribute_disclosure import attribute_disclosure, specific_risk
from discreet.risk.group_disclosure import group_disclosure
from discreet.risk.replicated_uniques import remove_replicated_uniques, replicated_uniques
from discreet.risk.synthetic_disclosure import disclosure


def file(rows, columns=("k", "j", "t"), **roles):
    return Microdata(pl.DataFrame(rows, schema=list(columns), orient="row", strict=False), **roles)


rows_of_files = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 2, None]), st.sampled_from(["x", "y", "z", None])),
    min_size=4,
    max_size=25,
)


def common(original, released):
    for i in range(3):
        ours, theirs = ({row[i] for row in rows} - {None} for rows in (original, released))
        if not ours or not theirs or (i < 2 and not ours & theirs):
            return False
    return True


@settings(max_examples=examples(60), deadline=None)
@given(rows_of_files, rows_of_files, st.booleans(), st.booleans(), st.booleans())
def test_figures_are_nested_and_shrink_with_every_exclusion(original, released, no_target, no_key, over):
    assume(common(original, released))
    ours, theirs = file(original, keys=["k", "j"]), file(released)
    full = attribute_disclosure(ours, theirs, "t").figures
    less = attribute_disclosure(
        ours,
        theirs,
        "t",
        missing_target=not no_target,
        missing_keys=not no_key,
        denom_lim=1,
        exclude_over_denom=over,
    ).figures
    for figures in (full, less):
        assert figures["DiSDiO"] <= figures["DiSCO"] <= figures["DiS"] <= figures["iS"] <= 100 + 1e-9
        assert figures["DiSCO"] <= figures["DCAP"] + 1e-9 or figures is less
    assert full["DiSDiO"] <= full["Dorig"]
    assert full["repU"] <= full["UiOiS"] <= full["UiO"]
    for name in ("Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO", "UiO", "repU"):
        assert less[name] <= full[name] + 1e-9


@settings(max_examples=examples(40), deadline=None)
@given(rows_of_files, rows_of_files)
def test_record_flags_add_up_to_the_figures_and_nothing_replicated_is_left(original, released):
    assume(common(original, released))
    ours, theirs = file(original, keys=["k", "j"]), file(released)
    measure = attribute_disclosure(ours, theirs, "t")
    flags = measure.detail["records"]
    for name in ("Dorig", "iS", "DiS", "DiSCO", "DiSDiO"):
        assert 100 * flags[name].mean() == pytest.approx(measure.figures[name])
    alone = replicated_uniques(ours, theirs)
    assert 100 * alone.detail["records"]["replicated"].mean() == pytest.approx(alone.figures["repU"])
    assert alone.detail["released_records"]["replicated"].sum() == alone.figures["replicated"]
    left = remove_replicated_uniques(ours, theirs)
    assert left.data.frame.height == len(released) - alone.figures["replicated"]
    assert left.data.columns == ("k", "j", "t")


PEOPLE = [("a", 1, "no")] * 60 + [("b", 2, "no")] * 30 + [("b", 3, "yes")] * 4 + [("c", 4, "yes")] * 6


def test_one_dominating_value_is_flagged_and_excluding_it_leaves_the_rest():
    rows = [("a", i % 40, "no") for i in range(120)] + [("b", 50 + i, "yes") for i in range(5)]
    data = file(rows, keys=["k", "j"])
    measure = attribute_disclosure(data, data, "t")
    check = measure.detail["one_way"].row(0, named=True)
    assert check["flagged"]
    assert (check["disclosive"], check["with_value"]) == (125, 120)
    assert any("anybody would have guessed" in caveat for caveat in measure.caveats)
    assert not any("'no'" in caveat for caveat in measure.caveats)
    rest = attribute_disclosure(data, data, "t", exclude_values=["no"])
    assert rest.value == pytest.approx(100 * 5 / 125)
    taken = rest.detail["exclusions"].filter(pl.col("reason") == "excluded value")
    assert taken["DiSCO"].item() == 120
    assert not rest.figures["one_way_flag"]


def test_a_key_that_predicts_the_target_is_flagged_and_can_be_excluded():
    data = file(PEOPLE, keys=["k", "j"])
    measure = attribute_disclosure(data, data, "t")
    pairs = measure.detail["two_way"]
    assert pairs.columns == ["key", "level", "value", "npairs", "key_total", "key_target_total", "pct"]
    found = {tuple(row[:4]) for row in pairs.rows()}
    assert ("k", "a", "no", 60) in found
    assert ("k", "b", "no", 30) in found
    assert all(row[6] > 80 for row in pairs.rows())
    assert pairs["npairs"].to_list() == sorted(pairs["npairs"], reverse=True)
    less = attribute_disclosure(data, data, "t", exclude_pairs=[("k", "a", "no"), ("j", 2, "no")])
    assert less.value == pytest.approx(10)


def test_cells_over_the_denominator_limit_are_reported_and_can_be_left_out():
    data = file(PEOPLE, keys=["k", "j"])
    reported = attribute_disclosure(data, data, "t")
    assert reported.figures["records_over_denom"] == 96
    assert any("group rather than a person" in caveat for caveat in reported.caveats)
    assert attribute_disclosure(data, data, "t", exclude_over_denom=True).value == pytest.approx(4)


def test_numbers_are_grouped_on_the_quantiles_of_both_files_and_special_codes_stay_alone():
    income = [-8, -8, *range(100, 110), *range(200, 210)]
    original = Microdata(pl.DataFrame({"k": ["a"] * 12 + ["b"] * 10, "pay": income}), keys="k")
    released = Microdata(pl.DataFrame({"k": ["a"] * 12 + ["b"] * 10, "pay": [-8, -8, *range(101, 121)]}))
    exact = attribute_disclosure(original, released, "pay")
    options = {"groups_target": 4, "special_values": {"pay": [-8]}}
    grouped = attribute_disclosure(original, released, "pay", **options)
    assert exact.figures["baseCAPd"] < grouped.figures["baseCAPd"]
    assert any("only 4 times" in caveat for caveat in grouped.caveats)
    # Values of the release beyond the original's and the other way round still fall into a group.
    assert grouped.figures["iS"] == 100


def test_a_constant_number_falls_back_to_groups_of_equal_width():
    data = Microdata(pl.DataFrame({"k": ["a", "b"] * 10, "pay": [0] * 18 + [5, 10]}), keys="k")
    measure = attribute_disclosure(data, data, "pay", groups_target=5)
    assert any("equal width" in caveat for caveat in measure.caveats)
    text = attribute_disclosure(file(PEOPLE, keys="j"), file(PEOPLE), "t", groups_target=3)
    assert any("not numeric" in caveat for caveat in text.caveats)


def test_a_control_file_tells_general_knowledge_from_what_is_specific():
    rows = [(str(i), 1, "x" if i % 2 else "y") for i in range(40)]
    training, held_out = file(rows, keys=["k"]), file([(k, j, "x") for k, j, _ in rows])
    measure = disclosure(training, training, ["t"], holdout=held_out)
    row = measure.detail["holdout"].row(0, named=True)
    assert row["DiSCO_control"] == pytest.approx(50)
    assert row["R"] == pytest.approx(specific_risk(1, 0.5)) == pytest.approx(1)
    with pytest.raises(ParameterError, match="held-out records is disclosed"):
        attribute_disclosure(training, training, "t", holdout=training)


def test_several_copies_are_averaged_and_listed():
    original = file([("a", 1, "x"), ("b", 2, "y")], keys="k")
    other = file([("a", 1, "y"), ("b", 2, "x")])
    measure = disclosure(original, [original, other], ["t"])
    assert measure.value == 50
    assert measure.detail["copies"]["DiSCO"].to_list() == [100, 0]
    assert measure.figures["repU"] == 100


def test_all_columns_but_keys_identifiers_and_weight_are_targets():
    data = file(
        [("a", 1, "x", "n1", 2.0), ("b", 2, "y", "n2", 1.0)],
        ("k", "j", "t", "name", "w"),
        keys="k",
        identifiers="name",
        weight="w",
    )
    measure = disclosure(data, Microdata(data.frame.drop("j")))
    assert measure.detail["targets"]["target"].to_list() == ["t"]
    assert any("'j' is not in both files" in caveat for caveat in measure.caveats)


def test_weights_make_the_shares_speak_of_the_population():
    original = Microdata(pl.DataFrame({"k": ["a", "b"], "t": ["x", "y"], "w": [9.0, 1.0]}), keys="k")
    released = Microdata(pl.DataFrame({"k": ["a", "b"], "t": ["x", "x"]}))
    assert attribute_disclosure(original, released, "t").value == 50
    assert attribute_disclosure(original, released, "t", weight="w").value == 90


def test_agreement_with_synthpop_empties_the_identity_tables_too():
    original = file([("a", 1, "x"), ("a", 1, "y"), ("b", 1, "x")], keys="k")
    plain = attribute_disclosure(original, original, "t", exclude_values=["x"]).figures
    like = attribute_disclosure(original, original, "t", exclude_values=["x"], compat="synthpop").figures
    assert plain["UiO"] == pytest.approx(100 / 3)
    # Without the level x, 'a' has one record left and counts as unique; 'b' has none.
    assert like["uniques_original"] == 1
    assert like["UiO"] == pytest.approx(100 / 3)


def test_real_levels_named_missing_are_not_missing():
    data = file([("Missing", 1, "Missing"), (None, 1, None), ("a", 1, "x")], keys="k")
    measure = attribute_disclosure(data, data, "t", missing_target=False, missing_keys=False)
    assert measure.figures["Dorig"] == pytest.approx(200 / 3)
    assert measure.figures["UiO"] == pytest.approx(200 / 3)


def test_no_disclosive_cell_leaves_denominators_undefined_and_checks_empty():
    data = file([("a", 1, "x"), ("a", 1, "y")], keys="k")
    measure = attribute_disclosure(data, data, "t")
    assert measure.value == 0
    assert measure.figures["denom_max"] is None
    assert measure.detail["one_way"].height == measure.detail["two_way"].height == 0


def test_group_disclosure_leaves_out_what_anybody_would_guess():
    rows = [("a", 1, "no")] * 95 + [("b", 1, "yes")] * 5
    data = file(rows, keys="k", sensitive="t")
    assert group_disclosure(data, data).figures["released_cells"] == 1
    assert group_disclosure(data, data, naive=1.0).figures["released_cells"] == 2


def test_a_million_cells_are_counted_without_a_dense_table():
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"k": random.integers(0, 50_000, 100_000), "t": random.integers(0, 5_000, 100_000)})
    data = Microdata(frame, keys="k")
    measure = attribute_disclosure(data, Microdata(frame.with_columns(t=pl.col("t").shuffle(1))), "t")
    assert 0 < measure.value < 1


ORIGINAL = file([("a", 1, "x"), ("b", 2, "y"), ("c", 3, "y")], keys=["k"])


@pytest.mark.parametrize(
    ("release", "target", "options", "error", "words"),
    [
        (ORIGINAL, "k", {}, ColumnError, "both a key and sensitive"),
        (ORIGINAL, "T", {}, ColumnError, "Did you mean 't'"),
        (file([("q", 1, "x")]), "t", {}, ColumnError, "'k' has no value in common"),
        (file([("a", 1)], ("k", "j")), "t", {}, ColumnError, "no column 't'"),
        (file([(1.5, "x")], ("j", "t")), "t", {}, ColumnError, "no column 'k'"),
        (file([("a", 1, None)]), "t", {}, ColumnError, "no values at all"),
        (ORIGINAL, "t", {"groups_target": 1}, ParameterError, "2 or more"),
        (ORIGINAL, "t", {"exclude_values": ["q"]}, ParameterError, "number 1 does not occur"),
        (ORIGINAL, "t", {"exclude_pairs": [("j", 1, "x")]}, ParameterError, "not one of the keys"),
        (ORIGINAL, "t", {"exclude_pairs": [("k", "a")]}, ParameterError, "exclude_pairs must be"),
        (ORIGINAL, "t", {"denom_lim": 0}, ParameterError, "denom_lim must be a whole number of at least 1"),
        (ORIGINAL, "t", {"denominator": "both"}, ParameterError, "denominator must be"),
        (ORIGINAL, "t", {"missing_keys": ["z"]}, ParameterError, "not one of the keys"),
        (ORIGINAL, "t", {"special_values": {"t": [1]}}, ParameterError, "not grouped"),
        (
            ORIGINAL,
            "j",
            {"groups_target": 2, "special_values": {"j": [-8]}},
            ParameterError,
            "does not occur",
        ),
        (
            ORIGINAL,
            "t",
            {"holdout": file([("a", 1)], ("k", "j"))},
            ColumnError,
            "hold-out file has no column",
        ),
        (ORIGINAL, "t", {"compat": "r"}, ParameterError, "compat"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(release, target, options, error, words):
    with pytest.raises(error, match=words):
        attribute_disclosure(ORIGINAL, release, target, **options)


def test_an_all_missing_target_and_unknown_exclusions_are_refused():
    empty = Microdata(ORIGINAL.frame.with_columns(t=pl.lit(None, dtype=pl.String)), keys="k")
    with pytest.raises(ColumnError, match="no values at all"):
        disclosure(empty, ORIGINAL, ["t"])
    with pytest.raises(ParameterError, match="not one of the targets"):
        disclosure(ORIGINAL, ORIGINAL, ["t"], exclude_values={"j": [1]})
    with pytest.raises(ParameterError, match="rule must be"):
        remove_replicated_uniques(ORIGINAL, ORIGINAL, rule="all")
