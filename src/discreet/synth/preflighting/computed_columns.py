"""Which column is computed from others: a total from its parts, a body-mass index from weight and height?"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.native_libraries import one_thread
from discreet.core.randomness import generator
from discreet.synth.preflighting.preflight_findings import Finding, Look

Kind = Literal["sum", "product"]

_FIT_ROWS = 2000
_KEPT = 0.98
_NO_LOSS = 0.0006
_OBSERVED = 0.98
_MOST_CANDIDATES = 40
_EXACT = 0.01
_DENOMINATOR = 12
_RELATIVE = 1e-6
_NEARLY = 0.01
_COARSE = 0.002


@dataclass(frozen=True)
class Identity:
    """A column that is a sum or a product of others.

    Attributes
    ----------
    target, inputs
        The column, and those it is computed from.
    factors
        Of a sum the factor of each input, of a product its power.
    constant
        What is added, or what everything is multiplied by.
    rows
        Records that have the column and all inputs.
    broken, without_inputs, without_value
        Records that break it, have the value but not the inputs, have the inputs but not the value.
    exact
        Whether its numbers are simple fractions.
    near
        Whether it holds up to the rounding of its parts, with a few exceptions that are kept as exceptions.
    """

    kind: Kind
    target: str
    inputs: tuple[str, ...]
    factors: tuple[float, ...]
    constant: float
    rows: int
    broken: int
    without_inputs: int
    without_value: int
    exact: bool
    exceptions: tuple[int, ...]
    near: bool = False

    @property
    def expression(self) -> str:
        """The right-hand side, as `discreet.expressions` reads it."""
        parts = zip(self.inputs, self.factors, strict=True)
        if self.kind == "sum":
            text = " + ".join(_term(name, factor) for name, factor in parts)
            text += f" + {_number(self.constant)}" if self.constant else ""
            return text.replace("+ -", "- ")
        above = [
            _power(name, power) for name, power in zip(self.inputs, self.factors, strict=True) if power > 0
        ]
        below = [
            _power(name, -power) for name, power in zip(self.inputs, self.factors, strict=True) if power < 0
        ]
        head = [_number(self.constant)] if self.constant != 1 or not above else []
        return " / ".join([" * ".join([*head, *above]), *below])


def find_identities(look: Look) -> list[Identity]:
    """Find sums and products among the numeric columns; of those that say the same, the one computed last."""
    names = [name for name in look.numeric if look.distinct[name] >= 3]
    found: list[Identity] = []
    # Hundreds of small fits: threads would wait for one another longer than they work.
    with one_thread():
        for target in names:
            identity = (
                _identity(look, target, names, "sum")
                or _identity(look, target, names, "product")
                or _identity(look, target, names, "sum", near=True)
            )
            if identity is not None:
                found.append(identity)
    return _one_of_each(look, found)


def identity_finding(look: Look, identity: Identity) -> Finding:
    """Write an identity as a finding."""
    gone = identity.broken + identity.without_inputs + identity.without_value
    decimals = look.decimals(identity.target)
    return Finding(
        identity.kind,
        (identity.target, *identity.inputs),
        {
            "formula": identity.expression,
            "rows": identity.rows,
            "broken": identity.broken,
            "value_without_inputs": identity.without_inputs,
            "inputs_without_value": identity.without_value,
            "exceptions": list(identity.exceptions[:100]),
        },
        "high" if identity.exact else "medium",
        "compute, and draw by how much it is off (Sequential); other generators keep no exceptions"
        if identity.near
        else "leave out and compute afterwards"
        + (f"; {gone:,} exceptions are not kept (their positions are in the evidence)" if gone else ""),
        reversible=gone == 0 and not identity.near,
        parameters={
            "expression": identity.expression,
            **({"near": True} if identity.near else {}),
            **({} if decimals is None else {"decimals": decimals}),
        },
    )


def _identity(
    look: Look, target: str, names: Sequence[str], kind: Kind, *, near: bool = False
) -> Identity | None:
    y = look.clean(target)
    there = np.flatnonzero(~np.isnan(y))
    if len(there) < 20:
        return None
    if len(there) > _FIT_ROWS:
        rng = generator(0, "preflight", "identity", target)
        there = np.sort(rng.choice(there, size=_FIT_ROWS, replace=False))
    if kind == "product" and not (y[there] > 0).all():
        return None
    inputs = _candidates(look, target, names, there, kind)
    if not inputs:
        return None
    columns = np.column_stack([look.clean(name)[there] for name in inputs])
    complete = ~np.isnan(columns).any(axis=1)
    if complete.sum() < 20:
        return None
    columns, values = columns[complete], y[there][complete]
    slack = _slack(values, look.decimals(target), near=near)
    if near and slack.max() > _COARSE * values.std():
        # Small numbers nearly add up by chance.
        return None
    if kind == "product":
        # An error of the logarithm times the value is an error of the value.
        columns, values, slack = np.log(columns), np.log(values), slack / values
    if np.ptp(values) == 0:
        return None
    if near:
        # Exceptions pull a fit aside, but not so far that the parts of a total could not be told from the rest.
        plain = np.rint(_fitted(columns, values, slack)[0])
        parts = np.flatnonzero(plain)
        if not 2 <= len(parts) <= look.limits.max_terms or np.abs(plain).max() > 1:
            return None
        return _checked(look, kind, target, [inputs[at] for at in parts], (plain[parts], 0.0), near=True)
    chosen = _least_set(columns, values, slack, int(look.limits.max_terms))
    if chosen is None:
        return None
    fitted = _fitted(columns[:, chosen], values, slack)
    return _checked(look, kind, target, [inputs[at] for at in chosen], fitted, near=False)


def _candidates(look: Look, target: str, names: Sequence[str], rows: Integers, kind: str) -> list[str]:
    """Return the columns that are there wherever the target is, at most as many as can be told apart."""
    kept = []
    for name in names:
        if name == target:
            continue
        values = look.clean(name)[rows]
        known = values[~np.isnan(values)]
        if len(known) < _OBSERVED * len(rows) or np.ptp(known) == 0:
            continue
        if kind == "sum" or (known > 0).all():
            kept.append(name)
    if len(kept) <= _MOST_CANDIDATES:
        return kept
    y = look.clean(target)[rows]
    strength = {}
    for name in kept:
        values = look.clean(name)[rows]
        both = ~np.isnan(values)
        strength[name] = abs(np.corrcoef(values[both], y[both])[0, 1])
    return sorted(sorted(kept, key=lambda n: -strength[n])[:_MOST_CANDIDATES], key=kept.index)


def _least_set(columns: Floats, y: Floats, slack: Floats, most: int) -> list[int] | None:
    """Take columns out as long as the rest computes the target just as often; None where it never did.

    A part that few records have (a benefit within an income) is a part all the same.
    """
    chosen = list(range(columns.shape[1]))
    share = _computes(columns, y, slack)
    if share < _KEPT:
        return None
    spread = columns.std(axis=0)
    while len(chosen) > 1:
        factors, _ = _fitted(columns[:, chosen], y, slack)
        for at in np.argsort(np.abs(factors) * spread[chosen]):
            rest = [*chosen[:at], *chosen[at + 1 :]]
            if _computes(columns[:, rest], y, slack) >= share - _NO_LOSS:
                chosen = rest
                break
        else:
            break
    return chosen if len(chosen) <= most else None


def _computes(columns: Floats, y: Floats, slack: Floats) -> float:
    """Return the share of records that the columns compute; 0 where that is no more than the slack allows for."""
    factors, constant = _fitted(columns, y, slack)
    rest = np.abs(y - columns @ factors - constant)
    good = rest <= slack
    return float(good.mean()) if good.any() and rest[good].std() <= _EXACT * y.std() else 0.0


def _fitted(columns: Floats, y: Floats, slack: Floats) -> tuple[Floats, float]:
    """Fit by least squares to the records that fit best, so that a few wrong ones do not spoil it."""
    center, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([(columns - center) / scale, np.ones(len(y))])
    kept = np.ones(len(y), dtype=bool)
    for _ in range(6):
        solved = np.linalg.lstsq(design[kept], y[kept], rcond=1e-10)[0]
        rest = np.abs(y - design @ solved)
        if (rest <= slack).mean() >= _KEPT:
            fits = rest <= slack
            if (fits == kept).all():
                break
            kept = fits
        else:
            kept = rest <= np.quantile(rest, _KEPT)
    factors = solved[:-1] / scale
    return factors, float(solved[-1] - factors @ center)


def _checked(
    look: Look,
    kind: Kind,
    target: str,
    inputs: list[str],
    fitted: tuple[Floats, float],
    *,
    near: bool,
) -> Identity | None:
    """Count over the whole file how often the identity holds, with simple fractions where they do as well."""
    y = look.clean(target)
    columns = np.column_stack([look.clean(name) for name in inputs])
    have = ~np.isnan(columns).any(axis=1)
    both = have & ~np.isnan(y)
    if not both.any():
        return None
    factors, constant = fitted
    simple = tuple(float(Fraction(factor).limit_denominator(_DENOMINATOR)) for factor in factors)
    level = _snapped_constant(kind, y[both], columns[both], simple, constant)
    plain = float(np.exp(constant)) if kind == "product" else constant
    slack = _slack(y[both], look.decimals(target), near=near)
    limit = max(_NEARLY, look.limits.fd_tol) if near else look.limits.fd_tol
    for powers, base, exact in ((simple, level, True), (tuple(factors.tolist()), plain, False)):
        if not any(powers):
            continue
        with np.errstate(all="ignore"):
            off = ~(np.abs(y[both] - _computed(kind, columns[both], powers, base)) <= slack)
        wrong = np.flatnonzero(both)[off]
        if near and (not exact or any(factor not in (0.0, 1.0, -1.0) for factor in powers)):
            # What holds only nearly must at least be plain: a total of its parts.
            return None
        if len(wrong) <= limit * both.sum():
            odd = np.concatenate([wrong, np.flatnonzero(have != ~np.isnan(y))])
            used = [(n, p) for n, p in zip(inputs, powers, strict=True) if p]
            return Identity(
                kind,
                target,
                tuple(n for n, _ in used),
                tuple(p for _, p in used),
                base,
                int(both.sum()),
                len(wrong),
                int((~have & ~np.isnan(y)).sum()),
                int((have & np.isnan(y)).sum()),
                exact,
                tuple(np.sort(odd).tolist()),
                near,
            )
    return None


def _computed(kind: Kind, columns: Floats, factors: Sequence[float], constant: float) -> Floats:
    if kind == "sum":
        return np.asarray(columns @ np.asarray(factors) + constant)
    return np.asarray(constant * np.prod(columns ** np.asarray(factors), axis=1))


def _snapped_constant(
    kind: str, y: Floats, columns: Floats, factors: Sequence[float], constant: float
) -> float:
    """Find the constant that goes with simple factors, written with few digits where that does as well."""
    with np.errstate(all="ignore"):
        if kind == "sum":
            level = float(np.median(y - columns @ np.asarray(factors)))
        else:
            level = float(np.median(y / np.prod(columns ** np.asarray(factors), axis=1)))
    if not np.isfinite(level):
        return constant
    if kind == "sum" and abs(level) < 1e-9 * (np.abs(y).max() + 1):
        return 0.0
    for digits in range(1, 8):
        short = float(f"{level:.{digits}g}")
        if abs(short - level) <= 1e-6 * abs(level):
            return short
    return level


def _slack(y: Floats, decimals: int | None, *, near: bool = False) -> Floats:
    """How far a computed value may be from one that is written with so many decimals, where parts are rounded too."""
    unit = 0.0 if decimals is None else (1.0000001 if near else 0.5000001) * 10.0**-decimals
    return np.maximum(unit, _RELATIVE * np.abs(y))


def _one_of_each(look: Look, found: Sequence[Identity]) -> list[Identity]:
    """Of total = a + b, a = total - b and b = total - a keep one: the one with most decimals, without minus, last."""
    places = {name: at for at, name in enumerate(look.frame.columns)}

    def rank(identity: Identity) -> tuple[int, bool, bool, int]:
        decimals = look.decimals(identity.target)
        return (
            99 if decimals is None else decimals,
            all(factor > 0 for factor in identity.factors),
            all(factor == round(factor) for factor in identity.factors),
            places[identity.target],
        )

    groups: dict[frozenset[str], Identity] = {}
    for identity in found:
        key = frozenset((identity.target, *identity.inputs))
        if key not in groups or rank(identity) > rank(groups[key]):
            groups[key] = identity
    return list(groups.values())


def quoted(name: str) -> str:
    """Write a column name as it stands in an expression."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else f"`{name}`"


def _term(name: str, factor: float) -> str:
    if factor == 1:
        return quoted(name)
    return f"-{quoted(name)}" if factor == -1 else f"{_number(factor)} * {quoted(name)}"


def _power(name: str, power: float) -> str:
    return quoted(name) if power == 1 else f"{quoted(name)} ** {_number(power)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.12g}"
