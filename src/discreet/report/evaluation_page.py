"""The HTML report of an evaluation: what was tried, what came out layer by layer, what failed."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.value_gate import gated
from discreet.report.evaluation_charts import draw_map, figure_charts, holdout_first, in_words
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
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
