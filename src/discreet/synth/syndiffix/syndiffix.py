"""SynDiffix: records drawn from ranges that hold enough people, with noise that is the same in every table.

`MultiTable` releases many tables of one file, each with the columns that an analysis needs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.citations import FRANCIS_2024
from discreet.core.constraints import Above, AtLeast, ColumnName, Public, Share
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError, unknown_name
from discreet.core.files.atomic import replacing_folder
from discreet.core.files.untrusted import parsed_json
from discreet.core.method_cards import made_from, method, parameters_of
from discreet.core.parameters import typed_parameters
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.roles import Columns
from discreet.core.value_gate import name_in_documents
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.column_forms import check_named, columns_named, listed
from discreet.synth.saved_models import stored, unstored
from discreet.synth.syndiffix import file_coding
from discreet.synth.syndiffix.column_clusters import Cluster, clusters_for, clusters_of_target, entropy_of
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

REFERENCES = (
    "Francis, P., Berneanu, C. and Gashi, E. (2023). SynDiffix: more accurate synthetic structured data. "
    "arXiv:2311.09628.",
    FRANCIS_2024,
)
_FEW_CLASSES = 20


@method(aim="records", work="whole-file", references=REFERENCES)
@dataclass(frozen=True)
class SynDiffix(Synthesizer):
    """Which records are left if only ranges that hold enough people are drawn from, with noise that never changes?

    Every combination of columns has a tree: its root is a range whose ends are powers of two, and a range is halved
    while enough people are in it. What may be shown of a range is a count with two layers of noise, one that belongs to
    the range and one that belongs to the very people in it; both are made from a secret salt, so that asking again for
    the same columns gives the same answer. Records are drawn evenly within the ranges that are left. Many columns are
    grouped into clusters of a few, which are joined by columns they share (Francis, Berneanu and Gashi 2023).

    Also known as: SynDiffix; Diffix; sticky noise.

    Parameters
    ----------
    salt
        A file that holds the secret; one that is not there is made. The salt stays with the data: it is refused when
        they change. None makes a salt from the seed, for trials.
    person
        Columns that name the protected person, where several records belong to one; the role ``person`` unless given.
        Persons are counted, and nobody's many records stand out.
    columns
        The columns of the table; all unless given.
    target
        A column that the others are to predict: it is part of every cluster, and columns that do not help to predict
        it are added one by one. Which these are is learned from the records.
    noise
        False switches all noise off, to see how the method works; such a file protects nobody.
    value_safe_columns
        Columns whose values may be shown even if they are rare (codes of a public list).
    low_threshold, low_mean_gap, suppress_sd
        A range is shown if it holds at least ``low_threshold`` persons and more than a limit that is drawn around
        ``low_threshold + low_mean_gap * suppress_sd`` with that deviation.
    layer_noise_sd
        Deviation of each of the two layers of noise, in contributions of a person.
    outliers, top
        Of those who contribute most, between how many are brought down to the mean of the next, and between how many
        these are.
    singularity_low_threshold, range_low_threshold
        Below so many persons a single value, or a range, ends the trees that stand on it.
    precision_limit_depth, precision_limit_row_fraction
        Trees of one column that are deeper than this split only ranges with at least one in so many records.
    strategy
        ``"default"`` groups columns into clusters, ``"single"`` puts all into one tree, ``"none"`` draws each alone.
    sample_size
        On how many of the records it is measured which columns depend on each other.
    max_weight, merge_threshold, alpha
        How much room a cluster has, from which dependence on a further column joins clusters, and how slowly the
        search for clusters cools down.
    new_release
        Use the salt though the data have changed: say so only where the earlier tables are withdrawn.
    count_file
        A file that counts the tables of these people (one for each data source, made where it is not there): one too
        many is refused.
    most_tables
        In how many different tables a column may be; unless given as many as leave the mean of their noise a standard
        error of half a person, 8 times the squared ``layer_noise_sd``.

    When not to use it
    ------------------
    It is not differentially private, and no epsilon is claimed. Names of columns are part of the noise: a renamed
    column has other noise, so do not publish the same column under two names. So has a column beside another one: of
    forty tables with one more column each the mean comes to the true counts (``count_file`` counts them). One wide
    table loses most; publish the tables that analyses need instead (`discreet.synth.MultiTable`).

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "age": [20, 30, 40, 50] * 50})
    >>> fitted = SynDiffix(noise=False).fit(Microdata(people), seed=1)
    >>> fitted.guarantee is None, fitted.sample(seed=1).frame.shape
    (True, (200, 2))
    """

    plan_name: ClassVar[str] = "syndiffix"
    salt: Annotated[str, Public()] | None = None
    person: Annotated[Columns, Public()] = None
    columns: Annotated[Columns, Public()] = None
    target: ColumnName | None = None
    noise: bool = True
    value_safe_columns: Annotated[Columns, Public()] = None
    low_threshold: Annotated[int, AtLeast(1)] = 3
    low_mean_gap: Annotated[float, AtLeast(0)] = 2.0
    suppress_sd: Annotated[float, AtLeast(0)] = 1.0
    layer_noise_sd: Annotated[float, AtLeast(0)] = 1.0
    outliers: Annotated[Sequence[int], Public()] = (2, 5)
    top: Annotated[Sequence[int], Public()] = (2, 5)
    singularity_low_threshold: Annotated[int, AtLeast(1)] = 5
    range_low_threshold: Annotated[int, AtLeast(1)] = 15
    precision_limit_depth: Annotated[int, AtLeast(0)] = 15
    precision_limit_row_fraction: Annotated[int, AtLeast(1)] = 10_000
    strategy: Literal["default", "single", "none"] = "default"
    sample_size: Annotated[int, AtLeast(1)] = 100_000
    max_weight: Annotated[float, Above(0)] = 15.0
    merge_threshold: Annotated[float, Share()] = 0.1
    alpha: Annotated[float, Share(above=True)] = 0.01
    new_release: bool = False
    count_file: Annotated[str, Public()] | None = None
    most_tables: int | None = None

    def __post_init__(self) -> None:
        if self.most_tables is not None and (self.count_file is None or self.most_tables < 1):
            raise ParameterError("most_tables is a limit of count_file, a whole number of 1 or more.")
        for setting in ("outliers", "top"):
            ends = getattr(self, setting)
            if isinstance(ends, str) or len(ends) != 2 or not 1 <= ends[0] <= ends[1] <= 1_000:
                raise ParameterError(f"{setting} must be two whole numbers from 1 on, the smaller first.")
        if self.alpha < 1e-5:
            raise ParameterError("alpha below 0.00001 would let the search for clusters run for hours.")
        if self.target is not None and self.strategy != "default":
            raise ParameterError("target groups the columns itself; leave out strategy.")

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedSynDiffix:
        """Grow the trees and keep their buckets; the fitted model holds no record."""
        ready = file_coding.prepared(self, data, seed=seed_of(seed))
        count, columns = file_coding.count_of(self), list(range(len(ready.names)))
        said = "" if count is None else f" {count.said([ready.table_of(columns)])}"
        fitted = fitted_table(self, data, ready, columns)
        fitted.why_none += said
        if not fitted.total:
            warnings.warn(nothing_shown(ready.frame.height), DiscreetWarning, stacklevel=2)
        return fitted


def nothing_shown(records: int) -> str:
    """Say that nothing is left, and what could be done."""
    return (
        f"Nothing of the {records:,} records may be shown: every range holds too few people. Take fewer columns, or "
        "columns with fewer values, or more records."
    )


def fitted_table(
    options: SynDiffix, data: Microdata, ready: file_coding.Prepared, columns: Sequence[int]
) -> FittedSynDiffix:
    """Make the model of one table over some columns of a forest."""
    forest = ready.forest
    clusters = _clusters(options, ready, columns)
    taken = []
    for cluster in clusters:
        order = forest.combination(cluster.columns)
        buckets = forest.buckets(order)
        stitch = sorted(cluster.stitch, key=lambda column: entropy_of(forest, column))
        taken.append(
            file_coding.ClusterBuckets(
                order, tuple(stitch), buckets.low, buckets.high, buckets.count, cluster.patch
            )
        )
        forest.release(order)
    codings = [
        _as_shown(ready, column, taken) if column in columns else ready.codings[column]
        for column in range(len(ready.names))
    ]
    place = {column: at for at, column in enumerate(columns)}
    taken = [
        replace(own, columns=tuple(place[c] for c in own.columns), stitch=tuple(place[c] for c in own.stitch))
        for own in taken
    ]
    rows = int(taken[0].count.sum())
    fitted = FittedSynDiffix(
        empty_like(data, columns_named(ready.frame, [ready.names[column] for column in columns])),
        max(rows, 1),
        clusters=taken,
        codings=[codings[column] for column in columns],
        ranges=[forest.range_of(column) for column in columns],
        suppression={ready.names[column]: _suppression(ready, column) for column in columns},
        left_out=ready.left_out,
    )
    besides = "" if options.salt is not None else f" Besides, {file_coding.ONE_RUN}"
    if not options.noise:
        besides = " Besides, all noise is switched off: the file protects nobody."
    fitted.why_none = file_coding.NOT_PRIVATE + besides
    return fitted


def _clusters(options: SynDiffix, ready: file_coding.Prepared, columns: Sequence[int]) -> list[Cluster]:
    forest = ready.forest
    if options.target is not None and options.target in ready.names:
        target = ready.names.index(options.target)
        classes = ready.codings[target].kind in ("text", "truth")
        values = [forest.values[column] for column in columns]
        classes = classes or len(np.unique(forest.values[target])) <= _FEW_CLASSES
        ranked, helping = file_coding.ranked_features(values, list(columns).index(target), classes=classes)
        named = [columns[place] for place in ranked]
        return clusters_of_target(
            forest,
            target,
            named[:helping],
            named[helping:],
            max_weight=options.max_weight,
            merge_threshold=options.merge_threshold,
            sample_size=options.sample_size,
        )
    if options.strategy == "single":
        return [Cluster((), tuple(columns))]
    if options.strategy == "none":
        return [Cluster((), (column,)) for column in columns]
    return clusters_for(
        forest,
        columns,
        max_weight=options.max_weight,
        merge_threshold=options.merge_threshold,
        alpha=options.alpha,
        sample_size=options.sample_size,
    )


def _as_shown(
    ready: file_coding.Prepared, column: int, taken: Sequence[file_coding.ClusterBuckets]
) -> file_coding.Coding:
    """Leave in the coding of a column only what may be shown."""
    coding, levels = ready.codings[column], ready.levels[column]
    safe = ready.forest.safe[column]
    if safe and levels is None:
        values = np.unique(ready.forest.values[column])
        coding = replace(coding, nearest=values[values != coding.null])
    if levels is None:
        return coding
    buckets = ready.forest.buckets([column])
    single = buckets.low[:, 0] == buckets.high[:, 0]
    codes = np.arange(len(levels)) if safe else np.unique(buckets.low[single, 0])
    ranges = set()
    for own in taken:
        if column in own.columns:
            at = own.columns.index(column)
            wide = own.low[:, at] != own.high[:, at]
            pairs = np.unique(np.column_stack([own.low[wide, at], own.high[wide, at]]), axis=0)
            ranges |= {(float(low), float(high)) for low, high in pairs}
    return file_coding.with_texts(coding, levels, [int(code) for code in codes], ranges)


def _suppression(ready: file_coding.Prepared, column: int) -> Suppression:
    """Count what a column lost: values that may not be shown, and records counted with their neighbors."""
    tree = ready.forest.tree([column])
    leaf = tree.whole[:, 5] == 1
    return Suppression(
        folded=ready.forest.folded.get(column, 0),
        hidden=int((tree.whole[:, 4] - tree.whole[:, 3])[leaf & (tree.shown == 0)].sum()),
    )


@dataclass(frozen=True)
class Suppression:
    """What a column lost.

    Attributes
    ----------
    folded
        Records whose value lies outside the range that can be shown (outliers, a few missing values): they are counted
        with the nearest value that can.
    hidden
        Records in ranges of this column that hold too few people to be shown by themselves.
    """

    folded: int
    hidden: int


@stored("fitted-syn-diffix")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedSynDiffix(Fitted):
    """Buckets that records are drawn from.

    Attributes
    ----------
    suppression
        What every column lost; for the holder of the data, not for the public.
    left_out
        Columns that the table does not have, and why.
    """

    why_none = file_coding.NOT_PRIVATE

    clusters: Sequence[file_coding.ClusterBuckets]
    codings: Sequence[file_coding.Coding]
    ranges: Sequence[tuple[float, float]]
    suppression: Mapping[str, Suppression] = field(default_factory=dict, metadata=unstored())
    left_out: Mapping[str, str]

    @property
    def total(self) -> int:
        """Number of records that the first cluster shows; 0 where nothing may be shown."""
        return int(self.clusters[0].count.sum())

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a table; it is empty where every range held too few people."""
        here, table = file_coding.drawn_table(self.clusters, self.codings, self.ranges, stream)
        return file_coding.decoded_table(here, file_coding.sized(table, n, stream("order")), self.codings)


