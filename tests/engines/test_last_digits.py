"""The same data give the same figures to the last bit, whatever the number of threads and the hashes of texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def told(threads, hashes):
    place = Path(__file__).with_name("last_digits.py")
    more = {"POLARS_MAX_THREADS": str(threads), "PYTHONHASHSEED": str(hashes)}
    done = subprocess.run(
        [sys.executable, place], env=os.environ | more, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_figures_are_the_same_to_the_last_bit_with_other_threads_and_hashes():
    first = told(1, 0)
    for threads, hashes in ((1, 1), (2, 0), (2, 1)):
        again = told(threads, hashes)
        assert {name for name in first if first[name] != again[name]} == set()
