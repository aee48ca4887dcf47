"""Do two columns still lie together as they did? Densities of a pair of numbers, smoothed alike and laid over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import pictured
from discreet.core.charts import Chart, Contours, Layer, rows_of
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Entries, HoldsValues, Public, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, weights_of

_Level = Annotated[float, Share(above=True, below=True)]

_BINNED_ABOVE = 100_000
_FINER = (
    10  # bins between two points of the grid, so that binning moves a value by at most a twentieth of a step
)
_REACH = 4.0  # bandwidths beyond which the kernel is nothing


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    points = rows_of(found, "grid", "x", "y", "original", "released")
    heights = sorted(rows_of(found, "levels", "level", "original", "released"), key=lambda row: row["level"])
    if not points or not heights:
        return
    across, up = found.parameters["columns"]
    files = {"Released": "released", "Original": "original"}
    grids = {
        title: [[float(row[file]) for row in part] for _, part in groupby(points, key=lambda row: row["x"])]
        for title, file in files.items()
    }
    levels = {title: tuple(float(row[file]) for row in heights) for title, file in files.items()}
    right, upward = _inhabited(list(grids.values()), [min(levels[title]) for title in grids])
    layers = [
        Layer(title, tuple(tuple(row[upward]) for row in grid[right]), levels[title])
        for title, grid in grids.items()
    ]
    yield Contours(
        title=f"Where people are: “{across}” and “{up}”",
        layers=tuple(layers),
        shares=tuple(float(row["level"]) for row in heights),
        across=str(across),
        up=str(up),
        axis=f"Regions of highest density with {_listed(heights)} of the people, the innermost thickest",
    )


def _inhabited(grids: Sequence[list[list[float]]], lowest: Sequence[float]) -> tuple[slice, slice]:
    """Find the part of the grids within the outermost contours, for a few far values would leave the picture empty."""
    inside = [
        (i, j)
        for grid, height in zip(grids, lowest, strict=True)
        for i, row in enumerate(grid)
        for j, value in enumerate(row)
        if value >= height
    ]
    right, upward = ([place[axis] for place in inside] for axis in (0, 1))
    return slice(max(0, min(right) - 2), max(right) + 3), slice(max(0, min(upward) - 2), max(upward) + 3)


def _listed(heights: Sequence[dict[str, Any]]) -> str:
    words = [f"{100 * float(row['level']):g} %" for row in heights]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@pictured(_pictures)
@checked
def densities(
    original: Microdata,
    released: Microdata,
    columns: ColumnNames,
    *,
    grid: Annotated[int, AtLeast(5)] = 50,
    levels: Annotated[Sequence[_Level], HoldsValues(), Entries()] = (0.5, 0.8, 0.95),
    bandwidth: Annotated[tuple[float, float], Public()] | None = None,
    weight: ColumnName | None = None,
) -> Measure:
    """Do two numeric columns still lie together as they did?

    The joint density of the two columns is estimated in both files by a product Gaussian kernel, with the same
    bandwidth (Scott's rule on the original), on the same grid. Above 100,000 records values are put into fine bins
    first and smoothed by fast Fourier transform.

    Parameters
    ----------
    original, released
        The file before and after.
    columns
        Two columns of numbers or dates.
    grid
        Points along each axis.
    levels
        Shares of the people that the regions of highest density hold, drawn as contours.
    bandwidth
        Of the two columns, in their units, where Scott's rule is not wanted.
    weight
        Survey weight; the one of the original unless named.

    Returns
    -------
    Measure
        ``value`` is the integrated absolute error, the volume between the two densities: 0 for equal ones, 2 for ones
        that never meet. ``figures``: ``integrated_absolute_error``, ``overlap`` (the volume under both, 0 to 1),
        ``bandwidth_x``, ``bandwidth_y``, ``mode_shift`` (in bandwidths), and for each level the share of the original's
        region that the release's covers (``region_overlap_50``…). ``detail``: ``grid``, both densities at each point;
        ``levels``, the height of the contours.

    How to read it
    --------------
    ``overlap`` is the share of the density that both files have in common; 95 % and more looks the same to the eye.
    Look at the picture: contours of the release that are rounder than the original's have lost the relation, ones
    that are smaller have lost the edges, and new islands are people who do not exist.

    When not to trust it
    --------------------
    A density is a smoothed picture: spikes (many zeros, rounded incomes) are smeared out, and the result depends on
    the bandwidth. With a few hundred records much of the difference is chance: two samples of one population differ
    too. It is about two columns only, and about numbers only.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 2.0, 3.0]}))
    >>> densities(people, people, ["x", "y"]).value
    0.0
    """
    copies_of(released, original)
    if isinstance(columns, str) or len(columns) != 2 or columns[0] == columns[1]:
        raise ParameterError("columns must name two different columns of numbers.")
    compared_columns(original, released, columns)
    weights, notes = weights_of(original, released, weight)
    samples = _samples(original, released, columns, weights)
    (x, w), (y, v) = samples
    wide = _bandwidth(x, w, columns) if bandwidth is None else np.asarray(bandwidth, dtype=np.float64)
    if wide.shape != (2,) or not (np.isfinite(wide).all() and (wide > 0).all()):
        raise ParameterError("bandwidth must be two numbers above 0.")
    pooled = np.vstack([x, y])
    axes = [
        np.linspace(pooled[:, k].min() - 3 * wide[k], pooled[:, k].max() + 3 * wide[k], grid) for k in (0, 1)
    ]
    before, after = (kernel_density(points, mass, axes, wide) for points, mass in ((x, w), (y, v)))
    patch = float((axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0]))
    before, after = before / (before.sum() * patch), after / (after.sum() * patch)
    apart = float(np.abs(before - after).sum()) * patch
    heights = {level: (_height(before, level), _height(after, level)) for level in levels}
    covered = {
        f"region_overlap_{level * 100:g}": float(((before >= a) & (after >= b)).sum() / (before >= a).sum())
        for level, (a, b) in heights.items()
    }
    peaks = [np.unravel_index(int(np.argmax(d)), d.shape) for d in (before, after)]
    moved = np.hypot(*((axes[k][peaks[0][k]] - axes[k][peaks[1][k]]) / wide[k] for k in (0, 1)))
    points = pl.DataFrame(
        {
            "x": np.repeat(axes[0], grid),
            "y": np.tile(axes[1], grid),
            "original": before.ravel(),
            "released": after.ravel(),
        }
    )
    contours = pl.DataFrame(
        [{"level": level, "original": a, "released": b} for level, (a, b) in heights.items()]
    )
    if len(x) < 500:
        notes.append("With so few records much of the difference between two densities is chance.")
    return Measure(
        name="densities",
        value=apart,
        figures={
            "integrated_absolute_error": apart,
            "overlap": 1 - apart / 2,
            **covered,
            "mode_shift": float(moved),
            "bandwidth_x": float(wide[0]),
            "bandwidth_y": float(wide[1]),
            "records": len(x),
            "released_records": len(y),
        },
        meaning=(
            f"The joint density of '{columns[0]}' and '{columns[1]}' has {percent(1 - apart / 2)} in common before and "
            "after."
        ),
        caveats=[*notes, DEPENDENT],
        parameters={
            "columns": list(columns),
            "grid": grid,
            "levels": list(levels),
            "bandwidth": wide.tolist(),
            "weight": weights[0],
            "binned": max(len(x), len(y)) > _BINNED_ABOVE,
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=engine.tables_like(original, grid=points, levels=contours),
    )


def kernel_density(
    points: Floats, mass: Floats, axes: Sequence[Floats], wide: Floats, *, binned: bool | None = None
) -> Floats:
    """Estimate a density of two columns on a grid by a product Gaussian kernel."""
    if binned is None:
        binned = len(points) > _BINNED_ABOVE
    if binned:
        return _smoothed(points, mass, axes, wide)
    parts = []
    for k in (0, 1):
        away = (axes[k][:, None] - points[None, :, k]) / wide[k]
        parts.append(np.exp(-0.5 * away**2) / (np.sqrt(2 * np.pi) * wide[k]))
    density: Floats = (parts[0] * (mass / mass.sum())) @ parts[1].T
    return density


def _smoothed(points: Floats, mass: Floats, axes: Sequence[Floats], wide: Floats) -> Floats:
    """Share each record out over the four nearest bins, and convolve axis by axis."""
    from scipy.signal import fftconvolve

    sizes = [(len(axis) - 1) * _FINER + 1 for axis in axes]
    steps = [float(axis[1] - axis[0]) / _FINER for axis in axes]
    places = [(points[:, k] - axes[k][0]) / steps[k] for k in (0, 1)]
    low = [np.clip(np.floor(place).astype(np.int64), 0, sizes[k] - 2) for k, place in enumerate(places)]
    part = [places[k] - low[k] for k in (0, 1)]
    counts = np.zeros(sizes[0] * sizes[1])
    share = mass / mass.sum()
    for i in (0, 1):
        for j in (0, 1):
            weight = share * (part[0] if i else 1 - part[0]) * (part[1] if j else 1 - part[1])
            counts += np.bincount((low[0] + i) * sizes[1] + low[1] + j, weights=weight, minlength=len(counts))
    density = counts.reshape(sizes)
    for k in (0, 1):
        reach = int(np.ceil(_REACH * wide[k] / steps[k]))
        at = np.arange(-reach, reach + 1) * steps[k] / wide[k]
        kernel = np.exp(-0.5 * at**2) / (np.sqrt(2 * np.pi) * wide[k])
        density = fftconvolve(density, kernel[:, None] if k == 0 else kernel[None, :], mode="same")
    smooth: Floats = np.maximum(density, 0.0)[::_FINER, ::_FINER]
    return smooth


def _height(density: Floats, level: float) -> float:
    """Give the height above which the density holds this share of the people."""
    ordered = np.sort(density.ravel())[::-1]
    held = np.cumsum(ordered) / ordered.sum()
    return float(ordered[min(int(np.searchsorted(held, level)), len(ordered) - 1)])


def _bandwidth(points: Floats, mass: Floats, columns: Sequence[str]) -> Floats:
    share = mass / mass.sum()
    mean = (share[:, None] * points).sum(axis=0)
    spread = np.sqrt(
        (share[:, None] * (points - mean) ** 2).sum(axis=0) * len(points) / max(1, len(points) - 1)
    )
    for name, width in zip(columns, np.ptp(points, axis=0), strict=True):
        if width == 0:
            raise ColumnError(f"Column '{name}' does not vary in the original, so it has no density.")
    wide: Floats = spread * len(points) ** (-1 / 6)
    return wide


def _samples(
    original: Microdata, released: Microdata, columns: Sequence[str], weights: tuple[str | None, str | None]
) -> list[tuple[Floats, Floats]]:
    wanted = [[*columns, *([weight] if weight and weight not in columns else [])] for weight in weights]
    frames = [engine.collect(data, names) for data, names in zip((original, released), wanted, strict=True)]
    kinds = [engine.compared_as(name, frames[0][name], frames[1][name]) for name in columns]
    for name, (kind, _, _) in zip(columns, kinds, strict=True):
        if kind != "number":
            raise ColumnError(
                f"Column '{name}' does not hold numbers or dates in both files; it has no density."
            )
    found = []
    for frame, weight, what in zip(frames, weights, ("original", "release"), strict=True):
        points = np.column_stack(
            [
                engine.physical(engine.brought_to(frame[name], dtype))
                for name, (_, dtype, _) in zip(columns, kinds, strict=True)
            ]
        )
        mass = np.ones(len(points)) if weight is None else frame[weight].cast(pl.Float64).to_numpy()
        known = np.isfinite(points).all(axis=1)
        if known.sum() < 2:
            raise InputError(
                f"Fewer than two records of the {what} know both '{columns[0]}' and '{columns[1]}'."
            )
        found.append((points[known], mass[known]))
    return found
