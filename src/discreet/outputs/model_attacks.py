"""May a trained model leave the safe setting? What it holds of people, and whether it gives away who they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.attack.model_membership_inference import model_membership
from discreet.attack.structural_attack import model_structure
from discreet.core.wording import percent
from discreet.outputs.check_results import Finding
from discreet.outputs.output_policy import OutputPolicy

_SEED = 0  # the same model is judged the same each time
_BLACK_BOX = 0.05
"""The risk of being recognized, lower end of its interval, from which on a model is refused."""


def structure_findings(model: Any, X: Any, y: Any, policy: OutputPolicy) -> list[Finding]:
    """Read the model: records it carries, leaves of few people, too few degrees of freedom."""
    found: Mapping[str, Any] = model_structure(model, X, y, threshold=policy.threshold).figures
    said = []
    if found["memorized_rows"]:
        said.append(
            Finding(
                "values per person",
                "g",
                "fail",
                f"The model carries {found['memorized_rows']:,} training records as they are: it is microdata.",
                figures={"memorized_rows": found["memorized_rows"]},
            )
        )
    if found["leaves_below"]:
        said.append(
            Finding(
                "small leaves",
                "a",
                "fail",
                f"{found['leaves_below']:,} of {found['leaves']:,} leaves hold fewer than {policy.threshold} people, "
                f"and isolate {percent(found['exposed_share'])} of the training records: set min_samples_leaf to "
                f"{policy.threshold} or more.",
                figures={"leaves_below": found["leaves_below"], "smallest_leaf": found["smallest_leaf"]},
            )
        )
    elif found["leaves"]:
        said.append(
            Finding("small leaves", "a", "pass", f"Every leaf holds {policy.threshold} people or more.")
        )
    freedom = found["degrees_of_freedom"]
    if freedom is not None and freedom < policy.dof_threshold:
        said.append(
            Finding(
                "degrees of freedom",
                "g",
                "fail",
                f"The model has learned {found['model_parameters']:,} numbers, which leaves {freedom:,} degrees of "
                f"freedom; {policy.dof_threshold} are needed.",
                figures={"degrees_of_freedom": freedom},
            )
        )
    return said


def membership_finding(model: Any, X: Any, y: Any, others: tuple[Any, Any]) -> Finding:
    """Attack the model with people it was not trained on: are members recognized?"""
    found = model_membership(model, X, y, others=others, seed=_SEED)
    told: Mapping[str, Any] = found.figures
    low, high = told["risk_low"], told["risk_high"]
    figures = {name: told[name] for name in ("risk", "risk_low", "risk_high", "auc")}
    if low is None or high is None:
        return Finding(
            "membership",
            "g",
            "review",
            "The attack says the same of everybody: nothing was shown.",
            figures=figures,
        )
    if low > _BLACK_BOX:
        reason = (
            f"Training records are recognized by what the model says: the risk beyond false alarms is at least "
            f"{percent(low)}."
        )
        return Finding("membership", "g", "fail", reason, figures=figures)
    reason = (
        f"Training records could not be told from others by what the model says; a risk of up to "
        f"{percent(max(high, 0.0))} cannot be ruled out."
    )
    return Finding("membership", "g", "review" if high > 2 * _BLACK_BOX else "pass", reason, figures=figures)
