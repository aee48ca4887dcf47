"""What a command hands back to the shell: 0 is a clearance, everything else is not.

0 done (and every rule of the policy was judged and holds), 1 a defect in discreet, 2 bad input, 3 the policy is not
met, 4 nothing failed, but something is left to judge: rules that need what was not there, outputs that need a person.
"""

from __future__ import annotations

from collections.abc import Iterable

import typer

DEFECT = 1
BAD_INPUT = 2
NOT_MET = 3
LEFT_TO_JUDGE = 4


def end_by(meets: Iterable[bool | None]) -> None:
    """End a command by its verdicts: True for a policy that is met, None for one left open."""
    found = list(meets)
    if False in found:
        raise typer.Exit(NOT_MET)
    if None in found:
        raise typer.Exit(LEFT_TO_JUDGE)
