"""Write SPSS, Stata and SAS transport files with their labels, missing codes, measures and formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError, InputError, load_extra
from discreet.core.wording import type_name
from discreet.io.labelled import TRUTH_LABELS
from discreet.microdata import Metadata

# Where the formats keep the time of writing, and what stands there instead: the same data give the same bytes.
_HEADER = 4096
_TIMES = {
    "spss": ((92, rb"\d\d \w{3} \d\d\d\d:\d\d:\d\d", b"01 Jan 7000:00:00"),),
    "stata": ((None, rb"(?<=<timestamp>\x11)\d\d \w{3} \d{4} \d\d:\d\d", b"01 Jan 1970 00:00"),),
    "xport": tuple(
        (place, rb"\d\d[A-Z]{3}\d\d:\d\d:\d\d:\d\d", b"01JAN70:00:00:00") for place in (144, 160, 464, 480)
    ),
}
_STATA_WHOLE = (-2_147_483_647, 2_147_483_620)


def write_labelled(frame: pl.DataFrame, path: Path, kind: str, metadata: Metadata) -> None:
    """Write a frame as ``"spss"``, ``"stata"`` or ``"xport"``; categories become codes with labels."""
    if kind == "sas":
        raise InputError(
            f"'{path.name}' cannot be written: discreet reads .sas7bdat but nobody outside SAS writes it reliably. "
            "Write .xpt, .sav or .parquet instead."
        )
    pyreadstat = load_extra("pyreadstat", extra="files", purpose=f"Writing {path.suffix}")
    frame, labels = _coded(frame, metadata)
    _check_types(frame, path)
    there = set(frame.columns)
    common: dict[str, Any] = {"column_labels": _only(metadata.column_labels, there)}
    if kind == "spss":
        pyreadstat.write_sav(
            frame,
            str(path),
            **common,
            variable_value_labels=labels,
            missing_ranges=_missing_ranges(frame, metadata),
            variable_measure=_parts(metadata, "measure", there),
            variable_display_width=_parts(metadata, "display_width", there),
            variable_format=_spss_formats(frame, metadata),
            row_compress=path.suffix.lower() == ".sav",
            compress=path.suffix.lower() == ".zsav",
        )
        _check_whole(pyreadstat, path, frame.height)
    elif kind == "stata":
        pyreadstat.write_dta(
            _stata_numbers(frame), str(path), **common, variable_value_labels=_whole_only(labels)
        )
    else:
        pyreadstat.write_xport(frame, str(path), **common)
    _without_time(path, kind)


def _without_time(path: Path, kind: str) -> None:
    """Take the time of writing out of the head of a file, which its writer puts there unasked."""
    with path.open("r+b") as file:
        head = file.read(_HEADER)
        for place, pattern, instead in _TIMES[kind]:
            found = re.compile(pattern).search(head, place or 0)
            if found is not None and place in (None, found.start()):
                file.seek(found.start())
                file.write(instead)


def _check_whole(pyreadstat: Any, path: Path, records: int) -> None:
    """Read the last record back: the writer of compressed SPSS files does not say when the disk was full."""
    if records:
        pyreadstat.read_sav(str(path), row_offset=records - 1, row_limit=1, output_format="dict")


def _coded(frame: pl.DataFrame, metadata: Metadata) -> tuple[pl.DataFrame, dict[str, dict[Any, str]]]:
    """Turn categories and true/false into codes, with the codes the file had before where they are known."""
    labels = {name: dict(codes) for name, codes in metadata.value_labels.items() if name in frame.columns}
    expressions = []
    for name, dtype in frame.schema.items():
        if dtype == pl.Boolean:
            labels[name] = dict(TRUTH_LABELS)
            expressions.append(pl.col(name).cast(pl.Int8))
        elif dtype in (pl.Categorical, pl.Enum):
            levels = _levels(frame[name])
            known = {text: code for code, text in labels.get(name, {}).items() if not isinstance(code, str)}
            codes = (
                known if set(levels) <= set(known) else {text: place for place, text in enumerate(levels, 1)}
            )
            labels[name] = {code: text for text, code in codes.items()}
            expressions.append(
                pl.col(name)
                .cast(pl.String)
                .replace_strict(list(codes), list(codes.values()), return_dtype=pl.Int32)
                if codes
                else pl.lit(None, dtype=pl.Int32).alias(name)
            )
    return frame.with_columns(expressions), labels


def _levels(column: pl.Series) -> list[str]:
    if isinstance(column.dtype, pl.Enum):
        return list(column.dtype.categories)
    return column.drop_nulls().unique(maintain_order=True).cast(pl.String).to_list()


def _check_types(frame: pl.DataFrame, path: Path) -> None:
    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary, pl.Duration):
            raise ColumnError(
                f"Column '{name}' holds {type_name(dtype)} values, which '{path.suffix}' cannot keep. "
                "Convert or drop it, or write .parquet instead."
            )


def _only(by_column: Mapping[str, Any], there: set[str]) -> dict[str, Any]:
    return {name: value for name, value in by_column.items() if name in there}


def _parts(metadata: Metadata, part: str, there: set[str]) -> dict[str, Any]:
    return {name: entry[part] for name, entry in metadata.formats.items() if name in there and part in entry}


def _missing_ranges(frame: pl.DataFrame, metadata: Metadata) -> dict[str, list[Any]]:
    """Keep the ranges that fit the column as it is now (Stata's letters mean nothing to SPSS)."""
    ranges: dict[str, list[Any]] = {}
    for name, entries in metadata.user_missing.items():
        if name not in frame.columns:
            continue
        is_text = frame.schema[name] == pl.String
        fitting = [
            entry
            for entry in entries
            if isinstance(entry["lo"] if isinstance(entry, Mapping) else entry, str) == is_text
        ]
        if fitting:
            ranges[name] = fitting
    return ranges


def _spss_formats(frame: pl.DataFrame, metadata: Metadata) -> dict[str, str]:
    before = _parts(metadata, "format", set(frame.columns))
    formats = {}
    for name, dtype in frame.schema.items():
        known = str(before.get(name, ""))
        # A format that another program gave (Stata's "%9.0g") or another type had would make SPSS refuse the file.
        if dtype.is_integer():
            formats[name] = known if known.startswith("F") else "F11.0"
        elif dtype.is_float() and known.startswith("F"):
            formats[name] = known
    return formats


def _stata_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Use Stata's own integers where the values fit; the writer would make doubles of 64-bit ones."""
    whole = [name for name, dtype in frame.schema.items() if dtype.is_integer()]
    low, high = _STATA_WHOLE
    fits = [name for name in whole if frame[name].cast(pl.Int128).is_between(low, high).all()]
    return frame.with_columns(pl.col(fits).cast(pl.Int32))


def _whole_only(labels: Mapping[str, Mapping[Any, str]]) -> dict[str, dict[Any, str]]:
    whole = {
        name: {code: text for code, text in codes.items() if isinstance(code, int)}
        for name, codes in labels.items()
    }
    return {name: codes for name, codes in whole.items() if codes}
