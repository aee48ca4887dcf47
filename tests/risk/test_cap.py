"""Attribution against a plain record-by-record count, and what it refuses."""

import datetime as dt

import polars as pl
import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.risk.correct_attribution import attribution


def file(rows, columns=("a", "b", "t"), **roles):
    frame = pl.DataFrame(rows, schema=list(columns), orient="row", strict=False)
    return Microdata(frame, **({"keys": ["a", "b"], "sensitive": "t"} | roles))


cell = st.sampled_from(["u", "v", None])
record = st.tuples(st.sampled_from(["x", "y", "z"]), cell, st.sampled_from([1, 2, 3, 7, None]))
files = st.lists(record, min_size=3, max_size=14)


def looked_at(person, released, unmatched):
    exact = [row for row in released if row[:2] == person[:2]]
    if exact or unmatched != "nearest":
        return exact
    gap = [sum(x != y for x, y in zip(row[:2], person[:2], strict=True)) for row in released]
    return [row for row, distance in zip(released, gap, strict=True) if distance == min(gap)]


def agrees(x, y, tolerance):
    return x == y if x is None or y is None else abs(x - y) <= tolerance


def by_records(original, released, unmatched="exclude", tolerance=0, guess="proportional"):
    """Count person by person, as the definition reads."""
    own, shown, sure, matched = [], [], [], []
    for person in original:
        twins = [row for row in original if row[:2] == person[:2]]
        seen = looked_at(person, released, unmatched)
        own.append(sum(agrees(row[2], person[2], tolerance) for row in twins) / len(twins))
        hits = sum(agrees(row[2], person[2], tolerance) for row in seen)
        matched.append(bool(seen))
        sure.append(bool(seen) and hits == len(seen))
        values = [row[2] for row in seen]
        if guess == "majority" and seen:
            top = max(values.count(value) for value in values)
            modes = {value for value in values if values.count(value) == top}
            shown.append((person[2] in modes) / len(modes))
        else:
            shown.append(hits / len(seen) if seen else 0.0)
    people = [i for i, found in enumerate(matched) if found or unmatched != "exclude"]
    weap = []
    for row in released:
        alike = [other for other in released if other[:2] == row[:2]]
        weap.append(all(agrees(other[2], row[2], tolerance) for other in alike))
    return {
        "cap_original": sum(own[i] for i in people) / len(people) if people else None,
        "cap_released": sum(shown[i] for i in people) / len(people) if any(matched) else None,
        "tcap": sum(sure[i] for i in people) / len(people) if any(matched) else None,
        "weap_share": sum(weap) / len(weap),
        "matched_records": sum(matched),
    }


def usable(original, released):
    """Files whose keys are not coded differently and whose columns are not empty."""
    for i in range(3):
        ours, theirs = ({row[i] for row in rows} - {None} for rows in (original, released))
        if not ours or not theirs or (i < 2 and not ours & theirs):
            return False
    return True


@settings(max_examples=examples(150), deadline=None)
@given(
    files,
    files,
    st.sampled_from(["exclude", "zero", "nearest"]),
    st.sampled_from([0, 1, 4]),
    st.sampled_from(["proportional", "majority"]),
)
@pytest.mark.slow
def test_the_counted_cells_give_what_a_count_person_by_person_gives(
    original, released, unmatched, tolerance, guess
):
    assume(usable(original, released))
    if guess == "majority":
        tolerance, unmatched = 0, "exclude" if unmatched == "nearest" else unmatched
    figures = attribution(
        file(original), file(released), unmatched=unmatched, tolerance=tolerance or None, guess=guess
    ).figures
    expected = by_records(original, released, unmatched, tolerance, guess)
    for name, figure in expected.items():
        assert figures[name] == pytest.approx(figure), name


@settings(max_examples=examples(30), deadline=None)
@given(files, files)
def test_the_file_figure_is_the_mean_of_the_matched_records(original, released):
    assume(usable(original, released))
    measure = attribution(file(original), file(released))
    records = measure.detail["records"].filter(pl.col("matched"))
    assert records.height == measure.figures["matched_records"]
    if records.height:
        assert measure.value == pytest.approx(records["cap_released"].mean())
        assert measure.figures["cap_original"] == pytest.approx(records["cap_original"].mean())
        assert measure.figures["worst_gain"] <= 1e-12 + measure.figures["gain"]


