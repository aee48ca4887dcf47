"""How long does an epoch of CTGAN and TVAE take without an accelerator, and how good are the first? Adult, two threads.

    PYTHONPATH=src python bench/epochs_on_processor.py [--epochs 1 10 30] [--threads 2]

Fit and drawing by the public classes, on Adult's 32,561 training records; tv2 and TSTR as in `deep_on_gpu`. Quoted for
SDV 2 on two cores: CTGAN with 1 epoch 20.5 s and tv2 0.307, about 4 s for each epoch more.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import polars as pl
from deep_on_gpu import LEARNED, NUMBERS, SEED, Measured, adult

from discreet import Microdata
from discreet.synth import CTGAN, TVAE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", nargs="*", type=int, default=[1, 10, 30])
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    columns, _ = adult()
    train = {n: v[:LEARNED] for n, v in columns.items()}
    measured = Measured(train, {n: v[LEARNED:] for n, v in columns.items()})
    # Codes of categories are written as texts, so that they are read as categories whatever their number.
    file = Microdata(
        pl.DataFrame({n: v if n in NUMBERS else pl.Series(v).cast(pl.String) for n, v in train.items()})
    )
    print("network  epochs  fit s  processor s  draw s     tv1     tv2    TSTR", flush=True)
    for kind in (CTGAN, TVAE):
        for epochs in given.epochs:
            began, busy = time.perf_counter(), time.process_time()
            fitted = kind(epochs=epochs, device="cpu", threads=given.threads).fit(file, seed=SEED)
            middle, used = time.perf_counter(), time.process_time() - busy
            frame = fitted.sample(LEARNED, seed=SEED).frame
            over = time.perf_counter()
            made = {n: frame[n].cast(pl.Int64).to_numpy().astype(np.int64) for n in train}
            one = measured.of(made)
            print(
                f"{kind.__name__:8s} {epochs:6d} {middle - began:6.1f} {used:12.1f} {over - middle:7.1f} "
                f"{one['tv1']:7.4f} {one['tv2']:7.4f} {one['tstr']:7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
