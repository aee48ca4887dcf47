"""The HTML report of an evaluation: what was tried, what came out layer by layer, what failed."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.cards import card_of
from discreet.core.charts import Chart, Dots, Row
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.value_gate import gated
from discreet.core.wording import label_of, title_of
from discreet.report.ink import BAR, INK, MUTED, RISK, RULE, clean, shortened
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.workflow.evaluation.evaluation_result import Evaluation


_LAYERS = {
    "global utility": "Can the synthetic records be told from the real ones?",
    "fit for purpose": "Do columns, tables and relations say what they said?",
    "specific utility": "Would an analyst of the synthetic file come to the same results?",
    "risk": "Does the synthetic file give people away?",
    "cost": "What did it take?",
}


def render_evaluation(evaluation: Evaluation) -> str:
    """Return the report of an evaluation as HTML text."""
    import tomli_w

    from discreet._version import __version__

    study = evaluation.study
    return rendered(
        "evaluation.html",
        title=study.title or "Evaluation of generators",
        line=evaluation.line,
        sets=[_data_set(evaluation, name, at) for at, name in enumerate(_names(evaluation), start=1)],
        good_for=evaluation.good_for() if len(evaluation.study.makers) > 3 else [],
        failures=evaluation.failures.rows(named=True),
        notes=_notes(evaluation),
        caveats=evaluation.caveats,
        cells=[
            {
                **{name: record.get(name) for name in ("data", "generator", "seed")},
                "rows": record.get("rows") or {},
                "seconds": "" if record.get("seconds") is None else f"{record['seconds']:.1f}",
                "failed": record["failed"],
            }
            for record in evaluation.records
        ],
        study=tomli_w.dumps(gated(study.to_dict())),
        version=__version__,
    )


def write_evaluation(evaluation: Evaluation, path: Path) -> Path:
    """Write the report and return its path; an older one there is replaced."""
    from discreet.core.files.atomic import check_target

    check_target(path, overwrite=True)
    return written_page(path, render_evaluation(evaluation))


def _names(evaluation: Evaluation) -> list[str]:
    return [getattr(item, "name", str(item)) for item in evaluation.study.data]


def _data_set(evaluation: Evaluation, name: str, at: int) -> dict[str, Any]:
    table = evaluation.table(data=name)
    first = holdout_first(evaluation)
    return {
        "name": name,
        "anchor": f"data-{at}",
        "map": _map(evaluation, name),
        "tables": _tables(evaluation, name),
        "layers": [
            {
                "name": layer,
                "question": question,
                "columns": rows["generator"].unique(maintain_order=True).to_list(),
                "rows": _rows(rows),
                "charts": figure_charts(rows, first) if layer != "cost" else [],
                "ranks": _ranks(evaluation, name, layer),
            }
            for layer, question in _LAYERS.items()
            if not (rows := table.filter(pl.col("layer") == layer)).is_empty()
        ],
    }


def _rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    from discreet.workflow.evaluation.evaluation_result import written

    return [
        {
            "metric": metric,
            "figure": figure,
            "words": in_words(metric, figure),
            "better": rows["better"][0] or "",
            "cells": {
                row["generator"]: (
                    written(row["mean"], row["sd"]),
                    row["rank"] is not None and row["rank"] < 2,
                )
                for row in rows.iter_rows(named=True)
            },
        }
        for (metric, figure), rows in table.group_by("metric", "figure", maintain_order=True)
    ]


def _tables(evaluation: Evaluation, data: str) -> dict[str, Any] | None:
    """Put linked tables side by side: a row a figure and generator, a column a table; None where there is one file."""
    from discreet.workflow.evaluation.evaluation_result import written

    apart = evaluation.by_table(data=data)
    if apart.is_empty():
        return None
    return {
        "columns": apart["table"].unique(maintain_order=True).to_list(),
        "rows": [
            {
                "words": in_words(metric, figure),
                "generator": by,
                "cells": {
                    row["table"]: written(row["mean"], row["sd"]) for row in rows.iter_rows(named=True)
                },
            }
            for (metric, figure, by), rows in apart.group_by(
                "metric", "figure", "generator", maintain_order=True
            )
        ],
    }


def _ranks(evaluation: Evaluation, data: str, layer: str) -> str:
    found = evaluation.ranks().filter((pl.col("data") == data) & (pl.col("layer") == layer))
    return ", ".join(f"{row['generator']} {row['mean_rank']:.2g}" for row in found.iter_rows(named=True))


def _map(evaluation: Evaluation, data: str) -> Any:
    """Draw the risk-utility map as SVG for the page; nothing where an axis is missing."""
    import matplotlib as mpl
    from markupsafe import Markup

    from discreet.core.errors import ParameterError

    try:
        utility, risk = evaluation.axes()
        figure = draw_map(evaluation, utility, risk, data)
    except ParameterError:
        return None
    buffer = io.StringIO()
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": f"discreet {data}", "text.parse_math": False}
    with mpl.rc_context(settings):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), flags=re.DOTALL)
    return Markup(re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL))


def _notes(evaluation: Evaluation) -> list[str]:
    noted = [
        f"{record['generator']} on {record['data']}: {note}"
        for record in evaluation.records
        for note in record["notes"]
    ]
    return list(dict.fromkeys(noted))


# The pictures of an evaluation: every figure by generator, and risk against utility.


_DIRECTIONS = {
    "lower": "Lower is better",
    "higher": "Higher is better",
    None: "Neither end is better as such",
}


def in_words(metric: str, figure: str) -> str:
    """Say what a figure of a metric is about.

    Examples
    --------
    >>> in_words("tabular", "mean_SPECKS"), in_words("who smokes", "overlap_mean")
    ('Tables: records in other cells, mean of tables', 'who smokes: mean overlap of intervals')
    """
    if metric == "cost":
        return label_of(figure)
    card = card_of(metric)
    headline = card.headline if card and card.headline else "value"
    words = headline if figure == "value" else label_of(figure, measure=metric)
    start = words if words[:2].isupper() or words.startswith("pMSE") else f"{words[:1].lower()}{words[1:]}"
    return f"{title_of(metric) if card else metric}: {start}"


def figure_charts(table: pl.DataFrame, references: tuple[str, ...]) -> list[Chart]:
    """Make one chart of dots a figure: the mean of each generator, and the lowest and highest over seeds."""
    charts: list[Chart] = []
    for (metric, figure), rows in table.group_by("metric", "figure", maintain_order=True):
        kept = rows.filter(pl.col("mean").is_finite())
        if kept.is_empty():
            continue
        marks = kept.filter(pl.col("generator").is_in(references[:1]))["mean"]
        direction = rows["better"][0]
        said = _DIRECTIONS.get(direction, f"Best {direction}")
        if len(marks):
            said += "; the upright line is the hold-out, real people whom no generator has seen"
        charts.append(
            Dots(
                title=in_words(str(metric), str(figure)),
                series=("mean over seeds",),
                rows=tuple(
                    Row(
                        row["generator"],
                        (row["mean"],),
                        (row["lowest"], row["highest"]) if row["runs"] > 1 else None,
                    )
                    for row in kept.iter_rows(named=True)
                ),
                axis=said,
                as_share=False,
                mark=float(marks[0]) if len(marks) else None,
            )
        )
    return charts


def holdout_first(evaluation: Evaluation) -> tuple[str, ...]:
    """Name the references, the hold-out first, or nothing where it was not measured."""
    makers = evaluation.study.makers
    return tuple(maker.name for maker in makers if maker.reference == "holdout")


def draw_figures(evaluation: Evaluation, data: str) -> Figure:
    """Draw every figure of the summary of one data set."""
    from discreet.report.plots import draw_charts

    charts = figure_charts(evaluation.table(data=data), holdout_first(evaluation))
    if not charts:
        raise ParameterError(f"There is no figure to draw for '{data}': see failures.")
    return draw_charts(charts)


def draw_map(evaluation: Evaluation, utility: str, risk: str, data: str | None = None) -> Figure:
    """Draw every generator by its utility and its risk, one panel a data set."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    table = evaluation.table(data=data)
    names = table["data"].unique(maintain_order=True).to_list()
    if not names:
        raise ParameterError("There is nothing to draw: every cell failed.")
    with mpl.rc_context({"text.parse_math": False}):
        figure = Figure(figsize=(5.6, 4.2 * len(names)), facecolor="none", layout="constrained")
        panels = figure.subplots(len(names), 1, squeeze=False)
        for axes, name in zip(panels[:, 0], names, strict=True):
            rows = table.filter(pl.col("data") == name)
            across, up = (_figure(rows, path) for path in (utility, risk))
            for place, by in enumerate(name for name in across if name in up):
                color = _color(evaluation, by, place)
                _point(axes, by, across[by], up[by], color)
            axes.set_title(clean(name), loc="left", color=INK, fontsize=11)
            axes.set_xlabel(_axis(rows, utility), color=MUTED, fontsize=9)
            axes.set_ylabel(_axis(rows, risk), color=MUTED, fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(0.15)
            axes.grid(visible=True, color=RULE, linewidth=0.6)
            axes.set_axisbelow(True)
    return figure


def _figure(rows: pl.DataFrame, path: str) -> dict[str, dict[str, Any]]:
    metric, _, figure = path.rpartition(".")
    found = rows.filter((pl.col("metric") == metric) & (pl.col("figure") == figure))
    if found.is_empty():
        pairs = rows.select("metric", "figure").unique(maintain_order=True).rows()
        known = [f"{metric}.{figure}" for metric, figure in pairs]
        raise ParameterError(unknown_name(path, known, what="figure"))
    return {row["generator"]: row for row in found.iter_rows(named=True)}


def _axis(rows: pl.DataFrame, path: str) -> str:
    better = next(iter(_figure(rows, path).values()))["better"]
    said = f"({better} is better)" if better in ("lower", "higher") else f"(best {better})" if better else ""
    metric, _, figure = path.rpartition(".")
    return f"{clean(in_words(metric, figure))}\n{said}".rstrip()


def _color(evaluation: Evaluation, by: str, place: int) -> str:
    is_reference = any(maker.name == by and maker.reference for maker in evaluation.study.makers)
    return MUTED if is_reference else (RISK, BAR, INK)[place % 3]


def _point(axes: Any, by: str, across: dict[str, Any], up: dict[str, Any], color: str) -> None:
    axes.errorbar(
        across["mean"],
        up["mean"],
        xerr=across["sd"] or 0,
        yerr=up["sd"] or 0,
        marker="x" if color == MUTED else "o",
        color=color,
        markersize=8,
        linewidth=1,
    )
    axes.annotate(
        shortened(by), (across["mean"], up["mean"]), textcoords="offset points", xytext=(7, 5), color=color
    )
