"""Who becomes identifiable by comparing two releases of one file?

Each release may be safe alone. Laid side by side they show who joined, who left, and who changed class; and two
codings that cut differently together cut finer than either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
import scipy

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Figure, measure
from discreet.core.charts import Bars, number
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues
from discreet.core.errors import (
    ColumnError,
    DiscreetError,
    InputError,
    ParameterError,
    need_known,
    unknown_name,
)
from discreet.core.results import Detail, Measure
from discreet.core.verdicts import Figure as FigureValue
from discreet.core.wording import percent
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import Partition
from discreet.risk.k_anonymity import key_caveats, records_below

_EXPOSED = {
    "exposed_joined": "Joined the file",
    "exposed_left": "Left the file",
    "exposed_stayed": "Stayed, in other groups",
}


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    if _EXPOSED.keys() <= found.figures.keys():
        yield Bars(
            title="Who becomes identifiable by comparing the releases",
            labels=tuple(_EXPOSED.values()),
            values=tuple(number(found.figures[name]) or 0.0 for name in _EXPOSED),
            axis="Number of people hidden in each release but not in both together",
            at_risk=(True,) * len(_EXPOSED),
            horizontal=True,
            as_share=False,
        )


@measure(
    room="risk",
    work="class-wise",
    question="Who becomes identifiable when two releases are compared?",
    headline="people become identifiable",
    chapter="found",
    place=12,
    references=(
        "Ganta, S. R., Kasiviswanathan, S. P. and Smith, A. (2008). Composition attacks and auxiliary "
        "information in data privacy. ACM SIGKDD, 265–273.",
        "Duke-Williams, O. and Rees, P. (1998). Can census offices publish statistics for more than one "
        "small area geography? International Journal of Geographical Information Science 12(6), 579–605.",
    ),
    figures={
        "value": Figure(better="lower"),
        "exposed": Figure("People who become identifiable"),
        "share_exposed": Figure("Share of people who become identifiable", unit="share"),
        "exposed_joined": Figure("Identifiable: joined"),
        "exposed_left": Figure("Identifiable: left"),
        "exposed_stayed": Figure("Identifiable: stayed, in other groups"),
        "groups_exposed": Figure("Groups that expose someone"),
        "singled_out": Figure("People who stand alone after the comparison"),
        "joined": Figure("People who joined"),
        "left": Figure("People who left"),
        "stayed": Figure("People in both releases"),
        "net_change": Figure("Change in the number of records"),
        "previous_records": Figure("Records of the previous release"),
        "next_records": Figure("Records of the next release"),
        "previous_below_k": Figure("Records of the previous release in small groups"),
        "next_below_k": Figure("Records of the next release in small groups"),
        "linked": Figure("People could be linked"),
    },
    pictures=_pictures,
)
def differencing(
    previous: Microdata,
    next: Microdata,
    *,
    keys: ColumnNames | None = None,
    person: ColumnName | None = None,
    k: Annotated[int, AtLeast(2)] = 3,
    recoding: Annotated[Mapping[str, Coding], HoldsValues(by_column=True)] | None = None,
    missing: Partition = "category",
) -> Measure:
    """Who becomes identifiable by comparing two releases of one file?

    An intruder has both releases and knows the key values of a person, as each release codes them. A person is
    *exposed* when every release they are in hides them among at least k records, and the two together do not:

    *Linked* (both releases carry a ``person`` column, a pseudonym that stays the same). Everybody has a pair of
    classes, one in each release, or none in one of them. Exposed are the people whose pair is shared by fewer
    than k: who joined, who left, who moved from class to class, and who is cut out by two codings that cross.

    *Not linked.* Only counts are compared. Classes are brought to the finest coding that both releases can be
    recoded to (a class of it is a connected set of classes that can share somebody). Where such a class has at
    least k records in both releases and their number differs by 1 to k-1, that many people joined or left and
    are exposed. Where the number is the same, the people are taken to be the same, and each pair of a previous
    and a next class is bounded by what the class sizes leave room for; a pair of classes of at least k that
    shares at least one and fewer than k people for certain exposes them. This is differencing of counts as for
    overlapping geographies.

    Also known as: composition attack; differencing attack.

    Parameters
    ----------
    previous, next
        The two releases.
    keys
        Key columns, in both; those of ``previous`` unless named.
    person
        Column that links the records of a person; the person of ``previous`` unless named. Without it, and
        without that role, releases are not linked.
    k
        The number of records among which a person is hidden.
    recoding
        Where the codings differ and releases are not linked: ``{key: {previous value: next value}}``, a list of
        next values where one previous value can become several, or a `Hierarchy` of which the releases use two
        levels.
    missing
        ``category``: missing is a value of its own. ``drop``: records with a missing key are left out, so that
        one suppressed in the next release counts as having left.

    Returns
    -------
    Measure
        ``value`` is ``exposed``, the people exposed (for certain). ``figures``: ``exposed``, ``share_exposed``,
        ``exposed_joined``, ``exposed_left``, ``exposed_stayed``, ``groups_exposed``, ``singled_out`` (exposed and
        alone), ``joined``, ``left``, ``stayed`` (undefined where not linked), ``net_change``,
        ``previous_records``, ``next_records``, ``previous_below_k``, ``next_below_k`` (not safe to begin with),
        ``linked``. ``detail``: ``groups`` (pairs of classes, with ``before`` and ``after``, their sizes, and how
        many people share them), and ``records`` (linked) or ``changes`` (not linked: the counts of both releases in
        each class of the ``common`` coding, whose number ``groups`` has too).

    How to read it
    --------------
    ``exposed`` counts the people who are hidden in each release by itself but not in both together, for
    instance the one person who joined a group between two dates. 0 is the goal. ``singled_out`` counts those
    who stand alone. Compare before you publish: if somebody is exposed, use the same coding in both releases,
    hold the newcomers back until there are at least k of them, or coarsen the group.

    When not to trust it
    --------------------
    Without a person column only counts are compared, and people who joined and others who left cancel out:
    the figure is then a lower bound. It speaks of being found and not of what is learned: two groups may have
    just one diagnosis in common. Each further release adds comparisons, so check the new one against all
    earlier ones. Records that were below k already are not counted, since they needed no second release.

    Examples
    --------
    >>> january = pl.DataFrame({"id": range(7), "area": ["n"] * 3 + ["s"] * 4})
    >>> february = pl.DataFrame({"id": range(8), "area": ["n"] * 3 + ["s"] * 5})
    >>> found = differencing(Microdata(january, keys="area"), Microdata(february, keys="area"))
    >>> found.value, found.figures["exposed_joined"]
    (1, 1)
    >>> differencing(Microdata(january, keys="area", person="id"), Microdata(february)).value
    1

    References
    ----------
    Ganta, Kasiviswanathan and Smith (2008), Composition attacks and auxiliary information in data privacy.
    Duke-Williams and Rees (1998), Can Census Offices publish statistics for more than one small area geography?
    """
    keys = engine.resolve_keys(previous, keys)
    _must_have(next, keys, "key")
    engine.overview(next, keys)
    person = person or previous.roles.person
    for key in recoding or {}:
        if key not in keys:
            raise ParameterError(f"{unknown_name(key, keys, what='key')} It was named under 'recoding'.")
    question = _Question(keys, k, missing)
    found: _Linked | _Counted
    if person is not None:
        found = _linked(previous, next, question, person)
    else:
        found = _counted(previous, next, question, recoding or {})
    return _measure(previous, next, question, found)


@dataclass(frozen=True)
class _Question:
    keys: tuple[str, ...]
    k: int
    missing: engine.Missing


@dataclass(frozen=True)
class _Linked:
    """Everybody of either release with the classes they were in: ``p0``…, ``n0``…, sizes and flags."""

    people: pl.DataFrame
    keys: tuple[str, ...]
    person: str

    @property
    def people_at_least(self) -> int:
        return self.people.height

    @property
    def exposed(self) -> dict[str, int]:
        return self._by_how(self.people.filter("exposed"))

    def figures(self) -> dict[str, FigureValue]:
        groups = self.table().filter("exposed")
        return {
            "groups_exposed": groups.height,
            "singled_out": int((groups["together"] == 1).sum()),
            **self._by_how(self.people),
        }

    def table(self) -> pl.DataFrame:
        columns = [name for name in self.people.columns if name[0] in "pn" and name[1:].isdigit()]
        return self.people.drop("who").unique([*columns, "how"]).sort("together", "how", *columns)

    def detail(self, data: Microdata) -> Detail:
        records = _named(self.people.sort("together", "who"), self.keys).rename({"who": self.person})
        return engine.tables_like(data, groups=lambda: _named(self.table(), self.keys), records=records)

    @staticmethod
    def _by_how(people: pl.DataFrame) -> dict[str, int]:
        return {how: int((people["how"] == how).sum()) for how in ("joined", "left", "stayed")}


@dataclass(frozen=True)
class _Counted:
    """Pairs of classes with bounds on what they share, and the counts of both releases in their common coding."""

    groups: pl.DataFrame
    changes: pl.DataFrame
    keys: tuple[str, ...]

    @property
    def people_at_least(self) -> int:
        return max(int(self.changes["before"].sum()), int(self.changes["after"].sum()))

    @property
    def exposed(self) -> dict[str, int]:
        change = self.changes.filter("exposed")["change"]
        return {
            "joined": int(change.filter(change > 0).sum()),
            "left": -int(change.filter(change < 0).sum()),
            "stayed": int(self.groups.filter("exposed")["at_least"].sum()),
        }

    def figures(self) -> dict[str, FigureValue]:
        change, most = self.changes.filter("exposed")["change"], self.groups.filter("exposed")["at_most"]
        return {
            "groups_exposed": len(change) + len(most),
            "singled_out": int((change.abs() == 1).sum()) + int((most == 1).sum()),
            "joined": None,
            "left": None,
            "stayed": None,
        }

    def detail(self, data: Microdata) -> Detail:
        return engine.tables_like(
            data, groups=lambda: _named(self.groups, self.keys), changes=lambda: self.changes
        )


def _linked(previous: Microdata, next: Microdata, question: _Question, person: str) -> _Linked:
    ours = _one_record_each(previous, question, person, "previous")
    theirs = _one_record_each(next, question, person, "next")
    if ours.schema["who"] != theirs.schema["who"]:
        ours, theirs = (side.with_columns(pl.col("who").cast(pl.String)) for side in (ours, theirs))
    people = ours.join(theirs, on="who", how="full", coalesce=True)
    if people.height == ours.height + theirs.height:
        raise InputError(
            f"The releases have no value of '{person}' in common, so nobody can be linked: were pseudonyms changed? "
            "Leave person out to compare counts."
        )
    joined, left = pl.col("before").is_null(), pl.col("after").is_null()
    how = pl.when(joined).then(pl.lit("joined")).when(left).then(pl.lit("left")).otherwise(pl.lit("stayed"))
    pair = [name for name in people.columns if name not in ("who", "before", "after")]
    hidden = pl.min_horizontal("before", "after") >= question.k
    people = people.with_columns(how=how).with_columns(together=pl.len().over([*pair, "how"]).cast(pl.Int64))
    return _Linked(
        people.with_columns(exposed=hidden & (pl.col("together") < question.k)), question.keys, person
    )


def _one_record_each(data: Microdata, question: _Question, person: str, release: str) -> pl.DataFrame:
    """Collect the person and the class of every record: ``who``, ``p0``… or ``n0``…, and the class size."""
    _must_have(data, [person], "person")
    names = {f"k{i}": f"{release[0]}{i}" for i in range(len(question.keys))}
    rows = engine.collect(engine.keyed_rows(data, question.keys, question.missing, {"who": person}))
    extra = rows.height - rows["who"].drop_nulls().n_unique()
    if extra:
        raise InputError(
            f"The person column '{person}' is missing or occurs more than once in {extra:,} records of the {release} "
            "release. Linking needs one record a person; leave person out to compare counts."
        )
    size = {"previous": "before", "next": "after"}[release]
    return rows.rename(names).with_columns(pl.len().over(list(names.values())).cast(pl.Int64).alias(size))


def _counted(
    previous: Microdata, next: Microdata, question: _Question, recoding: Mapping[str, Coding]
) -> _Counted:
    ours, theirs = (engine.class_table(data, question.keys, question.missing) for data in (previous, next))
    a, b = compatible_classes(ours, theirs, question.keys, recoding)
    before, after = (table["records"].to_numpy().astype(np.int64) for table in (ours, theirs))
    common = common_classes(a, b, len(before), len(after))
    counts = pl.concat(
        pl.DataFrame({"common": part, "previous": left, "next": right})
        for part, left, right in (
            (common[: len(before)], before, np.zeros_like(before)),
            (common[len(before) :], np.zeros_like(after), after),
        )
    )
    safe = pl.min_horizontal("before", "after") >= question.k
    changes = (
        counts.group_by("common")
        .agg(
            classes_previous=(pl.col("previous") > 0).sum().cast(pl.Int64),
            classes_next=(pl.col("next") > 0).sum().cast(pl.Int64),
            before=pl.col("previous").sum(),
            after=pl.col("next").sum(),
        )
        .with_columns(change=pl.col("after") - pl.col("before"))
        .with_columns(exposed=safe & pl.col("change").abs().is_between(1, question.k - 1))
        .sort("common")
    )
    steady = (changes["change"] == 0).to_numpy()[common[a]]
    low, high = np.zeros(len(a), dtype=np.int64), np.minimum(before[a], after[b])
    low[steady], high[steady] = shared_bounds(a[steady], b[steady], before, after, common[a[steady]])
    pairs = pl.DataFrame(
        {"common": common[a], "before": before[a], "after": after[b], "at_least": low, "at_most": high}
    ).with_columns(exposed=safe & (pl.col("at_least") >= 1) & (pl.col("at_most") < question.k))
    groups = pl.concat([_lettered(ours, "p")[a], _lettered(theirs, "n")[b], pairs], how="horizontal")
    return _Counted(groups.sort("at_most", "at_least"), changes, question.keys)


def _lettered(classes: pl.DataFrame, letter: str) -> pl.DataFrame:
    keys = classes.drop("records", "class_size")
    return keys.rename({name: letter + name[1:] for name in keys.columns})


def _measure(previous: Microdata, next: Microdata, question: _Question, found: _Linked | _Counted) -> Measure:
    keys, k, linked = question.keys, question.k, isinstance(found, _Linked)
    spectra = [engine.size_spectrum(data, keys, question.missing) for data in (previous, next)]
    sizes = [int(spectrum["records"].sum()) for spectrum in spectra]
    below = [records_below(spectrum, k) for spectrum in spectra]
    exposed = found.exposed
    total = sum(exposed.values())
    figures: dict[str, FigureValue] = {
        "exposed": total,
        "share_exposed": total / found.people_at_least,
        **{f"exposed_{how}": number for how, number in exposed.items()},
        **found.figures(),
        "net_change": sizes[1] - sizes[0],
        "previous_records": sizes[0],
        "next_records": sizes[1],
        "previous_below_k": below[0],
        "next_below_k": below[1],
        "linked": linked,
    }
    caveats = list(dict.fromkeys([*key_caveats(previous, keys), *key_caveats(next, keys)]))
    if any(below):
        caveats.append(
            f"{below[0]:,} records of the previous and {below[1]:,} of the next release are in classes of fewer than "
            f"{k} already; they are not counted as exposed by the comparison."
        )
    if not linked:
        caveats.append(
            "Without a linking column only counts are compared: people who joined and others who left the same class "
            "cancel out, and where the count is unchanged the people are taken to be the same."
        )
    caveats.append(
        "It says who can be singled out, not which sensitive values two classes have in common; and further releases "
        "can be compared as well."
    )
    return Measure(
        name="differencing",
        value=total,
        figures=figures,
        meaning=(
            f"Comparing the two releases exposes {total:,} {'person' if total == 1 else 'people'} "
            f"({percent(total / found.people_at_least)}) who {'is' if total == 1 else 'are'} hidden among at least {k} "
            f"in each of them: {exposed['joined']:,} who joined, {exposed['left']:,} who left and "
            f"{exposed['stayed']:,} whose two classes meet in fewer than {k}; {figures['singled_out']:,} of "
            f"them {'stands' if figures['singled_out'] == 1 else 'stand'} alone."
        ),
        caveats=caveats,
        parameters={
            "keys": list(keys),
            "person": found.person if isinstance(found, _Linked) else None,
            "k": k,
            "missing": question.missing,
        },
        detail=found.detail(previous),
    )


def _named(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    names = {"p": "previous", "n": "next"}
    return table.rename(
        {
            f"{letter}{i}": f"{names[letter]} {key}"
            for letter in "pn"
            for i, key in enumerate(keys)
            if f"{letter}{i}" in table.columns
        }
    )


def _must_have(data: Microdata, columns: Sequence[str], what: str) -> None:
    need_known(columns, data.schema, f"It is the {what} of the comparison and must be in both releases.")


# Two codings of the same people: which classes can share somebody, and how many at least and at most?
#
# The classes of two releases form a graph, with an edge where a person may be in both. Counts of the edges are not
# published, but they add up to the class sizes on either side, and that alone can pin them down: of 10 people aged
# 0-9 and 7 people aged 0-6, three are 7-9.


Coding = Mapping[Any, Any] | Hierarchy


def compatible_classes(
    ours: pl.DataFrame, theirs: pl.DataFrame, keys: Sequence[str], recoding: Mapping[str, Coding]
) -> tuple[Integers, Integers]:
    """Pair the classes of two releases that can share a person, as positions in either table.

    A key without a recoding must be equal; one with a recoding must be related by it. Missing goes with missing.
    """
    left, right, on = ours.with_row_index("a"), theirs.with_row_index("b"), []
    for i, key in enumerate(keys):
        name = f"k{i}"
        if key in recoding:
            relation = _relation(left[name], right[name], key, recoding[key])
            left, relation = engine.comparable_keys(
                left, relation, name, key, ("previous release", "recoding")
            )
            right, relation = engine.comparable_keys(
                right, relation.rename({name: "from", "to": name}), name, key, ("next release", "recoding")
            )
            pairs = relation.select(pl.col("from").alias(name), pl.col(name).alias(f"{name}_next")).unique()
            left = left.join(pairs, on=name, nulls_equal=True)
            on.append(f"{name}_next")
        else:
            left, right = engine.comparable_keys(left, right, name, key, ("previous release", "next release"))
            on.append(name)
    joined = left.join(right, left_on=on, right_on=[f"k{i}" for i in range(len(keys))], nulls_equal=True)
    joined = joined.select("a", "b").unique().sort("a", "b")
    return joined["a"].to_numpy().astype(np.int64), joined["b"].to_numpy().astype(np.int64)


def common_classes(a: Integers, b: Integers, before: int, after: int) -> Integers:
    """Number the classes of the finest coding that both releases can be recoded to.

    The first ``before`` entries belong to the classes of the previous release, the others to the next one.
    """
    nodes = before + after
    edges = scipy.sparse.coo_array((np.ones(len(a)), (a, b + before)), shape=(nodes, nodes))
    numbers: Integers = scipy.sparse.csgraph.connected_components(edges, directed=False)[1].astype(np.int64)
    return numbers


def shared_bounds(
    a: Integers, b: Integers, before: Integers, after: Integers, common: Integers
) -> tuple[Integers, Integers]:
    """Bound how many people each pair of classes shares, when everybody of one release is in the other.

    Each bound follows from the others until none moves (the shuttle algorithm of Buzzigoli and Giusti 1999). The
    bounds always hold. They are the closest possible where the pairs form no cycle and where every class of one
    release meets every class of the other; elsewhere closer ones may exist. Where the sizes contradict each other,
    in a ``common`` class, the people cannot be the same, and only the class sizes bound what is shared.

    Examples
    --------
    Ages 0-9 and 10-19 against 0-6 and 7-19:

    >>> pairs = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> low, high = shared_bounds(*pairs, np.array([10, 20]), np.array([7, 23]), np.array([0, 0, 0]))
    >>> low.tolist(), high.tolist()
    ([7, 3, 20], [7, 3, 20])
    """
    low, high = np.zeros(len(a), dtype=np.int64), np.minimum(before[a], after[b])
    live = np.arange(len(a))
    while live.size:
        down, up = low[live], high[live]
        for side, size in ((a[live], before), (b[live], after)):
            up = np.minimum(up, size[side] - _others(side, down, len(size)))
            down = np.maximum(down, size[side] - _others(side, up, len(size)))
        moved = (down != low[live]) | (up != high[live])
        low[live], high[live] = down, up
        contradicted = np.isin(common[live], common[live][down > up])
        low[live[contradicted]] = 0
        high[live[contradicted]] = np.minimum(before[a], after[b])[live[contradicted]]
        live = live[np.isin(common[live], common[live][moved]) & ~contradicted]
    return low, high


def _others(side: Integers, numbers: Integers, size: int) -> Integers:
    """Add up the numbers of the other pairs of the same class."""
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, side, numbers)
    rest: Integers = total[side] - numbers
    return rest


def _relation(previous: pl.Series, next_: pl.Series, key: str, coding: Coding) -> pl.DataFrame:
    """List the pairs of a previous and a next value that a person may have, as columns k… and ``to``."""
    if isinstance(coding, Hierarchy):
        pairs = _levels_of(previous, next_, key, coding)
    else:
        flat = [(value, to) for value, many in coding.items() for to in _each(many)]
        if not flat:
            raise ParameterError(f"The recoding of '{key}' is empty: give {{previous value: next value}}.")
        pairs = pl.DataFrame({previous.name: [x for x, _ in flat], "to": [y for _, y in flat]}, strict=False)
    missing = pl.DataFrame({previous.name: [None], "to": [None]}, schema=pairs.schema, strict=False)
    return pl.concat([pairs, missing]).unique()


def _each(values: Any) -> Iterable[Any]:
    return values if isinstance(values, list | tuple | set | frozenset) else [values]


def _levels_of(previous: pl.Series, next_: pl.Series, key: str, hierarchy: Hierarchy) -> pl.DataFrame:
    """Find the two levels of a hierarchy that the releases are coded at, and pair their labels."""
    found = []
    for leaves in (None, previous, next_):
        # A rule has no table of its own; only the release with original values can be laid out.
        try:
            table = hierarchy.table(leaves).select(pl.all().cast(pl.String))
        except DiscreetError:
            continue
        (hits_before, before), (hits_after, after) = (
            _best_level(table, values) for values in (previous, next_)
        )
        found.append(
            (min(hits_before, hits_after), table.select(pl.col(before).alias("k"), pl.col(after).alias("to")))
        )
    hits, pairs = max(found, key=lambda layout: layout[0], default=(0, pl.DataFrame()))
    if not hits:
        raise ColumnError(
            f"The two releases cannot be placed in the hierarchy of '{key}': it must have a table of its own, or one "
            "release must have the original values. Else give the pairs of values: "
            "recoding={'" + key + "': {previous value: next value}}."
        )
    casts = [
        pl.col(name).cast(values.dtype)
        for name, values in (("k", previous), ("to", next_))
        if values.dtype.is_numeric()
    ]
    return pairs.unique().with_columns(casts).rename({"k": previous.name})


def _best_level(table: pl.DataFrame, values: pl.Series) -> tuple[int, str]:
    """Find the finest of the levels that hold most of the values, and how many it holds."""
    distinct = values.drop_nulls().unique().cast(pl.String)
    hits = {column: int(distinct.is_in(table[column].implode()).sum()) for column in table.columns}
    best = max(hits, key=lambda column: hits[column])
    return hits[best], best
