import itertools
import re
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import InputError
from discreet.core.results import Assessment, Measure, Scenario
from discreet.core.verdicts import Check, Verdict
from discreet.policy import Rule
from discreet.report import render_assessment, write_assessment
from discreet.report.page_words import chapters_of

from .page_structure import read_page
from .sample import HOSTILE, SECRET, assessment

FACTS = [
    "source",
    "rows",
    "columns",
    "roles",
    "missing",
    "engine",
    "checksum",
    "created",
    "versions",
    "reading",
]
OUTCOMES = ["pass", "fail", "open", "none"]
STYLE = Path(render_assessment.__code__.co_filename).parent / "templates" / "style.css"


@pytest.fixture(scope="module", params=OUTCOMES)
def page(request):
    return read_page(render_assessment(assessment(request.param)))


def tiny(about=None, **parts):
    k = Measure("k_anonymity", 1, {"k": 1}, "Someone is alone.")
    return Assessment(about or {}, {"anyone": Scenario("anyone", ("age",), {"k_anonymity": k})}, **parts)


@pytest.mark.parametrize(
    ("outcome", "heading"),
    [
        ("pass", "Meets policy “scientific use file”"),
        ("fail", "Does not meet policy “scientific use file”"),
        ("open", "Meets what could be judged here of policy “scientific use file”"),
        ("none", "No verdict: no policy was named"),
    ],
)
def test_the_verdict_stands_first_in_words(outcome, heading):
    page = read_page(render_assessment(assessment(outcome)))
    assert heading in page.every("h2")[0].words


def test_the_reasons_of_a_failed_policy_are_told():
    page = render_assessment(assessment("fail"))
    assert "the smallest group (k) is 1, at least 3 is asked for" in page
    assert (
        "1 of 3 rules of the policy is not met. 1 rule could not be checked, which counts as not met." in page
    )


def test_every_result_has_a_word_besides_its_color():
    page = read_page(render_assessment(assessment("fail")))
    results = [cell.text.strip() for cell in page.every("span") if cell.attributes.get("class") == "result"]
    assert results == ["Not met", "Met", "Not checked"]


