"""Which numbers stand alone far away, and at which do they pile up?"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.synth.preflighting.preflight_findings import Finding, Look, counted

_FEW_BEYOND = 0.001
_ROBUST = 1.4826
_LEAST_SPIKE = 5
_LARGE_SPIKE = 0.2
_MOST_SPIKES = 20
_CATEGORY = 10
_SCALE = 50
_HEAPED = 150.0
_THIN = 0.2


def outliers(look: Look) -> list[Finding]:
    """Find values beyond a wide gap, and values many robust standard deviations away.

    The values themselves are told only where the user asked for them: they belong to recognizable people.
    """
    found = []
    for name in _looked_at(look):
        values = look.clean(name)
        x = np.sort(values[~np.isnan(values)])
        if len(x) < 3 or x[0] == x[-1]:
            continue
        below, above, gap = _gaps(x, look.limits.outlier_gap)
        middle = float(np.median(x))
        deviation = _ROBUST * float(np.median(np.abs(x - middle)))
        far = int((np.abs(x - middle) > look.limits.outlier_mad * deviation).sum()) if deviation else 0
        if not below + above + far:
            continue
        bins = int(look.limits.n_bins)
        evidence: dict[str, Any] = {
            "beyond_gap": below + above,
            "gap_share_of_range": round(gap, 3),
            "beyond_mad": far,
            "largest_bin": int(np.histogram(x, bins)[0].max()),
            "bins": np.histogram(x, bins)[0].tolist(),
        }
        inner = x[below : len(x) - above]
        if below + above:
            evidence["largest_bin_without"] = int(np.histogram(inner, bins)[0].max())
        if look.show_values:
            evidence["values"] = [*x[:below].tolist(), *x[len(x) - above :].tolist()][:100]
        found.append(
            Finding(
                "outliers",
                (name,),
                evidence,
                "medium" if below + above else "low",
                "check them; if they are errors correct them, if they are real top-code the synthetic column or "
                "bin it by quantiles",
                reversible=False,
            )
        )
    return found


def spikes(look: Look) -> list[Finding]:
    """Find numbers at which records pile up.

    Of whole numbers z is the excess over the neighbors' median count; a number with decimals has no neighbors, and a
    value that many records share (no such income: 0) is a spike.
    """
    found = []
    for name in _looked_at(look):
        values, counts = counted(look.clean(name))
        if len(values) < _CATEGORY:
            continue
        if look.decimals(name) != 0:
            # A scale with decimals (sizes of households in adults) has values that many share, and no spikes.
            found += _shared_values(look, name, values, counts) if len(values) > _SCALE else []
            continue
        z = spike_scores(values, counts, int(look.limits.spike_window))
        hits = np.flatnonzero((z > look.limits.spike_z) & (counts >= _LEAST_SPIKE))
        fives, tens = whipple_indices(values, counts)
        share = counts[hits] / look.rows
        # In a column with more gaps than values every repeated number looks like a spike.
        thin = len(values) / (values[-1] - values[0] + 1) < _THIN
        if not len(hits) or (thin and max(fives, tens) <= _HEAPED and share.max() < _LARGE_SPIKE):
            continue
        order = np.argsort(-z[hits], kind="stable")[:_MOST_SPIKES]
        large = values[hits][share >= _LARGE_SPIKE]
        told = sorted(int(v) for v in values[hits][order])
        found.append(
            Finding(
                "spikes",
                (name,),
                {
                    "spikes": len(hits),
                    "records_at_spikes": int(counts[hits].sum()),
                    "whipple_5": round(fives, 1),
                    "whipple_10": round(tens, 1),
                    "values": told,
                    "z": [round(float(z[values == v][0]), 1) for v in told],
                },
                "high" if len(large) else "medium" if max(fives, tens) > _HEAPED else "low",
                "model the value at the spike apart from the rest (semicontinuous)"
                if len(large)
                else "methods with donors keep it; with parametric ones name the spikes as semicontinuous",
                parameters={"values": [int(v) for v in large] or told},
            )
        )
    return found


def _shared_values(look: Look, name: str, values: Floats, counts: Integers) -> list[Finding]:
    large = np.flatnonzero(counts >= max(_LARGE_SPIKE * look.rows, _LEAST_SPIKE))
    if not len(large):
        return []
    shared = [float(v) + 0.0 for v in values[large]]
    return [
        Finding(
            "spikes",
            (name,),
            {
                "spikes": len(large),
                "records_at_spikes": int(counts[large].sum()),
                "share": float(counts[large].sum() / look.rows),
                "values": shared,
            },
            "high",
            "model the value at the spike apart from the rest (semicontinuous)",
            parameters={"values": shared},
        )
    ]


def spike_scores(values: Floats, counts: Integers, window: int) -> Floats:
    """Score every whole number by how far its count is above the median of its neighbors'.

    Examples
    --------
    >>> spike_scores(np.array([1.0, 2.0, 3.0]), np.array([8, 80, 8]), 1).round(1).tolist()
    [-8.0, 24.0, -8.0]
    """
    around = []
    for step in (*range(-window, 0), *range(1, window + 1)):
        at = np.clip(np.searchsorted(values, values + step), 0, len(values) - 1)
        beside = np.where(values[at] == values + step, counts[at], 0.0)
        # Nobody can be below the smallest or above the largest value; such neighbors do not count.
        beyond = (values + step < values[0]) | (values + step > values[-1])
        around.append(np.where(beyond, np.nan, beside))
    middle = np.nan_to_num(np.nanmedian(np.array(around), axis=0))
    return np.asarray((counts - middle) / np.sqrt(middle + 1))


def whipple_indices(values: Floats, counts: Integers) -> tuple[float, float]:
    """Return 100 times the share of multiples of 5, and of 10, over what it would be without heaping.

    Examples
    --------
    >>> whipple_indices(np.array([20.0, 21, 22, 23, 24]), np.array([60, 10, 10, 10, 10]))
    (300.0, 600.0)
    """
    total = counts.sum()
    return (
        float(500 * counts[values % 5 == 0].sum() / total),
        float(1000 * counts[values % 10 == 0].sum() / total),
    )


def _looked_at(look: Look) -> list[str]:
    return list(look.numeric) if look.rows >= look.limits.min_rows else []


def _gaps(x: Floats, share: float) -> tuple[int, int, float]:
    """Count the values below and above a gap that wide and with few values beyond it."""
    gaps = np.diff(x) / (x[-1] - x[0])
    most = max(1, int(_FEW_BEYOND * len(x)))
    wide = np.flatnonzero(gaps >= share)
    below = max((int(at) + 1 for at in wide if at + 1 <= most), default=0)
    above = max((len(x) - int(at) - 1 for at in wide if len(x) - at - 1 <= most), default=0)
    return below, above, float(gaps.max())
