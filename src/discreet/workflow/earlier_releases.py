"""What does a release say together with those that went out before?

Two releases of the same people may each hide everybody and together nobody: one has the age where the other has the
town, one cuts ages at 30 and the other at 35. Whoever has both lays them beside each other, record by record, where
something shows which records belong together: a pseudonym, values that stayed as they are, or the order. Where nothing
does, classes can still be subtracted (`discreet.risk.differencing`).

A record of all releases together is compared with all others, wherever both are known. Who is hidden among enough
people in each release and among too few in all of them is exposed by the releases together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.errors import DiscreetError
from discreet.core.randomness import generator
from discreet.core.verdicts import Acceptance, Check, Unjudged, Verdict
from discreet.engine.comparable import as_text, plain_text
from discreet.microdata import Microdata
from discreet.policy import MAIN, Policy
from discreet.register import History
from discreet.risk import differencing
from discreet.workflow.pairing import with_roles_of

EARLIER = "earlier_releases"
HISTORY = "what went out before"
"""How the verdict is headed where no policy was named."""
_TABLE, _LIMIT = "comparison", "nobody who is hidden in each"
_USUAL = 3
_TOLD = 0.8  # where the order tells so much less than chance leaves open, records are laid beside each other by place
_DRAWS, _LITTLE = 5, 0.1
_ALIKE = 0.9
_FEW = 30


def with_earlier(
    verdict: Verdict | None,
    released: Microdata,
    earlier: Mapping[str, Microdata],
    *,
    policy: Policy | str | Path | None = None,
    keys: Sequence[str] = (),
    lost: Sequence[str] = (),
    accept: Sequence[Acceptance] = (),
) -> Verdict | None:
    """Judge a release together with what went out before.

    Parameters
    ----------
    verdict
        What was said of the release by itself; None where no policy was named.
    released
        The release, with the roles of its original.
    earlier
        Earlier releases of the same people, by name.
    keys
        What an intruder may know, the keys of the release that are gone from it included; its own unless named.
    policy
        Says among how many people everybody has to be hidden; 3 where it does not.
    lost
        Earlier releases that are not at hand, by name: without them the verdict stays open.
    accept
        Who accepts that it stays open.

    Examples
    --------
    >>> ages = [20 + n % 20 for n in range(120)]
    >>> one, other = (
    ...     Microdata(pl.DataFrame({"age": [f"{(age + shift) // 6}" for age in ages]}), keys="age") for shift in (0, 1)
    ... )
    >>> with_earlier(None, one, {"last year": other}).meets
    True
    """
    checks = (
        _together(released, earlier, tuple(keys) or released.roles.keys, _company(policy)) if earlier else []
    )
    if lost:
        named = ", ".join(f"'{name}'" for name in lost)
        checks.append(
            _open(f"the earlier release{'s' * (len(lost) > 1)} {named}", "--previous FILE gives it")
        )
    if not checks:
        return verdict
    before = verdict or Verdict(HISTORY, ())
    return replace(
        before,
        checks=(*(one for one in checks if isinstance(one, Check)), *before.checks),
        unjudged=(*before.unjudged, *(one for one in checks if isinstance(one, Unjudged))),
    ).accepting(accept)


def with_history(
    verdict: Verdict | None,
    history: History,
    released: Microdata,
    *,
    policy: Policy | str | Path | None = None,
    accept: Sequence[Acceptance] = (),
) -> Verdict | None:
    """Judge a release together with all that a door knows of what went out before."""
    if not (history.earlier or history.lost):
        return verdict
    keys = released.roles.keys if history.data is None else history.data.roles.keys
    file = released if history.data is None else with_roles_of(history.data, released)
    return with_earlier(
        verdict, file, history.earlier, policy=policy, keys=keys, lost=history.lost, accept=accept
    )


def _company(policy: Policy | str | Path | None) -> int:
    rules = Policy.load(policy).rules if policy is not None else ()
    asked = [rule.at_least for rule in rules if rule.measure == "k_anonymity" and rule.at_least]
    return max(int(max(asked, default=_USUAL)), 2)


def _open(needs: str, way_out: str) -> Unjudged:
    return Unjudged(EARLIER, _LIMIT, needs, way_out, _TABLE)


def _together(
    released: Microdata, earlier: Mapping[str, Microdata], keys: Sequence[str], k: int
) -> list[Check | Unjudged]:
    if not keys:
        return [_open("to know what an intruder may know", "name the keys (keys=…, --keys)")]
    everything = engine.collect(released)
    here = [name for name in keys if name in everything.columns]
    joint = everything.select(as_text(plain_text(everything[name])).alias(name) for name in here)
    person = released.roles.person
    whose = everything[person] if person in everything.columns else None
    alone = [_hidden(joint, k, whose)]
    beside, found = [], []
    for name, other in earlier.items():
        theirs = engine.collect(other)
        known = [key for key in dict.fromkeys([*keys, *other.roles.keys]) if key in theirs.columns]
        places = _linked(everything, theirs, released.roles.person, keys)
        if places is None:
            found.append(_by_counts(released, other, [key for key in known if key in here], name, k))
            continue
        coded = theirs.select(as_text(plain_text(theirs[key])).alias(key) for key in known)
        theirs_whose = theirs[person] if person in theirs.columns else None
        alone.append(_hidden(coded, k, theirs_whose)[_safe(places)] | places.is_null().to_numpy())
        joint = _laid_beside(joint, coded[_safe(places)].with_columns(_gone(places, known)), name)
        beside.append(name)
    if beside:
        seen = np.logical_and.reduce(alone) & ~_hidden(joint, k, whose)
        exposed = int(seen.sum()) if whose is None else whose.filter(pl.Series(seen)).n_unique()
        found.insert(0, _check(exposed, ", ".join(f"'{name}'" for name in beside), k))
    return found


def _check(exposed: int, named: str, k: int) -> Check:
    people = "1 person stands" if exposed == 1 else f"{exposed:,} people stand"
    reason = (
        f"laid beside {named}, {people} among fewer than {k}, though each release by itself hides them"
        if exposed
        else f"laid beside {named}, it hides whom each release by itself hides"
    )
    return Check(EARLIER, "exposed", MAIN, _LIMIT, exposed, not exposed, reason, _TABLE)


def _hidden(keys: pl.DataFrame, k: int, whose: pl.Series | None) -> Flags:
    """Say of every record whether those of enough people agree with it, wherever both are known."""
    if not keys.width:
        return np.ones(keys.height, dtype=bool)
    names = [f"k{place}" for place in range(keys.width)]
    frame = keys.rename(dict(zip(keys.columns, names, strict=True)))
    counted = (
        Microdata(frame) if whose is None else Microdata(frame.with_columns(whose.alias("u")), person="u")
    )
    table = engine.class_table(counted, names, "wildcard")
    company = frame.join(table, on=names, how="left", nulls_equal=True, maintain_order="left")["company"]
    return company.fill_null(0).to_numpy() >= k


def _laid_beside(joint: pl.DataFrame, theirs: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add what an earlier release knows of every record: to fill gaps where the coding is the same, else beside it."""
    for key in theirs.columns:
        both = pl.DataFrame({"a": joint[key], "b": theirs[key]}) if key in joint.columns else None
        known = None if both is None else both.drop_nulls()
        if both is not None and known is not None and known.height and (known["a"] == known["b"]).all():
            joint = joint.with_columns(both.select(pl.coalesce("a", "b")).to_series().alias(key))
        else:
            joint = joint.with_columns(theirs[key].alias(f"{key} in {name}"))
    return joint


