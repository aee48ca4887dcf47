"""What does the order of a sequential synthesis cost?"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata
from discreet.utility.tabular import tabular

if TYPE_CHECKING:
    from discreet.synth import Sequential

_USUAL = ("file", "auto", "dependence-tree", "backward")


@checked
def cost_of_order(
    data: Microdata,
    *,
    synthesizer: Sequential | None = None,
    orders: Sequence[str] | Mapping[str, Sequence[str] | str] = _USUAL,
    copies: int = 3,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """What does the order of a sequential synthesis cost?

    The file is synthesized in each order, several times, and all its two-way tables are compared.

    Parameters
    ----------
    data
        The file.
    synthesizer
        How it is synthesized; only its order is changed. CART unless given.
    orders
        Ways of `discreet.synth.choose_order`, or ``{name: order}``.
    copies
        Synthetic files drawn in each order.
    seed
        Same data, same seed: same figures.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is how many times worse the worst pair is in the worst order than in the best.
        ``detail["orders"]`` has, for each order, the mean and the worst standardized pMSE over all pairs and the
        seconds it took, best first.

    How to read it
    --------------
    A value near 1 says that the order does not matter for this file; take whichever is quickest. A large one says
    that some orders lose relations: take the first of the table. Standardized values around 1 are as good as a
    correct model could be.

    When not to trust it
    --------------------
    Only pairs of columns are looked at; what happens between three columns is not seen. The figures vary from copy to
    copy: differences of a few tenths say nothing. The best of these orders need not be the best of all.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=400)
    >>> data = Microdata(pl.DataFrame({"x": x, "y": x + rng.normal(size=400)}))
    >>> found = cost_of_order(data, orders={"as it is": ["x", "y"], "reversed": ["y", "x"]}, copies=1, seed=1)
    >>> found.detail["orders"].columns
    ['order', 'mean_S_pMSE', 'worst_S_pMSE', 'worst_pair', 'seconds', 'columns']
    """
    from discreet.synth import Sequential

    if copies < 1:
        raise ParameterError("copies must be at least 1.")
    named = orders if isinstance(orders, Mapping) else {name: name for name in orders}
    if len(named) < 2:
        raise ParameterError("Give at least two orders to compare.")
    base = Sequential() if synthesizer is None else synthesizer
    if not isinstance(base, Sequential):
        raise ParameterError("synthesizer must be a Sequential: the others have no order of columns.")
    root = int(generator(seed).integers(2**62))
    rows = [
        _tried(data, replace(base, visit_sequence=order), name, copies, root)
        for name, order in track(named.items(), len(named), "Trying orders", progress=progress)
    ]
    table = pl.DataFrame(rows).sort("worst_S_pMSE")
    ratio = float(table["worst_S_pMSE"][-1] / table["worst_S_pMSE"][0])
    best, worst = table["order"][0], table["order"][-1]
    return Measure(
        "cost_of_order",
        ratio,
        {
            "best": best,
            "worst": worst,
            **{f"worst_S_pMSE_{row['order']}": row["worst_S_pMSE"] for row in rows},
        },
        meaning=(
            f"In the order '{best}' the worst pair of columns is {table['worst_S_pMSE'][0]:.1f} times as far off as a "
            f"correct model would be; in the order '{worst}' {table['worst_S_pMSE'][-1]:.1f} times."
        ),
        caveats=(
            "Only pairs of columns were compared.",
            "The figures vary between copies; small differences between orders mean nothing.",
        ),
        parameters={"copies": copies, "orders": list(named)},
        detail=Detail(orders=lambda: table),
    )


def _tried(data: Microdata, synthesizer: Sequential, name: str, copies: int, root: int) -> dict[str, Any]:
    began = time.perf_counter()
    fitted = synthesizer.fit(data, seed=root)
    drawn = fitted.sample(copies=copies, seed=root)
    seconds = time.perf_counter() - began
    files = drawn if isinstance(drawn, list) else [drawn]
    tables = [tabular(data, file, ways=2).detail["tables"] for file in files]
    worst = [table.sort("S_pMSE", descending=True, nulls_last=True).row(0, named=True) for table in tables]
    return {
        "order": name,
        "mean_S_pMSE": sum(float(table["S_pMSE"].mean()) for table in tables) / copies,
        "worst_S_pMSE": sum(float(row["S_pMSE"]) for row in worst) / copies,
        "worst_pair": worst[0]["variables"],
        "seconds": seconds,
        "columns": ", ".join(fitted.plan.order),
    }
