"""How fast does the page answer while a file of five million records is assessed in a process of its own?

The page is started as ``discreet app`` starts it, and asked for a light page again and again, first while the file is
read, then while its risk is measured. Wanted: 95 of 100 answers within 0.2 seconds. ``ROWS`` (default 5,000,000) sets
the size.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import polars as pl

ROWS = int(os.environ.get("ROWS", "5000000"))
LONGEST = float(os.environ.get("LONGEST", "300"))  # seconds of one job that are watched


def made(folder: Path, rows: int) -> Path:
    """Write a file of people with few keys and one sensitive column."""
    draw = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 100, rows),
            "sex": draw.integers(1, 3, rows),
            "region": draw.integers(1, 400, rows),
            "illness": draw.integers(0, 30, rows),
        }
    )
    place = folder / "people.parquet"
    frame.write_parquet(place)
    return place


def entered(log: Path) -> httpx.Client:
    """Wait for the address of the page and enter by it."""
    while not (found := re.findall(r"(http://[^/\s]+)(/enter/\S+)", log.read_text())):
        time.sleep(0.2)
    client = httpx.Client(base_url=found[0][0], timeout=60)
    client.get(found[0][1])
    return client


def timed(client: httpx.Client) -> float:
    """Ask for the first screen and return how long the answer took."""
    start = time.perf_counter()
    client.get("/0/file").raise_for_status()
    took = time.perf_counter() - start
    time.sleep(0.1)
    return took


def asked_until(client: httpx.Client, page: str, sign: str) -> tuple[list[float], bool]:
    """Ask for the first screen until a page shows a sign; return how long answers took, and whether it came."""
    waits: list[float] = []
    began = looked = time.monotonic()
    client.get(page)
    while time.monotonic() - began < LONGEST:
        waits.append(timed(client))
        if time.monotonic() - looked > 2:
            looked = time.monotonic()
            if sign in client.get(page).text:
                return waits, True
    return waits, False


def main() -> None:
    """Read and assess the file, and print what answers took meanwhile."""
    print(f"{ROWS:,} records, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        file, log = made(Path(place), ROWS), Path(place) / "page.log"
        with log.open("w") as written:
            command = [sys.executable, "-m", "discreet", "app", "--no-browser", str(file)]
            server = subprocess.Popen(command, stdout=written, stderr=written, cwd=place)
        try:
            client = entered(log)
            idle = sorted(timed(client) for _ in range(40))
            print(f"no job: median {idle[20]:.3f} s, 95 of 100 within {idle[37]:.3f} s", flush=True)
            for what, page, sign in (
                ("reading", "/1/file", "Next: the columns"),
                ("assessing", "/1/risk", "Key numbers"),
            ):
                began = time.monotonic()
                waits, came = asked_until(client, page, sign)
                print(
                    f"{what}: {time.monotonic() - began:.0f} s{'' if came else ' and not done'}, {len(waits)} answers, "
                    f"median {np.median(waits):.3f} s, 95 of 100 within {np.quantile(waits, 0.95):.3f} s, slowest "
                    f"{max(waits):.3f} s, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
        finally:
            server.terminate()
            server.wait(timeout=30)


if __name__ == "__main__":
    main()
