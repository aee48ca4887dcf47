"""How long does the first use of compiled loops take on a fresh install?

    python bench/first_use.py [synthesis comparison ...]

Every job runs in a process of its own, with an empty folder for compiled loops, and once more with the folder that it
filled. Reading the file is not counted. The seconds of the processor do not depend on who else uses the machine; what a
user waits for is the wall clock of a quiet one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

JOBS = (
    "table",
    "microaggregation",
    "suppression",
    "synthesis",
    "comparison",
    "swapping",
    "syndiffix",
    "suggestion",
)


def job(name: str) -> Callable[[], object]:
    """Give the work, with all that it needs read already."""
    from discreet import compare, datasets, protect, suggest, synth, tables

    people = datasets.adult()
    few = people.with_frame(people.frame.head(2000).select("age", "sex", "race", "education"))
    works = {
        "table": lambda: tables.Suppression().apply(
            tables.primary(
                tables.Table.from_microdata(people, ["sex", "race", "education", "occupation"]),
                tables.Threshold(5),
            )
        ),
        "microaggregation": lambda: protect.Microaggregate(k=3, columns=["age", "hours-per-week"]).apply(
            people, seed=1
        ),
        "suppression": lambda: protect.LocalSuppression(k=3).apply(people, seed=1),
        "synthesis": lambda: synth.Sequential().fit(people, seed=1).sample(seed=1),
        "comparison": lambda: compare(
            people, people.with_frame(people.frame.sample(fraction=1.0, shuffle=True, seed=1))
        ),
        "swapping": lambda: protect.RankSwap(columns=["age", "hours-per-week"]).apply(people, seed=1),
        "suggestion": lambda: suggest(people, "scientific-use-file", seed=1),
        "syndiffix": lambda: synth.SynDiffix().fit(few, seed=1).sample(seed=1),
    }
    return works[name]


def measured(name: str) -> dict[str, float]:
    """Do the work once, counting the functions that are compiled."""
    from numba.core.event import install_recorder

    work = job(name)
    wall, cpu = time.perf_counter(), time.process_time()
    with install_recorder("numba:compile") as heard:
        work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall": wall, "cpu": cpu, "functions": sum(event.is_start for _, event in heard.buffer)}


def main() -> None:
    """Print a line for each job."""
    print(f"{'':17}{'first use':>21}{'functions':>11}{'second use':>21}")
    print(f"{'':17}{'cpu s':>11}{'wall s':>10}{'compiled':>11}{'cpu s':>11}{'wall s':>10}")
    for name in sys.argv[1:] or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            first, second = (
                json.loads(
                    subprocess.run(
                        [sys.executable, __file__, "--measure", name],
                        env=environment,
                        stdout=subprocess.PIPE,
                        check=True,
                    ).stdout
                )
                for _ in range(2)
            )
        print(
            f"{name:17}{first['cpu']:11.1f}{first['wall']:10.1f}{first['functions']:11.0f}"
            f"{second['cpu']:11.1f}{second['wall']:10.1f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        main()