def _safe(places: pl.Series) -> Integers:
    return places.fill_null(0).to_numpy()


def _gone(places: pl.Series, known: Sequence[str]) -> list[pl.Expr]:
    """Records that nothing shows in an earlier release are gaps there."""
    found = pl.Series(places.is_not_null())
    return [pl.when(found).then(pl.col(key)).otherwise(None).alias(key) for key in known]


def _linked(
    ours: pl.DataFrame, theirs: pl.DataFrame, person: str | None, keys: Sequence[str]
) -> pl.Series | None:
    """The row of every record in an earlier release, null where nothing shows it; None where nothing does at all."""
    if ours.height == theirs.height and _tell_by_place(ours, theirs):
        return pl.Series(np.arange(ours.height))
    same = [name for name in ours.columns if name in theirs.columns and _unchanged(ours[name], theirs[name])]
    named = [person] if person in ours.columns and person in theirs.columns else []
    whole = [*named, *(name for name in same if name != person)]
    # A key may have the same labels and other bounds: then the other columns find more.
    ways = [names for names in (named, whole, [name for name in whole if name not in keys]) if names]
    tried = [_rows_of(ours, theirs, names, each=bool(named) and names != named) for names in ways]
    if not tried:
        return None
    tried.sort(key=lambda rows: -rows.count())
    found = pl.DataFrame({f"{place}": rows for place, rows in enumerate(tried)}).select(pl.coalesce(pl.all()))
    return found.to_series() if found.to_series().count() >= (1 if named else _FEW) else None


