"""Do the records lie in the same directions? Principal components of the original, and both files seen along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.small_tables.table_codes import Released, as_numbers


@measure(
    title="Principal components",
    question="Do the records spread in the same directions?",
    headline="mean distance along the main components (KS)",
    chapter="joint",
    place=41,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Mean distance along a component (KS)", better="lower", summary=True),
        "highest": Figure("Largest distance along a component (KS)", better="lower"),
        "explained": Figure("Variance that the components explain", unit="share"),
        "components": Figure("Components"),
    },
)
@checked
def shared_components(
    original: Microdata, released: Any, *, columns: str | Sequence[str] | None = None, components: int = 5
) -> Measure:
    """Do the records spread in the same directions?

    Columns are coded (texts in alphabetical order, missing as -1) and brought to mean 0 and deviation 1 of the
    original. Both files are then seen along the main components of the original; along each, the largest distance of
    their distribution functions is taken (Kolmogorov and Smirnov).

    Parameters
    ----------
    original, released
        The file before and after. A release of many tables needs one that has all columns together.
    columns
        The columns; all that both files have unless named.
    components
        How many components.

    Returns
    -------
    Measure
        ``value`` is the mean distance. ``figures``: ``highest``, ``explained``, ``components``. ``detail``:
        ``components``.

    Examples
    --------
    >>> data = Microdata(pl.DataFrame({"a": [1, 2, 3, 4], "b": [2, 4, 6, 9]}))
    >>> shared_components(data, data, components=1).value
    0.0
    """
    if components < 1:
        raise ParameterError("components must be at least 1.")
    files = Released(original, released)
    names = files.named(columns)
    table = files.table(names)
    pairs = [as_numbers(files.real[name], table[name]) for name in names]
    kept = [pair for pair in pairs if np.ptp(pair[0]) > 0]
    if len(kept) < 2 or not table.height:
        raise ParameterError("Two columns that vary are needed, and a release that is not empty.")
    real, made = (np.column_stack([pair[which] for pair in kept]) for which in (0, 1))
    mean, deviation = real.mean(axis=0), real.std(axis=0)
    real, made = (real - mean) / deviation, (made - mean) / deviation
    values, directions = np.linalg.eigh(np.cov(real, rowvar=False))
    chosen = np.argsort(values)[::-1][:components]
    from scipy.stats import ks_2samp

    distances = [
        float(ks_2samp(real @ directions[:, at], made @ directions[:, at], method="asymp").statistic)
        for at in chosen
    ]
    shares = values[chosen] / values.sum()
    value = float(np.mean(distances))
    return Measure(
        "shared_components",
        value,
        {
            "highest": float(max(distances)),
            "explained": float(shares.sum()),
            "components": len(distances),
        },
        f"Along {len(distances)} main components the distributions are {value:.3g} apart on average (at most 1).",
        detail={
            "components": pl.DataFrame(
                {
                    "component": np.arange(1, len(distances) + 1),
                    "explained": shares,
                    "distance": distances,
                }
            )
        },
        parameters={"components": components},
    )
