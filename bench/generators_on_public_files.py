"""Which generator is good for what? All default generators and anchors on five public files.

    DISCREET_TEST_DATA=PATH python bench/generators_on_public_files.py FOLDER [--rows 10000] [--workers 2]

The study of ``discreet evaluate FILE --generators default``, for Adult (bundled), bank marketing, credit card defaults,
incomes of the American Community Survey and the excerpts of NIST, in one go. FOLDER keeps every cell: a run that was
stopped goes on there. ``--private`` runs DPGAN and PATEGAN at epsilon 1 and 10 instead, beside the same anchors; ranges
and levels are then read off the files, which measures utility and would void any guarantee. The tables of the manual
(``docs/about/generators-compared.md``) are printed at the end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl

from discreet import read
from discreet.workflow.evaluation import DataSet, Evaluation, Generator, Study, benchmark, evaluate

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "."))
NIST = (
    "PUMA AGEP SEX MSP HISP RAC1P NOC NPF HOUSING_TYPE OWN_RENT DENSITY INDP INDP_CAT EDU PINCP POVPIP DVET DREM DPHY "
    "DEYE DEAR"
)
FILES = {
    "adult": DataSet(
        "adult",
        roles={"keys": ["age", "sex", "race", "marital-status"], "sensitive": ["income"]},
    ),
    "bank": DataSet(
        "bank",
        str(FOLDER / "tabular" / "bank_marketing.csv.gz"),
        roles={"keys": ["age", "job", "marital", "education"], "sensitive": ["balance"]},
        target="y",
    ),
    "credit": DataSet(
        "credit",
        str(FOLDER / "tabular" / "creditcard_default.csv.gz"),
        roles={"keys": ["age", "sex", "education", "marriage"], "sensitive": ["limit_bal"]},
        target="has_default",
    ),
    "acs": DataSet(
        "acs",
        str(FOLDER / "tabular" / "acs_income_2018_holdout.parquet"),
        roles={"keys": ["Age", "Gender", "Race", "State"], "sensitive": ["Income"]},
        target="Insurance through a current or former employer or union",
    ),
    "nist": DataSet(
        "nist",
        str(FOLDER / "nist-dce" / "national2019.csv"),
        roles={"keys": ["AGEP", "SEX", "RAC1P", "PUMA"], "sensitive": ["PINCP"]},
        reading={"missing": ["N"]},
        columns=tuple(NIST.split()),
        target="OWN_RENT",
    ),
}
SHOWN = {  # what the tables of the manual show: heading, metric, figure, digits
    "utility": (
        ("told apart (AUC)", "detection", "auc", 3),
        ("pMSE ratio", "pmse", "ratio", 1),
        ("tables (S_pMSE)", "tabular", "mean_S_pMSE", 1),
        ("columns", "margins", "value", 3),
        ("relations", "dependence", "value", 3),
        ("models", "train_on_synthetic", "value", 3),
    ),
    "risk": (
        ("membership", "membership", "value", 3),
        ("singling out", "singling_out", "value", 3),
        ("linkability", "linkability", "value", 3),
        ("inference", "inference", "value", 3),
        ("closer than hold-out", "neighbors", "dcr_share_closer_than_holdout", 3),
        ("identical", "neighbors", "identical_share", 3),
        ("identifiable", "neighbors", "epsilon_identifiability", 3),
        ("SNI, k = 5", "shared_neighbors", "sni", 3),
        ("lowest, k 4 to 8", "shared_neighbors", "sni_lowest", 3),
        ("highest", "shared_neighbors", "sni_highest", 3),
        ("fit, s", "cost", "fit_seconds", 1),
        ("draw, s", "cost", "sample_seconds", 1),
        ("memory, MB", "cost", "memory_mb", 0),
    ),
}


def study(given: argparse.Namespace) -> Study:
    """The study of all files."""
    data = [replace(FILES[name], rows=given.rows) for name in given.files]
    made = benchmark(
        "adult",
        given.generators,
        repetitions=given.repetitions,
        time_limit=given.time_limit,
        memory_limit=given.memory_limit,
    )
    makers: tuple[Generator, ...] = tuple(made.generators)  # type: ignore[arg-type]
    if given.private:
        anchors = tuple(maker for maker in makers if maker.name in ("uniform", "independent"))
        makers = anchors + tuple(
            Generator(
                f"{kind}-{epsilon}-{one.name}",
                synthesizer=kind,
                parameters={"epsilon": epsilon, "domain": domain(one)},
                data=(one.name,),
            )
            for one in data
            for kind in ("dpgan", "pategan")
            for epsilon in (1.0, 10.0)
        )
    return replace(made, data=data, generators=makers, title="Generators on five public files")


def domain(one: DataSet) -> dict[str, list]:
    """The levels and ranges of a file, read off it."""
    data = read(one.source, **one.reading) if one.source != "adult" else bundled()
    frame = pl.DataFrame(data.frame.collect() if isinstance(data.frame, pl.LazyFrame) else data.frame)
    frame = frame.select(one.columns) if one.columns else frame
    return {
        name: [frame[name].min(), frame[name].max()]
        if kind.is_numeric()
        else sorted(frame[name].cast(pl.String).drop_nulls().unique().to_list())
        for name, kind in frame.schema.items()
    }


def bundled():
    from discreet import datasets

    return datasets.adult()


def tables(found: Evaluation) -> str:
    """The tables of the manual, in Markdown."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    for at, by, _, metric, figure, value in found.cells.iter_rows():
        values.setdefault((at, by, metric, figure), []).append(value)
    makers = [maker.name for maker in found.study.makers]
    parts = []
    for at in dict.fromkeys(record["data"] for record in found.records):
        for kind, columns in SHOWN.items():
            parts.append(f"\n### {at}: {kind}\n")
            parts.append("| generator | " + " | ".join(heading for heading, *_ in columns) + " |")
            parts.append("|---" * (len(columns) + 1) + "|")
            for by in makers:
                cells = [
                    written(values.get((at, by, metric, figure)), digits)
                    for _, metric, figure, digits in columns
                ]
                if any(cells):
                    parts.append(f"| {by} | " + " | ".join(cells) + " |")
    return "\n".join(parts)


def written(values: list[float] | None, digits: int) -> str:
    """The mean, and half the range of the repetitions."""
    if not values:
        return ""
    middle = f"{statistics.fmean(values):,.{digits}f}"
    return middle if len(values) < 2 else f"{middle} ± {(max(values) - min(values)) / 2:,.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the results are kept")
    parser.add_argument("--files", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--generators", default="default")
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=600.0)
    parser.add_argument("--memory-limit", type=float, default=8_000.0)
    parser.add_argument("--tables", action="store_true", help="only print what is there")
    given = parser.parse_args()
    chosen = Study.load(given.folder / "study.toml") if given.tables else study(given)
    found = evaluate(chosen, out=given.folder, workers=given.workers)
    print(found.line)
    print(tables(found))
    with pl.Config(tbl_rows=-1, fmt_str_lengths=200, tbl_width_chars=250):
        print(found.failures)


if __name__ == "__main__":
    sys.exit(main())
