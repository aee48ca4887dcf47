from __future__ import annotations

import datetime
import hashlib
import json
import zipfile

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import InputError, ParameterError
from discreet.outputs import (
    OutputPolicy,
    Package,
    Session,
    append_decision,
    read_acro,
    read_decisions,
    verify_register,
    write_acro,
)
from discreet.outputs.register import Registered
from discreet.outputs.reviewing import register_of


@pytest.fixture
def session():
    frame = pl.DataFrame(
        {"sex": ["f"] * 40 + ["m"] * 44, "job": ["=a"] * 75 + ["b"] * 9, "pay": np.arange(84.0)}
    )
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    s = Session(data=frame, researcher="R. Searcher", project="P1", purpose="a paper", clock=lambda: moment)
    s.crosstab("sex", "job", name="jobs", comment="see <b>")
    s.summary("pay", "sex", statistics=["mean"], name="means")
    s.explain("jobs", "public knowledge")
    return s


def test_a_package_says_who_when_why_and_what(session, tmp_path):
    package = Package.load(session.save(tmp_path / "pack"))
    assert package.about["researcher"] == "R. Searcher"
    assert package.about["purpose"] == "a paper"
    assert package.status == "fail"
    assert package["jobs"]["exception"] == "public knowledge"
    assert package["jobs"]["findings"][0]["cells"]
    assert next(iter(package.tables("means").values())).columns == ["sex", "mean"]
    assert package.policy == session.policy
    assert "jobs" in str(package)
    document = json.loads((tmp_path / "pack" / "manifest.json").read_text(encoding="utf-8"))
    assert document["register"]["do_not_release"] is True


def test_the_same_session_gives_the_same_bytes(session, tmp_path):
    one, two = session.save(tmp_path / "a.zip"), session.save(tmp_path / "b.zip")
    assert one.read_bytes() == two.read_bytes()
    assert Package.load(one).outputs == Package.load(two).outputs


def test_a_changed_added_or_missing_file_is_noticed(session, tmp_path):
    folder = session.save(tmp_path / "pack")
    table = folder / "means_0.csv"
    before = table.read_text(encoding="utf-8")
    table.write_text(before.replace("f", "g"), encoding="utf-8")
    with pytest.raises(InputError, match="changed"):
        Package.load(folder)
    table.write_text(before, encoding="utf-8")
    Package.load(folder)
    (folder / "more.csv").write_text("x")
    with pytest.raises(InputError, match="not in its list"):
        Package.load(folder)
    (folder / "more.csv").unlink()
    table.unlink()
    with pytest.raises(InputError, match="missing"):
        Package.load(folder)


def test_a_zip_whose_names_point_elsewhere_is_refused(tmp_path):
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../manifest.json", "{}")
    with pytest.raises(InputError, match="points out"):
        Package.load(path)
    path.write_text("no zip")
    with pytest.raises(InputError, match="neither"):
        Package.load(path)
    with pytest.raises(InputError, match="no package"):
        Package.load(tmp_path / "none")


def test_nothing_is_overwritten_unasked(session, tmp_path):
    session.save(tmp_path / "pack")
    with pytest.raises(InputError, match="exists"):
        session.save(tmp_path / "pack")
    session.save(tmp_path / "pack", overwrite=True)
    precious = tmp_path / "precious"
    precious.mkdir()
    with pytest.raises(InputError, match="left as it is"):
        session.save(precious, overwrite=True)
    with pytest.raises(InputError, match="no outputs"):
        Session().save(tmp_path / "empty")


def test_the_workbook_has_status_symbols_flags_and_no_formulas(session, tmp_path):
    import openpyxl

    book = openpyxl.load_workbook(session.save(tmp_path / "pack") / "results.xlsx")
    assert book.sheetnames == ["status", "jobs", "means", "flags"]
    assert [row[0].value for row in book["status"].iter_rows(min_row=2)] == ["✗", "✓"]
    cells = [cell for row in book["jobs"].iter_rows() for cell in row]
    assert "conf_status" in [cell.value for cell in cells]
    assert "A" in [cell.value for cell in cells]
    assert all(cell.data_type != "f" for cell in cells)


def test_an_acro_folder_is_written_and_read(session, tmp_path):
    folder = write_acro(session, tmp_path / "acro")
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    entry = document["results"]["jobs"]
    assert set(entry) >= {"uid", "status", "type", "properties", "files", "outcome", "command", "summary", "timestamp",
                          "comments", "exception"}  # fmt: skip
    assert entry["files"][0]["sdc"]["summary"]["threshold"] == 1
    assert (folder / "checksums" / "results.json.txt").is_file()
    package = read_acro(folder)
    assert package["jobs"]["status"] == "fail"
    assert package.policy.threshold == 10
    # ACRO says pass; how many people are behind a mean, and who dominates it, its file does not.
    means = Package.load(folder)["means"]
    assert means["status"] == "review"
    assert {"check": "ACRO", "status": "pass"}.items() <= means["findings"][-1].items()
    (folder / "means_0.csv").write_text("changed")
    with pytest.raises(InputError, match="changed"):
        read_acro(folder)


