"""A package or a register that was tampered with is refused, or says what it holds: never a trace."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st

from discreet.outputs import Package, Session, append_decision, read_decisions, verify_register
from discreet.report.short_reports import review_page
from fuzz.campaign import fuzzed
from fuzz.documents import changed
from fuzz.frames import spoilt
from fuzz.harness import refused_or_done


@functools.cache
def parts() -> dict[str, bytes]:
    """A package as a session writes it."""
    frame = pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 15, "pay": range(55)})
    with tempfile.TemporaryDirectory() as folder, Session(data=frame, researcher="R") as session:
        session.crosstab("sex", name="one")
        session.crosstab("sex", name="two", comment="why")
        place = session.save(Path(folder) / "pack.zip")
        with zipfile.ZipFile(place) as box:
            return {item.filename: box.read(item) for item in box.infolist()}


@st.composite
def packages(draw: st.DrawFn) -> bytes:
    """A package with a changed manifest, parts that are not its own, or spoilt bytes; checksums made anew or not."""
    made = dict(parts())
    how = draw(st.sampled_from(["manifest", "manifest", "manifest", "part", "gone", "added", "bytes"]))
    if how == "manifest":
        try:
            made["manifest.json"] = json.dumps(draw(changed(json.loads(made["manifest.json"])))).encode()
        except (TypeError, ValueError):
            made["manifest.json"] = b"[" * 100_000
    elif how == "part":
        name = draw(st.sampled_from(sorted(made)))
        made[name] = draw(spoilt(made[name]))
    elif how == "gone":
        del made[draw(st.sampled_from(sorted(made)))]
    elif how == "added":
        made[
            draw(st.sampled_from(["../../x", "/x", "a\\b", ".", "manifest.json/x", "a\u2028b", "x" * 300]))
        ] = b"x"
    if draw(st.booleans()) and "checksums.txt" in made:
        lines = [
            f"{hashlib.sha256(content).hexdigest()}  {name}"
            for name, content in made.items()
            if name != "checksums.txt"
        ]
        made["checksums.txt"] = ("\n".join(lines) + "\n").encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as box:
        for name, content in made.items():
            box.writestr(name, content)
    return draw(spoilt(stream.getvalue())) if how == "bytes" else stream.getvalue()


@fuzzed(packages(), quick=24, share=0.03)
def test_a_tampered_package_is_refused_or_shown(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "pack.zip"
        place.write_bytes(content)

        def shown() -> None:
            package = Package.load(place)
            text = review_page(package, {}, form_token="t", nonce="n", checker="c")
            assert "<script" not in text
            str(package)

        refused_or_done(shown)
        assert [path.name for path in Path(folder).iterdir()] == ["pack.zip"]


_NOTES = st.one_of(
    st.text(max_size=20), st.sampled_from(["\u2028", "a\u0085b", "\x0c", "\r", "x\ny", "\x00", '"}'])
)


@fuzzed(st.tuples(st.lists(_NOTES, min_size=1, max_size=3), st.booleans(), st.data()), quick=15, share=0.02)
def test_a_register_holds_any_note_and_refuses_what_was_changed(case: Any) -> None:
    notes, tamper, data = case
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "d.jsonl"
        common = {"output": "one", "decision": "reject", "checker": "C", "about": {"status": "pass"}}
        for note in notes:
            append_decision(place, note=f"why {note}", **common)
        assert verify_register(place) == len(notes)
        assert [entry["note"] for entry in read_decisions(place)] == [f"why {note}".strip() for note in notes]
        if tamper:
            before = place.read_bytes()
            place.write_bytes(data.draw(spoilt(before)))
            refused_or_done(lambda: verify_register(place))