def test_the_page_has_one_h1_and_no_heading_level_is_skipped(page):
    levels = [int(heading.tag[1]) for heading in page.every("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_the_page_has_landmarks_a_language_and_a_skip_link(page):
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.every(landmark)) == 1
    assert page.every("html")[0].attributes["lang"] == "en"
    first_link = page.every("a")[0]
    assert first_link.attributes["class"] == "skip"


def test_ids_are_unique_and_everything_that_points_finds_its_target(page):
    ids = [element.attributes["id"] for element in page.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.every():
        pointed = [*(element.attributes.get("aria-labelledby") or "").split()]
        if element.tag == "a":
            pointed.append(element.attributes["href"].removeprefix("#"))
        assert set(pointed) <= set(ids)


def test_every_table_has_a_caption_and_scoped_headings(page):
    for table in page.every("table"):
        assert len(table.every("caption")) == 1
        assert all(heading.attributes.get("scope") in ("col", "row") for heading in table.every("th"))
        widths = {sum(1 for cell in row.inside if cell.tag in ("th", "td")) for row in table.every("tr")}
        assert len(widths) == 1


def test_every_picture_has_a_title_and_a_text(page):
    pictures = page.every("svg")
    assert len(pictures) >= 8
    for picture in pictures:
        assert picture.attributes["role"] == "img"
        assert picture.every("title")[0].words
        assert picture.every("desc")[0].words


def test_every_field_of_the_sign_off_has_a_label(page):
    form = page.every("form")[0]
    labelled = [field for label in form.every("label") for field in label.every("input", "textarea")]
    assert [field.attributes["name"] for field in labelled] == [
        "name", "role", "date", "decision", "decision", "decision", "remarks",
    ]  # fmt: skip
    assert len(form.every("input", "textarea")) == len(labelled)


def test_the_page_loads_nothing_from_elsewhere(page):
    for element in page.every():
        assert element.tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "srcset", "action", "background", "data"} & set(element.attributes)
        assert (element.attributes.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") for name in element.attributes)
        assert "url(" not in (element.attributes.get("style") or "")
    for style in page.every("style"):
        assert "url(" not in style.words
        assert "@import" not in style.words


def test_the_only_script_is_our_own_and_the_page_forbids_any_other(page):
    [script] = page.every("script")
    assert "print()" in script.words
    policies = [meta.attributes["content"] for meta in page.every("meta") if "http-equiv" in meta.attributes]
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", policies[0])


def test_hostile_names_are_shown_as_text():
    page = render_assessment(assessment("fail"))
    assert HOSTILE not in page
    assert any(code.words == HOSTILE for code in read_page(page).every("code"))


def test_data_values_are_shown_only_when_asked_for():
    assert SECRET not in render_assessment(assessment("fail"))
    shown = render_assessment(assessment("fail", show_values=True))
    assert f"{SECRET}-1" in shown
    assert "handle it like the data" in shown


def test_record_tables_are_never_computed():
    found = assessment("pass")
    holding = [measure for measure in found.measures.values() if "records" in measure.detail]
    assert holding
    with pytest.raises(ZeroDivisionError):
        _ = holding[0].detail["records"]
    assert "</html>" in render_assessment(found)


def test_the_same_assessment_gives_the_same_bytes():
    assert render_assessment(assessment("fail")) == render_assessment(assessment("fail"))


def test_a_measure_is_not_drawn_twice_from_the_same_classes():
    page = read_page(render_assessment(assessment("fail")))
    titles = [picture.every("title")[0].words for picture in page.every("svg")]
    assert titles.count("Records by size of their group") == len(assessment().scenarios)


@pytest.mark.parametrize("about", [{}, dict.fromkeys(FACTS)])
def test_nothing_needs_to_be_known_about_the_file(about):
    page = read_page(render_assessment(tiny(about)))
    assert page.every("h1")[0].words == "Can this file be released?"
    assert "None" not in page.words


def test_an_assessment_without_scenarios_still_makes_a_page():
    assert "No scenario was assessed." in render_assessment(Assessment({}, {}))


def test_a_verdict_without_rules_is_not_a_failure_of_the_page():
    page = read_page(render_assessment(tiny(verdict=Verdict("empty", ()))))
    assert "empty" in page.words


def test_advice_is_numbered_and_its_absence_is_said():
    page = read_page(render_assessment(assessment("fail")))
    [advice] = [part for part in page.every("ol") if part.attributes.get("class") == "advice"]
    assert len(advice.every("li")) == 3
    assert "nothing to suggest" in render_assessment(assessment("fail", advice=False))


def test_findings_are_sorted_by_the_questions_of_a_reader():
    page = read_page(render_assessment(assessment("fail")))
    questions = [heading.words for heading in page.every("h4")][:3]
    assert questions == [
        "Can someone be found?",
        "Can something be learned without finding them?",
        "Which keys drive it?",
    ]
    titles = [heading.words for heading in page.every("h5")][:4]
    assert titles == ["k-anonymity", "Uniqueness", "Re-identification", "l-diversity"]


def test_the_page_opens_with_what_a_manager_needs_and_folds_the_rest():
    page = read_page(render_assessment(assessment("fail")))
    sections = [part.attributes.get("id") for part in page.every("section") if "id" in part.attributes]
    assert sections[:5] == ["verdict", "numbers", "next", "file", "intruders"]
    whole = [fold for fold in page.every("details") if fold.attributes.get("class") == "whole"]
    assert len(whole) == len(assessment("fail").scenarios)
    inside = {id(figure) for fold in whole for figure in fold.every("figure")}
    assert all(id(figure) in inside for figure in page.every("figure"))
    assert not any("open" in fold.attributes for fold in whole)


def test_only_the_leading_findings_of_the_main_scenario_are_unfolded():
    page = read_page(render_assessment(assessment("fail")))
    scenarios = [part for part in page.every("section") if part.attributes.get("class") == "scenario"]

    def unfolded(part):
        folds = [fold for fold in part.every("details") if fold.attributes.get("class") != "whole"]
        folded = {id(figure) for fold in folds for figure in fold.every("figure")}
        return [figure for figure in part.every("figure") if id(figure) not in folded]

    assert len(unfolded(scenarios[0])) == 4
    assert unfolded(scenarios[1]) == []
    assert len(scenarios[1].every("figure")) >= 4


def test_figures_that_do_not_apply_are_not_listed():
    page = render_assessment(assessment("fail"))
    assert "<code>pue</code>" in page
    assert "<code>rfue</code>" not in page


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from(["k_anonymity", "t_closeness", "series", "individual", "new", "newer"])))
def test_every_measure_has_one_place_in_the_report(names):
    placed = [name for _, held in chapters_of(names) for name in held]
    assert sorted(placed) == sorted(set(names))


def test_what_was_left_out_is_said_with_the_reason():
    assert "<strong>k-map</strong>: no population file was given." in render_assessment(assessment("fail"))


def test_values_of_the_riskiest_groups_show_only_when_asked_for():
    rows = [
        {"class": 1, "class_size": 1, "risk": 1.0, "values": {"age": 1962}},
        {"class": 2, "class_size": 3, "risk": 0.5},
    ]
    for show_values in (False, True):
        scenario = Scenario("any", ("age",), {}, riskiest=rows)
        page = render_assessment(Assessment({}, {"any": scenario}, show_values=show_values))
        assert ("1962" in page) is show_values


