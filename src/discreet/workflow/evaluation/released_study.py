"""One release beside its original: the study that ``discreet evaluate ORIGINAL --release PATH`` runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError
from discreet.workflow.evaluation.data_sets import DataSet
from discreet.workflow.evaluation.generators import Generator
from discreet.workflow.evaluation.metrics import Metric
from discreet.workflow.evaluation.study import Study

_OF_MANY = ("value_counts", "rank_correlations", "table_propensity")
_OF_FILE = (*_OF_MANY, "shared_components", "new_rows")
_OF_LINKED = ("linked_keys", "value_counts", "rank_correlations", "table_propensity", "category_coverage")


def released_study(
    source: str | Path,
    release: str | Path,
    *,
    roles: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
    target: str | None = None,
    group: str | None = None,
    slope: Sequence[str] = (),
    rules: Sequence[str] = (),
    population: Mapping[str, str] | None = None,
    holdout: str | Path | None = None,
    seed: int = 1,
) -> Study:
    """How good and how safe is this release, table by table?

    Parameters
    ----------
    source
        The original: a file, or a schema of linked tables (``schema.toml``).
    release
        What was released: a file; the folder of a release of many tables; or, with a schema, a folder with one file
        for each table.
    roles, reading, columns
        Roles of the columns, options of reading, and the columns to look at, as in a study. With keys the attack on
        unique quasi-identifiers is run, with a sensitive column and one file the attribute attack.
    target
        What models learn to predict (of linked tables ``"table.column"``); needs a hold-out.
    group
        The column of groups for the k-marginal score.
    slope
        Two columns, and perhaps a third: the slope of the first on the second, by groups of the third.
    rules
        Conditions on records (``"if age < 15 then job is missing"``), counted where they are broken.
    population
        For households: ``{"age": column, "sex": column, "size": column}``, with the role ``household``.
    holdout
        A file of people who were not used to make the release.
    seed
        Of everything that is drawn.

    Returns
    -------
    Study
        To be run with `discreet.evaluate`, or written to a file, changed, and run.

    Examples
    --------
    >>> study = released_study("people.csv", "people-synthetic.csv", roles={"keys": ["age", "sex"]})
    >>> [metric.name for metric in study.asked][-1]
    'quasi_identifier_attack'
    """
    place = Path(source)
    linked, many = place.suffix == ".toml", Path(release).is_dir() and place.suffix != ".toml"
    given = dict(roles or {})
    if linked and (given or group or slope or rules or population or holdout or columns):
        raise ParameterError(
            "Roles, columns, groups, rules and hold-outs are for one file; linked tables have a schema."
        )
    if not Path(release).exists() and Path(release).suffix == "":
        raise InputError(f"There is no release '{Path(release).name}'.")
    names = _OF_LINKED if linked else _OF_MANY if many else _OF_FILE
    metrics = [Metric(name) for name in names]
    if group:
        metrics.append(Metric("k_marginal", parameters={"group": group}))
    if slope:
        if not 2 <= len(slope) <= 3:
            raise ParameterError("slope names two columns, y and x, and perhaps a third for groups.")
        metrics.append(Metric("subgroup_slopes", parameters=dict(zip(("y", "x", "by"), slope, strict=False))))
    if rules:
        metrics.append(Metric("inconsistencies", parameters={"rules": list(rules)}))
        implied = [rule for rule in rules if rule.strip().startswith("if ")]
        if implied and not many:
            metrics.append(Metric("rule_compliance", parameters={"rules": implied}))
    if given.get("household"):
        metrics.append(Metric("household_plausibility", parameters=dict(population or {})))
    if target and (holdout or linked):
        metrics.append(Metric("train_on_synthetic", parameters={"learners": ["linear", "forest"]}))
    if given.get("keys"):
        metrics.append(Metric("quasi_identifier_attack"))
    if given.get("sensitive") and not many:
        metrics.append(Metric("attribute_attack", parameters={"repeats": 3}))
    data = DataSet(
        place.name.split(".")[0] or "file",
        str(source),
        roles=given,
        reading=dict(reading or {}),
        columns=tuple(columns),
        target=target,
        holdout=None if holdout is None else str(holdout),
    )
    return Study(
        data=[data],
        generators=[Generator("release", files=(str(release),))],
        metrics=metrics,
        title=f"A release of {data.name}",
        holdout=0.0,
        seed=seed,
    )
