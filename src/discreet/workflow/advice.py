"""What to do next, in plain words, from what the measures found."""

from __future__ import annotations

from discreet.microdata import Microdata
from discreet.results import Scenario, Verdict, percent


def next_steps(data: Microdata, main: Scenario, verdict: Verdict | None) -> list[str]:
    """List the steps that would help most, the most useful first."""
    steps = []
    if data.roles.identifiers:
        names = ", ".join(f"'{name}'" for name in data.roles.identifiers)
        steps.append(
            f"Drop the direct identifiers ({names}) or replace them with keyed pseudonyms before release."
        )
    steps += _about_keys(main)
    steps += _about_sensitive(main)
    if verdict is None:
        steps.append(
            "Name a policy to get a verdict: a template ('public-use-file', 'scientific-use-file', 'safe-setting') "
            "or a TOML file of your own."
        )
    elif verdict.meets is None:
        steps.append(
            f"Have the rest of policy '{verdict.policy}' judged, {verdict.left}: until then it clears nothing."
        )
    elif verdict.meets:
        steps.append(
            "Think of what else a recipient may know or link to. If other columns are known outside, "
            "add them to the keys and assess again."
        )
        steps.append("Keep this report with the release decision.")
    else:
        steps.append("After each change assess again and compare; stop when the policy is met.")
    return steps


def _about_keys(main: Scenario) -> list[str]:
    steps = []
    uniques, drivers = main.measures.get("uniqueness"), main.measures.get("key_contributions")
    exposed = main.measures["k_anonymity"].figures["records_below_3"]
    if exposed and drivers is not None and len(main.keys) > 1:
        best = drivers.detail["variables"]
        key = best["key"][0] if hasattr(best, "columns") else "the strongest key"
        before = uniques.figures["unique_share"] if uniques else None
        after = drivers.figures["best_unique_share_without"]
        if isinstance(before, float) and isinstance(after, float) and before > after:
            steps.append(
                f"Coarsen or drop '{key}' first: without it {percent(after)} of the records would be unique "
                f"instead of {percent(before)}. Bands (age in 5- or 10-year groups) often suffice."
            )
    if exposed:
        steps.append(
            f"Recode rare key values into groups, then suppress key cells in what remains of the {exposed:,} records "
            "in groups of one or two."
        )
    return steps


def _about_sensitive(main: Scenario) -> list[str]:
    diversity = main.measures.get("l_diversity")
    if diversity is None:
        if "l_diversity" in main.skipped:
            return [
                "Name the sensitive columns: without them nobody knows what can be learned about a group."
            ]
        return []
    alike = diversity.figures["homogeneous_records"]
    if alike:
        return [
            f"{alike:,} records are in groups where everyone has the same sensitive value. Merge such groups by "
            "coarser keys, or perturb the sensitive column; k alone does not help."
        ]
    return []
