"""Does a file made from published results tell more about the people behind them than about strangers?"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata, require_microdata
from discreet.risk.correct_attribution import attribution


def attribution_beyond_holdout(synthetic: Microdata, original: Microdata, holdout: Microdata) -> Measure:
    """How much better does a made-up file tell the people behind the results than people it never saw?

    Each column in turn is guessed from all others (TCAP with certainty 1): among the people whose keys occur in the
    made-up file with a single value of the target, how many have that value? The same is asked of a hold-out from the
    same population. What is right for the hold-out too is what the published model teaches about anybody.

    Parameters
    ----------
    synthetic
        The made-up file.
    original, holdout
        People behind the published results, and people of the same population that were not.

    Returns
    -------
    Measure
        ``value`` is the largest difference ``tcap_conditional`` original less hold-out over the columns. ``figures``:
        ``largest_marginal_risk``, ``mean_marginal_risk``, ``mean_tcap_original``, ``mean_tcap_holdout``,
        ``mean_baseline``, ``targets``, ``targets_beyond_chance``. ``detail["variables"]``: by target, for both files,
        ``tcap_conditional`` (of the people shown a single value), ``tcap`` (of all people whose keys occur), both
        calibrated, ``baseline``, ``marginal_risk`` and ``chance``, twice its standard error.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": [1, 2, 1, 2], "car": [0, 1, 0, 1]}))
    >>> attribution_beyond_holdout(people, people, people).value
    0.0
    """
    for what, data in (("original", original), ("holdout", holdout)):
        require_microdata(data, what)
        for name in synthetic.columns:
            if name not in data.columns:
                raise ColumnError(
                    f"{unknown_name(name, data.columns)} It must be in the {what} as in the made-up file."
                )
    columns = [name for name in synthetic.columns if name != synthetic.roles.weight]
    if len(columns) < 2:
        raise ParameterError("Guessing one column from the others needs at least two columns.")
    rows = [_row(synthetic, original, holdout, columns, target) for target in columns]
    table = pl.DataFrame(rows, infer_schema_length=None)
    known = table.drop_nulls("marginal_risk")
    risks = known["marginal_risk"]
    largest = float(risks.max()) if len(risks) else None  # type: ignore[arg-type]
    beyond = int((known["marginal_risk"] > known["chance"]).sum())
    return Measure(
        name="attribution_beyond_holdout",
        value=largest,
        figures={
            "largest_marginal_risk": largest,
            "mean_marginal_risk": _mean(risks),
            "mean_tcap_original": _mean(known["tcap_conditional_original"]),
            "mean_tcap_holdout": _mean(known["tcap_conditional_holdout"]),
            "mean_baseline": _mean(known["baseline"]),
            "targets": len(risks),
            "targets_beyond_chance": beyond,
        },
        meaning=_meaning(largest, beyond, len(risks)),
        caveats=[
            "A marginal risk near zero means that the file tells no more than the results that are already "
            "published; whether those results are too telling is a question about the results.",
            "Differences within chance cannot be told from none; a larger hold-out tells smaller ones apart.",
        ],
        parameters={"columns": columns},
        detail=Detail(variables=lambda: table),
    )


def calibrated(tcap: float | None, baseline: float | None) -> float | None:
    """Put a share of right guesses on a scale from 0, guessing without keys, to 1, always right.

    Examples
    --------
    >>> round(calibrated(0.733, 0.5015), 3)
    0.464
    """
    if tcap is None or baseline is None or baseline >= 1:
        return None
    return (tcap - baseline) / (1 - baseline)


def _row(
    synthetic: Microdata, original: Microdata, holdout: Microdata, columns: list[str], target: str
) -> dict[str, Any]:
    keys = [name for name in columns if name != target]
    row: dict[str, Any] = {"target": target}
    found = {}
    for what, data in (("original", original), ("holdout", holdout)):
        figures = attribution(
            data.with_roles(keys=keys, sensitive=target, identifiers=None, weight=None), synthetic
        ).figures
        found[what] = figures
    base = found["original"]["baseline"]
    row["baseline"] = base
    for what, figures in found.items():
        for name in ("tcap_conditional", "tcap"):
            row[f"{name}_{what}"] = figures[name]
            row[f"{name}_{what}_calibrated"] = calibrated(figures[name], base)  # type: ignore[arg-type]
    one, two = row["tcap_conditional_original"], row["tcap_conditional_holdout"]
    row["marginal_risk"] = None if one is None or two is None else one - two
    row["chance"] = 2 * math.sqrt(sum(_variance(figures) for figures in found.values()))
    return row


def _variance(figures: Any) -> float:
    """Variance of a share of the people who are shown a single value."""
    share, told, matched = figures["tcap_conditional"], figures["tcap"], figures["matched_records"]
    if not share or not told or not matched:
        return 0.0
    return float(share * (1 - share) / max(told / share * matched, 1.0))


def _mean(values: pl.Series) -> float | None:
    return float(values.mean()) if len(values) else None  # type: ignore[arg-type]


def _meaning(largest: float | None, beyond: int, targets: int) -> str:
    if largest is None:
        return "The made-up file tells no column for certain about anyone, so nothing could be compared."
    side = f"{percent(abs(largest))} {'more' if largest >= 0 else 'less'} often"
    told = (
        f"{beyond} of {targets} columns differ by more than chance."
        if beyond
        else "No column exceeds chance."
    )
    return (
        f"Where the made-up file tells a column for certain, it is right at most {side} about the people behind the "
        f"results than about strangers. {told}"
    )
