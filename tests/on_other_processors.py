"""Run the numeric tests as other processors would run them: ``python tests/on_other_processors.py [tests…]``.

NumPy and OpenBLAS choose their kernels by the processor, and results differ in the last bits. Here they are told to do
without what this processor has: NumPy without AVX-512 and without AVX2, OpenBLAS with the kernels of a Haswell and of a
Zen, each with one thread and with two. Every choice meets every other one in some run. What follows the name of this
file goes to pytest in place of the numeric tests.
"""

from __future__ import annotations

import os
import subprocess
import sys

NEWEST = "X86_V4 AVX512_ICL AVX512_SPR"
RUNS = [
    {"numpy without": NEWEST, "blas": "Haswell", "threads": "1"},
    {"numpy without": NEWEST, "blas": "Zen", "threads": "2"},
    {"numpy without": f"{NEWEST} X86_V3", "blas": "Haswell", "threads": "2"},
    {"numpy without": f"{NEWEST} X86_V3", "blas": "Zen", "threads": "1"},
]
NUMERIC = [
    "tests/attack",
    "tests/dp",
    "tests/federated",
    "tests/golden",
    "tests/repeatable",
    "tests/risk",
    "tests/synth",
    "tests/trees",
    "tests/utility",
    "tests/test_copula.py",
    "tests/test_distance.py",
    "tests/test_mdav.py",
    "tests/protect/test_noise.py",
    "tests/protect/test_spectral.py",
]
OPTIONS = ("-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")


def present(features: str) -> str:
    """Name only what NumPy would use here: it warns of the others, and warnings are errors in the tests."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(
        name for name in features.split() if name in __cpu_dispatch__ and __cpu_features__.get(name)
    )


def main(arguments: list[str]) -> int:
    """Run the tests once for every kind of processor and say which runs failed."""
    failed = []
    for run in RUNS:
        told = ", ".join(f"{what} {value}" for what, value in run.items())
        print(f"== {told}", flush=True)
        environment = {
            **os.environ,
            "NPY_DISABLE_CPU_FEATURES": present(run["numpy without"]),
            "OPENBLAS_CORETYPE": run["blas"],
            **dict.fromkeys(THREADS, run["threads"]),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, *(arguments or NUMERIC)],
            env=environment,
            check=False,
        )
        if done.returncode:
            failed.append(told)
    print("\n".join(["Failed with:", *failed]) if failed else "The same on every processor tried.")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
