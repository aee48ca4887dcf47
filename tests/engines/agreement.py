"""Hand the same table to every engine, and hold what comes back against Polars."""

from __future__ import annotations

import datetime as dt
import math
import shutil
import subprocess
from functools import cache
from typing import Any

import polars as pl
import pytest

from discreet import Microdata, risk

IN_PROCESS = ("polars-lazy", "pandas", "pandas-arrow", "pyarrow", "duckdb")
KINDS = (*IN_PROCESS, "pyspark")
ORDERED = ("polars", "polars-lazy", "pandas", "pandas-arrow", "pyarrow")

MEASURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "uniqueness": (risk.uniqueness, {"population_size": 10**6}),
    "k_anonymity": (risk.k_anonymity, {}),
    "reidentification": (risk.reidentification, {}),
    "key_contributions": (risk.key_contributions, {}),
    "l_diversity": (risk.l_diversity, {}),
    "l_diversity entropy": (risk.l_diversity, {"kind": "entropy"}),
    "l_diversity recursive": (risk.l_diversity, {"kind": "recursive"}),
    "alpha_k": (risk.alpha_k, {}),
    "t_closeness": (risk.t_closeness, {}),
    "t_closeness kl": (risk.t_closeness, {"distance": "kl"}),
    "t_closeness equal": (risk.t_closeness, {"ground": "equal"}),
    "beta_likeness": (risk.beta_likeness, {"enhanced": True}),
    "delta_disclosure": (risk.delta_disclosure, {}),
}


@cache
def why_no_spark() -> str | None:
    """Say why Spark cannot run here, if it cannot."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed"
    java = shutil.which("java")
    if java is None:
        return "there is no Java on this machine; PySpark needs version 17 or later"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = said.split('"')[1].split(".", maxsplit=1)[0] if '"' in said else ""
    if not version.isdigit() or int(version) < 17:
        return "the Java of this machine is older than 17, which PySpark needs"
    return None


def in_kind(table: pl.DataFrame, kind: str, session: Any = None) -> Any:
    """Turn a Polars table into a frame of another engine."""
    if kind == "polars":
        return table
    if kind == "polars-lazy":
        return table.lazy()
    if kind == "pandas":
        return table.to_pandas()
    if kind == "pandas-arrow":
        return table.to_pandas(use_pyarrow_extension_array=True)
    if kind == "pyarrow":
        return table.to_arrow()
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        arrow = table.to_arrow()
        return duckdb.connect().from_arrow(arrow)
    texts = [name for name, dtype in table.schema.items() if isinstance(dtype, pl.Categorical | pl.Enum)]
    # Spark has neither categories nor unsigned numbers.
    unsigned = [name for name, dtype in table.schema.items() if dtype.is_unsigned_integer()]
    known = table.with_columns(pl.col(texts).cast(pl.String), pl.col(unsigned).cast(pl.Int64))
    return session.createDataFrame(known.to_arrow())


def in_polars(table: Any) -> pl.DataFrame:
    """Bring a detail table of any kind back."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if hasattr(table, "toArrow"):
        return pl.DataFrame(pl.from_arrow(table.toArrow()))
    if type(table).__module__.startswith("pandas"):
        return pl.from_pandas(table.reset_index(drop=True), nan_to_null=True)
    if hasattr(table, "to_arrow_table"):
        return table.pl()
    return table if isinstance(table, pl.DataFrame) else pl.DataFrame(pl.from_arrow(table))


def plain(value: Any) -> Any:
    """Write a key value as one thing, whatever type an engine gives it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\0 missing"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat()
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day).isoformat()
    if isinstance(value, int | float):
        return repr(float(value))
    return str(value)


def rows_of(table: Any, keys: list[str], *, ordered: bool) -> tuple[list[Any], list[dict[str, Any]]]:
    """Split a detail table into its key values and its figures, in order or sorted by the key values."""
    found = in_polars(table)
    whose = [tuple(plain(row[key]) for key in keys) for row in found.select(keys).iter_rows(named=True)]
    figures = found.drop(*keys, "record", strict=False).to_dicts()
    if ordered:
        return whose, figures
    order = sorted(range(len(whose)), key=whose.__getitem__)
    return [whose[i] for i in order], [figures[i] for i in order]


def same(found: Any, expected: Any) -> bool:
    """Compare two figures to 1e-12, missing with missing."""
    if isinstance(expected, float) and found is not None:
        return bool(found == expected or math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12))
    return bool(found == expected)


def assert_measures_agree(measure: Any, reference: Any, kind: str, tables: tuple[str, ...]) -> None:
    """Hold a measure computed on one engine against the same measure on Polars."""
    assert same(measure.value, reference.value), (measure.value, reference.value)
    assert measure.figures.keys() == reference.figures.keys()
    for name, expected in reference.figures.items():
        assert same(measure.figures[name], expected), (name, measure.figures[name], expected)
    assert measure.meaning == reference.meaning
    assert list(measure.caveats) == list(reference.caveats)
    keys = list(reference.parameters["keys"])
    for name in tables:
        if name in reference.detail:
            ordered = name == "records" and kind in ORDERED
            whose, figures = rows_of(measure.detail[name], keys, ordered=ordered)
            expected_whose, expected = rows_of(reference.detail[name], keys, ordered=ordered)
            assert whose == expected_whose, name
            for ours, theirs in zip(figures, expected, strict=True):
                assert ours.keys() == theirs.keys()
                assert all(same(ours[x], theirs[x]) for x in theirs), (name, ours, theirs)


def assert_engines_agree(
    table: pl.DataFrame,
    roles: dict[str, Any],
    kind: str,
    session: Any = None,
    *,
    measures: tuple[str, ...] = tuple(MEASURES),
    missing: tuple[str, ...] = ("category", "wildcard", "drop"),
    tables: tuple[str, ...] = ("classes", "records"),
) -> None:
    """Hold every measure on one engine against Polars."""
    reference, data = Microdata(table, **roles), Microdata(in_kind(table, kind, session), **roles)
    for way in missing:
        for name in measures:
            function, options = MEASURES[name]
            if way == "wildcard" and function not in (risk.k_anonymity, risk.reidentification):
                continue
            assert_measures_agree(
                function(data, missing=way, **options),
                function(reference, missing=way, **options),
                kind,
                tables,
            )
