"""From a file to a verdict: every measure that fits, in as few passes over the data as possible."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from discreet import engine
from discreet._version import __version__
from discreet.core.errors import DiscreetError
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.requests import answer_of
from discreet.core.results import Assessment, Measure, Scenario
from discreet.core.verdicts import Acceptance
from discreet.engine import Missing
from discreet.microdata import Microdata, require_microdata
from discreet.policy import Policy
from discreet.workflow.advice import next_steps
from discreet.workflow.policy_judgment import check_policy, held_against
from discreet.workflow.questions import Case, by_name, intruder_cases

_RISKIEST = 10


def assess(
    data: Microdata,
    policy: Policy | str | Path | None = None,
    *,
    population: Microdata | None = None,
    population_size: int | None = None,
    scenarios: Mapping[str, Sequence[str]] | None = None,
    missing: Missing = "category",
    show_values: bool = False,
    progress: bool = False,
    accept: Sequence[Acceptance] = (),
    seed: Seed = None,
) -> Assessment:
    """How risky is this file, and does it meet the policy?

    Runs every measure that fits the inputs, for each intruder scenario, says which were left out and why, holds
    the figures against the policy and suggests what to do next.

    Parameters
    ----------
    data
        The file, with its keys (and, for what can be learned about a person, its sensitive columns).
    policy
        A `Policy`, the path of a policy file or the name of a template (``"public-use-file"``,
        ``"scientific-use-file"``, ``"safe-setting"``); without one there is no verdict.
    population
        A file of the population, for the journalist's risk, k-map and presence.
    population_size
        The number of people the file was drawn from, where there is no population file; the sum of the survey
        weights unless named.
    scenarios
        What different intruders know: ``{"neighbor": ["age", "sex"], "employer": [...]}``. The keys of the data
        are the main scenario, called ``"all keys"``; without them the first one named is.
    missing
        How missing key values count: ``category``, ``wildcard`` or ``drop``.
    show_values
        Show the key values of the riskiest classes in the result and the report.
    progress
        Show a progress bar on a terminal.
    accept
        Open rules of the policy that a named person takes responsibility for.
    seed
        For the estimators that simulate; 0 unless given, so that the same file gives the same report.

    Returns
    -------
    Assessment
        With ``verdict``, ``measures``, ``scenarios``, ``advice``, ``to_html(path)``, ``to_dict()``.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "yes", "no"]})
    >>> found = assess(Microdata(people, keys="sex", sensitive="ill"), policy="safe-setting")
    >>> found.line
    "Meets what could be judged here of policy 'Safe setting' (2 checks passed); not judged here: 3 rules that need ..."
    """
    require_microdata(data)
    if population is not None:
        require_microdata(population, "population")
    rules = None if policy is None else Policy.load(policy)
    if rules:
        check_policy(rules)
    cases = intruder_cases(
        data, scenarios, population=population, population_size=population_size, missing=missing, seed=seed
    )
    for case in cases.values():
        _count_once(case)
    work = [(name, question) for name in cases for question in by_name().values()]
    measures: dict[str, dict[str, Measure]] = {name: {} for name in cases}
    skipped: dict[str, dict[str, str]] = {name: {} for name in cases}
    for name, question in track(work, description="Assessing", progress=progress):
        # What is asked because some roles happen to be named may refuse; all else must not.
        must = () if question.needs.roles else (DiscreetError,)
        parameters = rules.parameters.get(question.name, {}) if rules else {}
        question.check_parameters(parameters)
        answer = answer_of(question, cases[name], parameters, must=must)
        (skipped if isinstance(answer, str) else measures)[name][question.name] = answer  # type: ignore[assignment]
    found = {
        name: Scenario(
            name,
            case.data.roles.keys,
            measures[name],
            skipped[name],
            _riskiest(case, show_values=show_values),
        )
        for name, case in cases.items()
    }
    verdict = held_against(rules, cases, measured=found, accept=accept) if rules else None
    main = next(iter(found.values()))
    return Assessment(
        about=about_file(data, [key for scenario in found.values() for key in scenario.keys]),
        scenarios=found,
        policy=rules,
        verdict=verdict,
        advice=next_steps(data, main, verdict),
        show_values=show_values,
    )


def _count_once(case: Case) -> None:
    """Count keys by sensitive value first where another engine holds the file: the classes are read off that."""
    data, keys = case.data, case.data.roles.keys
    sensitive = [column for column in data.roles.sensitive if column not in keys]
    elsewhere = not engine.has_row_order(data)
    alone = engine.counted_unit(data) is None and case.missing != "wildcard"
    if elsewhere and alone and keys and sensitive:
        with contextlib.suppress(DiscreetError):
            # What cannot be counted is said by the measure that needs it.
            engine.class_counts(data, keys, sensitive[0], case.missing)


def _riskiest(case: Case, *, show_values: bool) -> list[dict[str, Any]]:
    """List the classes most at risk; key values only when asked for."""
    keys = case.data.roles.keys
    worst = engine.named_classes(keys, engine.smallest_classes(case.data, keys, case.missing, _RISKIEST))
    rows = []
    for number, row in enumerate(worst.to_dicts(), start=1):
        values = {
            name: value for name, value in row.items() if name not in ("records", "class_size", "company")
        }
        size = row.get("company", row["class_size"])
        rows.append(
            {
                "class": number,
                "class_size": size,
                "risk": 1 / size,
                **({"values": values} if show_values else {}),
            }
        )
    return rows


def about_file(data: Microdata, keys: Sequence[str]) -> dict[str, Any]:
    """Describe the file for a report: where it came from, how large it is, what is missing in the columns used."""
    used = tuple(dict.fromkeys([*data.roles.columns(), *keys]))
    counted = engine.overview(data, used)
    meta = data.metadata
    return {
        "source": meta.source,
        "rows": counted.rows,
        "columns": len(data.columns),
        "roles": data.roles.to_dict(),
        "without_role": [name for name in data.columns if name not in used],
        "missing": {column: count / counted.rows for column, count in counted.missing.items()},
        "engine": engine.engine_name(data),
        "reading": getattr(meta, "reading", None),
        "checksum": meta.checksum,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "discreet": __version__,
            "python": platform.python_version(),
            "polars": version("polars"),
            "narwhals": version("narwhals"),
        },
    }
