"""Ten generators, six files: how often do they single people out, and are they cleared? The table of `how-we-know.md`.

Each generator learns from 3,000 people of each kind of file (`tests/verdicts/people_files.py`), and `synthetic-file`
and `three-attackers` judge what it draws beside 3,000 fresh people who were not used. No file may be cleared of which
the attack shows a risk of singling out above a tenth.

    python bench/generator_verdicts.py [--results bench/generator_verdicts.jsonl]

Every file is one line of the results; a run goes on where the last one stopped. The whole run takes some 12 minutes of
one processor.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import polars as pl
from verdict_curves import among
from verdicts.people_files import FILES, drawn

from discreet import Microdata, compare, synth
from discreet.core.errors import DiscreetError

ROWS = 3_000
SHOWN = 0.1
GENERATORS = {
    "copies (bootstrap)": synth.Bootstrap,
    "independent columns": synth.Independent,
    "trees": synth.Sequential,
    "parametric sequence": lambda: synth.Sequential(method="parametric"),
    "Gaussian copula": synth.GaussianCopula,
    "vine copula": synth.VineCopula,
    "Bayesian network": synth.BayesianNetwork,
    "adversarial forest": synth.AdversarialForest,
    "SynDiffix": synth.SynDiffix,
    "MST, epsilon 1": None,
}


def fitted(generator: str, people: Microdata):
    """Fit a generator; ranges and levels of the private one are read off the file, which voids its guarantee."""
    if generator != "MST, epsilon 1":
        return GENERATORS[generator]().fit(people, seed=3)
    domain = {
        name: sorted(values.drop_nulls().unique())
        if values.dtype == pl.String
        else [values.min(), values.max()]
        for name, values in people.frame.to_dict().items()
    }
    return synth.MST(epsilon=1.0, domain=domain).fit(people, seed=3)


def judged(generator: str, name: str) -> dict[str, object]:
    """Fit, draw and judge one file."""
    original, _, aside, roles = drawn(name, ROWS, seed=1)
    people, others = Microdata(original, **roles), Microdata(aside, **roles)
    line: dict[str, object] = {"generator": generator, "file": name}
    with warnings.catch_warnings(action="ignore"):
        try:
            made = fitted(generator, people).sample(seed=4)
        except DiscreetError as error:
            return line | {"refused": str(error)}
        found = compare(people, made, holdout=others, policy="synthetic-file", measures=[], seed=0)
    figures = found["singling_out"].figures
    return line | {
        "risk": [figures[one] for one in ("risk", "risk_low", "risk_high", "risk_at_least")],
        "synthetic-file": found.verdict.outcome,
        "three-attackers": among(found.verdict, "three-attackers").outcome,
    }


def run(path: Path) -> list[dict[str, object]]:
    """Judge what was not judged yet."""
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(one["generator"], one["file"]) for one in found}
    began = time.process_time()
    with path.open("a", encoding="utf-8") as file:
        for generator in GENERATORS:
            for name in FILES:
                if (generator, name) not in done:
                    found.append(judged(generator, name))
                    file.write(json.dumps(found[-1]) + "\n")
                    file.flush()
    print(
        f"{len(found) - len(done)} files judged in {time.process_time() - began:.0f} CPU s, {len(done)} before.\n"
    )
    return found


def cell(one: dict[str, object]) -> str:
    """Write one file: risk and interval, and both outcomes."""
    if "refused" in one:
        return "cannot be fitted"
    risk, low, high, _ = one["risk"]
    said = "nobody alone" if risk is None or low is None else f"{risk:.2f} ({low:.2f} to {high:.2f})"
    return f"{said}; {one['synthetic-file']}, {one['three-attackers']}"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    found = run(options.parse_args().results)
    print("| generator | " + " | ".join(FILES) + " |\n|---" + "|---" * len(FILES) + "|")
    for generator in GENERATORS:
        cells = {one["file"]: cell(one) for one in found if one["generator"] == generator}
        print(f"| {generator} | " + " | ".join(cells[name] for name in FILES) + " |")
    judged_files = [one for one in found if "risk" in one]
    shown = [one for one in judged_files if (one["risk"][3] or 0) > SHOWN]
    cleared = [one for one in shown if "met" in (one["synthetic-file"], one["three-attackers"])]
    print(
        f"\n{len(judged_files)} files; of {len(shown)} a risk above {SHOWN:g} is shown, and of these "
        f"{len(cleared)} are cleared."
    )


if __name__ == "__main__":
    main()
