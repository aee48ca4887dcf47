"""SPSS, Stata and SAS files: columns with labels, value labels and codes that mean "missing".

Cells hold the codes as the file does; what the codes mean stands in the `Metadata`. Codes that the file
declares as missing become missing unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl

from discreet.core.errors import InputError, ParameterError, load_extra
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
        codes = {code: text for code, text in labels.items() if _fits(code, frame.schema[name])}
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


def _fits(code: Any, dtype: pl.DataType) -> bool:
    return isinstance(code, str) == (dtype == pl.String)
