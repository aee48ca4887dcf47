"""Do the tables of a package bear out the status that its manifest claims?

A manifest is written where the data are, and whoever may write it may change it. The counts in its tables can be seen
by everybody: where they fail the rules although the manifest says otherwise, or the checker's policy is stricter than
the one the package was made under, the output fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError
from discreet.outputs.check_results import Finding, worst
from discreet.outputs.finished_files import judged
from discreet.outputs.finished_grids import read_grids
from discreet.outputs.settings import OutputPolicy

# Rounded and noisy counts may be small: that is what they are for.
_CHANGED = ("round", "noise")
_SEEN = ("low count", "low total", "records")


def borne_out(
    output: Mapping[str, Any], files: Mapping[str, bytes], policy: OutputPolicy
) -> Mapping[str, Any]:
    """Return an output of a package, with a failure added where its own tables contradict its status."""
    if output["status"] == "fail" or output.get("mitigation") in _CHANGED:
        return output
    counts = output["kind"] == "cross table"
    found: list[Finding] = []
    for file in output["files"]:
        name = file["name"]
        if file.get("role") != "table" or name not in files:
            continue
        try:
            grids = read_grids(Path(name), files[name])
        except DiscreetError:
            continue
        checked = judged(grids, policy, are_counts=counts, named_only=not counts)
        found += [finding for finding in checked if finding.status == "fail" and finding.check in _SEEN]
    if not found:
        return output
    said = [
        Finding(f.check, f.barn, "fail", f"The table itself says: {f.reason}", places=f.places).to_dict()
        for f in found
    ]
    findings = [*output["findings"], *said]
    return {**output, "findings": findings, "status": worst(finding["status"] for finding in findings)}
