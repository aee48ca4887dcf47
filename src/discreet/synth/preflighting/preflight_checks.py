"""Look at a file, or at linked tables, before it is synthesized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.core.method_cards import nested
from discreet.core.randomness import generator
from discreet.core.value_gate import MARK, holds_values
from discreet.microdata import Microdata, require_microdata
from discreet.synth.preflighting.column_kinds import coded_missing, types_and_levels
from discreet.synth.preflighting.computed_columns import find_identities, identity_finding
from discreet.synth.preflighting.generator_proposal import DERIVED, dtype_name, fitting_generators, left_out
from discreet.synth.preflighting.outliers_and_spikes import outliers, spikes
from discreet.synth.preflighting.preflight_findings import CONFIDENCES, Finding, Look, Thresholds, named
from discreet.synth.preflighting.preflight_result import Preflight, expected_cost
from discreet.synth.preflighting.value_dependencies import (
    Dependency,
    functional_dependencies,
    given_values,
    inequalities,
    look_up_finding,
)
from discreet.synth.relational import Relational
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.visit_sequence import choose_order
from discreet.synth.sequential.whole_units import Unit, copies_of, units_seen
from discreet.synth.table_schema import LinkedTables, Schema

_CODEBOOK = ("missing", "legal", "kind")
_KINDS = ("number", "category", "identifier")
_ORDER_ROWS = 10_000


def preflight(
    data: Microdata,
    *,
    codebook: Mapping[str, Mapping[str, Any]] | None = None,
    accept: str | Sequence[str] = "high",
    probe: bool = True,
    show_values: bool = False,
    **thresholds: float,
) -> Preflight:
    """What in this file would silently ruin a synthetic version of it, and what should be done about it?

    Codes that stand for missing values, columns that are computed from others, lone values far away, numbers at which
    people round, wrong types, identifiers, columns with hundreds of levels, questions that were skipped. Each finding
    comes with its evidence and a proposal; the plan can be saved, edited and run.

    Parameters
    ----------
    data
        The file. Identifiers and the weight are not looked at.
    codebook
        What you know: ``{column: {"missing": [codes], "legal": [values], "kind": "category"}}``. ``missing`` are codes
        for certain, ``legal`` values that look like codes but are none, ``kind`` is ``number``, ``category`` or
        ``identifier``. Codes that the file itself declares (SPSS, Stata) count as ``missing``.
    accept
        Which findings are acted on: those of this confidence or better, or names of findings.
    probe
        Grow small trees to predict time and memory.
    show_values
        Also tell the values of outliers.
    thresholds
        When something counts as found; see `discreet.synth.preflighting.preflight_findings.Thresholds`.

    Returns
    -------
    Preflight
        ``findings``, ``order``, ``methods``, ``expected``; ``synthesizer()`` gives a ready `Sequential`, ``apply`` and
        ``restore`` frame any other generator, ``save`` writes the plan for editing.

    How to read it
    --------------
    High confidence is acted on unless you say otherwise; look at the rest and decide with your codebook. A derived
    column that is synthesized beside its sources contradicts them in many records; a code taken for a number drags
    means and correlations along. The predicted time is right within a factor of about three.

    When not to trust it
    --------------------
    It sees patterns, not meanings: a rule that all records keep may be chance in a small file, and a code that is
    rare, or a value among others, stays unseen. Dependencies of one column on two others are found only where they
    are sums or products.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> pay = np.where(rng.random(500) < 0.1, -8, rng.integers(500, 4000, 500))
    >>> age = rng.integers(18, 80, 500)
    >>> people = pl.DataFrame({"pay": pay, "age": age, "decade": age // 10 * 10})
    >>> found = preflight(Microdata(people), probe=False)
    >>> [finding.name for finding in found.accepted()]
    ['coded-missing:pay', 'look-up:decade']
    """
    require_microdata(data)
    data.need_plain_names()
    limits = Thresholds.of(thresholds)
    if isinstance(accept, str) and accept not in CONFIDENCES:
        raise ParameterError(unknown_name(accept, CONFIDENCES, what="confidence"))
    whole = engine.collect(data)
    if not whole.height or not whole.width:
        raise InputError("The file has no records. Give one that has.")
    _check_codebook(codebook or {}, data)
    hidden = {*data.roles.identifiers, data.roles.weight}
    units = _units(data, whole, [name for name in whole.columns if name not in hidden])
    # What a household number tells about its members is that they share it, not that it follows from the number.
    numbers = [name for finding in units for name in (finding.column, *copies_of(whole, finding.column))]
    hidden |= set(numbers)
    frame = whole.select(name for name in whole.columns if name not in hidden)
    look = Look(frame, limits, codebook or {}, show_values)
    codes = coded_missing(look, _declared(data, codebook or {}))
    kinds = types_and_levels(look)
    named_ids = [
        f.column for f in kinds if f.kind in ("identifier", "near-unique-text") and f.confidence != "low"
    ]
    derived = _derived(look, set(named_ids))
    told = frozenset(finding.column for finding in derived)
    fine = frozenset((*told, *named_ids))
    # A column that perhaps is told by another may be modelled after all, and its spikes matter then.
    computed = frozenset((*(f.column for f in derived if f.confidence == "high"), *named_ids))
    findings = named(
        [
            *units,
            *codes,
            *derived,
            *kinds,
            *outliers(look),
            *(f for f in spikes(look) if f.column not in computed),
            *given_values(look, fine),
            *inequalities(look, fine),
        ]
    )
    found = Preflight(
        findings,
        (*_order(data, frame, findings), *numbers),
        {name: dtype_name(dtype) for name, dtype in whole.schema.items()},
        whole.height,
        accept=accept if isinstance(accept, str) else tuple(accept),
        thresholds=limits.given(),
        generators=fitting_generators(data, whole, findings),
    )
    accepted = found.accepted()
    if not probe:
        return found
    leave = [*left_out(accepted), *(name for name in named_ids)]
    plain = Sequential(visit_sequence="auto", leave_out=tuple(dict.fromkeys(leave)) or None)
    return Preflight(**{**found.__dict__, "expected": expected_cost(plain, data, whole)})


def _units(data: Microdata, frame: pl.DataFrame, columns: Sequence[str]) -> list[Finding]:
    """Find the column that says which records belong together: the household that has the role, or looks like one."""
    declared = next(
        (n for n in (data.roles.household, data.roles.person) if n in columns and n is not None), None
    )
    seen = units_seen(frame, columns)
    found = [unit for unit in seen if unit.column == declared] if declared else seen[:1]
    if declared and not found:
        found = [Unit(declared, "user")]
    return [
        Finding(
            "household",
            (unit.column, *unit.counted_by),
            {
                "units": frame[unit.column].n_unique(),
                "shared_columns": len(unit.same) + len(unit.counted_by),
                "counted_by": list(unit.counted_by),
            },
            "high" if declared or unit.counted_by else "medium",
            "draw the records that share it together, and number the units anew",
            reversible=False,
        )
        for unit in found
    ]


def _derived(look: Look, skip: set[str]) -> list[Finding]:
    """Choose, of all the ways in which columns follow from one another, one that has no circles."""
    sources: dict[str, set[str]] = {}
    found = []
    for identity in find_identities(look):
        if _is_free(identity.target, identity.inputs, sources, skip):
            sources[identity.target] = set(identity.inputs)
            found.append(identity_finding(look, identity))
    pairs = [d for d in functional_dependencies(look) if d.source not in skip and d.target not in skip]
    mutual = {(d.source, d.target) for d in pairs}
    place = {name: at for at, name in enumerate(look.frame.columns)}

    def closeness(dependency: Dependency) -> tuple[int, int, int]:
        # A chain A, B, C is undone step by step: C is told by B, which has fewer values than A.
        return (place[dependency.target], look.distinct[dependency.source], place[dependency.source])

    # Of two columns that tell each other, the one with fewer values stays, the first in the file among equals.
    kept_first = [
        d
        for d in pairs
        if (d.target, d.source) not in mutual
        or (look.distinct[d.source], place[d.source]) < (look.distinct[d.target], place[d.target])
    ]
    for dependency in sorted(kept_first, key=closeness):
        if _is_free(dependency.target, (dependency.source,), sources, skip):
            also = [d.source for d in kept_first if d.target == dependency.target and d != dependency]
            sources[dependency.target] = {dependency.source}
            found.append(look_up_finding(look, dependency, also))
    return found


def _is_free(target: str, inputs: Sequence[str], sources: Mapping[str, set[str]], skip: set[str]) -> bool:
    if target in sources or target in skip or any(name in skip for name in inputs):
        return False
    behind, waiting = set(inputs), list(inputs)
    while waiting:
        for name in sources.get(waiting.pop(), ()):
            if name not in behind:
                behind.add(name)
                waiting.append(name)
    return target not in behind


def _order(data: Microdata, frame: pl.DataFrame, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Propose an order: by the strongest relations, many levels late, computed columns last."""
    computed = [f.column for f in findings if f.kind in DERIVED]
    out = [
        f.column for f in findings if f.kind in ("identifier", "all-missing", "constant", "near-unique-text")
    ]
    free = [name for name in frame.columns if name not in computed and name not in out]
    if frame.height > _ORDER_ROWS:
        rows = generator(0, "preflight", "order").choice(frame.height, size=_ORDER_ROWS, replace=False)
        frame = frame[np.sort(rows)]
    chosen = list(choose_order(data, columns=free, frame=frame).order) if len(free) > 1 else free
    return (*chosen, *(name for name in out if name not in computed), *dict.fromkeys(computed))


def _declared(data: Microdata, codebook: Mapping[str, Mapping[str, Any]]) -> dict[str, Sequence[Any]]:
    declared: dict[str, Sequence[Any]] = {
        name: list(codes) for name, codes in data.metadata.user_missing.items()
    }
    for name, entry in codebook.items():
        if "missing" in entry:
            given = entry["missing"]
            listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
            declared[name] = [*declared.get(name, ()), *listed]
    return declared


def _check_codebook(codebook: Mapping[str, Mapping[str, Any]], data: Microdata) -> None:
    for name, entry in codebook.items():
        if name not in data.schema:
            raise ColumnError(f"{unknown_name(name, data.columns)} It was named in the codebook.")
        if not isinstance(entry, Mapping):
            raise ParameterError(f"The codebook of '{name}' must be a mapping, e.g. {{'missing': [-8]}}.")
        for key in entry:
            if key not in _CODEBOOK:
                raise ParameterError(
                    f"In the codebook of '{name}': {unknown_name(key, _CODEBOOK, what='entry')}"
                )
        kind = entry.get("kind", "number")
        if kind not in _KINDS:
            raise ParameterError(
                f"In the codebook of '{name}': {unknown_name(str(kind), _KINDS, what='kind')}"
            )


# Linked tables before a synthesis: each looked at by itself, under the schema that ties them.


_OWN = ("visit_sequence", "together")


@dataclass(frozen=True)
class LinkedPreflight:
    """What was found in each of several linked tables.

    Attributes
    ----------
    schema
        How they hang together.
    tables
        What was found, by table; public tables stay as they are and are not looked at.
    """

    schema: Schema
    tables: Mapping[str, Preflight]

    def synthesizer(self, **options: Any) -> Relational:
        """Make the synthesizer that the accepted findings propose, table by table."""
        by = {}
        for name, found in self.tables.items():
            proposed = found.synthesizer().to_dict()
            kept = {setting: value for setting, value in proposed.items() if setting not in _OWN}
            if kept:
                by[name] = kept
        return Relational(self.schema, **{"by": by, **options})

    def save_plan(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write how every table is to be synthesized, for ``discreet synthesize --schema … --plan``.

        Codes and rules among the settings are values of the data: the first line of the file says so.
        """
        import tomli_w

        from discreet.io.sidecar import save_text

        by = {name: nested(dict(own)) for name, own in self.synthesizer().by.items()}
        document = {"synthesizer": "relational", "by": by}
        marked = MARK if holds_values(document) else ""
        return save_text(marked + tomli_w.dumps(document), path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "schema": self.schema.to_dict(),
            "tables": {name: found.to_dict() for name, found in self.tables.items()},
        }

    def __str__(self) -> str:
        parts = ["Linked tables: the plan is for relational, which draws them together.", ""]
        for name, found in self.tables.items():
            parts += [f"Table {name}", str(found), ""]
        return "\n".join(parts).rstrip()


def preflight_linked(
    tables: LinkedTables, *, accept: str | Sequence[str] = "high", show_values: bool = False
) -> LinkedPreflight:
    """What in these tables would silently ruin a synthetic version of them?

    Keys that are missing or repeated, orphans and circles are refused when the tables are read; here every table is
    looked at by itself, without its keys, and with what is left out of the synthesis left out.

    Parameters
    ----------
    tables
        The tables and their schema.
    accept
        Which findings are acted on, see `discreet.synth.preflight`.
    show_values
        Also tell the values of outliers.
    """
    found = {}
    for name in tables.own:
        table = tables.schema.tables[name]
        apart = {table.key, *table.parents, *table.leave_out}
        columns = [column for column in tables.tables[name].columns if column not in apart]
        if columns and tables.tables[name].height > 1:
            own = Microdata(tables.tables[name].select(columns))
            found[name] = preflight(own, accept=accept, show_values=show_values)
    return LinkedPreflight(tables.schema, found)
