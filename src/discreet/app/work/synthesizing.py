"""A synthetic version: what would spoil it, what is done about that, and the copies themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench
from discreet.app.work.releasing import asked_at_once, comparison_view
from discreet.core.errors import ParameterError
from discreet.core.files.atomic import check_target
from discreet.core.value_gate import gated, without_literals
from discreet.io import write_together
from discreet.synth import preflight, save_plan
from discreet.workflow import compare

_MOST_COPIES = 100


def look_before(bench: Bench, *, source: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    """Look at the file before it is synthesized; what is found is named, the values behind it are not."""
    found = preflight(bench.with_roles(source, roles))
    bench.made["preflight"] = (dict(roles), found)
    told = gated(found.to_dict())
    return {
        "findings": [
            {
                "name": finding.name,
                "kind": finding.kind,
                "columns": list(finding.columns),
                "confidence": finding.confidence,
                "action": without_literals(finding.action),
                "accepted": finding.is_accepted(found.accept),
            }
            for finding in found.findings
        ],
        "order": list(found.order),
        "expected": told.get("expected", {}),
        "rows": found.rows,
    }


def make_copies(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    accepted: Sequence[str],
    declined: Sequence[str],
    order: Sequence[str],
    rules: str,
    copies: int,
    rows: int | None,
    out: str,
    overwrite: bool,
    seed: int,
) -> dict[str, Any]:
    """Fit a synthesizer by what was accepted, draw copies, hold them against the original, and write them."""
    data = bench.with_roles(source, roles)
    targets: list[Path] = []
    if out.strip():
        with caused_by("out"):
            targets = _targets(Path(out).expanduser(), copies)
            plan = targets[0].with_name(targets[0].name.split(".")[0] + "-plan.toml")
            for target in (*targets, plan):  # all or none, and known before any work is done
                check_target(target, overwrite=overwrite)
    held = bench.made.get("preflight")
    found = held[1] if held is not None and held[0] == dict(roles) else preflight(data)
    with caused_by("copies"):
        if not 1 <= copies <= _MOST_COPIES:
            raise ParameterError(f"The number of copies lies between 1 and {_MOST_COPIES}.")
    with caused_by("findings"):
        decided = found.decided(accept=list(accepted), reject=list(declined))
    changes: dict[str, Any] = {}
    if order:
        changes["visit_sequence"] = list(order)
    if rules.strip():
        changes["rules"] = _rules(rules)
    with caused_by("rules" if rules.strip() else "order"):
        chosen = decided.synthesizer(**changes)
        fitted = chosen.fit(data, seed=seed, progress=True)
    drawn = fitted.sample(rows, copies=copies, seed=seed + 1, progress=True)
    files = drawn if isinstance(drawn, list) else [drawn]
    compared = comparison_view(compare(data, files, measures=asked_at_once(), progress=True))
    written: list[str] = []
    if targets:
        with caused_by("out"):
            write_together(files, targets, overwrite=overwrite)
            save_plan(chosen, plan, overwrite=overwrite)
            written = [str(target) for target in (*targets, plan)]
    return {"compared": compared, "written": written, "copies": copies, "rows": files[0].size_in_words}


def _rules(text: str) -> dict[str, Any]:
    from discreet.core.files.untrusted import parsed_toml

    with caused_by("rules"):
        try:
            return dict(parsed_toml(text))
        except ValueError as error:
            raise ParameterError(
                'The rules are lines of TOML, such as: rent = [{when = "age < 18", value = 0}]'
            ) from error


def _targets(place: Path, copies: int) -> list[Path]:
    if not place.is_absolute() or not place.name:
        raise ParameterError("Name the file in full, from the root of this machine.")
    if copies == 1:
        return [place]
    stem, suffix = place.name.split(".")[0], "".join(place.suffixes)
    return [place.with_name(f"{stem}-{number}{suffix}") for number in range(1, copies + 1)]
