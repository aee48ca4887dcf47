"""Studies ready to run: one file with all generators, and one release beside its original.

Generators stand with their defaults beside anchors that anybody can see through: uniform draws and columns drawn by
themselves (what a worthless generator has), records drawn with replacement and a small sample of the real file (what
copying has), plain trees, and people whom no generator has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.cards import all_cards
from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.findings import ReleaseFacts
from discreet.synth.synthesizer import USUAL
from discreet.workflow.evaluation.linked_releases import known_generators
from discreet.workflow.evaluation.study import Study
from discreet.workflow.evaluation.study_data import DataSet
from discreet.workflow.evaluation.study_generators import Generator
from discreet.workflow.evaluation.study_metrics import Metric, usual_metrics

INDEPENDENT, BOOTSTRAP = "independent", "bootstrap"
ANCHORS = ("uniform", INDEPENDENT, BOOTSTRAP, "subsample", "cart")
NETWORKS = ("ctgan", "tvae", "tabular-diffusion", "language-model")
DEFAULT = ("adversarial-forest", "gaussian-copula", "bayesian-network", *NETWORKS)

_PART = 0.5  # of the time limit that a network may train for; the rest is for drawing and measuring
_TIME, _MEMORY = 600.0, 8_000.0


def benchmark(
    source: str | Path,
    generators: str | Sequence[str] = "default",
    *,
    roles: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    target: str | None = None,
    rows: int | None = None,
    copies: int = 1,
    repetitions: int = 2,
    attacks: bool = True,
    time_limit: float = _TIME,
    memory_limit: float | None = _MEMORY,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 1,
) -> Study:
    """Which generator is good for what, on this file?

    Parameters
    ----------
    source
        A file, or the name of data that ship with discreet.
    generators
        ``"default"``: forests, copula, network of columns and all neural networks; or names of synthesizers, in a list
        or between commas. The anchors are always beside them.
    roles, reading
        Roles of the columns, and options of reading, as in a study.
    target
        The column that models learn to predict; the first sensitive one unless named.
    rows
        Use a random sample of so many records.
    copies, repetitions
        Files that a generator makes in one repetition, and how often it is fitted anew.
    attacks
        Whether the attacks of `discreet.attack` are run.
    time_limit, memory_limit
        Seconds and megabytes that a generator has on the file, measuring included; each runs in a process of its own,
        and one that takes more is a result with that reason. Networks train for half the time at most.
    parameters
        ``{generator: {parameter: value}}``, in place of defaults.
    seed
        What the split and all repetitions start from.

    Returns
    -------
    Study
        To be run with `discreet.evaluate`, or written to a file, changed, and run.

    Examples
    --------
    >>> study = benchmark("adult", ["tvae"], rows=200)
    >>> [item.name for item in study.makers]
    ['holdout', 'uniform', 'independent', 'bootstrap', 'subsample', 'cart', 'tvae']
    """
    names = _named(generators)
    given = dict(parameters or {})
    for name in given:
        if name not in (*ANCHORS, *names):
            raise ParameterError(unknown_name(name, (*ANCHORS, *names), what="generator"))
    makers = [_anchor(name, given.get(name, {})) for name in ANCHORS]
    for name in names:
        own = dict(given.get(name, {}))
        if name in NETWORKS and "time_limit" not in own:
            own["time_limit"] = _PART * time_limit
        makers.append(Generator(name, synthesizer=name, parameters=own))
    bundled = not Path(source).suffix
    data = DataSet(
        Path(source).name.split(".")[0] or "file",
        "" if bundled else str(source),
        roles=dict(roles or {}),
        reading=dict(reading or {}),
        rows=rows,
        target=target,
    )
    return Study(
        data=[data],
        generators=makers,
        metrics=_metrics(attacks=attacks),
        title=f"Generators on {data.name}",
        seeds=tuple(range(1, repetitions + 1)),
        copies=copies,
        time_limit=time_limit,
        memory_limit=memory_limit,
        seed=seed,
    )


def _named(generators: str | Sequence[str]) -> list[str]:
    if generators == "default":
        return list(DEFAULT)
    listed = generators.split(",") if isinstance(generators, str) else list(generators)
    names = [name.strip() for name in listed if name.strip()]
    if not names:
        raise ParameterError("generators must be 'default' or names of synthesizers.")
    for name in names:
        if name not in known_generators():
            raise ParameterError(unknown_name(name, ("default", *known_generators()), what="generator"))
    return [name for name in dict.fromkeys(names) if name not in ANCHORS]


def _anchor(name: str, parameters: Mapping[str, Any]) -> Generator:
    if name in ("uniform", "subsample"):
        return Generator(name, reference=name)
    return Generator(name, synthesizer=USUAL if name == "cart" else name, parameters=dict(parameters))


def _metrics(*, attacks: bool) -> tuple[Metric, ...]:
    """Return the usual metrics, and those that generators are compared by beyond them."""
    asked = list(usual_metrics())
    there = {metric.name for metric in asked}
    more = [(card, card.benchmark) for card in all_cards(asked="benchmark") if card.benchmark is not None]
    asked += [
        Metric(card.name, f"{card.room}.{card.name}", figures=study.figures, better=study.better)
        for card, study in sorted(more, key=lambda one: one[1].order)
        if card.name not in there and (attacks or card.room != "attack")
    ]
    return tuple(asked)


# One release beside its original: the study that ``discreet evaluate ORIGINAL --release PATH`` runs.


def _metrics_of(facts: ReleaseFacts) -> list[Metric]:
    """Return the metrics of a release, as far as what is known of it lets them be asked."""
    asked = [(card, card.of_release) for card in all_cards(asked="of_release") if card.of_release is not None]
    return [
        Metric(card.name, parameters=given)
        for card, study in sorted(asked, key=lambda one: one[1].order)
        if facts.shape in study.shapes and (given := study.given(facts)) is not None
    ]


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
    if slope and not 2 <= len(slope) <= 3:
        raise ParameterError("slope names two columns, y and x, and perhaps a third for groups.")
    facts = ReleaseFacts(
        "linked tables" if linked else "files" if many else "file",
        given,
        group,
        slope,
        rules,
        population,
        target=bool(target),
        holdout=bool(holdout),
    )
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
        metrics=_metrics_of(facts),
        title=f"A release of {data.name}",
        holdout=0.0,
        seed=seed,
    )