# Many tables of one file, each with the columns that an analysis needs, all with the same noise.
_FORMAT = "discreet multi-table release 1"
_MANIFEST = "manifest.json"
_MOST_TABLES = 10_000
_WORD = re.compile(r"[^\s~+*:()\-^|,]+")


@dataclass(frozen=True, eq=False)
class MultiTableRelease:
    """Tables that were released together.

    Attributes
    ----------
    tables
        Files by the set of their columns; a table in which nothing may be shown is empty.
    folder, files
        Where a release that was loaded lies, and which file holds which table.
    why_none
        Why no guarantee is claimed, and how many tables of these people went out where they are counted.
    """

    tables: Mapping[frozenset[str], Microdata]
    folder: Path | None = None
    files: Mapping[frozenset[str], str] = field(default_factory=dict)
    why_none: str = file_coding.NOT_PRIVATE

    @property
    def manifest(self) -> list[dict[str, Any]]:
        """Columns, records and file of every table."""
        return [
            {
                "columns": list(table.columns),
                "rows": engine.collect(table).height,  # none where nothing may be shown
                "file": self.files.get(columns, ""),
            }
            for columns, table in self.tables.items()
        ]

    def table_for(self, columns: Columns) -> Microdata:
        """Return the table with just these columns, or the smallest that has them.

        The fewer columns a table has, the nearer it is to the data: ask for no more than an analysis needs.
        """
        wanted = frozenset(listed(columns))
        if not wanted:
            raise ParameterError("Name at least one column.")
        known = sorted({column for key in self.tables for column in key})
        for column in wanted:
            if column not in known:
                raise ColumnError(unknown_name(column, known))
        fitting = [key for key in self.tables if wanted <= key]
        if not fitting:
            raise ColumnError(
                f"No table of this release has these {len(wanted)} columns together. Ask the holder of the data for "
                "one more table with the same salt, or use tables of fewer columns."
            )
        return self.tables[min(fitting, key=lambda key: (len(key), sorted(key)))]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write one file a table and the manifest, all or nothing; returns the folder."""
        place = Path(folder)
        if overwrite and place.is_dir() and not (place / _MANIFEST).is_file():
            raise InputError(
                f"'{place.name}' is no release of tables and is not replaced. Name another folder."
            )
        with replacing_folder(place, overwrite=overwrite) as draft:
            listed = []
            for number, (columns, table) in enumerate(self.tables.items(), start=1):
                name = f"table-{number:04d}.parquet"
                frame = engine.collect(table)
                frame.write_parquet(draft / name)
                listed.append({"columns": sorted(columns), "rows": frame.height, "file": name})
            text = json.dumps({"format": _FORMAT, "tables": listed}, indent=1, ensure_ascii=False)
            (draft / _MANIFEST).write_text(text, encoding="utf-8", errors="backslashreplace")
        return place

    @classmethod
    def load(cls, folder: str | Path) -> MultiTableRelease:
        """Read a release that `save` has written."""
        place = Path(folder)
        try:
            document = parsed_json((place / _MANIFEST).read_bytes())
            if document["format"] != _FORMAT:
                raise ValueError("another format")
            files = {frozenset(entry["columns"]): str(entry["file"]) for entry in document["tables"]}
            if any(Path(name).name != name for name in files.values()):
                raise ValueError("a file outside the folder")
            tables = {key: Microdata(pl.read_parquet(place / name)) for key, name in files.items()}
        except Exception as error:
            raise InputError(
                f"'{place.name}' is no release of tables, or a part of it is missing or damaged."
            ) from error
        return cls(tables, place, files)


@method(room="synth", aim="records", work="whole-file", references=REFERENCES)
@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "multi-table")
class MultiTable:
    """Which tables of a file can be released side by side, so that each analysis has one made for it?

    Every table is made by `SynDiffix` under one salt, and a table of two columns is far nearer to the data than the two
    columns of a wide one (Francis 2024). A range of the same columns has the same noise in all of them; beside another
    column it has other noise, so that the mean of many tables that share a column comes to its true counts. Release the
    tables that analyses need, and have them counted with ``options={"count_file": ...}``, which refuses one too many.

    Parameters
    ----------
    columns
        The sets of columns; one list of lists.
    size
        All sets of at most so many columns, beside those that are named.
    analyses
        Analyses whose columns are to be together, e.g. ``"income ~ age + sex"`` or ``"region*sex"``.
    salt, person, noise, value_safe_columns, new_release
        As in `SynDiffix`.
    options
        Other parameters of `SynDiffix`.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "age": [20, 30, 40, 50] * 50})
    >>> release = MultiTable(size=2, noise=False).release(Microdata(people), seed=1)
    >>> [table["columns"] for table in release.manifest]
    [['sex'], ['age'], ['sex', 'age']]
    >>> release.table_for(["age"]).frame.shape
    (200, 1)
    """

    columns: Sequence[Sequence[str]] | None = None
    size: int | None = None
    analyses: Sequence[str] | None = None
    salt: str | None = None
    person: Columns = None
    noise: bool = True
    value_safe_columns: Columns = None
    new_release: bool = False
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.columns and self.size is None and not self.analyses:
            raise ParameterError(
                "Say which tables: columns=[['age', 'sex'], …], size=2 for all pairs, or analyses=['income ~ age']."
            )
        if self.size is not None and not 1 <= self.size <= 12:
            raise ParameterError("size must be between 1 and 12.")
        if self.columns is not None and any(isinstance(own, str) or not len(own) for own in self.columns):
            raise ParameterError(
                "columns must be a list of lists, one for each table, e.g. [['age'], ['age', 'sex']]."
            )
        self._by()

    def _by(self) -> SynDiffix:
        given = {"salt": self.salt, "person": self.person, "noise": self.noise}
        given |= {"value_safe_columns": self.value_safe_columns, "new_release": self.new_release}
        twice = [name for name in self.options or {} if name in (*given, "columns")]
        if twice:
            raise ParameterError(
                f"'{twice[0]}' is a parameter of the release itself; take it out of options."
            )
        return SynDiffix.from_dict({**given, **(self.options or {})})

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        return parameters_of(self)

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> MultiTable:
        """Make it from plain values."""
        return made_from(cls, "multi-table", parameters)

    def release(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> MultiTableRelease:
        """Make all tables; the same salt, data and seed give the same tables."""
        options, root = self._by(), seed_of(seed)
        everything = file_coding.prepared(options, data, seed=root)
        sets = self._sets(everything.names)
        place = {name: at for at, name in enumerate(everything.names)}
        count = file_coding.count_of(options)
        entered = [everything.table_of([place[name] for name in wanted]) for wanted in sets]
        said = "" if count is None else f" {count.said(entered)}"
        tables = {}
        for wanted in track(sets, description="Making tables", progress=progress):
            model = fitted_table(options, data, everything, [place[name] for name in wanted])
            tables[frozenset(wanted)] = model.sample(seed=_own_seed(root, wanted))
        return MultiTableRelease(tables, why_none=file_coding.NOT_PRIVATE + said)

    def _sets(self, known: Sequence[str]) -> list[tuple[str, ...]]:
        """List the sets of columns, each once and in the order of the file."""
        asked: list[tuple[str, ...]] = [tuple(own) for own in self.columns or ()]
        for own in asked:
            check_named({"columns": own}, known)
        for text in self.analyses or ():
            found = tuple(word for word in dict.fromkeys(_WORD.findall(text)) if word in known)
            if not found:
                raise ParameterError(
                    "One of the analyses names no column of the file. Write it with the names of columns, e.g. "
                    "'income ~ age + sex'."
                )
            asked.append(found)
        for size in range(1, (self.size or 0) + 1):
            if comb(len(known), size) > _MOST_TABLES:
                raise ParameterError(
                    f"There are {comb(len(known), size):,} sets of {size} columns; at most {_MOST_TABLES:,} are made. "
                    "Name those that are needed under columns or analyses."
                )
            asked += list(combinations(known, size))
        order = {name: at for at, name in enumerate(known)}
        return list(dict.fromkeys(tuple(sorted(set(own), key=order.__getitem__)) for own in asked))


def _own_seed(root: int, columns: Sequence[str]) -> int:
    """Draw every table by a seed of its own, so that it is the same whatever else is asked for."""
    return int(generator(root, "table", *sorted(columns)).integers(2**62))


name_in_documents("synthesizer", {"multi-table": MultiTable})
