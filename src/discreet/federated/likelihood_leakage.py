"""What does a joint likelihood give away? The account of `SecureMLE`, counted for the run that was made."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from discreet.federated.leakage import Leakage, Learned, seeded_note, told_by_subsets
from discreet.federated.shared_product import dealer_for

if TYPE_CHECKING:
    from discreet.federated.secure_mle import SecureMLE

_OUTPUT = (
    "The result itself is not protected: who publishes estimates of few people tells something about each. Parties are "
    "assumed to follow the protocol and not to talk to each other."
)


def determining(variables: int) -> int:
    """After how many evaluations at different parameters means and covariances are known exactly.

    Examples
    --------
    >>> determining(3), determining(7)
    (9, 35)
    """
    return variables + variables * (variables + 1) // 2


def account(run: SecureMLE) -> Leakage:
    """Say what was learned by whom."""
    central = run.central.name
    made = run.evaluations + run.kept_evaluations
    size = len(run.variables)
    learned: list[Learned] = []
    collusions: list[str] = []
    notes = [_OUTPUT, *seeded_note(run.central.masks.seeded and run.mode != "plain")]
    if run.mode == "plain":
        notes.insert(
            0,
            "The protocol ran without masks: every party could read what it was passed. This is for lessons.",
        )
    sufficient = run.mode == "sufficient"
    if sufficient:
        learned.append(
            Learned(central, "all holders", f"{central} knows the number of rows and all means, variances and "
                    "covariances exactly, and nothing more about single rows")
        )  # fmt: skip
        if run.layout.kind == "complex":
            learned.append(Learned(central, "groups", f"{central} knows them for every group of rows"))
        if run.layout.kind != "horizontal":
            collusions += _dealers(run)
    else:
        learned.append(
            Learned(
                central, "all holders", f"{central} holds the likelihood at every set of parameters that it tried, "
                "each one an equation about means and covariances", made, determining(size),
            )
        )  # fmt: skip
    if run.layout.kind != "horizontal" and not sufficient:
        learned += _vertical(run)
        for group in run.layout.groups:
            collusions += [
                f"{central} and {after} recover the rows of {before}"
                for before, after in zip(group.nodes, (*group.nodes[1:], group.nodes[0]), strict=True)
                if before != after
            ]
            collusions += [
                f"{one} and {two} learn what the holders before them predict for the columns of {one}"
                for one, two in zip(group.nodes[1:], (*group.nodes[2:], group.nodes[0]), strict=True)
            ]
    if run.layout.kind != "vertical":
        collusions.append(
            "the two neighbors of a holder in a sum learn its share of the likelihood or of the moments"
        )
        if not sufficient:
            learned.append(
                Learned(central, "each holder", f"{central} learns the number of rows and the standard deviation of "
                        "every column at each holder")
            )  # fmt: skip
    return Leakage(
        f"secure MLE ({run.layout.kind}, {run.mode})", tuple(learned), tuple(dict.fromkeys(collusions)), tuple(notes),
        None if sufficient else made, None if sufficient else determining(size), _subsets(run),
        run.transport.transcript,
    )  # fmt: skip


def _subsets(run: SecureMLE) -> tuple[str, ...]:
    """Say what sums over other holders would tell, where parts of holders are added."""
    if run.layout.kind == "vertical" or (run.layout.kind == "complex" and run.mode == "sufficient"):
        return ()
    if run.layout.kind == "horizontal":
        return told_by_subsets(run.layout.nodes)
    return told_by_subsets(list(dict.fromkeys(group.nodes[0] for group in run.layout.groups)))


def _dealers(run: SecureMLE) -> list[str]:
    """Say who could take off the masks of shared products: a third holder who deals them, or else the coordinator."""
    central, said = run.central.name, []
    sites = [*run.layout.nodes, *(name for name in run.transport.names if name != central)]
    for group in run.layout.groups:
        for pair in combinations(group.nodes, 2):
            if dealer_for(pair, sites) is None:
                said.append(f"{central}, who deals the masks, and any holder recover the rows of the others")
            else:
                said.append(
                    "a holder who deals the masks of two others recovers their rows with either of them"
                )
    return said


def _vertical(run: SecureMLE) -> list[Learned]:
    scale, times = run.noise_scale or 0.0, max(1, run.evaluations + run.kept_evaluations)
    left = scale / math.sqrt(times)
    found = []
    for group in run.layout.groups:
        if len(group.nodes) < 2:
            continue
        first, *others = group.nodes
        if run.mode == "plain":
            found.append(
                Learned(run.central.name, first, f"{run.central.name} could read the rows of every holder")
            )
            continue
        found.append(
            Learned(
                run.central.name, first, f"{run.central.name} sees the rows of {first} under the same noise of "
                f"{scale:,.0f} standard deviations in every evaluation, so that averaging takes nothing off",
            )
        )  # fmt: skip
        found += [
            Learned(
                run.central.name, node, f"{run.central.name} sees residuals of {node} under fresh noise of "
                f"{scale:,.0f} standard deviations; after averaging over all {times:,} evaluations at one place, noise "
                f"of {left:,.1f} standard deviations would be left",
            )
            for node in others
        ]  # fmt: skip
        found += [
            Learned(after, before, f"{after} learns by which weights the model predicts its columns from those of "
                    f"{before}, and the spread of all columns")
            for before, after in zip(group.nodes, others, strict=False)
        ]  # fmt: skip
    return found
