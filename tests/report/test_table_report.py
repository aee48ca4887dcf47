"""The report of a protected table."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, datasets
from discreet.core.errors import InputError
from discreet.report.table_report import render_table_report, write_table_report
from discreet.tables import ControlledRounding, NoisyCounts, Suppression, Table, Threshold, Zeros, primary


@pytest.fixture(scope="module")
def table():
    hierarchies = {"region": ["county", "k_group"]}
    return Table.from_microdata(
        datasets.social_assistance(), "region*main_income", count="freq", hierarchies=hierarchies
    )


@pytest.fixture(scope="module")
def suppressed(table):
    return Suppression().apply(primary(table, Threshold.up_to(3)))


def test_the_pattern_and_the_audit_are_shown(suppressed):
    page = render_table_report(suppressed)
    secret = int(suppressed.table.cells["primary"].sum())
    assert page.count('<td class="primary">') == secret
    assert page.count('<td class="secondary">') == len(suppressed.secondary)
    assert "The audit found nothing" in page
    assert "leave every primary cell more than one value" in page
    assert "not tested" not in page


def test_what_the_audit_did_not_test_stands_in_the_heading(table):
    page = render_table_report(Suppression(intervals=False).apply(primary(table, Threshold.up_to(3))))
    assert "The audit found nothing; intervals were not tested" in page
    assert "How closely the published cells bound" in page


def test_true_values_are_shown_only_when_asked_for(table):
    made = ControlledRounding(base=5).apply(table)
    assert 'class="was"' not in render_table_report(made)
    open_page = render_table_report(made, show_values=True)
    assert open_page.count('class="was"') == made.information.figures["changed"]
    assert "handle it like the data" in open_page


def test_suppressed_values_do_not_stand_in_the_report():
    frame = pl.DataFrame({"a": ["x"] * 7777 + ["y"] * 3331 + ["z"] * 2, "b": (["u", "v"] * 6000)[:11110]})
    flagged = primary(Table.from_microdata(frame, "a*b"), Threshold(2000))
    page = render_table_report(Suppression().apply(flagged))
    hidden = flagged.cells.filter(pl.col("primary") & (pl.col("count") > 1000))["count"].to_list()
    assert len(hidden) > 1
    assert not any(f">{count:,}<" in page for count in hidden)


def test_guarantees_and_their_lack_are_said(table):
    people = pl.DataFrame({"sex": ["f", "m"] * 40})
    given = Table.from_microdata(people, "sex", hierarchies={"sex": {"All": ["f", "m"]}}, zeros="all")
    sure = NoisyCounts(epsilon=1, domain="public").apply(given)
    assert "1-differential privacy" in render_table_report(sure)
    assert "no formal guarantee" in render_table_report(NoisyCounts(epsilon=1).apply(table, seed=1))


def test_codes_that_look_like_markup_are_escaped(tmp_path):
    frame = pl.DataFrame({"a": ["<script>alert(1)</script>", "b"] * 5})
    made = ControlledRounding(base=3).apply(Table.from_microdata(frame, "a"))
    path = made.to_html(tmp_path / "t.html")
    assert "<script>alert" not in path.read_text(encoding="utf-8")


def test_several_linked_tables_and_long_ones_are_laid_out():
    frame = pl.DataFrame({"a": list(range(100)) * 3, "b": ["x", "y", "z"] * 100, "c": list(range(20)) * 15})
    page = render_table_report(ControlledRounding(base=3).apply(Table.from_microdata(frame, "a*b + b*c")))
    assert page.count('<table class="pattern">') == 2
    assert "more rows" in page
    assert "more columns" in page


def test_a_folder_that_is_not_there_is_refused(table, tmp_path):
    with pytest.raises(InputError):
        write_table_report(ControlledRounding(base=5).apply(table), tmp_path / "no" / "t.html")


def test_cells_of_a_table_are_called_cells_and_not_groups_of_records():
    table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 7 + ["b"] * 4}), "place")
    page = render_table_report(Suppression().apply(primary(table, Threshold(5))))
    assert ">Groups<" not in page
    assert "Left out to protect them (secondary)" in page


def test_the_rule_is_named_and_published_cells_are_those_that_go_out():
    people = pl.DataFrame(
        {
            "place": ["a"] * 9 + ["b"] * 8 + ["c"] * 9,
            "sex": (["f"] * 8 + ["m"]) + ["f", "m"] * 4 + ["f"] * 5 + ["m"] * 4,
        }
    )
    result = Suppression().apply(primary(Table.from_microdata(people, "place*sex"), Threshold(3), Zeros()))
    page = render_table_report(result)
    out = int((result.published["status"] == "published").sum())
    assert "<dt>Sensitive by</dt><dd>threshold(3), " in page
    assert f"<dt>Published cells</dt><dd>{out}</dd>" in page
    assert f"<dt>Left out</dt><dd>{result.published.height - out}</dd>" in page
    assert f"{out} are published" in result.summary()
    assert result.to_dict()["rules"] == list(result.table.rules)


def test_groups_stand_above_what_they_hold_and_further_out():
    from discreet.report.table_report import sheets_of

    people = pl.DataFrame(
        {"place": ["a", "b", "c", "c"], "region": ["X", "X", "Y", "Y"], "sex": ["f", "m", "f", "m"]}
    )
    table = Table.from_microdata(Microdata(people), "place*sex", hierarchies={"place": "region"})
    values = table.cells[table.value].cast(pl.Float64).to_numpy()
    (sheet,) = sheets_of(table, values, [None] * len(values), show_values=True)
    assert [names for names, _ in sheet.rows] == [
        (("Total", 0),), (("X", 1),), (("a", 2),), (("b", 2),), (("Y", 1),), (("c", 2),),
    ]  # fmt: skip
