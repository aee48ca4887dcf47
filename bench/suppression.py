"""How long does secondary suppression take, how does it grow, and how does it compare?

    python bench/suppression.py [--data FOLDER] [--largest 60000] [--plain 3000]

Seconds of processor time. Reference points are those of GaussSuppression 1.2.3 (R), which cannot run here: its CPU
seconds are quoted from a 2-core machine of the same kind. Growth is over invented hierarchical tables; beside it the
same elimination in plain Python dictionaries, and the optimum by integer programming, where they finish.
The optimum protects intervals (counts known to be one or more), the elimination exact values: it may need more cells.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

from discreet.tables import Dominance, PPercent, Suppression, Table, Threshold, audit, gauss, primary
from discreet.tables.feasibility_intervals import feasible_bounds
from discreet.tables.gauss.problem import equal_columns

warnings.simplefilter("ignore")


def timed(work, *given, **named):
    began = time.process_time()
    result = work(*given, **named)
    return result, time.process_time() - began


def plain_version():
    """The dictionaries of the tests."""
    path = Path(__file__).parents[1] / "tests" / "tables" / "plain_elimination.py"
    spec = importlib.util.spec_from_file_location("plain_elimination", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.plain_secondary


def references(folder: Path):
    d2, d4 = pl.read_csv(folder / "ssb_d2.csv"), pl.read_csv(folder / "ssb_d4.csv")
    firms = pl.read_csv(folder / "rtauargus_indiv_dt.csv.gz")
    geographies = "(region+county+k_group)*main_income"
    yield (
        "ssb_d2, three geographies", 18, None,
        primary(Table.from_microdata(d2, geographies, count="freq"), Threshold.up_to(3, zeros=True)),
    )  # fmt: skip
    yield (
        "ssb_d4, six dimensions", 1170, 18.7,
        primary(
            Table.from_microdata(d4, f"{geographies}*(months+months2)", count="freq"), Threshold.up_to(10, zeros=False)
        ),
    )  # fmt: skip
    tree = {"A88": ("A21", "A10"), "NUTS3": ("NUTS2", "NUTS1")}
    turnover = Table.from_microdata(firms, "A88*NUTS3", measure="TURNOVER", hierarchies=tree)
    yield "turnover by activity and place", 234, 2.1, primary(turnover, Dominance(1, 85))
    tree = {"A88": ("A21", "A10"), "NUTS2": "NUTS1"}
    by_size = Table.from_microdata(firms, "A88*NUTS2*SIZE", measure="TURNOVER", hierarchies=tree)
    yield "turnover by activity, place, size", 442, None, primary(by_size, PPercent(10))


def invented(cells: int):
    """A hierarchical three-way table of counts with about so many cells, a few per cent of them small."""
    side = max(4, round((cells / 9) ** (1 / 2)))
    rng = np.random.default_rng(20)
    n = 60 * cells
    place = np.minimum(rng.geometric(3 / side, size=n) - 1, side - 1)
    trade = np.minimum(rng.geometric(4 / side, size=n) - 1, side - 1)
    frame = pl.DataFrame(
        {
            "place": pl.Series(place).cast(pl.String),
            "district": pl.Series(place // 6).cast(pl.String) + "d",
            "trade": pl.Series(trade).cast(pl.String),
            "branch": pl.Series(trade // 5).cast(pl.String) + "b",
            "age": pl.Series(rng.integers(0, 6, size=n)).cast(pl.String),
        }
    )
    hierarchies = {"place": "district", "trade": "branch"}
    return primary(
        Table.from_microdata(frame, "place*trade*age", hierarchies=hierarchies),
        Threshold.up_to(3, zeros=False),
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, default=None)
    arguments.add_argument("--largest", type=int, default=60_000)
    arguments.add_argument("--plain", type=int, default=3_000)
    given = arguments.parse_args()
    Suppression().apply(invented(200))  # compile, or load what was compiled before

    if given.data:
        print(
            "Reference points: cells, primary, secondary against exact disclosure (R), with intervals as well, "
            "seconds with audit and two orders, alone, R, ratio, audit"
        )
        for name, theirs, seconds, table in references(given.data):
            result, all_in = timed(Suppression(intervals=False).apply, table)
            _, alone = timed(Suppression(intervals=False, tries=1, repair=False).apply, table)
            wide = Suppression().apply(table)
            with_intervals = (
                "not tested" if wide.audit.intervals is None else f"{wide.figures['secondary']:,}"
            )
            f = result.figures
            ratio = "" if seconds is None else f"{seconds:5.1f} s, {seconds / all_in:4.0f} times faster"
            outcome = "clean" if result.audit.safe and wide.audit.safe else "DISCLOSES"
            print(
                f"  {name:<32} {f['cells']:>7,} {f['primary']:>6,} {f['secondary']:>6,} ({theirs:,}) "
                f"{with_intervals:>10}  {all_in:6.2f} s  {alone:6.2f} s  {ratio:<28} {outcome}"
            )

    plain = plain_version()
    print(
        "\nGrowth: cells, inner cells, primary, secondary; elimination, exact audit; dictionaries; optimum; LP a cell"
    )
    for cells in (230, 300, 1_000, 3_000, 10_000, 30_000, 60_000):
        if cells > given.largest:
            break
        table = invented(cells)
        x, secret, z = table.x.tocsc(), table.cells["primary"].to_numpy(), np.asarray(table.values)
        found, seconds = timed(gauss.secondary, x, secret, values=z)
        outcome, checked = timed(audit, table, found.secondary)
        line = (
            f"  {x.shape[1]:>7,} {x.shape[0]:>7,} {int(secret.sum()):>6,} {len(found.secondary):>6,}  "
            f"{seconds:7.2f} s {checked:6.2f} s {'clean' if outcome.safe else 'DISCLOSES'}"
        )
        if cells <= given.plain:
            first = equal_columns(x) == np.arange(x.shape[1])
            order = [
                c
                for c in np.lexsort((-np.diff(x.indptr), np.diff(x.indptr) == 1, -z))
                if first[c] and not secret[c]
            ]
            _, took = timed(plain, x, np.flatnonzero(secret & first), order)
            line += f"  plain {took:7.2f} s ({took / seconds:5.0f} times)"
        if cells <= 1_000:
            best, took = timed(Suppression(method="optimal", time_limit=60).apply, table)
            proved = "proved" if best.figures["proved_optimal"] else "not proved"
            line += f"  optimum {took:6.1f} s, {best.figures['secondary']} cells, {proved}"
        sample = np.flatnonzero(secret)[:: max(1, int(secret.sum()) // 50)]
        inner = table.inner["count"].to_numpy()
        _, took = timed(feasible_bounds, x, inner, found.published, sample, whole=True)
        line += f"  LP {1000 * took / len(sample):6.1f} ms"
        print(line, flush=True)


if __name__ == "__main__":
    main()