def _rows_of(
    ours: pl.DataFrame, theirs: pl.DataFrame, names: Sequence[str], *, each: bool = False
) -> pl.Series:
    """Find records by values that only one record of each file has; with ``each``, equal ones by their number."""
    sides = []
    for side in (ours, theirs):
        texts = side.select(as_text(plain_text(side[name])).alias(name) for name in names)
        number = pl.int_range(pl.len()).over(names) if each else pl.lit(0)
        sides.append(texts.with_columns(number.alias("·number")).with_row_index("·row"))
    names = [*names, "·number"]
    single = sides[1].filter(pl.struct(names).is_unique())
    alone = pl.struct(names).is_unique()
    placed = (
        sides[0].with_columns(alone=alone).join(single, on=list(names), how="left", maintain_order="left")
    )
    return placed.select(pl.when("alone").then(pl.col("·row_right")).cast(pl.Int64)).to_series()


def _unchanged(ours: pl.Series, theirs: pl.Series) -> bool:
    if ours.dtype != theirs.dtype or ours.null_count() or theirs.null_count():
        return False
    one, other = (as_text(plain_text(side)).unique() for side in (ours, theirs))
    return one.is_in(other.implode()).sum() >= _ALIKE * min(len(one), len(other))


def _tell_by_place(ours: pl.DataFrame, theirs: pl.DataFrame) -> bool:
    """Whether what stands at the same place is more alike than chance would have it, in any column."""
    rng = generator(0)
    mixed = [rng.permutation(theirs.height) for _ in range(_DRAWS)]
    for name in (name for name in ours.columns if name in theirs.columns):
        one, other = (as_text(plain_text(side[name])) for side in (ours, theirs))
        here, drawn = _alike(one, other), [_alike(one, other[order]) for order in mixed]
        equal, left_open = max(draw[0] for draw in drawn), min(draw[1] for draw in drawn)
        if here[0] > equal + 0.5 * (1 - equal) or (left_open > _LITTLE and here[1] < _TOLD * left_open):
            return True
    return False


def _alike(one: pl.Series, other: pl.Series) -> tuple[float, float]:
    """The share of equal values, and how much one column leaves open of the other (their conditional entropy)."""
    both = pl.DataFrame({"a": one, "b": other})
    pairs = both.group_by("a", "b").len()["len"].to_numpy() / both.height
    first = both.group_by("a").len()["len"].to_numpy() / both.height
    left_open = float((first * np.log(first)).sum() - (pairs * np.log(pairs)).sum())
    return int(one.eq_missing(other).sum()) / both.height, max(left_open, 0.0)


def _by_counts(
    released: Microdata, other: Microdata, shared: Sequence[str], name: str, k: int
) -> Check | Unjudged:
    """Compare two releases of which nothing shows which records belong together."""
    ours, theirs = (engine.collect(side, list(shared)) for side in (released, other))
    same = shared and all(_unchanged(ours[key], theirs[key]) for key in shared)
    if not same:
        return _open(
            f"someone to say what '{name}' and this release say together (nothing shows which records belong together, "
            "and their codings differ)",
            "use the coding of the earlier release, or let a person accept it (--accept)",
        )
    try:
        found = differencing(other, released, keys=list(shared), k=k)
    except DiscreetError as error:
        return _open(f"'{name}' in a form that can be compared ({error})", "use its coding")
    exposed = int(found.figures["exposed"] or 0)
    if not exposed and any(_moved(ours[key], theirs[key]) for key in shared):
        return _open(
            f"someone to say whether the people of '{name}' and of this release are the same, or their codings others",
            "name the person (person=…), or let a person accept it (--accept)",
        )
    return _check(exposed, f"'{name}'", k)


def _moved(ours: pl.Series, theirs: pl.Series) -> bool:
    """Whether the counts of levels changed by more than the number of records did."""
    one, other = (
        as_text(plain_text(side)).alias("v").to_frame().group_by("v").len() for side in (ours, theirs)
    )
    both = one.join(other, on="v", how="full", coalesce=True, nulls_equal=True).fill_null(0)
    apart = both.select(
        (pl.col("len").cast(pl.Int64) - pl.col("len_right").cast(pl.Int64)).abs().sum()
    ).item()
    return bool(apart > abs(len(ours) - len(theirs)))
