"""Look at a file, or at linked tables, before it is synthesized: all checks, and those for outliers and spikes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.core.method_cards import nested
from discreet.core.randomness import generator
from discreet.core.value_gate import MARK, holds_values
from discreet.microdata import Microdata, require_microdata
from discreet.synth.preflighting import column_kinds, computed_columns, preflight_findings, value_dependencies
from discreet.synth.preflighting.generator_proposal import DERIVED, dtype_name, fitting_generators, left_out
from discreet.synth.preflighting.preflight_result import Preflight, expected_cost
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

    Also known as: know your data; data preparation.

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

    References
    ----------
    Latner, J., Neunhoeffer, M. and Drechsler, J. (2024). Generating synthetic data is complicated: know your data
    and know your generator. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915.
    doi:10.1007/978-3-031-69651-0

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
    limits = preflight_findings.Thresholds.of(thresholds)
    if isinstance(accept, str) and accept not in preflight_findings.CONFIDENCES:
        raise ParameterError(unknown_name(accept, preflight_findings.CONFIDENCES, what="confidence"))
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
    look = preflight_findings.Look(frame, limits, codebook or {}, show_values)
    codes = column_kinds.coded_missing(look, _declared(data, codebook or {}))
    kinds = column_kinds.types_and_levels(look)
    named_ids = [
        f.column for f in kinds if f.kind in ("identifier", "near-unique-text") and f.confidence != "low"
    ]
    derived = _derived(look, set(named_ids))
    told = frozenset(finding.column for finding in derived)
    fine = frozenset((*told, *named_ids))
    # A column that perhaps is told by another may be modelled after all, and its spikes matter then.
    computed = frozenset((*(f.column for f in derived if f.confidence == "high"), *named_ids))
    findings = preflight_findings.named(
        [
            *units,
            *codes,
            *derived,
            *kinds,
            *outliers(look),
            *(f for f in spikes(look) if f.column not in computed),
            *value_dependencies.given_values(look, fine),
            *value_dependencies.inequalities(look, fine),
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
    return replace(found, expected=expected_cost(plain, data, whole))


def _units(data: Microdata, frame: pl.DataFrame, columns: Sequence[str]) -> list[preflight_findings.Finding]:
    """Find the column that says which records belong together: the household that has the role, or looks like one."""
    declared = next(
        (n for n in (data.roles.household, data.roles.person) if n in columns and n is not None), None
    )
    seen = units_seen(frame, columns)
    found = [unit for unit in seen if unit.column == declared] if declared else seen[:1]
    if declared and not found:
        found = [Unit(declared, "user")]
    return [
        preflight_findings.Finding(
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


def _derived(look: preflight_findings.Look, skip: set[str]) -> list[preflight_findings.Finding]:
    """Choose, of all the ways in which columns follow from one another, one that has no circles."""
    sources: dict[str, set[str]] = {}
    found = []
    for identity in computed_columns.find_identities(look):
        if _is_free(identity.target, identity.inputs, sources, skip):
            sources[identity.target] = set(identity.inputs)
            found.append(computed_columns.identity_finding(look, identity))
    pairs = [
        d
        for d in value_dependencies.functional_dependencies(look)
        if d.source not in skip and d.target not in skip
    ]
    mutual = {(d.source, d.target) for d in pairs}
    place = {name: at for at, name in enumerate(look.frame.columns)}

    def closeness(dependency: value_dependencies.Dependency) -> tuple[int, int, int]:
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
            found.append(value_dependencies.look_up_finding(look, dependency, also))
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


def _order(
    data: Microdata, frame: pl.DataFrame, findings: Sequence[preflight_findings.Finding]
) -> tuple[str, ...]:
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
        proposed = {name: found.synthesizer().to_dict() for name, found in self.tables.items()}
        by = {name: {s: own[s] for s in own if s not in _OWN} for name, own in proposed.items()}
        return Relational(self.schema, **{"by": {name: own for name, own in by.items() if own}, **options})

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


# Which numbers stand alone far away, and at which do they pile up?
_FEW_BEYOND = 0.001
_ROBUST = 1.4826
_LEAST_SPIKE = 5
_LARGE_SPIKE = 0.2
_MOST_SPIKES = 20
_CATEGORY = 10
_SCALE = 50
_HEAPED = 150.0
_THIN = 0.2


def outliers(look: preflight_findings.Look) -> list[preflight_findings.Finding]:
    """Find values beyond a wide gap, and values many robust standard deviations away.

    The values themselves are told only where the user asked for them: they belong to recognizable people.
    """
    found = []
    for name in _looked_at(look):
        values = look.clean(name)
        x = np.sort(values[~np.isnan(values)])
        if len(x) < 3 or x[0] == x[-1]:
            continue
        below, above, gap = _gaps(x, look.limits.outlier_gap)
        middle = float(np.median(x))
        deviation = _ROBUST * float(np.median(np.abs(x - middle)))
        far = int((np.abs(x - middle) > look.limits.outlier_mad * deviation).sum()) if deviation else 0
        if not below + above + far:
            continue
        bins = int(look.limits.n_bins)
        evidence: dict[str, Any] = {
            "beyond_gap": below + above,
            "gap_share_of_range": round(gap, 3),
            "beyond_mad": far,
            "largest_bin": int(np.histogram(x, bins)[0].max()),
            "bins": np.histogram(x, bins)[0].tolist(),
        }
        inner = x[below : len(x) - above]
        if below + above:
            evidence["largest_bin_without"] = int(np.histogram(inner, bins)[0].max())
        if look.show_values:
            evidence["values"] = [*x[:below].tolist(), *x[len(x) - above :].tolist()][:100]
        found.append(
            preflight_findings.Finding(
                "outliers",
                (name,),
                evidence,
                "medium" if below + above else "low",
                "check them; if they are errors correct them, if they are real top-code the synthetic column or "
                "bin it by quantiles",
                reversible=False,
            )
        )
    return found


def spikes(look: preflight_findings.Look) -> list[preflight_findings.Finding]:
    """Find numbers at which records pile up.

    Of whole numbers z is the excess over the neighbors' median count; a number with decimals has no neighbors, and a
    value that many records share (no such income: 0) is a spike.
    """
    found = []
    for name in _looked_at(look):
        values, counts = preflight_findings.counted(look.clean(name))
        if len(values) < _CATEGORY:
            continue
        if look.decimals(name) != 0:
            # A scale with decimals (sizes of households in adults) has values that many share, and no spikes.
            found += _shared_values(look, name, values, counts) if len(values) > _SCALE else []
            continue
        z = spike_scores(values, counts, int(look.limits.spike_window))
        hits = np.flatnonzero((z > look.limits.spike_z) & (counts >= _LEAST_SPIKE))
        fives, tens = whipple_indices(values, counts)
        share = counts[hits] / look.rows
        # In a column with more gaps than values every repeated number looks like a spike.
        thin = len(values) / (values[-1] - values[0] + 1) < _THIN
        if not len(hits) or (thin and max(fives, tens) <= _HEAPED and share.max() < _LARGE_SPIKE):
            continue
        order = np.argsort(-z[hits], kind="stable")[:_MOST_SPIKES]
        large = values[hits][share >= _LARGE_SPIKE]
        told = sorted(int(v) for v in values[hits][order])
        found.append(
            preflight_findings.Finding(
                "spikes",
                (name,),
                {
                    "spikes": len(hits),
                    "records_at_spikes": int(counts[hits].sum()),
                    "whipple_5": round(fives, 1),
                    "whipple_10": round(tens, 1),
                    "values": told,
                    "z": [round(float(z[values == v][0]), 1) for v in told],
                },
                "high" if len(large) else "medium" if max(fives, tens) > _HEAPED else "low",
                "model the value at the spike apart from the rest (semicontinuous)"
                if len(large)
                else "methods with donors keep it; with parametric ones name the spikes as semicontinuous",
                parameters={"values": [int(v) for v in large] or told},
            )
        )
    return found


def _shared_values(
    look: preflight_findings.Look, name: str, values: Floats, counts: Integers
) -> list[preflight_findings.Finding]:
    large = np.flatnonzero(counts >= max(_LARGE_SPIKE * look.rows, _LEAST_SPIKE))
    if not len(large):
        return []
    shared = [float(v) + 0.0 for v in values[large]]
    return [
        preflight_findings.Finding(
            "spikes",
            (name,),
            {
                "spikes": len(large),
                "records_at_spikes": int(counts[large].sum()),
                "share": float(counts[large].sum() / look.rows),
                "values": shared,
            },
            "high",
            "model the value at the spike apart from the rest (semicontinuous)",
            parameters={"values": shared},
        )
    ]


def spike_scores(values: Floats, counts: Integers, window: int) -> Floats:
    """Score every whole number by how far its count is above the median of its neighbors'.

    Examples
    --------
    >>> spike_scores(np.array([1.0, 2.0, 3.0]), np.array([8, 80, 8]), 1).round(1).tolist()
    [-8.0, 24.0, -8.0]
    """
    around = []
    for step in (*range(-window, 0), *range(1, window + 1)):
        at = np.clip(np.searchsorted(values, values + step), 0, len(values) - 1)
        beside = np.where(values[at] == values + step, counts[at], 0.0)
        # Nobody can be below the smallest or above the largest value; such neighbors do not count.
        beyond = (values + step < values[0]) | (values + step > values[-1])
        around.append(np.where(beyond, np.nan, beside))
    middle = np.nan_to_num(np.nanmedian(np.array(around), axis=0))
    return np.asarray((counts - middle) / np.sqrt(middle + 1))


def whipple_indices(values: Floats, counts: Integers) -> tuple[float, float]:
    """Return 100 times the share of multiples of 5, and of 10, over what it would be without heaping.

    Examples
    --------
    >>> whipple_indices(np.array([20.0, 21, 22, 23, 24]), np.array([60, 10, 10, 10, 10]))
    (300.0, 600.0)
    """
    total = counts.sum()
    return (
        float(500 * counts[values % 5 == 0].sum() / total),
        float(1000 * counts[values % 10 == 0].sum() / total),
    )


def _looked_at(look: preflight_findings.Look) -> list[str]:
    return list(look.numeric) if look.rows >= look.limits.min_rows else []


def _gaps(x: Floats, share: float) -> tuple[int, int, float]:
    """Count the values below and above a gap that wide and with few values beyond it."""
    gaps = np.diff(x) / (x[-1] - x[0])
    most = max(1, int(_FEW_BEYOND * len(x)))
    wide = np.flatnonzero(gaps >= share)
    below = max((int(at) + 1 for at in wide if at + 1 <= most), default=0)
    above = max((len(x) - int(at) - 1 for at in wide if len(x) - at - 1 <= most), default=0)
    return below, above, float(gaps.max())
