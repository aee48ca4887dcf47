"""Any file is read or refused: odd dialects, encodings, types, names, and bytes that are no file at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import strategies as st

import discreet
from discreet import engine
from discreet.io import write
from fuzz.campaign import fuzzed
from fuzz.frames import FILES, File, frames
from fuzz.harness import command, refused_or_done

COMMANDS = (
    ("inspect", "{file}"),
    ("inspect", "{file}", "--json", "--no-write"),
    ("assess", "{file}", "--keys", "{first}"),
    ("assess", "{file}", "--keys", "{first}", "--sensitive", "{last}", "--html", "report.html"),
    ("risk", "reidentification", "{file}", "--keys", "{first}", "--json", "--detail", "records=r.csv"),
    ("preflight", "{file}", "--json", "--save-plan", "plan.toml"),
    ("synthesize", "{file}", "--out", "out.csv", "--method", "sample", "--seed", "1"),
    ("synthesize", "{file}", "--out", "out.parquet", "--seed", "1"),
    ("protect", "{file}", "--out", "out.parquet", "--step", '{treatment = "reorder-records"}', "--seed", "1"),
    (
        "protect",
        "{file}",
        "--out",
        "out.csv",
        "--keys",
        "{first}",
        "--step",
        '{treatment = "local-suppression", k = 2}',
    ),
    (
        "protect",
        "{file}",
        "--out",
        "out.xlsx",
        "--identifiers",
        "{first}",
        "--step",
        '{treatment = "drop-identifiers"}',
    ),
    ("compare", "{file}", "{file}", "--html", "report.html"),
    ("table", "audit", "{file}", "--table", "{first}", "--rule", "threshold=3"),
    ("table", "protect", "{file}", "--table", "{first}", "--rule", "threshold=3", "--out", "out.csv"),
)


@fuzzed(FILES, quick=50, share=0.15)
def test_a_file_is_read_or_refused(file: File) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / file.name
        place.write_bytes(file.content)

        def read_all() -> None:
            engine.collect(discreet.read(place))

        refused_or_done(read_all)


@fuzzed(st.tuples(FILES, st.sampled_from(COMMANDS)), quick=16, share=0.04)
def test_a_command_on_any_file_ends_by_its_codes(case: tuple[File, tuple[str, ...]]) -> None:
    file, arguments = case
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        here.mkdir()
        (here / file.name).write_bytes(file.content)
        named = {
            "{file}": file.name,
            "{first}": _quoted(file.columns[0]),
            "{last}": _quoted(file.columns[-1]),
        }
        command([named.get(part, part) for part in arguments], here)


def _quoted(name: str) -> str:
    """A column as it stands on a command line; what a shell cannot hand over is cut off."""
    plain = name.partition("\x00")[0].encode("utf-8", "replace").decode()
    return '"' + plain.replace('"', '""') + '"' if set(plain) & set(',"') else plain


@fuzzed(
    st.tuples(frames(), st.sampled_from(["csv", "parquet", "arrow", "xlsx", "sav", "dta", "csv.gz"])),
    quick=24,
    share=0.06,
)
def test_any_frame_is_written_whole_or_not_at_all(case) -> None:
    frame, suffix = case
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"out.{suffix}"
        done = refused_or_done(lambda: write(frame, place))
        assert [path.name for path in Path(folder).iterdir()] == ([] if done is None else [place.name])