@settings(max_examples=examples(20), deadline=None)
@given(files)
def test_a_file_released_as_it_is_gains_nothing(rows):
    assume(usable(rows, rows))
    figures = attribution(file(rows), file(rows)).figures
    assert figures["gain"] == pytest.approx(0)
    assert figures["worst_gain"] == pytest.approx(0)
    assert figures["matched_share"] == 1


def test_weights_count_people_as_often_as_they_stand_for():
    rows = [("x", "u", 1, 3.0), ("x", "u", 2, 1.0), ("y", "u", 2, 2.0)]
    release = file([("x", "u", 1), ("x", "u", 2), ("x", "u", 2), ("y", "u", 1)])
    weighted = attribution(file(rows, ("a", "b", "t", "w")), release, weight="w", baseline="matched").figures
    assert weighted["cap_released"] == pytest.approx((3 * 1 / 3 + 1 * 2 / 3) / 6)
    assert weighted["matched_share"] == 1


def test_several_copies_give_the_mean_and_a_table_of_each():
    original = file([("x", "u", 1), ("y", "u", 2)])
    right, wrong = file([("x", "u", 1), ("y", "u", 2)]), file([("x", "u", 2), ("y", "u", 1)])
    measure = attribution(original, [right, wrong])
    assert measure.value == 0.5
    assert measure.detail["copies"]["cap_released"].to_list() == [1, 0]


def test_the_worst_of_several_targets_is_the_headline_and_a_composite_is_harder():
    original = file(
        [("x", 1, "p"), ("x", 2, "p"), ("y", 3, "q")], ("a", "s", "t"), keys="a", sensitive=["s", "t"]
    )
    measure = attribution(original, original)
    assert measure.detail["variables"]["sensitive"].to_list() == ["t", "s"]
    assert measure.value == 1
    both = attribution(original, original, together=True)
    assert both.value == pytest.approx(2 / 3)
    assert both.detail["classes"].columns[:3] == ["a", "s", "t"]


def test_numbers_and_text_are_matched_and_the_reader_is_told():
    original = file([(57, "u", 1), (58, "u", 2)])
    release = file([("57", "u", 1), ("58.0", "u", 2)])
    measure = attribution(original, release)
    assert measure.value == 1
    assert any("compared as numbers" in caveat for caveat in measure.caveats)


def test_nobody_matched_is_undefined_and_not_zero():
    measure = attribution(file([("x", "u", 1), ("y", "v", 1)]), file([("x", "v", 1), ("y", "u", 1)]))
    assert measure.value is None
    assert measure.figures["matched_records"] == 0
    zero = attribution(
        file([("x", "u", 1), ("y", "v", 1)]), file([("x", "v", 1), ("y", "u", 1)]), unmatched="nearest"
    )
    assert zero.value == 1


def test_decimal_keys_without_a_common_value_get_a_caveat_and_bands_help():
    original = file([(0.5, "u", 1), (9.5, "u", 2)])
    release = file([(0.6, "u", 1), (9.4, "u", 2)])
    measure = attribution(original, release)
    assert measure.value is None
    assert any("no value in common" in caveat for caveat in measure.caveats)
    assert attribution(original, release, intervals={"a": 2}).value == 1


def test_an_interval_by_bootstrap_is_the_same_for_the_same_seed_and_holds_the_figure():
    rows = [("x", "u", i % 3) for i in range(60)] + [("y", "v", i % 2) for i in range(40)]
    options = {"replicates": 50, "seed": 3}
    first = attribution(file(rows), file(rows[::2]), **options).figures
    again = attribution(file(rows), file(rows[::2]), **options).figures
    assert dict(first) == dict(again)
    assert first["cap_released_low"] <= first["cap_released"] <= first["cap_released_high"]


