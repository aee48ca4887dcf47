import itertools

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.cards import card_of
from discreet.core.charts import Map, Place
from discreet.core.errors import InputError
from discreet.core.wording import SHARED
from discreet.report.comparison_report import (
    map_of,
    releases_of,
    render_comparison,
    side_by_side,
    write_comparison,
)
from discreet.report.page_words import CHAPTERS
from discreet.report.plots import draw_charts
from discreet.workflow.comparison import compare
from discreet.workflow.pair_questions import by_name

from .page_structure import read_page
from .sample import HOSTILE


def people(seed, n=150):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 60, n)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "pay": np.round(rng.gamma(3, 500, n) + 10 * age),
            "ill": np.where(rng.random(n) < age / 100, "secret-illness", "no"),
        }
    )


ORIGINAL = Microdata(people(1), keys=["age", "sex"], sensitive="ill")


@pytest.fixture(scope="module", params=["one", "several", "policy"])
def page(request):
    parts = {
        "one": ({"released": Microdata(people(2)), "models": "pay ~ age + sex"}),
        "several": ({"released": {"a": Microdata(people(2)), HOSTILE: Microdata(people(3).drop("pay"))}}),
        "policy": ({"released": Microdata(people(2)), "policy": "safe-setting"}),
    }[request.param]
    return read_page(render_comparison(compare(ORIGINAL, **parts)))


def test_the_chapters_stand_in_the_order_in_which_things_are_mended():
    found = compare(ORIGINAL, Microdata(people(2)), models="pay ~ age + sex")
    page = read_page(render_comparison(found))
    headings = [heading.words for heading in page.every("h2")]
    assert headings[1:5] == ["What went wrong first", "Cost and risk", "The files", "Findings"]
    chapters = [heading.words for heading in page.every("h4")]
    assert chapters[:5] == [
        "Is each column still what it was?",
        "Do columns still hang together?",
        "Can the files be told apart as a whole?",
        "Would analyses come to the same answers?",
        "Can someone be found?",
    ]


def test_the_page_has_one_h1_and_no_heading_level_is_skipped(page):
    levels = [int(heading.tag[1]) for heading in page.every("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_ids_are_unique_and_everything_that_points_finds_its_target(page):
    ids = [element.attributes["id"] for element in page.every() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.every():
        pointed = [*(element.attributes.get("aria-labelledby") or "").split()]
        if element.tag == "a":
            pointed.append(element.attributes["href"].removeprefix("#"))
        assert set(pointed) <= set(ids)


def test_tables_have_captions_and_pictures_have_words(page):
    for table in page.every("table"):
        assert len(table.every("caption")) == 1
        widths = {sum(1 for cell in row.inside if cell.tag in ("th", "td")) for row in table.every("tr")}
        assert len(widths) == 1
    for picture in page.every("svg"):
        assert picture.every("title")[0].words
        assert picture.every("desc")[0].words


def test_data_values_stay_out_unless_asked_for():
    assert "secret-illness" not in render_comparison(compare(ORIGINAL, Microdata(people(2))))
    shown = render_comparison(compare(ORIGINAL, Microdata(people(2)), show_values=True))
    assert "secret-illness" in shown
    assert "handle it like the data" in shown


def test_the_verdict_and_every_rule_are_shown():
    page = render_comparison(compare(ORIGINAL, Microdata(people(2)), policy="scientific-use-file"))
    assert "policy “Scientific use file”" in page
    assert "The rules of the policy" in page


def test_a_map_shows_every_release_the_original_and_blind_guessing():
    found = compare(ORIGINAL, {"a": Microdata(people(2)), "b": Microdata(people(3))})
    chart = map_of(found)
    assert [place.name for place in chart.places] == ["a", "b", "the original itself"]
    assert chart.mark == pytest.approx(found.risk["attribution"].figures["baseline"])
    assert "a: cost" in chart.text
    assert map_of(compare(ORIGINAL, Microdata(people(2)), measures="margins")) is None


def test_the_same_files_give_the_same_page():
    first, second = (
        compare(ORIGINAL, Microdata(people(2)), measures=["margins", "tabular"]) for _ in range(2)
    )
    when = [found.about["created"] for found in (first, second)]
    pages = [render_comparison(found) for found in (first, second)]
    assert pages[0].replace(when[0], "") == pages[1].replace(when[1], "") or when[0][:16] != when[1][:16]


def test_every_measure_of_a_comparison_has_words_and_a_place():
    for question in by_name().values():
        assert question.card.question.endswith("?")
        assert question.card.headline
        assert question.card.chapter in {chapter.slug for chapter in CHAPTERS}


def test_a_report_into_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="folder"):
        write_comparison(
            compare(ORIGINAL, Microdata(people(2)), measures="margins"), tmp_path / "no" / "r.html"
        )


@pytest.mark.slow
def test_many_releases_without_a_policy_have_one_verdict_and_stand_one_below_the_other():
    releases = {f"release {seed}": Microdata(people(seed)) for seed in range(2, 8)}
    found = compare(ORIGINAL, releases, measures=["margins", "tabular", "attribution"])
    page = render_comparison(found)
    assert page.count("No verdict") == 1
    table = side_by_side(found)
    assert table.headings[0] == "Release"
    assert [row[0] for row in table.rows] == list(releases)
    assert side_by_side(compare(ORIGINAL, dict(list(releases.items())[:2]))).headings[0] == "Figure"


def test_the_share_of_right_guesses_is_held_against_blind_guessing():
    found = compare(ORIGINAL, Microdata(people(2)), measures=["attribution"])
    (card,) = releases_of(found)[0].cards
    assert card.label == "of the guesses are right"
    assert "Of 'ill'" in card.sentence
    assert "without the release" in card.sentence
    assert "can be looked up" in card.sentence


def test_names_on_a_map_do_not_cover_each_other_or_the_dots():
    near = [
        ("first release.csv", 0.011, 1.0),
        ("second release.csv", 0.014, 1.0),
        ("third release.csv", 0.06, 0.62),
    ]
    near += [
        ("fourth release.csv", 0.055, 0.65),
        ("fifth release.csv", 0.1, 0.6),
        ("sixth release.csv", 0.118, 0.68),
    ]
    places = [Place(*each) for each in near] + [Place("the original itself", 0.0, 1.0, reference=True)]
    chart = Map("t", tuple(places), "cost", "risk", "axis", mark=0.05, mark_name="guessing")
    figure = draw_charts([chart])
    figure.canvas.draw()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(places) + 1
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    dots = axes.transData.transform([(place.across, place.up) for place in places])
    assert not any(box.contains(*dot) for box in boxes for dot in dots)


def test_every_figure_of_a_comparison_is_told_in_words():
    found = compare(ORIGINAL, Microdata(people(2)), models="pay ~ age + sex")
    for name, measure in found.main.measures.items():
        card = card_of(name)
        said = {figure for figure in measure.figures if (held := card.figure(figure)) and held.label}
        assert set(measure.figures) - said <= set(SHARED), name
