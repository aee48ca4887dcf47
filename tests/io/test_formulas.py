"""No text of a guarded file is computed by a spreadsheet, and nothing else is changed."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.io import write
from discreet.io.delimited import computes, guarded

TEXTS = ["=1+1", "=HYPERLINK(A1)", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "＝1"]
HARMLESS = ["-5", "+3.25", "-1,5", "-1e5", "-5%", "plain", "a=b", "", None]


@given(st.lists(st.text(min_size=1, max_size=6) | st.sampled_from(TEXTS), min_size=1))
def test_no_guarded_text_is_computed_and_every_text_can_be_had_back(texts):
    made = guarded(pl.LazyFrame({"a": texts})).collect()["a"].to_list()
    assert not any(computes(text) for text in made)
    assert [
        new.removeprefix("'") if computes(old) else new for old, new in zip(texts, made, strict=True)
    ] == texts


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_names_and_texts_are_guarded_in_text_files_and_numbers_are_not(tmp_path, dtype):
    frame = pl.DataFrame({"=name": pl.Series([*TEXTS, *HARMLESS]).cast(dtype), "n": [-1.5] * 16})
    plain = write(frame, tmp_path / "plain.csv").read_text(encoding="utf-8")
    assert plain.startswith("=name,n\n=1+1,-1.5")
    found = pl.read_csv(write(frame, tmp_path / "safe.csv", guard_formulas=True))
    assert found.columns == ["'=name", "n"]
    texts = found["'=name"].to_list()
    assert texts[: len(TEXTS)] == [f"'{text}" for text in TEXTS]
    assert texts[len(TEXTS) : -2] == HARMLESS[:-2]
    assert found["n"].to_list() == frame["n"].to_list()


def test_cells_of_a_guarded_workbook_are_marked_as_texts_and_keep_their_values(tmp_path):
    import openpyxl

    frame = pl.DataFrame({"a": TEXTS, "n": [1.5] * len(TEXTS)})
    for guards in (False, True):
        path = write(frame, tmp_path / f"{guards}.xlsx", guard_formulas=guards)
        sheet = openpyxl.load_workbook(path).active
        cells = [row[0] for row in sheet.iter_rows(min_row=2)]
        assert [cell.value for cell in cells] == TEXTS
        assert {cell.data_type for cell in cells} == {"s"}
        assert {cell.quotePrefix for cell in cells} == {guards}


def test_two_columns_that_would_get_one_name_are_refused():
    with pytest.raises(ParameterError, match="Rename one of them"):
        guarded(pl.LazyFrame({"=a": [1], "'=a": [2]}))


def test_a_package_for_review_is_guarded(tmp_path):
    from discreet.outputs import Session

    frame = pl.DataFrame({"job": ["=cmd()"] * 40 + ["clerk"] * 40})
    session = Session(data=frame)
    session.crosstab("job")
    folder = session.save(tmp_path / "package")
    for file in folder.glob("*.csv"):
        cells = [cell for line in file.read_text(encoding="utf-8").splitlines() for cell in line.split(",")]
        assert not any(computes(cell) for cell in cells)
    assert "'=cmd()" in (folder / "output_1_0.csv").read_text(encoding="utf-8")