def test_missing_keys_are_a_value_or_left_out():
    original = file([("x", None, 1), ("x", None, 1), ("x", "u", 2)])
    assert attribution(original, original).figures["matched_records"] == 3
    dropped = attribution(original, original, missing="drop")
    assert dropped.figures["matched_records"] == 1
    assert dropped.detail["records"]["cap_released"].to_list() == [None, None, 1]


ORIGINAL = file([("x", "u", 1), ("y", "v", 2), ("y", "v", 3)])


@pytest.mark.parametrize(
    ("release", "options", "error", "words"),
    [
        (ORIGINAL, {"sensitive": "a"}, ColumnError, "both a key and sensitive"),
        (ORIGINAL, {"keys": ["a", "a"]}, ColumnError, "twice"),
        (file([("q", "u", 1)]), {}, ColumnError, "'a' has no value in common"),
        (file([("x", 1)], ("a", "t"), keys="a"), {}, ColumnError, "no column 'b'"),
        (file([("x", "u")], ("a", "b"), sensitive=None), {}, ColumnError, "no column 't'"),
        (file([("x", "u", dt.date(2020, 1, 1))]), {}, ColumnError, "cannot be compared"),
        (file([("x", "u", None)]), {}, ColumnError, "no values at all in the released"),
        (file([("x", "u", 1)]).with_frame(ORIGINAL.frame.clear()), {}, InputError, "no records"),
        ([], {}, ParameterError, "empty list"),
        (ORIGINAL, {"unmatched": "drop"}, ParameterError, "unmatched must be"),
        (ORIGINAL, {"missing": "wildcard"}, ParameterError, "missing must be 'category' or 'drop'"),
        (ORIGINAL, {"intervals": {"t": [3, 1]}}, ParameterError, "increasing order"),
        (ORIGINAL, {"intervals": {"t": [1, 2]}}, ParameterError, "do not cover"),
        (ORIGINAL, {"intervals": {"a": 3}}, ColumnError, "no numbers"),
        (ORIGINAL, {"intervals": {"a": {"x": "new"}}}, ParameterError, "leave out"),
        (ORIGINAL, {"intervals": {"other": 3}}, ParameterError, "neither a key nor sensitive"),
        (ORIGINAL, {"intervals": {"t": 0}}, ParameterError, "intervals must be .* at least 1"),
        (ORIGINAL, {"tolerance": -1.0}, ParameterError, "negative"),
        (ORIGINAL, {"sensitive": "b", "keys": "a", "tolerance": 1.0}, ColumnError, "for numbers"),
        (ORIGINAL, {"tolerance": 1.0, "guess": "majority"}, ParameterError, "whole classes"),
        (ORIGINAL, {"knows": {"x": 1.0}}, ParameterError, "1 key values where there are 2"),
        (ORIGINAL, {"membership": 2.0}, ParameterError, "membership must be a share between 0 and 1"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(release, options, error, words):
    with pytest.raises(error, match=words):
        attribution(ORIGINAL, release, **options)


def test_an_original_without_any_target_value_is_refused():
    with pytest.raises(ColumnError, match="no values at all"):
        attribution(file([("x", "u", None)]), ORIGINAL)


def test_what_is_learned_is_what_goes_beyond_a_blind_guess():
    people = pl.DataFrame(
        {
            "town": ["a", "a", "b", "b"] * 25,
            "rare": ["no"] * 97 + ["yes"] * 3,
            "vote": ["x", "x", "y", "y"] * 25,
        }
    )
    data = Microdata(people, keys=["town"], sensitive=["rare", "vote"])
    figures = attribution(data, data).figures
    by_target = attribution(data, data).detail["variables"]
    assert figures["learned"] == pytest.approx((by_target["cap_released"] - by_target["baseline"]).max())
    # The vote follows from the town, and is half guessed anyway; that nobody has the rare thing is known to all.
    assert figures["learned"] == pytest.approx(0.5)
    only = attribution(Microdata(people, keys=["town"], sensitive=["rare"]), data).figures
    assert only["cap_released"] > 0.9
    assert only["learned"] < 0.01
