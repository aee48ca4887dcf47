"""How long does an epoch of CTGAN and TVAE take without an accelerator, and how good are the first? Adult, two threads.

    PYTHONPATH=src python bench/epochs_on_processor.py [--epochs 1 10 30] [--threads 2] [--peer]

Fit and drawing by the public classes, on Adult's 32,561 training records; tv2 and TSTR as in `deep_on_gpu`. With
``--peer`` the package `ctgan`, whose networks SDV 2 trains, learns the same file in the same run, with as many epochs,
the same batch and as many threads (its licence is no open one: install it in an environment of its own). Wall time on a
busy machine says little; compare processor time, and within one run. Quoted for SDV 2 on two quiet cores: CTGAN with 1
epoch 20.5 s and tv2 0.307, about 4 s for each epoch more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl
from deep_on_gpu import LEARNED, NUMBERS, SEED, Measured, adult

from discreet import Microdata
from discreet.synth import CTGAN, TVAE

Columns = dict[str, np.ndarray]


def ours(name: str, epochs: int, threads: int, train: Columns) -> Callable[[], Columns]:
    """Fit one of our networks, and return what draws from it."""
    # Codes of categories are written as texts, so that they are read as categories whatever their number.
    file = Microdata(
        pl.DataFrame({n: v if n in NUMBERS else pl.Series(v).cast(pl.String) for n, v in train.items()})
    )
    kind = {"CTGAN": CTGAN, "TVAE": TVAE}[name]
    fitted = kind(epochs=epochs, device="cpu", threads=threads).fit(file, seed=SEED)

    def draw() -> Columns:
        frame = fitted.sample(LEARNED, seed=SEED).frame
        return {n: frame[n].cast(pl.Int64).to_numpy().astype(np.int64) for n in train}

    return draw


def peer(name: str, epochs: int, threads: int, train: Columns) -> Callable[[], Columns]:
    """Fit the network of the same name of the package `ctgan`, and return what draws from it."""
    import ctgan
    import pandas as pd
    import torch

    torch.manual_seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 - the package draws from it
    torch.set_num_threads(threads)
    frame = pd.DataFrame({n: v if n in NUMBERS else v.astype(str) for n, v in train.items()})
    model = getattr(ctgan, name)(epochs=epochs, enable_gpu=False)
    model.fit(frame, [n for n in train if n not in NUMBERS])

    def draw() -> Columns:
        made = model.sample(LEARNED)
        return {n: made[n].astype(np.int64).to_numpy() for n in train}

    return draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", nargs="*", type=int, default=[1, 10, 30])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--networks", nargs="*", default=["CTGAN", "TVAE"])
    parser.add_argument("--peer", action="store_true")
    given = parser.parse_args()
    columns, _ = adult()
    train = {n: v[:LEARNED] for n, v in columns.items()}
    measured = Measured(train, {n: v[LEARNED:] for n, v in columns.items()})
    print(
        "network        epochs  fit s  processor s  draw s     tv1     tv2    TSTR  more s  more processor s",
        flush=True,
    )
    for name in given.networks:
        for whose, fit in {"ours": ours, **({"peer": peer} if given.peer else {})}.items():
            first: tuple[int, float, float] | None = None
            for epochs in given.epochs:
                began, busy = time.perf_counter(), time.process_time()
                draw = fit(name, epochs, given.threads, train)
                middle, used = time.perf_counter(), time.process_time() - busy
                made = draw()
                over = time.perf_counter()
                one = measured.of(made)
                more = ""
                if first is None:
                    first = (epochs, middle - began, used)
                else:  # what one epoch more costs, without what is set up once
                    beyond = epochs - first[0]
                    more = f"{(middle - began - first[1]) / beyond:7.2f} {(used - first[2]) / beyond:17.2f}"
                print(
                    f"{name + ', ' + whose:14s} {epochs:6d} {middle - began:6.1f} {used:12.1f} {over - middle:7.1f} "
                    f"{one['tv1']:7.4f} {one['tv2']:7.4f} {one['tstr']:7.4f} {more}",
                    flush=True,
                )


if __name__ == "__main__":
    sys.exit(main())
