"""May a decision be written down as it was taken? Who decides, and why against what was found."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.app.jobs import caused_by
from discreet.core.errors import ParameterError

_DECISIONS = ("release", "conditions", "no")


def check_signed(signed: Mapping[str, str], *, clears: bool | None, otherwise: str) -> None:
    """Refuse a decision without a name, conditions that are not stated, and a release against what was found.

    ``clears`` says whether nothing stands against a release; ``otherwise`` is the sentence for when something does.
    """
    with caused_by("signed"):
        decision = signed.get("decision", "")
        if not decision and not signed.get("name"):
            return
        if decision not in _DECISIONS:
            raise ParameterError("Choose a decision: release, release with conditions, or do not release.")
        if not signed.get("name", "").strip():
            raise ParameterError("A decision needs the name of whoever decides.")
        stated = signed.get("remarks", "").strip()
        if decision == "conditions" and not stated:
            raise ParameterError("State the conditions under remarks.")
        if decision == "release" and clears is not True and not stated:
            raise ParameterError(f"{otherwise} Say under remarks why it goes out.")
