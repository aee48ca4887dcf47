"""The page of a release says what was done, what is left of the risk and what it cost, and never a data value."""

import itertools
import json
import os
import re
import sys

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.cli import main
from discreet.core.errors import InputError
from discreet.protect import (
    AddNoise,
    Band,
    DropIdentifiers,
    KAnonymity,
    LocalSuppression,
    Microaggregate,
    Mondrian,
    OptimalGeneralization,
    Plan,
    Pram,
    Pseudonymize,
    RandomSwap,
    RankSwap,
    Recode,
    ReorderRecords,
    SampleAndAnonymize,
    Shuffle,
    TopBottomCode,
)
from discreet.report import render_release
from discreet.report.plots import charts_of
from discreet.report.plots import own_charts as of_cost
from discreet.report.release_view import setting_words
from discreet.utility import information_loss
from discreet.workflow import document_plan, document_release

from .page_structure import read_page

pytestmark = pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
SECRET_PLACE = "Zzyzx Road"


def people(n=300):
    rng = np.random.default_rng(11)
    pay = rng.lognormal(8, 0.6, n).round(2)
    return Microdata(
        pl.DataFrame(
            {
                "name": [f"person-{i}" for i in range(n)],
                "age": rng.integers(18, 80, n),
                "place": rng.choice(["Ulm", "Bonn", SECRET_PLACE], n, p=[0.5, 0.48, 0.02]),
                "pay": pay,
                "tax": (pay * 0.3 + rng.normal(0, 100, n)).round(2),
                "ill": rng.choice(["yes", "no"], n),
            }
        ),
        keys=["age", "place"],
        sensitive="ill",
        identifiers="name",
    )


def plan():
    return Plan(
        [
            DropIdentifiers(),
            Band(breaks={"age": [30, 45, 60]}),
            Recode({"place": {SECRET_PLACE: "elsewhere"}}),
            AddNoise(columns=["pay"], level=0.5),
            LocalSuppression(k=3, missing="category"),
            ReorderRecords(),
        ]
    )


@pytest.fixture(scope="module")
def report():
    return document_plan(people(), plan(), "scientific-use-file", seed=987654321)


@pytest.fixture(scope="module")
def page(report):
    return render_release(report)


def test_the_verdict_on_the_release_stands_first_and_the_original_is_named(page):
    first = read_page(page).every("h2")[0].words
    assert "policy “Scientific use file”" in first
    assert "The original, for comparison: does not meet policy" in page


def test_every_step_is_there_with_its_settings_and_counts(page, report):
    words = read_page(page).words
    for number, step in enumerate(report.release.log, start=1):
        assert f"{number}. {step.treatment}" in words
    assert "age: 30, 45, 60" in words
    changed = report.release.log[1].changed_cells["age"]
    assert f"{changed:,} in age" in words


def test_risk_stands_side_by_side(page, report):
    rows = [
        [cell.words for cell in row.every("th", "td")]
        for table in read_page(page).every("table")
        if "Risk of the original" in table.words
        for row in table.every("tr")
    ]
    k = next(row for row in rows if "(k)" in row[0])
    assert k[1:3] == [str(report.before["k_anonymity"].value), str(report.after["k_anonymity"].value)]
    assert k[3] == "safer"


def test_the_cost_is_told_in_words_and_pictures(page, report):
    assert report.cost.meaning.replace(" %", "\N{NO-BREAK SPACE}%").replace("'", "&#39;") in page
    assert "What each column has lost" in page
    assert "“pay” before and after" in page
    assert "Correlations before and after" in page


def test_without_a_guarantee_the_page_says_that_there_is_none(page):
    assert "There is no formal guarantee" in page


def test_a_guarantee_is_told_and_its_limits_with_it():
    data = people()
    safe = SampleAndAnonymize(epsilon=2.0, delta=1e-3, keys=["place"])
    text = render_release(document_release(data, safe.apply(data)))
    assert "differential privacy" in text
    assert "this report holds no figure of the original" in text
    assert "300 →" not in text


def test_why_no_guarantee_is_claimed_is_told():
    data = people()
    safe = SampleAndAnonymize(epsilon=2.0, delta=1e-3, keys=["place"])
    assert "drawn from a seed" in render_release(document_release(data, safe.apply(data, seed=1)))


def test_neither_seed_nor_data_values_are_on_the_page(page, report):
    assert "987654321" not in page
    assert not any(str(step.internal["seed"]) in page for step in report.release.log)
    assert SECRET_PLACE not in page
    assert "person-7" not in page
    assert str(people().frame["pay"].max()) not in page


