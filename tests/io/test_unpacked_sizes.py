"""Files that unpack to gigabytes, headers without end and numbers of 400 digits are refused for what they are."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zipfile

import polars as pl
import pytest

import discreet
from discreet import Microdata, dp, outputs
from discreet.core.errors import DiscreetError, InputError
from discreet.core.files import untrusted
from discreet.core.files.untrusted import parsed_json, parsed_toml
from discreet.hierarchy import Hierarchy
from discreet.policy import Policy
from discreet.synth import Independent, load

DIGITS = "1" * 400


def workbook(path, *, blown=b"", lying=False):
    """A workbook one of whose parts holds a long text that nobody uses."""
    pl.DataFrame({"a": [1.5, 2.0], "b": ["x", "y"]}).write_excel(path)
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts["xl/sharedStrings.xml"] = parts["xl/sharedStrings.xml"].replace(b"</sst>", blown + b"</sst>")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            book.writestr(name, content)
    if lying:
        true, told = (struct.pack("<I", size) for size in (len(parts["xl/sharedStrings.xml"]), 2_000))
        assert path.read_bytes().count(true) == 2
        path.write_bytes(path.read_bytes().replace(true, told))
    return path


@pytest.mark.parametrize("lying", [False, True])
def test_a_workbook_that_unpacks_without_end_is_refused_though_it_lies_about_it(tmp_path, monkeypatch, lying):
    pytest.importorskip("fastexcel")
    blown = b"<si><t>" + b"a" * 5_000_000 + b"</t></si>"
    path = workbook(tmp_path / "people.xlsx", blown=blown, lying=lying)
    if not lying:
        assert discreet.read(path).schema
    monkeypatch.setattr(untrusted, "_ALWAYS_TAKEN", 1 << 20)
    with pytest.raises(InputError, match="unpacks to more than"):
        discreet.read(path)
    assert outputs.check(path).status != "pass"


def test_a_model_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.discreet"
    Independent().fit(Microdata(pl.DataFrame({"a": [1, 2, 3] * 10})), seed=1).save(path)
    assert load(path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as box:
        box.writestr("parts/more.npy", b"\0" * (4 << 20))
    monkeypatch.setattr(untrusted, "_ALWAYS_TAKEN", 1 << 20)
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("members", [1, 3])
def test_a_gzipped_text_that_unpacks_without_end_is_refused(tmp_path, monkeypatch, members):
    monkeypatch.setattr(untrusted, "_ALWAYS_TAKEN_TEXT", 64 << 20)
    path = tmp_path / "people.csv.gz"
    block = b"1,2\n" * 4_000_000
    with path.open("wb") as file:
        for _ in range(members):
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=9) as packed:
                packed.write(b"a,b\n")
                for _ in range(6 // members):
                    packed.write(block)
    with pytest.raises(InputError, match="unpacks to more than"):
        discreet.read(path)


def test_a_gzipped_text_that_shrinks_well_is_read(tmp_path):
    path = tmp_path / "people.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 1_000_000)
    assert discreet.read(path).frame.select(pl.len()).collect().item() == 1_000_000


def test_the_header_of_a_wide_file_is_read_whole(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"a column whose name takes its time to be read and is number {at}" for at in range(6_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert path.stat().st_size > 300_000
    assert list(discreet.read(path, text=names).schema) == names


@pytest.mark.parametrize("many", [20_001, 100_000])
def test_too_many_columns_are_refused_as_too_many_columns(tmp_path, many):
    path = tmp_path / "wide.csv"
    path.write_text(
        ",".join(f"c{at}" for at in range(many)) + "\n" + ",".join("1" for _ in range(many)) + "\n"
    )
    with pytest.raises(InputError, match="more than 20,000 columns"):
        discreet.read(path)


def test_a_first_line_without_end_is_refused_as_that(tmp_path):
    path = tmp_path / "line.csv"
    path.write_text("a" * 6_000_000)
    with pytest.raises(InputError, match="4,194,304 characters"):
        discreet.read(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda: parsed_toml(f"at_least = {DIGITS}"),
        lambda: parsed_toml(f"a = [[{DIGITS}]]"),
        lambda: parsed_json(f'{{"a": {{"b": {DIGITS}}}}}'),
    ],
)
def test_a_number_that_no_float_holds_is_a_fault_of_the_text(call):
    with pytest.raises(ValueError, match="more than 300 digits"):
        call()


def test_a_policy_with_endless_digits_is_refused(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(f'name = "x"\n[rules]\nk_anonymity = {{ at_least = {DIGITS}, why = "x" }}\n')
    with pytest.raises(InputError, match="300 digits"):
        Policy.load(path)


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", f"{DIGITS}.5", "1e400", "-2.5E+0999"])
def test_a_number_that_no_float_holds_stays_a_text_and_does_not_become_infinite(tmp_path, number):
    path = tmp_path / "people.csv"
    path.write_text(f"a,b\n{number},2\n3,4\n")
    data = discreet.read(path, keys=["a", "b"])
    assert data.frame.collect()["a"].to_list() == [number, "3"]
    assert discreet.assess(data, progress=False).measures


HUGE = 10**400


@pytest.mark.parametrize(
    "call",
    [
        lambda: dp.Ledger(epsilon=HUGE),
        lambda: dp.checked_epsilon(HUGE),
        lambda: dp.SparseVector(5, epsilon=1.0, sensitivity=HUGE),
        lambda: dp.SparseVector(5, epsilon=1.0, sensitivity=1, max_found=HUGE),
        lambda: discreet.protect.lapgraph_expected_recall(HUGE, 5, 1.0),
        lambda: discreet.protect.sampling_plan(HUGE, 1e-6),
        lambda: Hierarchy.from_tree({"all": [HUGE]}),
        lambda: discreet.synth.finish(Microdata(pl.DataFrame({"a": [1]})), label=HUGE),
        lambda: discreet.synth.choose_order(Microdata(pl.DataFrame({"a": [1]})), block_threshold=HUGE),
        lambda: discreet.utility.ModelFit(("x",), [HUGE], [[1.0]]),
    ],
)
def test_a_parameter_of_four_hundred_digits_is_refused_by_name(call):
    with pytest.raises(DiscreetError):
        call()