def test_a_folder_as_acro_writes_it_is_read(tmp_path):
    sdc = {"summary": {"suppressed": True, "threshold": 1}, "cells": {"threshold": [[2, 2]], "p-ratio": []}}
    entry = {
        "uid": " odd name", "status": "review", "type": "table", "properties": {"method": "crosstab"},
        "files": [{"name": " odd name_0.csv", "sdc": sdc}], "outcome": {"usual": {"recommend": "threshold; "}},
        "command": "acro.crosstab(", "summary": "review; threshold: 1 cells suppressed; ",
        "timestamp": "2026-06-30T15:19:49.603861", "comments": [], "exception": "suppressed",
    }  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps({"version": "0.4.12", "results": {" odd name": entry}}))
    (tmp_path / " odd name_0.csv").write_text("a,b\n1,2\n")
    package = read_acro(tmp_path)
    found = package[" odd name"]["findings"][0]
    assert (found["check"], found["status"], found["cells"]) == ("low count", "review", [[2, 2]])
    assert package.about["version"] == "0.4.12"
    with pytest.raises(InputError, match=r"results\.json"):
        read_acro(tmp_path.parent)


def acro_folder(folder, tables, **config):
    results = {
        name: {
            "uid": name, "status": "pass", "type": "table", "properties": {"method": method},
            "files": [{"name": f"{name}.csv", "sdc": {"summary": {}, "cells": {}}}], "outcome": {}, "command": command,
            "summary": "pass", "timestamp": "", "comments": [], "exception": "",
        }
        for name, (method, command, _) in tables.items()
    }  # fmt: skip
    for name, (_, _, text) in tables.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "results.json").write_text(json.dumps({"version": "0.4.12", "results": results}))
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


MODEL = "Dep. Variable:,pay,R-squared:,0.4\nNo. Observations:,{n},AIC:,120\nDf Residuals:,{dof},BIC:,130\n"


@pytest.mark.parametrize(
    ("method", "command", "text", "status"),
    [
        ("crosstab", "acro.crosstab(a, b)", "sex,x,y\nf,40,44\nm,35,50\n", "pass"),
        ("crosstab", "acro.crosstab(a, b)", "sex,x,y\nf,40,4\nm,35,50\n", "fail"),
        ("crosstab", "acro.crosstab(a, b)", "sex,x,y\nf,40,0\nm,35,50\n", "fail"),
        (
            "crosstab",
            "acro.crosstab(a, b, values=c, aggfunc='mean')",
            "sex,x,y\nf,4.5,3.2\nm,5.1,5.0\n",
            "review",
        ),
        ("crosstab", "acro.crosstab(a, b, values=c, aggfunc='max')", "sex,max\nf,4.5\nm,5.1\n", "fail"),
        ("ols", "acro.ols(y, x)", MODEL.format(n=500, dof=490), "review"),
        ("ols", "acro.ols(y, x)", MODEL.format(n=12, dof=4), "fail"),
        ("pivot_table", "acro.pivot_table(d)", "sex,n,mean\nf,40,1.5\nm,6,1.2\n", "fail"),
    ],
)
def test_a_pass_of_acro_is_judged_anew(tmp_path, method, command, text, status):
    package = read_acro(acro_folder(tmp_path, {"one": (method, command, text)}))
    assert package["one"]["status"] == status


def test_weak_thresholds_unlisted_files_and_close_outputs_of_acro_are_found(tmp_path):
    table = "sex,x,y\nf,40,44\nm,35,50\n"
    folder = acro_folder(tmp_path, {"one": ("crosstab", "", table)}, safe_threshold=3)
    assert read_acro(folder)["one"]["status"] == "review"
    assert read_acro(folder, "research-data-centre")["one"]["status"] == "pass"
    tables = {"one": ("crosstab", "", table), "two": ("crosstab", "", table.replace("44", "42"))}
    (tmp_path / "config.json").unlink()
    (tmp_path / "extract.csv").write_text(
        "person_id,pay\n" + "".join(f"{i},{i * 7 % 11}\n" for i in range(20))
    )
    package = read_acro(acro_folder(tmp_path, tables))
    assert package["one"]["status"] == "pass"
    assert "differencing" in [f["check"] for f in package["two"]["findings"]]
    assert package["files that are not listed"]["status"] == "fail"