def test_masked_groups_that_look_the_same_are_told_in_one_sentence():
    rows = [{"class": number, "class_size": 1, "risk": 1.0} for number in (1, 2, 3)]
    page = render_assessment(Assessment({}, {"any": Scenario("any", ("age",), {}, riskiest=rows)}))
    assert "The 3 riskiest groups look the same: group size 1, chance of identification 100 %." in page


def test_the_limit_of_a_share_is_written_as_the_share_beside_it():
    scenario = Scenario(
        "any", ("sex",), {"uniqueness": Measure("uniqueness", 0.071, {"unique_share": 0.071}, "")}
    )
    check = Rule("uniqueness", "unique_share", at_most=0.053).check(scenario)
    cells = [
        cell.words for cell in read_page(render_assessment(tiny(verdict=Verdict("p", (check,))))).every("td")
    ]
    assert cells[:2] == ["at most 5.3 %", "7.1 %"]


def test_a_long_list_of_reasons_is_cut_and_counted():
    checks = tuple(Check("k_anonymity", "k", "any", "at least 3", 1, False, f"reason {n}") for n in range(9))
    page = render_assessment(tiny(verdict=Verdict("p", checks)))
    assert "and 4 more; the table below has them all" in page


def test_a_parameter_that_may_hold_data_values_is_only_counted():
    page = render_assessment(assessment("fail"))
    assert "hierarchy: 1 entry" in page
    assert "threshold: 0.2" in page


def test_a_measure_nobody_has_heard_of_is_shown_by_its_own_words():
    new = Measure(
        "gut_feeling", 0.5, {"warmth": 2.0}, "It feels warm.", ["Feelings deceive."], guarantee="none <b>"
    )
    page = render_assessment(Assessment({}, {"any": Scenario("any", ("a",), {"gut_feeling": new})}))
    for words in ("Gut feeling", "It feels warm.", "Feelings deceive.", "none &lt;b&gt;"):
        assert words in page


def test_figures_are_written_as_people_read_them():
    check = Check("t_closeness", "threshold", "any", "at most 0.3", 0.25, True, "fine")
    page = read_page(render_assessment(tiny(verdict=Verdict("p", (check,)))))
    assert "0.25" in [cell.words for cell in page.every("td")]


@settings(max_examples=examples(25), deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_no_name_can_break_the_page(name):
    k = Measure("k_anonymity", 1, {name: 1}, name, [name], {"keys": [name], name: name})
    scenario = Scenario(name, (name,), {"k_anonymity": k}, {name: name}, [{name: "•", "class_size": 1}])
    check = Check("k_anonymity", name, name, name, None, None, name)
    about = {"source": name, "roles": {"keys": [name]}, "missing": {name: 0.5}, "versions": {name: name}}
    page = render_assessment(
        Assessment(about, {name: scenario}, verdict=Verdict(name, (check,)), advice=[name])
    )
    tree = read_page(page)
    assert len(tree.every("script")) == 1
    assert len(tree.every("h1")) == 1


def test_writing_replaces_an_older_report_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("older")
    assert write_assessment(assessment("fail"), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_to_html_takes_a_path_as_text(tmp_path):
    assert assessment("pass").to_html(str(tmp_path / "r.html")).is_file()


def test_a_missing_folder_is_said_and_nothing_is_made(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        write_assessment(assessment("fail"), tmp_path / "nowhere" / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_report(tmp_path):
    with pytest.raises(InputError, match="folder"):
        write_assessment(assessment("fail"), tmp_path)


def test_a_disk_that_refuses_is_an_input_error_and_the_older_report_stays(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    target = tmp_path / "r.html"
    target.write_text("older")
    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(InputError, match="Permission denied"):
        write_assessment(assessment("fail"), target)
    assert target.read_bytes() == b"older"
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]


def _schemes():
    css = STYLE.read_text(encoding="utf-8")
    blocks = re.findall(r":root\s*{([^}]*)}", css)
    return [dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{3,6})", block)) for block in blocks]


def _luminance(color):
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one, other):
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", _schemes(), ids=["light", "dark", "print"])
def test_text_has_enough_contrast_in_every_scheme(scheme):
    for sheet in ("paper", "sheet"):
        for text in ("ink", "muted", "link", "pass", "fail", "open", "none"):
            assert _contrast(scheme[text], scheme[sheet]) >= 4.5, (text, sheet)
        for shape in ("bar", "risk", "strong-rule"):
            assert _contrast(scheme[shape], scheme[sheet]) >= 3 - 0.15 * (shape == "strong-rule"), (
                shape,
                sheet,
            )
    for state in ("pass", "fail", "open", "none"):
        assert _contrast(scheme["ink"], scheme[f"{state}-sheet"]) >= 4.5
        assert _contrast(scheme[state], scheme[f"{state}-sheet"]) >= 4.5
