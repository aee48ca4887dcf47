"""A battery of bad outputs, none of which may pass, and of good ones, which must not fail.

The bad ones name the check that has to find them. The good ones are here so that the checker does not become useless by
failing everything: a finished file is never passed without a human, so for files the most that can be had is *review*.
"""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from discreet.outputs import check, check_many

rng = np.random.default_rng(17)


def microdata(rows=200, **more):
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], rows),
            "region": rng.choice(list("abcdefghi"), rows),
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(10, 0.5, rows).round(2),
            **more,
        }
    )


def csv(frame):
    return frame.write_csv()


DESCRIBED = """,age,income
count,400,400
mean,45.2,30000.5
std,12.1,9000.2
min,18,1200.5
25%,33,21000
50%,45,29000
75%,58,38000
max,94,812000.0
"""

BAD = {
    # frequencies
    "low count": ("t.csv", "region,n\nnorth,40\nsouth,3\n", "low count"),
    "low count under a letter": ("t.csv", "region,f,m\nnorth,4,44\nsouth,35,50\n", "low count"),
    "low count, semicolons": ("t.csv", "Region;Anzahl\nNord;40\nSüd;3\n", "low count"),
    "low count, thousands": ("t.csv", 'region,n\nnorth,"1,240"\nsouth,3\n', "low count"),
    "low count below a title": (
        "t.csv",
        "Table 2. People,,\n,,\nregion,women,men\nnorth,40,44\nsouth,35,4\n",
        "low count",
    ),
    "low count under merged headings": (
        "t.csv",
        "region,women,,men,\n,n,mean,n,mean\nnorth,40,3.1,50,2.2\nsouth,30,3.3,4,2.4\n",
        "low count",
    ),
    "n (%) in a cell": (
        "t.csv",
        "group,women,men\nsmoker,40 (40%),3 (5%)\nother,60 (60%),57 (95%)\n",
        "low count",
    ),
    "a count among others": ("t.csv", "region,n,ill\nnorth,400,120\nsouth,380,3\n", "low count"),
    "an indicator's total": ("t.csv", "region,n,total\nnorth,400,120\nsouth,180,3\n", "low total"),
    "empty cell": ("t.csv", "region,women,men\nnorth,40,0\nsouth,35,50\n", "empty cell"),
    "counts in rows": ("t.csv", "statistic,north,south\nn,40,6\nmean,3.1,2.9\n", "low count"),
    "counts of describe": ("t.csv", ",age\ncount,6\nmean,45.2\nstd,2.2\n", "low count"),
    "long table": ("t.csv", "sex,region,count\nf,n,40\nf,s,30\nm,n,50\nm,s,7\n", "low count"),
    "total below": ("t.csv", "region,women,men,Total\nnorth,*,*,8\nsouth,35,50,85\n", "low total"),
    "hidden but worked out": (
        "t.csv",
        "region,women,men,Total\nnorth,40,*,45\nsouth,35,50,85\nTotal,75,55,130\n",
        "margins",
    ),
    # shares
    "percent with n": ("t.csv", "region,n,percent ill\nnorth,400,30\nsouth,150,2\n", "numerator"),
    "almost everybody": ("t.csv", "region,n,share employed\nnorth,400,0.6\nsouth,150,0.98\n", "complement"),
    "percent with n in the heading": (
        "t.csv",
        "item,Women (n=150) %,Men (n=160) %\nill,2,30\nwell,98,70\n",
        "numerator",
    ),
    "percent with n in the title": (
        "t.csv",
        "Survey, n = 120,,\nitem,yes %,no %\nill,3.3,96.7\nrich,40,60\n",
        "numerator",
    ),
    "percent only with a total": (
        "t.csv",
        "answer,percent,n\nyes,97.5,\nno,2.5,\nTotal,100,200\n",
        "numerator",
    ),
    "mean of an indicator": ("t.csv", "region,n,mean\nnorth,400,0.30\nsouth,150,0.02\n", "numerator"),
    # endpoints
    **{
        f"endpoint {name}": ("t.csv", f"region,n,{name}\nnorth,400,18\nsouth,150,19.5\n", "endpoints")
        for name in (
            "min_income",
            "max",
            "Maximum age",
            "range",
            "p0",
            "P100",
            "mín",
            "Máximo",
            "Minimum",
            "income_max",
            "maxAge",
            "Höchster Wert",
            "kleinster",
            "0%",
            "100%",
            "lowest pay",
            "étendue",
            "Spannweite",
            "massimo",
        )
    },
    "describe": ("t.csv", DESCRIBED, "endpoints"),
    "describe, other way": (
        "t.csv",
        ",count,mean,std,min,25%,50%,75%,max\nage,400,45,12,18,33,45,58,94\n",
        "endpoints",
    ),
    "range in one cell": ("t.csv", "variable,n,range\nage,400,18-94\nincome,400,1200-812000\n", "endpoints"),
    "R summary": (
        "s.txt",
        "   Min. 1st Qu.  Median    Mean 3rd Qu.    Max.\n  18.00   33.00   45.00   45.20   58.00   94.00\n",
        None,
    ),
    "Stata summarize": (
        "s.log",
        "    Variable |        Obs        Mean    Std. dev.       Min        Max\n"
        "-------------+---------------------------------------------------------\n"
        "         age |        400       45.20    12.1            18         94\n",
        "endpoints",
    ),
    # quantiles, spread
    "percentiles of few": (
        "t.csv",
        "region,n,p10,p50,p90\nnorth,60,1,2,3\nsouth,400,1,2,3\n",
        "between quantiles",
    ),
    "percentiles of few, in rows": ("t.csv", ",north\ncount,60\n5%,1\n50%,2\n95%,3\n", "between quantiles"),
    "no spread": ("t.csv", "region,n,mean,sd\nnorth,40,3,0\nsouth,50,3.1,1.2\n", "no spread"),
    # survival
    "survival": (
        "t.csv",
        "time,at risk,events,survival\n1,100,3,0.97\n2,97,20,0.77\n3,60,30,0.4\n",
        "events",
    ),
    "survival by group": (
        "t.csv",
        "g,time,n.risk,n.event\na,1,100,40\na,2,60,30\nb,1,90,4\nb,2,60,30\n",
        "events",
    ),
    "tail": ("t.csv", "time,at risk,survival\n1,100,0.9\n2,60,0.5\n3,6,0.1\n", "tail"),
    # models
    "few degrees of freedom": (
        "t.csv",
        "statistic,value\nnobs,25\ndf_resid,9\nrsquared,0.4\n",
        "degrees of freedom",
    ),
    "perfect fit": ("t.csv", "statistic,value\nnobs,250\ndf_resid,240\nrsquared,1.0\n", "perfect fit"),
    "second model of a text": (
        "m.txt",
        "No. Observations: 500\nDf Residuals: 490\n\nNo. Observations: 12\nDf Residuals: 3\n",
        "degrees of freedom",
    ),
    "lm of R": (
        "m.txt",
        "Residual standard error: 2.1 on 7 degrees of freedom\nF-statistic: 3 on 2 and 7 DF\n",
        "degrees of freedom",
    ),
    "residuals": (
        "t.csv",
        "case,residual\n" + "".join(f"{i},{x:.3f}\n" for i, x in enumerate(rng.normal(size=30))),
        None,
    ),
    "odds ratio alone": ("t.csv", "exposure,odds ratio\nsmoke,2.25\ndrink,1.3\n", "table behind it"),
    "odds ratio with a small table": ("t.csv", "exposure,cases,controls\nyes,12,40\nno,8,60\n", "low count"),
    "perfect correlation": ("t.csv", ",a,b\na,1,1\nb,1,1\n", "perfect correlation"),
    # records
    "extract": ("t.csv", csv(microdata()), "records"),
    "extract with an index": ("t.csv", csv(microdata().with_row_index("")), "records"),
    "extract with an id": ("t.csv", csv(microdata(20).with_row_index("person_id", offset=1)), "records"),
    "extract of names": ("t.csv", csv(microdata(12, surname=[f"N{i}" for i in range(12)])), "records"),
    "sorted extract": ("t.csv", csv(microdata().sort("age")), "records"),
    "numbers only": (
        "t.csv",
        csv(microdata().select("age", "income").with_columns(h=pl.col("age") % 7)),
        "records",
    ),
    "a scatter plot's points": (
        "t.csv",
        csv(microdata().select("income", x=rng.normal(size=200))),
        "records",
    ),
    "records in JSON": ("t.json", json.dumps(microdata(60).to_dicts()), "records"),
    "an extract of totals": ("t.csv", csv(microdata().rename({"income": "total_income"})), "records"),
    "an extract of coordinates": (
        "t.csv",
        csv(pl.DataFrame(rng.normal(size=(40, 3)), schema=["x", "y", "value"])),
        "records",
    ),
    "a large extract": ("t.csv", csv(microdata(3000)), "records"),
    # other kinds of files
    "HTML": (
        "t.html",
        "<table><tr><th>region</th><th>n</th></tr><tr><td>a</td><td>40</td></tr>"
        "<tr><td>b</td><td>3</td></tr></table>",
        "low count",
    ),
    "LaTeX": (
        "t.tex",
        r"\begin{tabular}{lr} region & n \\ \hline north & 40 \\ south & 3 \\ \end{tabular}",
        "low count",
    ),
    "LaTeX maximum": (
        "t.tex",
        r"\begin{tabular}{lrr} region & Mean & Max \\ north & 40.5 & 99.5 \\ \end{tabular}",
        "endpoints",
    ),
    "Markdown": ("t.md", "| region | n |\n|---|---:|\n| north | 40 |\n| south | 3 |\n", "low count"),
    "text with gaps": ("t.txt", "region      n\nnorth      40\nsouth       3\n", "low count"),
    "an interactive graph": (
        "t.html",
        "<div></div><script>Plotly.newPlot('x', [{x: [1], y: [2]}])</script>",
        "file kind",
    ),
    "a vector graphic in a page": ("t.html", "<p>A</p><svg><circle cx='1' cy='2' r='3'/></svg>", "file kind"),
    "points of a graph in JSON": (
        "t.json",
        json.dumps({"data": [{"x": rng.normal(size=30).tolist(), "y": rng.normal(size=30).tolist()}]}),
        "records",
    ),
    "JSON columns": ("t.json", json.dumps({"region": ["a", "b"], "count": [40, 3]}), "low count"),
    "JSON rows": (
        "t.json",
        json.dumps([{"region": "a", "count": 40}, {"region": "b", "count": 3}]),
        "low count",
    ),
    "JSON nested": (
        "t.json",
        json.dumps({"a": {"n": 40, "max": 99}, "b": {"n": 50, "max": 98}}),
        "endpoints",
    ),
    "JSON scalars": ("t.json", json.dumps({"n": 400, "mean": 12.5, "maximum": 99.5}), "endpoints"),
}

