from __future__ import annotations

import json
import pickle

import polars as pl
import pytest

from discreet.core.errors import InputError
from discreet.outputs import check

SUMMARY = """
                            OLS Regression Results
Dep. Variable:                    pay   R-squared:                       {r2}
No. Observations:                 {n}   AIC:                             1200.
Df Residuals:                     {dof}   BIC:                             1210.
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_low_counts_in_a_table_fail(tmp_path):
    found = check(
        write(tmp_path / "t.csv", "region,women,men,total\nnorth,40,7,47\nsouth,35,50,85\ntotal,75,57,132\n")
    )
    assert found.status == "fail"
    assert found.cells("low count") == ((0, 1),)


def test_a_table_without_small_counts_still_needs_a_human(tmp_path):
    found = check(write(tmp_path / "t.csv", "region,n\nnorth,40\nsouth,35\n"))
    assert found.status == "review"
    assert not found.cells()


@pytest.mark.parametrize("sign", ["", "*", "x", "<10", "c"])
def test_a_suppressed_cell_that_follows_from_totals_fails(tmp_path, sign):
    text = f"region,women,men,total\nnorth,40,{sign},47\nsouth,35,50,85\ntotal,75,57,132\n"
    assert check(write(tmp_path / "t.csv", text)).cells("margins")


def test_cells_suppressed_in_a_square_do_not(tmp_path):
    text = "region,women,men,other,total\nnorth,*,*,40,100\nsouth,*,*,50,130\n"
    text += "west,60,70,80,210\ntotal,140,160,170,470\n"
    assert not check(write(tmp_path / "t.csv", text)).cells("margins")


def test_means_beside_counts_are_for_a_human(tmp_path):
    found = check(write(tmp_path / "t.csv", "region,count,mean\nnorth,40,3.25\nsouth,35,2.5\n"))
    assert "other numbers" in [f.check for f in found.findings]


def test_excel_is_read(tmp_path):
    path = tmp_path / "t.xlsx"
    pl.DataFrame({"region": ["n", "s"], "count": [40, 3]}).write_excel(path)
    assert check(path).status == "fail"


def test_rows_that_an_identifier_names_are_records(tmp_path):
    text = "id,count\n" + "".join(f"p{i},{i}\n" for i in range(600))
    found = check(write(tmp_path / "t.csv", text))
    assert (found.status, [f.check for f in found.findings]) == ("fail", ["records"])


@pytest.mark.parametrize(("dof", "status"), [(9, "fail"), (10, "review")])
def test_model_summaries_are_judged_by_their_degrees_of_freedom(tmp_path, dof, status):
    text = SUMMARY.format(r2="0.41", n=dof + 16, dof=dof)
    assert check(write(tmp_path / "m.txt", text)).status == status


def test_other_programs_are_understood(tmp_path):
    r = write(tmp_path / "r.txt", "Residual standard error: 2.1 on 7 degrees of freedom")
    assert check(r).status == "fail"
    stata = write(tmp_path / "s.log", "Number of obs =          8")
    assert check(stata).status == "fail"
    made = write(tmp_path / "m.json", json.dumps({"fit": {"df_resid": 400, "rsquared": 1.0}}))
    assert check(made).status == "fail"
    listed = write(tmp_path / "n.json", json.dumps({"df_resid": 400, "residuals": [0.1, 0.2]}))
    assert "values per person" in [f.check for f in check(listed).findings]


def test_a_real_statsmodels_summary_is_read(tmp_path):
    import numpy as np
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    fitted = sm.OLS(rng.normal(size=14), sm.add_constant(rng.normal(size=(14, 5)))).fit()
    file = write(tmp_path / "m.txt", str(fitted.summary()))
    assert check(file).findings[0].figures == {"dof": 8.0}


def test_pickles_are_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    file = tmp_path / "model.pkl"
    file.write_bytes(pickle.dumps(Trap()))
    assert check(file).status == "fail"
    hidden = tmp_path / "model.json"
    hidden.write_bytes(pickle.dumps(Trap()))
    assert check(hidden).status == "review"


def test_unknown_kinds_and_text_without_figures_are_for_a_human(tmp_path):
    assert check(write(tmp_path / "a.dat", "?")).status == "review"
    assert check(write(tmp_path / "a.txt", "we find a strong effect")).status == "review"
    assert check(write(tmp_path / "a.csv", "")).status == "review"
    with pytest.raises(InputError, match="no file"):
        check(tmp_path / "none.csv")


def test_a_table_with_one_row_a_cell_is_laid_out_before_its_margins_are_judged(tmp_path):
    lines = ["region,sex,count,status"]
    counts = {("n", "f"): "", ("n", "m"): "", ("s", "f"): "", ("s", "m"): "", ("w", "f"): 40, ("w", "m"): 60}
    for (region, sex), count in counts.items():
        lines.append(f"{region},{sex},{count},{'suppressed' if count == '' else 'published'}")
    for region, total in (("n", 70), ("s", 80), ("w", 100)):
        lines.append(f"{region},Total,{total},published")
    lines += ["Total,f,120,published", "Total,m,130,published", "Total,Total,250,published"]
    file = tmp_path / "cells.csv"
    file.write_text("\n".join(lines) + "\n")
    found = {finding.check: finding.status for finding in check(file).findings}
    assert found["margins"] == "pass"
    lone = tmp_path / "lone.csv"
    lone.write_text("\n".join(line.replace("s,f,,suppressed", "s,f,30,published") for line in lines) + "\n")
    found = {finding.check: finding.status for finding in check(lone).findings}
    assert found["margins"] == "fail"
