"""How long will it take, and how much memory, before it is tried?

Trees are grown on a few records of this very file, on this very machine, and the time is carried over to all
records. Compiling on first use (some seconds, once per installation) is left out of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError
from discreet.core.randomness import generator
from discreet.microdata import Microdata
from discreet.synth.sequential.sequential import Sequential

_PROBES = (2000, 8000)
_WARM_UP = 200
# Bytes a cell takes at the peak of a fit, on top of the file: the column as numbers, its codes for trees, the
# donors in leaf order, and working copies of what is being grown. Measured, see tests/synth/test_preflight.py.
_BYTES_PER_CELL = 40
_BYTES_PER_ROW = 60
_USUAL_PROCESS = 300e6


def expected_cost(synthesizer: Sequential, data: Microdata, frame: pl.DataFrame) -> dict[str, Any]:
    """Predict seconds and peak memory of fitting and sampling this synthesizer by growing small ones first."""
    rows = frame.height
    sizes = sorted({min(rows, size) for size in _PROBES})
    try:
        _timed(synthesizer, data, frame, min(rows, _WARM_UP))
        timings = [_timed(synthesizer, data, frame, size) for size in sizes]
    except DiscreetError as error:
        return {"note": f"Nothing could be timed: {error}"}
    fit = _carried_over(sizes, [timing[0] for timing in timings], rows)
    sample = _carried_over(sizes, [timing[1] for timing in timings], rows)
    memory = frame.estimated_size() * 2 + rows * (_BYTES_PER_ROW + _BYTES_PER_CELL * frame.width)
    return {
        "method": "cart",
        "fit_seconds": fit,
        "sample_seconds": sample,
        "memory_bytes": int(memory + peak_memory()),
        "rows": rows,
        "probe_rows": sizes[-1],
        "note": "Compiling on first use comes on top, some seconds once. Memory is that of the whole process.",
    }


def told(expected: Mapping[str, Any]) -> str:
    """Say the cost in one line."""
    if "fit_seconds" not in expected:
        return str(expected.get("note", "The cost was not predicted (probe=False)."))
    return (
        f"Expected with CART: {_seconds(expected['fit_seconds'])} to fit, {_seconds(expected['sample_seconds'])} a "
        f"synthetic copy, {expected['memory_bytes'] / 1e9:.1f} GB of memory at most. {expected['note']}"
    )


def peak_memory() -> int:
    """Return the most memory that this process has held so far, in bytes."""
    try:
        import resource
    except ImportError:
        return int(_USUAL_PROCESS)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _timed(synthesizer: Sequential, data: Microdata, frame: pl.DataFrame, size: int) -> tuple[float, float]:
    rng = generator(0, "preflight", "probe", str(size))
    rows = np.sort(rng.choice(frame.height, size=size, replace=False))
    part = data.with_frame(engine.in_kind(data, frame[rows]))
    began = time.perf_counter()
    fitted = synthesizer.fit(part, seed=0)
    between = time.perf_counter()
    fitted.sample(seed=0)
    return between - began, time.perf_counter() - between


def _carried_over(sizes: list[int], seconds: list[float], rows: int) -> float:
    """Carry the time over to all records: a part that every file takes, and one that grows like n log n."""
    work = [size * np.log2(size + 1) for size in sizes]
    aim = rows * np.log2(rows + 1)
    if len(sizes) == 1:
        return float(seconds[0] * aim / work[0])
    slope = max((seconds[1] - seconds[0]) / (work[1] - work[0]), 0.25 * seconds[1] / work[1])
    start = max(seconds[1] - slope * work[1], 0.0)
    return float(start + slope * aim)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 60 else f"{value / 60:.1f} min"