GOOD = {
    "counts": ("t.csv", "region,n\nnorth,40\nsouth,35\n"),
    "cross table": ("t.csv", "region,women,men,Total\nnorth,40,44,84\nsouth,35,50,85\nTotal,75,94,169\n"),
    "means": ("t.csv", "region,n,mean,sd\nnorth,400,31.2,4.4\nsouth,350,30.1,4.9\n"),
    "shares": ("t.csv", "region,n,percent ill\nnorth,400,30\nsouth,350,20\n"),
    "quartiles": ("t.csv", "region,n,p25,p50,p75\nnorth,400,1,2,3\nsouth,350,1,2,3\n"),
    "years": ("t.csv", "year,n,mean\n" + "".join(f"{y},{100 + y - 1990},{3.1}\n" for y in range(1990, 2020))),
    "coefficients": (
        "t.csv",
        "term,coefficient,standard error,p-value\n"
        + "".join(f"x{i},{i / 7:.3f},0.1,0.04\n" for i in range(30)),
    ),
    "fine table": (
        "t.csv",
        "region,sex,age group,count\n"
        + "".join(f"r{r},{s},{a},{40 + r + a}\n" for r in range(20) for s in "fm" for a in range(5)),
    ),
    "wide fine table": (
        "t.csv",
        "town,women,men\n" + "".join(f"t{i},{50 + i},{60 + i}\n" for i in range(80)),
    ),
    "regions of countries": (
        "t.csv",
        "country,region,mean\n" + "".join(f"c{i // 8},r{i},{i / 3:.2f}\n" for i in range(40)),
    ),
    "series": ("t.csv", "month,index\n" + "".join(f"2020-{m:02d},{100 + m}\n" for m in range(1, 13))),
    "histogram": (
        "t.csv",
        "from,to,count\n" + "".join(f"{10 * i},{10 * i + 10},{50 + i}\n" for i in range(20)),
    ),
    "survival": ("t.csv", "time,at risk,events,survival\n1,200,40,0.8\n2,140,60,0.4\n3,60,20,0.2\n"),
    "model": ("m.txt", "No. Observations: 500\nDf Residuals: 490\nR-squared: 0.41\n"),
    "correlations": ("t.csv", ",a,b\na,1,0.4\nb,0.4,1\n"),
    "hidden in a square": (
        "t.csv",
        "region,women,men,other,total\nnorth,*,*,40,100\nsouth,*,*,50,130\nwest,60,70,80,210\ntotal,140,160,170,470\n",
    ),
    "minutes": ("t.csv", "region,n,minutes\nnorth,400,31.2\nsouth,350,30.1\n"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_does_not_pass(case, tmp_path):
    name, text, wanted = BAD[case]
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = check(tmp_path / name)
    failing = {finding.check for finding in found.findings if finding.status == "fail"}
    if wanted is None:
        assert found.status != "pass"
    else:
        assert wanted in failing, f"{case}: {found}"


@pytest.mark.parametrize("case", GOOD)
def test_a_good_file_does_not_fail(case, tmp_path):
    name, text = GOOD[case]
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = check(tmp_path / name)
    assert found.status == "review", f"{case}: {found}"


def test_no_finding_shows_a_value_unless_asked(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("town,n,maximum\nUnterhausen,4137,98765.4\nOberhausen,5,45678.9\n")
    shown = str(check(file)) + json.dumps(check(file).to_dict())
    assert not re.search(r"Unterhausen|Oberhausen|98765|45678", shown)
    assert "98765.4" in str(check(file, show_values=True))


def test_every_sheet_is_looked_at_and_cells_are_named_by_their_address(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    first = book.active
    first.title = "People"
    first["B3"], first["C3"], first["D3"] = "region", "women", "men"
    for row, values in enumerate((("north", 40, 44), ("south", 35, 4)), start=4):
        for column, value in zip("BCD", values, strict=True):
            first[f"{column}{row}"] = value
    hidden = book.create_sheet("Extremes")
    hidden.sheet_state = "hidden"
    hidden.append(["region", "n", "max pay"])
    hidden.append(["north", 400, 99.5])
    book.save(tmp_path / "t.xlsx")
    found = check(tmp_path / "t.xlsx")
    places = {f.check: [str(p) for p in f.places] for f in found.findings if f.status == "fail"}
    assert places["low count"] == ["People!D5, column 'men'"]
    assert places["endpoints"] == ["Extremes!C2, column 'max pay'"]
    assert all("Sheet '" in f.reason for f in found.findings if f.status == "fail")


def test_the_records_behind_a_pivot_table_are_found(tmp_path):
    import zipfile

    pl.DataFrame({"region": ["n", "s"], "count": [40, 50]}).write_excel(tmp_path / "t.xlsx")
    assert check(tmp_path / "t.xlsx").status == "review"
    with zipfile.ZipFile(tmp_path / "t.xlsx", "a") as archive:
        archive.writestr("xl/pivotCache/pivotCacheRecords1.xml", "<x/>")
    assert "hidden content" in [f.check for f in check(tmp_path / "t.xlsx").findings if f.status == "fail"]


@pytest.mark.parametrize("ending", ["parquet", "csv.gz", "dta", "sav", "feather"])
def test_records_are_found_in_files_of_other_programs(tmp_path, ending):
    import gzip

    file, frame = tmp_path / f"extract.{ending}", microdata()
    if ending == "csv.gz":
        file.write_bytes(gzip.compress(frame.write_csv().encode()))
    elif ending in ("parquet", "feather"):
        getattr(frame, {"parquet": "write_parquet", "feather": "write_ipc"}[ending])(file)
    else:
        pyreadstat = pytest.importorskip("pyreadstat")
        getattr(pyreadstat, f"write_{ending}")(frame.to_pandas(), str(file))
    assert [(f.check, f.status) for f in check(file).findings] == [("records", "fail")]


def test_files_on_almost_the_same_people_are_for_a_human(tmp_path):
    (tmp_path / "a.txt").write_text("No. Observations: 1000\nDf Residuals: 990\n")
    (tmp_path / "b.txt").write_text("No. Observations: 999\nDf Residuals: 989\n")
    (tmp_path / "c.txt").write_text("No. Observations: 400\nDf Residuals: 390\n")
    (tmp_path / "d.csv").write_text("region,n\nnorth,400\nsouth,350\n")
    (tmp_path / "e.csv").write_text("region,n\nnorth,397\nsouth,350\n")
    found = {path.name: result for path, result in check_many([tmp_path]).items()}
    close = {name for name, r in found.items() if any(f.check == "differencing" for f in r.findings)}
    assert close == {"b.txt", "e.csv"}
