"""What ``discreet synthesize`` says of files that a policy judged or attackers tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.microdata import Microdata
    from discreet.synth import Synthesizer
    from discreet.workflow.synthesis_for_policy import SynthesisForPolicy


def limited(
    chosen: Synthesizer, data: Microdata | None, risk_limit: float | None, *, judged: bool, page: bool
) -> Synthesizer:
    """Set the limit that the user named, or where a policy judges the usual one; 0 takes it away."""
    wanted = _limited(chosen, data, risk_limit, judged=judged)
    if page and getattr(wanted, "risk_limit", None) is None:
        raise ParameterError(
            "--html shows what attackers gained: say how much they may with --risk-limit, e.g. 0.05."
        )
    return wanted


def _limited(
    chosen: Synthesizer, data: Microdata | None, risk_limit: float | None, *, judged: bool
) -> Synthesizer:
    from discreet.synth import Sequential
    from discreet.workflow.synthesis_within_risk import usual_limit

    if not isinstance(chosen, Sequential):
        if risk_limit:
            raise ParameterError(
                "--risk-limit closes a synthesis by columns to attackers step by step; other synthesizers have no such "
                "steps. Leave it out, and attack the file with discreet compare --attacks."
            )
        return chosen
    if risk_limit is not None:
        return replace(chosen, risk_limit=risk_limit or None)
    if chosen.risk_limit is not None or not judged or data is None:
        return chosen
    return replace(chosen, risk_limit=usual_limit(data))


def why_not_attacked(chosen: Synthesizer, risk_limit: float | None, *, judged: bool) -> str | None:
    """Say why no attacker was tried where a policy judges and nobody asked for that."""
    from discreet.synth import Sequential
    from discreet.workflow.synthesis_within_risk import ENOUGH_RECORDS

    if not judged or getattr(chosen, "risk_limit", None) is not None:
        return None
    if risk_limit is not None:
        return "No attacker was tried, as --risk-limit 0 asks: nothing is shown of what they could gain."
    if not isinstance(chosen, Sequential):
        return (
            "No attacker was tried, since only a synthesis by columns can be closed to them: nothing is shown of what "
            "they could gain. discreet compare --attacks tries them on the file."
        )
    return (
        f"No attacker was tried: of fewer than {ENOUGH_RECORDS:,} records too few people can be set aside to show "
        "much, and nothing is shown of what attackers could gain. --risk-limit 0.05 tries them all the same."
    )


def judged_synthesis(
    data: Microdata | None, policy: str | None, chosen: Synthesizer, **drawing: Any
) -> SynthesisForPolicy:
    """Synthesize by a policy, within a limit of what attackers may gain, or both."""
    from discreet.workflow.synthesis_for_policy import synthesize_for_policy

    if data is None:
        raise ParameterError("This synthesizer reads no file, so there is no original to judge it against.")
    return synthesize_for_policy(data, policy, chosen, **drawing)


def summary_of(judged: SynthesisForPolicy, not_attacked: str | None) -> dict[str, Any]:
    """Give what was done and what it came to, for JSON."""
    return {
        "steps": list(judged.steps),
        "would_have_to_give": list(judged.would_have_to_give),
        "verdicts": [verdict.to_dict() for verdict in judged.verdicts],
        "attackers": None if judged.within is None else judged.within.to_dict(),
        "not_attacked": not_attacked,
    }


def write_page(judged: SynthesisForPolicy, html: Path | None) -> None:
    """Write the page of the attackers where it was asked for."""
    if html is not None and judged.within is not None:
        judged.within.to_html(html)


def verdicts_of(judged: SynthesisForPolicy, *, asked: bool) -> Iterator[bool | None]:
    """Give the verdicts of the policy, and whether the limit holds where the user named one.

    The limit that comes with a policy is none of its rules; where attackers gained more all the same, a person has to
    look at it before the file is cleared.
    """
    yield from (verdict.meets for verdict in judged.verdicts)
    if judged.within is not None:
        if asked:
            yield judged.within.holds
        elif judged.within.gains.worst > judged.within.limit:
            yield None