def test_a_register_is_chained_and_shows_tampering(tmp_path):
    file = tmp_path / "decisions.jsonl"
    for number in range(3):
        last = append_decision(file, output=f"o{number}", decision="accept", checker="C", note="fine")
    assert verify_register(file, last=last["hash"]) == 3
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1].replace("accept", "reject"), lines[2]]) + "\n")
    with pytest.raises(InputError, match="decision 2 was changed"):
        verify_register(file)
    file.write_text("\n".join([lines[0], lines[2]]) + "\n")
    with pytest.raises(InputError, match="does not follow"):
        verify_register(file)
    with pytest.raises(InputError, match="tampered"):
        append_decision(file, output="o", decision="accept", checker="C", note="fine")
    file.write_text("\n".join(lines[:2]) + "\n")
    assert verify_register(file) == 2
    with pytest.raises(InputError, match="does not end"):
        verify_register(file, last=last["hash"])
    file.write_text("nonsense\n")
    with pytest.raises(InputError, match="damaged"):
        read_decisions(file)


def test_many_writers_keep_one_chain(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    file = tmp_path / "decisions.jsonl"
    with ThreadPoolExecutor(6) as pool:
        done = [
            pool.submit(append_decision, file, output=f"o{i}", decision="accept", checker="C", note="fine")
            for i in range(12)
        ]
    assert [job.exception() for job in done] == [None] * 12
    assert verify_register(file) == 12


def test_with_a_key_only_its_holder_can_write_a_line_that_verifies(tmp_path, monkeypatch):
    file = tmp_path / "decisions.jsonl"
    monkeypatch.setenv("DISCREET_REGISTER_KEY", "secret")
    append_decision(file, output="o", decision="reject", checker="C", note="small counts")
    assert verify_register(file) == 1
    monkeypatch.setenv("DISCREET_REGISTER_KEY", "guess")
    with pytest.raises(InputError, match="changed"):
        verify_register(file)
    monkeypatch.delenv("DISCREET_REGISTER_KEY")
    with pytest.raises(InputError, match="keyed"):
        verify_register(file)


def test_only_what_passes_is_accepted_without_a_reason(session, tmp_path):
    register = register_of(session.save(tmp_path / "pack.zip"))
    append_decision(register, output="means", decision="accept", checker="C")
    for claim in (None, {"status": "pass"}):
        # The package beside the register says that it fails, whatever is claimed.
        with pytest.raises(ParameterError, match="although its status is 'fail'"):
            append_decision(register, output="jobs", decision="accept", checker="C", about=claim)
    with pytest.raises(ParameterError, match="Nothing says"):
        append_decision(tmp_path / "alone.jsonl", output="o", decision="accept", checker="C", note="  ")
    done = append_decision(register, output="jobs", decision="accept", checker="C", note="public since 2020")
    assert done["status"] == "fail"


def test_a_manifest_that_its_own_tables_contradict_does_not_clear(tmp_path):
    frame = pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 7, "pay": np.linspace(1, 2, 47)})
    with Session(data=frame) as s:
        s.crosstab("sex", name="jobs")
        s.summary("pay", "sex", statistics=["count", "mean"], name="pay")
        folder = s.save(tmp_path / "pack")
    manifest = folder / "manifest.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    for output in document["outputs"]:
        output.update(status="pass", findings=[])
    manifest.write_text(json.dumps(document), encoding="utf-8")
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"
        for file in sorted(folder.iterdir())
        if file.name != "checksums.txt"
    ]
    (folder / "checksums.txt").write_text("\n".join(lines) + "\n")
    assert [output["status"] for output in Package.load(folder)] == ["fail", "fail"]


def test_a_package_is_held_against_the_policy_of_the_checker(tmp_path):
    with Session(OutputPolicy(threshold=5), data=pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 7})) as s:
        s.crosstab("sex")
        folder = s.save(tmp_path / "pack")
    assert Package.load(folder).status == "pass"
    assert Package.load(folder, "research-data-centre").status == "fail"


def test_a_register_whose_bands_are_no_table_is_called_damaged():
    entry = {
        "name": "one",
        "population": {},
        "where": {},
        "by": [],
        "levels": [],
        "counts": [4.0],
        "edges": True,
    }
    with pytest.raises(InputError, match="damaged"):
        Registered.from_dict(entry)


@pytest.mark.parametrize("note", ["\U0001f600", "half of a sign \udcef", "two\nlines\x00"])
def test_a_register_takes_any_note_and_stays_whole(tmp_path, note):
    file = tmp_path / "register.jsonl"
    for _ in range(2):
        append_decision(file, output="o", decision="accept", checker="C", note=note)
    assert [line["note"] for line in read_decisions(file)] == [note, note]
    assert verify_register(file) == 2
