"""The pictures of an evaluation: every figure by generator, and risk against utility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.cards import card_of
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.figure_words import label_of, title_of
from discreet.report.chart_kinds import Chart, Dots, Row
from discreet.report.ink import BAR, INK, MUTED, RISK, RULE, clean, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from discreet.workflow.evaluation.evaluation_result import Evaluation

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
