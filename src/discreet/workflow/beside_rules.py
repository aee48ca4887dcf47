"""What a verdict looks at beside the rules of its policy: everything else that leaves the house with a release.

Direct identifiers under any name, columns that nobody knows, the order of the records, an index, labels of values that
were removed. No policy clears a file that says who people are in one of these ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import card_of
from discreet.core.values import canonical_text
from discreet.core.verdicts import Check, Unjudged
from discreet.core.wording import named, percent
from discreet.engine.comparable import as_text, plain_text
from discreet.microdata import Microdata
from discreet.policy import MAIN, Policy
from discreet.risk.copy_counts import telling_columns
from discreet.workflow.inspection import unnamed_person
from discreet.workflow.pair_questions import PairCase, by_name
from discreet.workflow.questions import Case

NEW_COLUMNS = "new_columns"
NO_ROLE = "columns_without_a_role"
PERSON = "person"
_TEXTS = (nw.String, nw.Categorical, nw.Enum)
_FEW = 30
_IN_ORDER = 0.8
_RARE = 3  # a label that fewer people have names them


def beside_rules(
    policy: Policy, alone: Mapping[str, Case | str], pair: PairCase | str | None, original: Microdata | None
) -> list[Check | Unjudged]:
    """Look at what no rule speaks of; the parameters are those of `held_against`."""
    found: list[Check | Unjudged] = [
        *_whose_records(alone, original),
        *_names_of_people(alone, original),
        *_nobody_asked(policy, alone, pair),
        *_unknown_columns(policy, pair),
    ]
    as_is = [case.data for case in alone.values() if isinstance(case, Case)]
    if isinstance(pair, PairCase) and pair.whole is None and _is_about_finding(policy):
        for place in range(len(pair.files.copies)):
            one = pair.of_copy(place) if len(pair.files.copies) > 1 else pair
            released = as_is[place] if place < len(as_is) else one.files.copies[0]
            found += _own_values(policy, one.files.original, released)
            found += [*_order(one), *_index(released), *_labels(one.files.original, released)]
    return found


def _is_about_finding(policy: Policy) -> bool:
    """Whether the policy asks at all if people can be found in the release by whoever has it."""
    cards = [card_of(rule.measure) for rule in policy.comparison]
    return any(card is not None and card.chapter in ("found", "attackers") for card in cards)


def _nobody_asked(
    policy: Policy, alone: Mapping[str, Case | str], pair: PairCase | str | None
) -> list[Unjudged]:
    """Leave a verdict open on columns without a role, unless a rule looks at all columns for people in them."""
    asked = by_name()
    questions = [asked[rule.measure] for rule in policy.comparison if rule.measure in asked]
    everything = any(
        one.side == "risk" and not one.needs.keys and not one.needs.sensitive for one in questions
    )
    if policy.intruder is not None or everything or (policy.comparison and pair is None):
        return []
    cases = [case.data for case in alone.values() if isinstance(case, Case)]
    names = dict.fromkeys(
        name
        for data in cases
        for name in data.columns
        if name not in data.roles.columns() and name != unnamed_person(data) and _varies(data, name)
    )
    if not names:
        return []
    count = "1 column" if len(names) == 1 else f"{len(names)} columns"
    return [
        Unjudged(
            NO_ROLE,
            "none",
            f"a role for {count}: {named(names)}",
            "say what an intruder may know (keys) and must not learn (sensitive); discreet inspect proposes it",
            "rules",
        )
    ]


def _varies(data: Microdata, name: str) -> bool:
    return len(engine.distinct_values(data, name)) > 1


def _failed(what: str, reason: str, count: int = 1) -> Check:
    return Check(what, "value", MAIN, "none", count, False, reason, "comparison")


def _own_values(policy: Policy, original: Microdata, released: Microdata) -> Iterator[Check]:
    """Hold weights, numbers of homes and other technical columns to the rule on values that one person has alone.

    Running numbers say nothing: they are the same in every file.
    """
    aimed = [rule for rule in policy.comparison if rule.said is not None and rule.said.aim == "own values"]
    rule = min(aimed, key=lambda one: math.inf if one.at_most is None else one.at_most, default=None)
    names = [name for name in original.roles.technical if name in original.schema and name in released.schema]
    names = [name for name in names if name not in original.roles.identifiers]
    if rule is None or rule.at_most is None or not names:
        return
    ours, theirs = (engine.collect(file, sorted(names)) for file in (original, released))
    for column in telling_columns(
        ours, theirs, [name for name in sorted(names) if not _is_running(theirs[name])]
    ):
        share = column.found.share_beyond_chance
        if share > rule.at_most:
            yield _failed(
                "own values of technical columns",
                f"values of '{column.name}' that one person has alone are in the release, of {percent(share)} of the "
                f"people (policy: {rule.limit}); give new numbers, or round weights",
                column.found.people,
            )


def _is_running(values: pl.Series) -> bool:
    """Whether a column numbers its units one after the other."""
    known = values.drop_nulls()
    if not known.dtype.is_integer() or not len(known):
        return False
    low, high = (int(end) for end in (known.min(), known.max()))  # type: ignore[arg-type]
    return high - low + 1 == known.n_unique()


def _order(pair: PairCase) -> Iterator[Check]:
    """Refuse an order of the records that tells what the release does not show."""
    ours = engine.collect(pair.files.original, pair.files.original.columns)
    released = pair.files.copies[0]
    if released.memory.get("unordered"):
        return
    theirs = engine.collect(released, released.columns)
    rows = _matched_rows(ours, theirs, pair)
    if rows is None:
        return
    mine, there = ours[rows[:, 0]], theirs[rows[:, 1]]
    place = rows[:, 1].astype(np.float64)
    shown = [name for name in there.columns if _stands_together(there[name])]
    groups = there.select(pl.struct(pl.lit(0), *shown).rank("dense")).to_series().to_numpy()
    groups = np.broadcast_to(groups, len(there))
    told = [
        name
        for name in ours.columns
        if name != pair.ids and _is_hidden(mine[name], there, name) and _tells(place, mine[name], groups)
    ]
    if told:
        listed = ", ".join(map(repr, told[:5]))
        yield _failed(
            "order of the records",
            f"the records stand in the order of {listed}, which the release does not show (reorder-records mends it)",
            len(told),
        )


def _matched_rows(ours: pl.DataFrame, theirs: pl.DataFrame, pair: PairCase) -> np.ndarray | None:
    """Find which record is whose: by values that only one record of each file has, else by their places."""
    shared = [
        name for name in theirs.columns if name in ours.columns and theirs.schema[name] == ours.schema[name]
    ]
    if shared:
        sides = [
            side.select(shared).with_row_index(row).filter(pl.struct(shared).is_unique())
            for side, row in ((ours, "·ours"), (theirs, "·theirs"))
        ]
        both = sides[0].join(sides[1], on=shared, how="inner", nulls_equal=True)
        if both.height >= _FEW:
            return both.select("·ours", "·theirs").to_numpy()
    by_place = pair.linked and pair.ids is None and ours.height == theirs.height
    return np.column_stack([np.arange(ours.height)] * 2) if by_place else None


def _stands_together(values: pl.Series) -> bool:
    """Whether equal values all stand next to each other."""
    plain = plain_text(values)
    runs = 1 + int(plain.ne_missing(plain.shift(1))[1:].sum())
    return 1 < plain.n_unique() == runs <= len(plain) / 10


def _is_hidden(values: pl.Series, released: pl.DataFrame, name: str) -> bool:
    """Whether the release lacks a column, or shows something else in most of its cells."""
    if name not in released.columns:
        return True
    ours, theirs = (as_text(plain_text(side)) for side in (values, released[name]))
    return int(ours.eq_missing(theirs).sum()) < 0.5 * len(ours)


def _tells(place: Floats, values: pl.Series, groups: np.ndarray) -> bool:
    """Whether records stand in the order of some values, or beside their like, within what the release shows."""
    ranks = plain_text(values).rank("dense").cast(pl.Float64).fill_null(0).to_numpy()
    if len(np.unique(ranks)) < 2:
        return False
    inner = [_within(side, groups) for side in (place, ranks)]
    if (
        min(side.std() for side in inner) > 0
        and abs(float(np.corrcoef(inner[0], inner[1])[0, 1])) > _IN_ORDER
    ):
        return True
    order = np.argsort(place)
    same = groups[order][1:] == groups[order][:-1]
    if same.sum() < _FEW:
        return False
    alike = float((ranks[order][1:] == ranks[order][:-1])[same].mean())
    sizes = np.bincount(np.unique(groups, return_inverse=True)[1])
    _, counts = np.unique(np.column_stack([groups, ranks]), axis=0, return_counts=True)
    pairs = float((sizes * (sizes - 1)).sum())
    chance = float((counts * (counts - 1)).sum()) / pairs if pairs else 1.0
    return alike - chance > _IN_ORDER * (1 - chance) and chance < 1


def _within(values: Floats, groups: np.ndarray) -> Floats:
    """Take the mean of each group away."""
    places = np.unique(groups, return_inverse=True)[1]
    return values - (np.bincount(places, values) / np.bincount(places))[places]


def _index(released: Microdata) -> Iterator[Check]:
    """Refuse a pandas frame whose index still numbers the records of the original."""
    index = getattr(released.frame, "index", None)
    if index is None or not hasattr(index, "is_monotonic_increasing") or len(index) < 2:
        return
    if list(index[:2]) != [0, 1] or int(index[-1] if index.dtype.kind in "iu" else -1) != len(index) - 1:
        yield _failed(
            "index of the frame",
            "the index of the released frame still says which records of the original these are "
            "(reset_index(drop=True) mends it)",
        )


def _labels(original: Microdata, released: Microdata) -> Iterator[Check]:
    """Refuse categories and labelled codes that no released record has and that few people of the original have."""
    told = []
    for name, dtype in released.schema.items():
        codes = {str(code) for code in released.metadata.value_labels.get(name, ())}
        listed = codes | set(dtype.categories if isinstance(dtype, nw.Enum) else ())
        if not listed or name not in original.schema:
            continue
        held = engine.collect(released, [name])[name]
        unused = listed - set(as_text(plain_text(held)).drop_nulls().to_list())
        counted = as_text(plain_text(engine.collect(original, [name])[name])).rename("v").value_counts()
        rare = counted.filter((pl.col("count") < _RARE) & pl.col("v").is_in(sorted(unused)))
        told += [name] * bool(rare.height)
    if told:
        yield _failed(
            "labels of removed values",
            f"the categories of {', '.join(map(repr, told))} still list values that were removed and that fewer than "
            f"{_RARE} people have",
            len(told),
        )


def _whose_records(alone: Mapping[str, Case | str], original: Microdata | None) -> list[Unjudged]:
    """Leave a verdict open where people seem to have several records, and no role says so: rules count records then."""
    files = [
        *([] if original is None else [original]),
        *(c.data for c in alone.values() if isinstance(c, Case)),
    ]
    for data in files:
        name = unnamed_person(data)
        if name is not None:
            return [
                Unjudged(
                    PERSON,
                    "named where people have several records",
                    f"to know whether {name!r} says whose the records are: it seems to number people, and repeats, "
                    "while rules count records",
                    f"name it (person={name!r}, --person), give it another role, or let a person deny it (accept=…, "
                    "--accept)",
                    "rules",
                )
            ]
    return []


def _unknown_columns(policy: Policy, pair: PairCase | str | None) -> list[Unjudged]:
    """Leave a verdict open on columns that only the release has: they are held against nothing."""
    names = pair.unexplained if isinstance(pair, PairCase) and policy.comparison else ()
    if not names:
        return []
    listed = ", ".join(map(repr, names))
    return [
        Unjudged(
            NEW_COLUMNS,
            "none that nobody knows",
            f"to know what {listed} of the release {'holds' if len(names) == 1 else 'hold'}",
            "leave out what was not made from columns that stay, or let a person accept it (accept=…, --accept)",
        )
    ]


def _names_of_people(alone: Mapping[str, Case | str], original: Microdata | None) -> list[Check]:
    """Refuse a file that still says who people are: no policy clears one, whatever its rules are.

    Pseudonyms pass where the original shows that they are some.
    """
    for name, case in alone.items():
        if isinstance(case, str):
            continue
        told = _columns_that_say_who(case.data, original)
        if told:
            reason = f"direct identifiers are left in the file: {', '.join(repr(column) for column in told)}"
            return [Check("direct identifiers", "value", name, "none", len(told), False, reason)]
    return []


def _columns_that_say_who(released: Microdata, original: Microdata | None) -> list[str]:
    """Find the identifiers that are left, under their own name or, where the original is there, under a new one."""
    if original is None:
        return [name for name in released.roles.identifiers if len(_folded(released, name))]
    names = [name for name in original.roles.identifiers if name in original.columns]
    known = {name: _folded(original, name) for name in names}
    new = [name for name in released.columns if name not in original.columns]
    return [
        column
        for column in (*(name for name in names if name in released.columns), *(new if names else ()))
        if any(_repeats(_folded(released, column), values, column in names) for values in known.values())
    ]


def _folded(data: Microdata, column: str) -> pl.Series:
    """The distinct values as texts, whatever their letters' size and the blanks around them."""
    if not (data.schema[column].is_numeric() or data.schema[column] in _TEXTS):
        return pl.Series([], dtype=pl.String)
    return canonical_text(engine.distinct_values(data, column)).str.strip_chars().str.to_lowercase().unique()


def _repeats(here: pl.Series, there: pl.Series, same_column: bool) -> bool:
    """Whether one column repeats another; small numbers of a new column may be anything, so most must be there."""
    found = int(here.is_in(there.implode()).sum())
    bare = here.str.contains(r"^-?[0-9.]+$").all()
    return found > 0 if same_column or not bare else 2 * found > len(there)
