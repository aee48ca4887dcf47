"""What `evaluate` hands back: every figure of every cell, means and spreads over seeds, ranks, and what failed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from discreet.core.cards import Better
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.values import jsonable
from discreet.core.wording import shown
from discreet.workflow.evaluation.ready_studies import BOOTSTRAP, INDEPENDENT
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_metrics import LAYERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


_COST: dict[str, Better] = {"fit_seconds": "lower", "sample_seconds": "lower", "memory_mb": "lower"}
_GOOD_FOR = {
    "global utility": "records that cannot be told from real ones",
    "fit for purpose": "tables, columns and relations",
    "specific utility": "models and predictions",
    "risk": "keeping away from the people of the file",
    "cost": "time and memory",
}
_PLAIN = (INDEPENDENT, BOOTSTRAP)  # anchors: what they are good at is known
_CELLS = {
    "data": pl.String,
    "generator": pl.String,
    "seed": pl.Int64,
    "metric": pl.String,
    "figure": pl.String,
    "value": pl.Float64,
}
_SUMMARY = {
    "data": pl.String,
    "layer": pl.String,
    "metric": pl.String,
    "figure": pl.String,
    "better": pl.String,
    "generator": pl.String,
    "mean": pl.Float64,
    "sd": pl.Float64,
    "lowest": pl.Float64,
    "highest": pl.Float64,
    "runs": pl.Int64,
    "rank": pl.Float64,
}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The results of a study.

    Attributes
    ----------
    study
        What was asked.
    records
        One a cell: data set, generator, seed, the answers of every metric, seconds, memory, and why it failed where
        it did.
    """

    study: Study
    records: tuple[Mapping[str, Any], ...]

    @cached_property
    def cells(self) -> pl.DataFrame:
        """Every number of every cell: data, generator, seed, metric, figure, value."""
        rows = []
        for record in self._done:
            place = (record["data"], record["generator"], record["seed"])
            for name, answer in record["measures"].items():
                for figure, value in (answer.get("figures") or {}).items():
                    number = _number(value)
                    if number is not None:
                        rows.append((*place, name, figure, number))
            rows += [
                (*place, "cost", figure, float(record[figure]))
                for figure in _COST
                if record.get(figure) is not None and not self._is_reference(record["generator"])
            ]
        return pl.DataFrame(rows, schema=_CELLS, orient="row")

    @property
    def failures(self) -> pl.DataFrame:
        """What could not be had, and why: whole cells (metric is missing) and single metrics."""
        rows = []
        for record in self.records:
            place = (record["data"], record["generator"], record["seed"])
            if record["failed"]:
                rows.append((*place, None, record["failed"]))
            rows += [
                (*place, name, answer["failed"])
                for name, answer in record["measures"].items()
                if answer["failed"]
            ]
        kinds = {"data": pl.String, "generator": pl.String, "seed": pl.Int64, "metric": pl.String}
        return pl.DataFrame(rows, schema={**kinds, "reason": pl.String}, orient="row")

    @cached_property
    def _headlines(self) -> list[tuple[str, str, str, Better | None]]:
        """List layer, metric, figure and direction of what the summary shows, layer by layer."""
        asked = [
            (metric.layer, metric.name, figure, better)
            for metric in self.study.asked
            for figure, better in metric.headlines.items()
        ]
        cost = [("cost", "cost", figure, better) for figure, better in _COST.items()]
        return sorted([*asked, *cost], key=lambda row: LAYERS.index(row[0]))

    def table(self, *, data: str | None = None) -> pl.DataFrame:
        """Return one row a data set, figure and generator: mean and standard deviation over seeds, and the rank.

        References are not ranked. The standard deviation of one run is missing.
        """
        if data is not None and data not in self._data:
            raise ParameterError(unknown_name(data, self._data, what="data set"))
        shown_data = [data] if data is not None else self._data
        known: dict[tuple[str, str, str, str], list[float]] = {}
        for at, by, _, metric, figure, value in self.cells.iter_rows():
            known.setdefault((at, metric, figure, by), []).append(value)
        rows: list[tuple[Any, ...]] = []
        for at in shown_data:
            for layer, metric, figure, better in self._headlines:
                means = {by: values for by in self._makers if (values := known.get((at, metric, figure, by)))}
                ranks = _ranks(
                    {by: statistics.fmean(v) for by, v in means.items() if not self._is_reference(by)}, better
                )
                for by, values in means.items():
                    spread = statistics.stdev(values) if len(values) > 1 else None
                    rows.append(
                        (
                            at, layer, metric, figure, _said(better), by, statistics.fmean(values), spread,
                            min(values), max(values), len(values), ranks.get(by),
                        )
                    )  # fmt: skip
        return pl.DataFrame(rows, schema=_SUMMARY, orient="row")

    def ranks(self) -> pl.DataFrame:
        """Return the mean rank of each generator in each layer, by data set; there is no total score on purpose."""
        ranked = self.table().filter(pl.col("rank").is_not_null() & pl.col("better").is_not_null())
        order = pl.DataFrame(
            {"layer": LAYERS, "place": range(len(LAYERS))}, schema_overrides={"layer": pl.String}
        )
        return (
            ranked.group_by("data", "layer", "generator", maintain_order=True)
            .agg(mean_rank=pl.col("rank").mean(), figures=pl.len())
            .join(order, on="layer")
            .sort("data", "place", "mean_rank", maintain_order=True)
            .drop("place")
        )

    def good_for(self) -> list[str]:
        """Say, data set by data set and layer by layer, which generators did best, and which are worth nothing here.

        There is no total: a generator that leads in utility and comes last in risk has copied.
        """
        said = []
        makers = [name for name in self._makers if not self._is_reference(name)]
        for data in self._data:
            own = self.ranks().filter(data=data)
            for layer, words in _GOOD_FOR.items():
                ranked = own.filter(layer=layer).sort("mean_rank", maintain_order=True)
                ranked = ranked.filter(~pl.col("generator").is_in(_PLAIN)) if layer != "cost" else ranked
                if ranked.height > 1:
                    best = [
                        f"{by} (mean rank {rank:.2g})"
                        for by, rank in ranked.select("generator", "mean_rank").head(2).iter_rows()
                    ]
                    said.append(f"{data}, {words}: {best[0]}, then {best[1]}.")
            useful = own.filter(layer="fit for purpose")
            floor = useful.filter(generator=INDEPENDENT)["mean_rank"]
            if len(floor):
                behind = useful.filter(pl.col("mean_rank") > floor[0])["generator"].to_list()
                if behind:
                    said.append(
                        f"{data}: no better than columns drawn by themselves in what tables and relations say: "
                        f"{', '.join(behind)}."
                    )
            lost = self.failures.filter(pl.col("metric").is_null() & (pl.col("data") == data))[
                "generator"
            ].unique()
            failed = [name for name in makers if name in set(lost)]
            if failed:
                said.append(
                    f"{data}: failed in at least one run, for the reasons listed: {', '.join(failed)}."
                )
        return said

    def by_table(self, *, data: str | None = None) -> pl.DataFrame:
        """Return the figures of every one of several linked tables: means over seeds, one row a table and generator.

        Empty where no data set has linked tables.
        """
        shown_figures = {(metric, figure): layer for layer, metric, figure, _ in self._headlines}
        rows = [
            (record["data"], table, metric, figure, record["generator"], number)
            for record in self._done
            if data is None or record["data"] == data
            for metric, answer in record["measures"].items()
            for table, figures in (answer.get("tables") or {}).items()
            for figure, value in figures.items()
            if (metric, figure) in shown_figures and (number := _number(value)) is not None
        ]
        kinds = ("data", "table", "metric", "figure", "generator")
        every = pl.DataFrame(
            rows, schema={**dict.fromkeys(kinds, pl.String), "value": pl.Float64}, orient="row"
        )
        return every.group_by(kinds, maintain_order=True).agg(
            pl.col("value").mean().alias("mean"), pl.col("value").std().alias("sd"), pl.len().alias("runs")
        )

    def detail(self, metric: str, table: str) -> pl.DataFrame:
        """Return a detail table that the study kept, of all cells together."""
        kept = {item.name: item.detail for item in self.study.asked if item.detail}
        if metric not in kept:
            raise ParameterError(
                f"The study keeps no detail of '{metric}'. Name the tables in its metric: detail = [\"…\"]."
            )
        if table not in kept[metric]:
            raise ParameterError(unknown_name(table, kept[metric], what="kept table"))
        rows = [
            {"data": record["data"], "generator": record["generator"], "seed": record["seed"], **row}
            for record in self._done
            for row in (record["measures"].get(metric, {}).get("detail") or {}).get(table, ())
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to keep in mind when reading the results."""
        said = []
        if len(self.study.seeds) < 2:
            said.append("One seed: nobody knows how much of a difference between generators is chance.")
        if self.study.holdout == 0 and not all(getattr(item, "holdout", None) for item in self.study.data):
            said.append(
                "Without a hold-out there is no baseline for risk, and models are tested on seen records."
            )
        versions = sorted({str(record["version"]) for record in self.records})
        if len(versions) > 1:
            said.append(f"The cells were run with different versions of discreet: {', '.join(versions)}.")
        files = [item.name for item in self.study.makers if item.files]
        if files:
            said.append(
                f"Made by other tools: {', '.join(files)}. That they learned from the training part only cannot be "
                "checked here, and their time and memory are not known."
            )
        if not self.failures.is_empty():
            said.append(f"{self.failures.height} results could not be had; means are over those that could.")
        said += self._misnamed()
        for record in self._done:
            for name, answer in record["measures"].items():
                said += [
                    f"{record['generator']} on {record['data']}, {name}: {caveat}"
                    for caveat in answer.get("warnings") or ()
                ]
        return tuple(dict.fromkeys(said))

    def _misnamed(self) -> list[str]:
        """Name the figures that the study wants to show and that no answer of their metric has."""
        told = []
        for metric in self.study.asked:
            answers = [record["measures"].get(metric.name) or {} for record in self._done]
            known = {figure for answer in answers for figure in answer.get("figures") or {}}
            told += [
                f"Metric '{metric.name}': {unknown_name(figure, sorted(known), what='figure')}"
                for figure in metric.figures
                if known and figure not in known
            ]
        return told

    def axes(self) -> tuple[str, str]:
        """Name the figures of the risk-utility map: the first of utility and the first of risk."""
        found = []
        for layers, what in ((LAYERS[:3], "utility"), (("risk",), "risk")):
            fitting = [
                f"{metric}.{figure}"
                for layer, metric, figure, _ in self._headlines
                if layer in layers and not self.table().filter(metric=metric, figure=figure).is_empty()
            ]
            if not fitting:
                raise ParameterError(f"The study has no figure of {what} for the map.")
            found.append(fitting[0])
        return found[0], found[1]

    def plot(
        self,
        kind: Literal["map", "figures"] = "map",
        *,
        data: str | None = None,
        utility: str | None = None,
        risk: str | None = None,
    ) -> Picture:
        """Draw the risk-utility map (``utility`` and ``risk`` are written ``metric.figure``), or all figures."""
        from discreet.report.evaluation_report import draw_figures, draw_map

        if kind not in ("map", "figures"):
            raise ParameterError("kind must be 'map' or 'figures'.")
        if kind == "figures":
            return draw_figures(self, data or self._data[0])
        across, up = self.axes() if utility is None or risk is None else (utility, risk)
        return draw_map(self, utility or across, risk or up, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the study, its summary and every cell, ready for JSON."""
        document: dict[str, Any] = jsonable(
            {
                "study": self.study.to_dict(),
                "summary": self.table().to_dicts(),
                "ranks": self.ranks().to_dicts(),
                "good_for": self.good_for(),
                "by_table": self.by_table().to_dicts(),
                "failures": self.failures.to_dicts(),
                "caveats": self.caveats,
                "cells": self.records,
            }
        )
        return document

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML file and return its path."""
        from discreet.report.evaluation_report import write_evaluation

        return write_evaluation(self, Path(path))

    @property
    def line(self) -> str:
        """What was done, in one line."""
        makers = [item for item in self.study.makers if not item.reference]
        failed = sum(bool(record["failed"]) for record in self.records)
        return (
            f"{_counted(len(makers), 'generator')} on {_counted(len(self._data), 'data set')}, "
            f"{_counted(len(self.study.seeds), 'seed')}: {_counted(len(self.records), 'cell')}, "
            f"{failed or 'none'} failed."
        )

    def __str__(self) -> str:
        lines = [self.study.title or "Evaluation", self.line]
        for data in self._data:
            lines += ["", *laid_out(self.table(data=data), data, self._makers)]
            apart = self.by_table(data=data)
            if not apart.is_empty():
                lines += ["", *laid_out(as_layers(apart), f"{data}, table by table", self._makers)]
        if len([name for name in self._makers if not self._is_reference(name)]) > 2:
            lines += ["", "What each is good for:", *(f"  {said}" for said in self.good_for())]
        if not self.failures.is_empty():
            lines += ["", "What could not be had:"]
            alike = self.failures.group_by("data", "metric", "reason", maintain_order=True)
            for at, metric, reason, makers, seeds in alike.agg("generator", "seed").iter_rows():
                where = ", ".join(f"{by} (seed {seed})" for by, seed in zip(makers, seeds, strict=True))
                lines.append(f"  {at}{f', {metric}' if metric else ''}: {reason} ({where})")
        if self.caveats:
            lines += ["", *(f"Caveat: {caveat}" for caveat in self.caveats)]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _done(self) -> list[Mapping[str, Any]]:
        return [record for record in self.records if not record["failed"]]

    @property
    def _data(self) -> list[str]:
        return [getattr(item, "name", str(item)) for item in self.study.data]

    @property
    def _makers(self) -> list[str]:
        return [item.name for item in self.study.makers]

    def _is_reference(self, name: str) -> bool:
        return any(item.name == name and item.reference for item in self.study.makers)


def _number(value: Any) -> float | None:
    if value in ("inf", "-inf"):
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _said(better: Better | None) -> str | None:
    return better if better is None or isinstance(better, str) else f"near {better:g}"


def _ranks(means: Mapping[str, float], better: Better | None) -> dict[str, float]:
    """Rank the generators, 1 is best; those with the same mean share the mean of their places."""
    if better is None:
        return {}
    away = {
        by: mean if better == "lower" else -mean if better == "higher" else abs(mean - float(better))
        for by, mean in means.items()
    }
    values = list(away.values())
    return {
        by: sum(other < value for other in values) + (values.count(value) + 1) / 2
        for by, value in away.items()
    }


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# How the figures of a study are laid out as text: a line a figure, a column a generator.


def written(mean: float, spread: float | None) -> str:
    """Write a mean with its spread.

    Examples
    --------
    >>> written(0.12345, 0.0123), written(2.0, None)
    ('0.1235 ± 0.012', '2')
    """
    return shown(mean) if spread is None else f"{shown(mean)} ± {spread:.2g}"


def laid_out(table: pl.DataFrame, data: str, makers: Sequence[str]) -> list[str]:
    """Lay a summary out as text: a line a figure, a column a generator, the best one starred."""
    there = set(table["generator"].to_list())
    columns = [name for name in makers if name in there]
    body: list[tuple[str, dict[str, str]]] = []
    layer = None
    for row in table.iter_rows(named=True):
        if row["layer"] != layer:
            layer = row["layer"]
            body.append((f"  {layer}", {}))
        label = f"    {row['metric']} {row['figure']}" + (f" ({row['better']})" if row["better"] else "")
        if body[-1][0] != label:
            body.append((label, {}))
        star = "*" if row["rank"] is not None and row["rank"] < 2 else ""
        body[-1][1][row["generator"]] = written(row["mean"], row["sd"]) + star
    first = max([len(data), *(len(label) for label, _ in body)])
    widths = {name: max([len(name), *(len(cells.get(name, "")) for _, cells in body)]) for name in columns}
    lines = ["  ".join([data.ljust(first), *(name.rjust(widths[name]) for name in columns)])]
    for label, cells in body:
        lines.append(
            "  ".join(
                [label.ljust(first), *(cells.get(name, "").rjust(widths[name]) for name in columns)]
            ).rstrip()
        )
    return lines


def as_layers(apart: pl.DataFrame) -> pl.DataFrame:
    """Lay figures by table out like a summary, the tables in place of the layers."""
    return apart.select(
        pl.col("table").alias("layer"),
        "metric",
        "figure",
        pl.lit(None, dtype=pl.String).alias("better"),
        "generator",
        "mean",
        "sd",
        pl.lit(None, dtype=pl.Float64).alias("rank"),
    ).sort("layer", "metric", "figure", maintain_order=True)
