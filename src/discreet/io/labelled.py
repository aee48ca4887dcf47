"""SPSS, Stata and SAS files: columns with labels, value labels and codes that mean "missing".

Cells hold the codes as the file does; what the codes mean stands in the `Metadata`. Codes that the file
declares as missing become missing unless they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from discreet.core.errors import ColumnError, InputError, ParameterError, load_extra
from discreet.core.wording import type_name
from discreet.microdata import Metadata

UserMissing = Literal["missing", "keep"]
ValueLabels = Literal["codes", "categories"]

_READERS = {"spss": "read_sav", "stata": "read_dta", "sas": "read_sas7bdat", "xport": "read_xport"}
_TITLES = {"spss": "SPSS", "stata": "Stata", "sas": "SAS", "xport": "SAS transport"}
TRUTH_LABELS = {0: "false", 1: "true"}


def read_labelled(
    path: Path,
    kind: str,
    *,
    user_missing: UserMissing = "missing",
    value_labels: ValueLabels = "codes",
    encoding: str | None = None,
) -> tuple[pl.DataFrame, Metadata, dict[str, Any]]:
    """Read an SPSS, Stata or SAS file; also return its metadata and how it was read.

    Parameters
    ----------
    path
        The file.
    kind
        ``"spss"``, ``"stata"``, ``"sas"`` or ``"xport"``.
    user_missing
        ``"missing"`` turns codes declared as missing into missing values, ``"keep"`` keeps them as values
        (for Stata, whose codes are letters, the column then becomes text).
    value_labels
        ``"codes"`` keeps the codes, ``"categories"`` puts the labels in their place, in the order of the codes.
    encoding
        Of the texts, where the file does not say it or says it wrongly.
    """
    _check_choice("user_missing", user_missing, ("missing", "keep"))
    _check_choice("value_labels", value_labels, ("codes", "categories"))
    pyreadstat = load_extra("pyreadstat", extra="files", purpose=f"Reading {_TITLES[kind]}")
    read = getattr(pyreadstat, _READERS[kind])
    options: dict[str, Any] = {"output_format": "polars", "encoding": encoding}
    try:
        # Only a reading that keeps the codes tells which ranges the file declares as missing.
        frame, found = read(str(path), **options, **({} if kind == "xport" else {"user_missing": True}))
        declared = _declared(found, kind)
        if user_missing == "missing" and declared:
            frame, _ = read(str(path), **options)
    except Exception as error:
        raise _unreadable(path, kind, error) from None
    if frame.height == 0:
        raise InputError(f"The file '{path.name}' has no records. Give a file with records.")
    metadata = Metadata(
        column_labels={name: label for name, label in found.column_names_to_labels.items() if label},
        value_labels=_whole_codes(found.variable_value_labels),
        user_missing=declared,
        formats=_formats(found),
    )
    frame = _plain(frame, metadata, whole_numbers=kind != "stata")
    if value_labels == "categories":
        frame = frame.with_columns(_as_categories(frame, metadata))
    reading = {
        "format": kind,
        "user_missing": user_missing,
        "value_labels": value_labels,
        "rows": frame.height,
    }
    return frame, metadata, reading


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ParameterError(f"'{name}' must be one of {', '.join(repr(choice) for choice in choices)}.")


def _unreadable(path: Path, kind: str, error: Exception) -> InputError:
    if isinstance(error, UnicodeError):
        reason = "its texts are not in the encoding it names; give encoding=, e.g. encoding='cp1252'"
    else:
        reason = "it is cut off, damaged or of another format; copy or export it again"
    return InputError(f"The file '{path.name}' cannot be read as {_TITLES[kind]}: {reason}.")


def _declared(found: Any, kind: str) -> dict[str, list[Any]]:
    if kind == "stata":
        return {name: list(letters) for name, letters in found.missing_user_values.items()}
    return {
        name: [_single(entry) for entry in ranges]
        for name, ranges in (found.missing_ranges or {}).items()
        if ranges
    }


def _single(entry: Any) -> Any:
    """Write a range of one value as that value."""
    if isinstance(entry, Mapping) and entry["lo"] == entry["hi"]:
        return _whole(entry["lo"])
    return {end: _whole(value) for end, value in entry.items()} if isinstance(entry, Mapping) else entry


def _whole(code: Any) -> Any:
    return int(code) if isinstance(code, float) and code.is_integer() else code


def _whole_codes(labels: Mapping[str, Mapping[Any, str]]) -> dict[str, dict[Any, str]]:
    return {
        name: {_whole(code): text for code, text in codes.items()} for name, codes in labels.items() if codes
    }


def _formats(found: Any) -> dict[str, dict[str, Any]]:
    parts = {
        "format": found.original_variable_types,
        "measure": found.variable_measure,
        "display_width": found.variable_display_width,
    }
    formats: dict[str, dict[str, Any]] = {name: {} for name in found.column_names}
    for part, by_column in parts.items():
        for name, value in by_column.items():
            if value not in (None, "unknown", "NULL"):
                formats[name][part] = value
    return {name: entry for name, entry in formats.items() if entry}


def _plain(frame: pl.DataFrame, metadata: Metadata, *, whole_numbers: bool) -> pl.DataFrame:
    """Give every column one type: these formats know no empty text and, but for Stata, no integers."""
    mixed = [name for name, dtype in frame.schema.items() if dtype == pl.Object]
    if mixed:
        frame = frame.with_columns(
            pl.Series(
                name,
                [None if value is None else str(_whole(value)) for value in frame[name]],
                dtype=pl.String,
            )
            for name in mixed
        )
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    frame = frame.with_columns(pl.when(pl.col(texts) != "").then(pl.col(texts)))
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    frame = frame.with_columns(pl.col(floats).fill_nan(None))
    if not whole_numbers or not floats:
        return frame
    small = pl.col(floats).abs() < 2**53
    is_whole = frame.select(
        ((pl.col(floats) == pl.col(floats).floor()) & small).all() & (pl.col(floats).count() > 0)
    )
    return frame.with_columns(pl.col([name for name in floats if is_whole[name].item()]).cast(pl.Int64))


def _as_categories(frame: pl.DataFrame, metadata: Metadata) -> list[pl.Expr]:
    expressions = []
    for name, labels in metadata.value_labels.items():
        if name not in frame.columns:
            continue
        is_text = frame.schema[name] == pl.String
        codes = {code: text for code, text in labels.items() if isinstance(code, str) == is_text}
        present = set(frame[name].drop_nulls().unique().to_list())
        # A scale with labels at its ends only would lose the values between them.
        if not codes or not present <= set(codes) or len(set(codes.values())) < len(codes):
            continue
        if codes == TRUTH_LABELS:
            expressions.append(pl.col(name).cast(pl.Boolean))
            continue
        ordered = sorted(codes)
        expressions.append(
            pl.col(name).replace_strict(
                ordered,
                [codes[code] for code in ordered],
                return_dtype=pl.Enum([codes[code] for code in ordered]),
            )
        )
    return expressions


# Write SPSS, Stata and SAS transport files with their labels, missing codes, measures and formats.


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
    labelled = {name: label for name, label in metadata.column_labels.items() if name in there}
    common: dict[str, Any] = {"column_labels": labelled}
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
        if frame.height:
            # The writer of compressed SPSS files does not say when the disk was full: the last record is read back.
            last = frame.height - 1
            pyreadstat.read_sav(str(path), row_offset=last, row_limit=1, output_format="dict")
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
