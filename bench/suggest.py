"""Does `suggest` reach the templates from the file alone, how much is lost, and how long does it take?

Seven files with the roles that `inspect` proposes, two templates each. Beside each suggestion stand two plans of the
kind that people write by hand for such a file: ages in bands of ten years and the rest regrouped (Mondrian with all
that the policy asks of a class), or single cells suppressed. Of these the one counts that meets the policy at the lower
loss; often none does. Seconds are those of the processor, all threads together.

    DISCREET_TEST_DATA=... python bench/suggest.py [file ...] [--policy scientific-use-file] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import discreet
from discreet import Microdata, Policy, engine
from discreet.core.errors import DiscreetError
from discreet.protect import Band, DropIdentifiers, KAnonymity, LocalSuppression, Mondrian, Plan
from discreet.utility import information_loss
from discreet.workflow.recipes import aims_of

FILES = {
    "adult": None,
    "eusilcS": "eusilcS.csv.gz",
    "ghanaS": "ghanaS.csv.gz",
    "testdata": "testdata.csv",
    "SD2011": "SD2011.csv",
    "ma2019": "nist-dce/ma2019.csv",
    "bank": "tabular/bank_marketing.csv.gz",
}
POLICIES = ("scientific-use-file", "public-use-file")
AGES = {"age": 10, "AGEP": 10}


def read(name: str) -> Microdata:
    """Read a file and forget its roles."""
    path = FILES[name]
    data = (
        discreet.datasets.adult()
        if path is None
        else discreet.read(Path(os.environ["DISCREET_TEST_DATA"]) / path)
    )
    bare = Microdata(engine.whole_frame(data))
    return bare.with_roles(**discreet.inspect(bare).proposal.to_dict())


def by_hand(data: Microdata, policy: Policy) -> dict[str, Plan]:
    """Write the plans that a practitioner would try first."""
    aims = aims_of(policy, data.roles.sensitive)
    k = max(5, aims.k)
    bands = {name: width for name, width in AGES.items() if name in data.roles.keys}
    first = [
        *([DropIdentifiers()] if data.roles.identifiers else []),
        *([Band(widths=bands)] if bands else []),
    ]
    return {
        "regroup": Plan([*first, Mondrian(models=[KAnonymity(k), *aims.models])]),
        "suppress": Plan([*first, LocalSuppression(k=k)]),
    }


def best_by_hand(data: Microdata, policy: Policy) -> tuple[float | None, str]:
    """Give the loss of the cheapest plan that passes, and in words what the plans fail where none does."""
    passing, failing = [], []
    for name, plan in by_hand(data, policy).items():
        try:
            made = plan.apply(data, seed=1).data
        except DiscreetError:
            failing.append(f"{name}: cannot be applied")
            continue
        verdict = discreet.judge(made, policy, data)
        if verdict.meets:
            passing.append(information_loss(data, made, aligned=True).value)
        else:
            failing.append(f"{name}: {', '.join(check.measure for check in verdict.failed)}")
    if passing:
        return min(passing), f"{min(passing):.3f}"
    return None, f"none ({'; '.join(failing)})"


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("files", nargs="*", default=list(FILES))
    asked.add_argument("--policy", action="append")
    asked.add_argument("--workers", type=int, default=1)
    given = asked.parse_args()
    print(f"{'file':<9} {'policy':<20} {'reached':<8} {'loss':>6} {'CPU s':>6} {'wall s':>6} erased  by hand")
    for name in given.files:
        data = read(name)
        for policy in given.policy or POLICIES:
            cpu, wall = time.process_time(), time.perf_counter()
            found = discreet.suggest(data, policy, seed=1, workers=given.workers)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            loss = "-" if found.loss is None else f"{found.loss:.3f}"
            erased = sum(lost >= 1 for lost in found.losses.values())
            reference = best_by_hand(data, Policy.load(policy))[1]
            print(
                f"{name:<9} {policy:<20} {'yes' if found.meets else 'NO':<8} {loss:>6} {cpu:>6.0f} {wall:>6.0f} "
                f"{erased:>6}  {reference}",
                flush=True,
            )
            for obstacle in found.obstacles:
                print(f"          {obstacle}", flush=True)


if __name__ == "__main__":
    main()