def test_values_are_shown_when_asked_for():
    shown = render_release(document_plan(people(), plan(), seed=1, show_values=True))
    assert SECRET_PLACE in shown
    assert "handle it like the data" in shown


def test_a_key_in_the_environment_stays_there(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a key for tests only, long enough")
    page = render_release(document_plan(people(), Plan([Pseudonymize()]), seed=1))
    assert os.environ["DISCREET_KEY"] not in page


def test_removed_and_reordered_records_are_followed(report):
    assert report.cost.parameters["aligned"] is True
    direct = document_release(people(), report.release)
    assert direct.cost.value <= report.cost.value


def test_the_documented_release_is_the_one_the_plan_gives(report):
    alone = plan().apply(people(), seed=987654321)
    assert alone.data.frame.equals(report.release.data.frame)
    assert [step.changed_cells for step in alone.log] == [step.changed_cells for step in report.release.log]


@pytest.mark.parametrize(
    "treatment",
    [
        OptimalGeneralization([KAnonymity(4)], suppression_limit=0.5, suppressed="remove", keys=["place"]),
        SampleAndAnonymize(epsilon=2.0, delta=1e-3, keys=["place"]),
        Mondrian(k=5),
        Pram(columns=["place"]),
        Microaggregate(k=3, columns=["pay", "tax"]),
        Shuffle(columns=["pay"], given=["age"]),
        RandomSwap(columns=["ill"], share=0.3),
        RankSwap(columns=["pay"], p=10),
        TopBottomCode(top_share={"pay": 0.05}),
    ],
    ids=lambda treatment: treatment.name,
)
@pytest.mark.slow
def test_following_the_records_does_not_change_the_release(treatment):
    followed = document_plan(people(), treatment, seed=5).release
    assert followed.data.frame.equals(Plan([treatment]).apply(people(), seed=5).data.frame)


def test_the_page_has_headings_in_order_and_alt_texts(page):
    document = read_page(page)
    levels = [int(heading.tag[1]) for heading in document.every("h1", "h2", "h3", "h4", "h5")]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    for picture in document.every("svg"):
        assert picture.attributes.get("role") == "img"
        assert picture.every("title") or picture.attributes.get("aria-label")
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded_from_elsewhere(page):
    assert not re.search(r'(?:src|href)="(?!#)[^"]*"', page)


def test_a_file_without_keys_has_a_page_too():
    data = Microdata(pl.DataFrame({"pay": [1, 12, 23, 34]}))
    report = document_plan(data, Band(widths={"pay": 10}), seed=1)
    assert report.before is None
    assert "No key columns were named" in render_release(report)


def test_a_release_whose_keys_are_gone_is_told_so():
    data = people()
    report = document_plan(data, DropIdentifiers(columns=["name", "age"]), "safe-setting", seed=1)
    assert any("'age'" in caveat for caveat in report.caveats)


def test_a_release_without_any_key_left_is_not_cleared():
    report = document_plan(people(), DropIdentifiers(columns=["age", "place"]), "safe-setting", seed=1)
    assert report.verdict.meets is False
    assert "othing is left of 'age', 'place'" in report.line
    assert "Does not meet policy" in render_release(report)


def test_an_untouched_file_costs_nothing_and_has_a_page():
    data = people()
    text = render_release(document_plan(data, Plan([]), seed=1))
    assert "Nothing was done to the file" in text
    assert "No column has lost anything" in text


def test_gaps_that_count_as_values_are_a_caveat():
    report = document_plan(people(), LocalSuppression(k=3, missing="wildcard"), seed=1)
    assert any("wildcard" in caveat for caveat in report.caveats)
    report = document_plan(people(), LocalSuppression(k=3), seed=1)
    assert not any("wildcard" in caveat for caveat in report.caveats)


def test_a_key_that_was_suppressed_in_every_record_is_named_and_the_rest_judged():
    number = np.arange(100)
    frame = pl.DataFrame({"age": number % 20, "job": number // 20, "town": number * 7 % 10})
    report = document_plan(Microdata(frame, keys=frame.columns), LocalSuppression(k=5), seed=1)
    assert report.after["k_anonymity"].value >= 5
    assert any("no longer has" in caveat for caveat in report.caveats)


def test_pandas_gives_the_same_page(report):
    frame = people()
    other = Microdata(frame.frame.to_pandas(), **frame.roles.to_dict())
    found = document_plan(other, plan(), "scientific-use-file", seed=987654321)
    assert found.cost.value == pytest.approx(report.cost.value)
    assert found.line == report.line


def test_the_report_is_ready_for_json(report):
    document = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert [step["treatment"] for step in document["steps"]] == [s.treatment for s in report.release.log]
    assert "internal" not in document["steps"][0]
    assert document["information_loss"]["value"] == report.cost.value


def test_a_missing_folder_is_refused(report, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        report.to_html(tmp_path / "nowhere" / "report.html")


def test_the_plot_of_the_loss_works(report):
    assert report.cost.plot().get_axes()
    assert charts_of(report.cost)[0].title == "What each column has lost"


def test_the_ends_of_a_distribution_are_named_only_when_asked_for(report):
    masked = [chart for chart in of_cost(report.cost) if hasattr(chart, "ends")]
    named = [chart for chart in of_cost(report.cost, show_values=True) if hasattr(chart, "ends")]
    assert masked[0].ends == ("smallest", "largest")
    assert named[0].ends != masked[0].ends


@settings(max_examples=examples(25), deadline=None)
@given(
    st.recursive(
        st.one_of(st.integers(), st.floats(allow_nan=False), st.just(SECRET_PLACE), st.booleans(), st.none()),
        lambda inside: st.one_of(
            st.lists(inside, max_size=4),
            st.dictionaries(st.sampled_from(["age", "place"]), inside, max_size=2),
        ),
        max_leaves=8,
    ).filter(lambda value: not isinstance(value, str))
)
def test_no_setting_tells_a_value_inside_a_list_or_table(value):
    assert SECRET_PLACE not in setting_words(value, frozenset({"age", "place"}), show_values=False)


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=40), st.integers(1, 20))
def test_the_shares_of_a_histogram_add_up_to_one(values, width):
    before = Microdata(pl.DataFrame({"x": values}))
    after = Microdata(pl.DataFrame({"x": [value // width * width for value in values]}))
    for chart in of_cost(information_loss(before, after, aligned=True)):
        for line in getattr(chart, "lines", ()):
            assert sum(line.values[:-1]) == pytest.approx(1)


def run(arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


@pytest.fixture
def on_disk(tmp_path):
    people().frame.write_parquet(tmp_path / "people.parquet")
    plan().save(tmp_path / "plan.toml")
    (tmp_path / "ours.toml").write_text(
        'name = "Ours"\n[rules]\n"uniqueness.unique_share" = { at_most = 0.2 }\n'
        '[comparison]\ndependence = { at_most = 0.1 }\n"attribution.learned" = { at_most = 0.4 }\n'
    )
    return [
        "protect", tmp_path / "people.parquet", "--plan", tmp_path / "plan.toml", "--keys", "age,place",
        "--sensitive", "ill", "--identifiers", "name", "--strata", "pay,tax", "--seed", "3",
    ]  # fmt: skip


def test_the_command_writes_release_and_report_tied_by_a_checksum(on_disk, tmp_path, monkeypatch, capsys):
    import hashlib

    out, html = tmp_path / "safe.parquet", tmp_path / "report.html"
    code = run([*on_disk, "--out", out, "--html", html, "--policy", tmp_path / "ours.toml"], monkeypatch)
    assert code == 0
    assert "Meets policy 'Ours' (3 checks passed)" in capsys.readouterr().out
    page = html.read_text(encoding="utf-8")
    assert hashlib.sha256(out.read_bytes()).hexdigest() in page
    assert SECRET_PLACE not in page
    assert pl.read_parquet(out).equals(plan().apply(people(), seed=3).data.frame)


def test_a_release_that_fails_the_policy_is_told_by_the_exit_code(on_disk, tmp_path, monkeypatch, capsys):
    code = run([*on_disk, "--out", tmp_path / "safe.parquet", "--policy", "public-use-file"], monkeypatch)
    assert code == 3
    assert "Does not meet policy" in capsys.readouterr().out


def test_the_command_prints_one_json_document(on_disk, tmp_path, monkeypatch, capsys):
    run(
        [*on_disk, "--out", tmp_path / "safe.parquet", "--policy", tmp_path / "ours.toml", "--json"],
        monkeypatch,
    )
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["meets"] is True
    assert [check["table"] for check in document["verdict"]["checks"]] == [
        "rules",
        "comparison",
        "comparison",
    ]
    assert document["information_loss"]["value"] > 0


def test_a_report_without_a_place_is_refused_before_anything_is_written(on_disk, tmp_path, monkeypatch):
    out = tmp_path / "safe.parquet"
    assert run([*on_disk, "--out", out, "--html", tmp_path / "no" / "report.html"], monkeypatch) == 2
    assert run([*on_disk, "--out", out, "--html", tmp_path / "report.txt"], monkeypatch) == 2
    assert run([*on_disk, "--out", out, "--log", out], monkeypatch) == 2
    assert run([*on_disk, "--out", out, "--policy", "no-such-policy"], monkeypatch) == 2
    assert not out.exists()
