"""From a file with roles to a forest over it, and back: which columns as which floats, whose records, which salt."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.untrusted import parsed_json
from discreet.core.randomness import generator
from discreet.core.secret_keys import STICKS_TO_ONE_TABLE, ReleaseCount, digest_of, most_tables
from discreet.core.values import canonical_text
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata, require_microdata
from discreet.synth import column_forms, whole_records
from discreet.synth.saved_models import stored
from discreet.synth.syndiffix.column_clusters import stitched
from discreet.synth.syndiffix.hashing import SHORTEST_SALT, hashed
from discreet.synth.syndiffix.range_forest import Anonymizing, Forest, Persons

if TYPE_CHECKING:
    from discreet.synth.syndiffix.syndiffix import SynDiffix


ONE_RUN = (
    "the salt was made from the seed of this run; name a salt file, so that every table has the same noise."
)
_RANKED_RECORDS, _RANKED_DEPTH, _FOLDS = 10_000, 8, 5
NOT_PRIVATE = (
    "SynDiffix rests on thresholds, noise that sticks and a secret salt, not on differential privacy; no epsilon can "
    f"be claimed for it. {STICKS_TO_ONE_TABLE}"
)


@dataclass(eq=False)
class Prepared:
    """A forest over a file, with what turns its numbers into columns again."""

    frame: pl.DataFrame
    names: list[str]
    codings: list[Coding]
    levels: list[pl.Series | None]
    forest: Forest
    left_out: dict[str, str]
    contents: dict[str, bytes]

    def table_of(self, columns: Sequence[int]) -> tuple[bytes, list[str]]:
        """The content and the columns of a table, by which it is known again."""
        names = sorted(self.names[column] for column in columns)
        return digest_of(*(self.contents[name] for name in names)), names


def count_of(options: SynDiffix) -> ReleaseCount | None:
    """Where tables of these people are counted; nowhere without a file, and not where there is no noise to average."""
    if options.count_file is None or not options.noise:
        return None
    limit = options.most_tables or most_tables(2 * options.layer_noise_sd**2)
    return ReleaseCount(options.count_file, limit)


def prepared(
    options: SynDiffix, data: Microdata, *, seed: int, columns: Sequence[str] | None = None
) -> Prepared:
    """Code the columns, find the persons, read the salt and open the forest; nothing is grown yet."""
    require_microdata(data)
    frame = engine.collect(data)
    person = column_forms.listed(options.person) or ((data.roles.person,) if data.roles.person else ())
    names, left_out = _columns(options, data, frame, person, columns)
    if frame.height == 0:
        raise ParameterError("There are no records to synthesize from.")
    made = [coded(frame[name]) for name in names]
    codings, values, levels = (list(own) for own in zip(*made, strict=True))
    salt = salt_of_file(options.salt) if options.salt is not None else salt_of_seed(seed)
    if options.salt is not None:
        found = {
            name: (numbers, [] if texts is None else texts.to_list())
            for name, numbers, texts in zip(names, values, levels, strict=True)
        }
        bind(options.salt, fingerprints(salt, found), new_release=options.new_release)
    given = {one.name: getattr(options, one.name) for one in fields(Anonymizing) if one.name != "salt"}
    given |= {name: tuple(int(end) for end in given[name]) for name in ("outliers", "top")}
    settings = Anonymizing(salt, **given)
    settings = settings if options.noise else settings.without_noise()
    safe = set(column_forms.listed(options.value_safe_columns))
    forest = Forest(values, names, _persons(frame, person), settings, safe=[name in safe for name in names])
    # Another salt is other noise, and so another table of the same people.
    contents = {
        name: digest_of(salt, name.encode(), numbers.tobytes())
        for name, numbers in zip(names, values, strict=True)
    }
    return Prepared(frame, names, codings, levels, forest, left_out, contents)


def _columns(
    options: SynDiffix,
    data: Microdata,
    frame: pl.DataFrame,
    person: Sequence[str],
    columns: Sequence[str] | None,
) -> tuple[list[str], dict[str, str]]:
    asked = column_forms.listed(columns if columns is not None else options.columns)
    named = {
        "columns": asked,
        "person": person,
        "value_safe_columns": column_forms.listed(options.value_safe_columns),
        "target": column_forms.listed(options.target),
    }
    column_forms.check_named(named, data.columns)
    both = [name for name in asked if name in person]
    if both:
        raise ColumnError(
            f"Column '{both[0]}' names persons and cannot be synthesized too. Leave it out of columns, or of person."
        )
    if asked:
        return list(dict.fromkeys(asked)), {}
    names, left_out = whole_records.columns_of(data, list(person) or None, frame=frame)
    left_out |= dict.fromkeys(person, "it says whose record it is")
    names = [name for name in names if name not in person]
    if not names:
        raise ParameterError("There is no column to synthesize. Name some under columns.")
    return names, left_out


def _persons(frame: pl.DataFrame, person: Sequence[str]) -> Persons:
    if not person:
        return Persons.records(frame.height)
    numbers, hashes = [], []
    for name in person:
        if frame[name].dtype.is_nested():
            raise ColumnError(
                f"Column '{name}' names persons and holds lists or records, which cannot be told apart. Name a column "
                "of numbers or texts under person."
            )
        own = frame[name].rename("person")
        levels = own.drop_nulls().unique().sort()
        if not len(levels):
            raise ColumnError(f"Column '{name}' names persons and is missing in every record.")
        texts = canonical_text(levels.cast(pl.String) if levels.dtype == pl.Categorical else levels)
        hashes.append(np.array([hashed(f"{name}:{text}") for text in texts.to_list()], dtype=np.uint64))
        numbers.append(column_forms.places_among(own, levels).fill_null(-1).to_numpy())
    wide = np.zeros((len(hashes), max(len(own) for own in hashes)), dtype=np.uint64)
    for place, own_hashes in enumerate(hashes):
        wide[place, : len(own_hashes)] = own_hashes
    return Persons(np.stack(numbers).astype(np.int64), wide)


def ranked_features(values: Sequence[Floats], target: int, *, classes: bool) -> tuple[list[int], int]:
    """Order the columns by what they say about the target, and say how many of them help to predict it.

    A tree is grown on some of the records, the least useful column goes, and so on; how well each of these sets of
    columns predicts is seen on the other records, in turn. The smallest set that is within a standard error of the
    best is what helps.
    """
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    others = [place for place in range(len(values)) if place != target]
    rows = np.arange(0, len(values[target]), max(1, len(values[target]) // _RANKED_RECORDS))
    wanted: Array = values[target][rows]
    if classes:
        wanted = np.unique(wanted, return_inverse=True)[1]
    table = np.column_stack([values[place][rows] for place in others])
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor

    def eliminated(within: Array, beyond: Array | None) -> tuple[list[int], Floats]:
        left, gone = list(range(len(others))), []
        scores = np.zeros(len(others))
        while left:
            grown = kind(max_depth=_RANKED_DEPTH, random_state=0).fit(table[within][:, left], wanted[within])
            if beyond is not None:
                scores[len(left) - 1] = grown.score(table[beyond][:, left], wanted[beyond])
            gone.append(left.pop(int(np.argmin(grown.feature_importances_))))
        return gone[::-1], scores

    everybody = np.arange(len(rows))
    order, _ = eliminated(everybody, None)
    splits = (StratifiedKFold if classes else KFold)(_FOLDS, shuffle=True, random_state=0)
    scores = np.array([eliminated(*split)[1] for split in splits.split(table, wanted)])
    means, best = scores.mean(axis=0), int(np.argmax(scores.mean(axis=0)))
    enough = means[best] - scores[:, best].std(ddof=1) / np.sqrt(_FOLDS)
    return [others[place] for place in order], int(np.argmax(means >= enough)) + 1


# The secret that noise sticks to: read from a file, made where there is none, and bound to one data source.
#
# The noise of a range protects because nobody can repeat it and because it is always the same. If the data change
# under the same salt, the difference between two releases is no longer hidden by noise: the salt remembers, beside
# its file, a keyed fingerprint of every column it was used for, and is refused for others.
_FORMAT = "discreet salt 1"


def salt_of_file(path: str) -> bytes:
    """Read a salt; where there is no such file, make one that only its owner can read."""
    place = Path(path)
    if not place.exists():
        if not place.parent.is_dir():
            raise InputError(
                f"The folder of the salt file '{place.name}' is not there. Make it, or name another."
            )
        with replacing(place) as draft:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_hex(32), encoding="ascii")
            os.chmod(draft, 0o600)
        warnings.warn(
            f"A new salt was made and stored in '{place.name}'. Keep it secret and keep it: further tables of the same "
            "data need the same salt.",
            DiscreetWarning,
            stacklevel=4,
        )
    note_read(place)
    try:
        salt = place.read_bytes().strip()
    except OSError as error:
        raise InputError(f"The salt file '{place.name}' cannot be read.") from error
    if len(salt) < SHORTEST_SALT:
        raise ParameterError(
            f"The salt in '{place.name}' has {len(salt)} bytes and needs at least {SHORTEST_SALT}. Name a file that is "
            "not there yet, and a good one is made."
        )
    return salt


def salt_of_seed(seed: int) -> bytes:
    """Make a salt for one run: whoever knows the seed can repeat it."""
    return hashlib.sha256(f"discreet salt of seed {seed}".encode()).digest()


def fingerprints(salt: bytes, columns: Mapping[str, tuple[Floats, list[str]]]) -> dict[str, str]:
    """Return a keyed fingerprint of every column: its numbers, and the texts they stand for."""
    made = {}
    for name, (values, texts) in columns.items():
        digest = hmac.new(salt, name.encode(), "sha256")
        digest.update(values.tobytes())
        for text in texts:
            digest.update(f"{len(text)}:{text}".encode())
        made[hmac.new(salt, b"name" + name.encode(), "sha256").hexdigest()] = digest.hexdigest()
    return made


def bind(path: str, found: Mapping[str, str], *, new_release: bool) -> None:
    """Refuse a salt that was used for other data; remember the columns it is used for now."""
    place = Path(f"{path}.data")
    known: dict[str, str] = {}
    if place.exists() and not new_release:
        try:
            document = parsed_json(place.read_bytes())
            known = {str(name): str(value) for name, value in document["columns"].items()}
        except Exception as error:
            raise InputError(
                f"'{place.name}' says which data the salt belongs to and cannot be read. Put it back, or use a new one."
            ) from error
        changed = sum(known.get(name, value) != value for name, value in found.items())
        if changed:
            raise InputError(
                f"The data have changed since the salt '{Path(path).name}' was first used: {changed:,} of "
                f"{len(found):,} columns are not what they were. Noise that sticks does not hide a difference between "
                "two versions of a file: name a new salt file, or say new_release=True if the earlier tables are "
                "withdrawn."
            )
    if {**known, **found} != known:
        with replacing(place) as draft:
            draft.write_text(json.dumps({"format": _FORMAT, "columns": {**known, **found}}), encoding="utf-8")


# A column as the floats that trees are grown over, and drawn floats as a column again.
#
# Nothing that is kept here is anybody's own: of texts only those remain that may be shown, and beginnings that whole
# ranges of texts share.
#
# Records are drawn from buckets, cluster by cluster, and joined to one table.
_LARGEST = 2.0**53
_UNIX = -5_364_662_400  # 1800-01-01 in seconds of Unix time
_DAY = 86_400


@stored("range-coding")
@dataclass(frozen=True, eq=False)
class Coding:
    """How one column is coded.

    Attributes
    ----------
    name, dtype
        Of the column.
    kind
        ``"number"``, ``"truth"``, ``"time"`` or ``"text"``.
    null
        The number that stands for a missing value.
    decimals
        Decimal places of numbers; None where there is no end to them.
    texts
        ``{code: text}`` of texts that may be shown.
    beginnings
        ``{(low, high): text}``: what all texts of a range begin with.
    nearest
        Values that drawn ones are brought to, for columns whose values may always be shown.
    """

    name: str
    dtype: pl.DataType
    kind: str
    null: float
    decimals: int | None = None
    texts: Mapping[int, str] = field(default_factory=dict)
    beginnings: Mapping[tuple[float, float], str] = field(default_factory=dict)
    nearest: Floats | None = None

    def decoded(self, drawn: Floats, low: Floats, high: Floats) -> pl.Series:
        """Turn drawn numbers, each from the range of its bucket, into the column."""
        missing = low >= self.null if self.null > 0 else high <= self.null
        if self.nearest is not None and len(self.nearest):
            drawn = _nearest(drawn, self.nearest)
        if self.kind == "text":
            return self._as_text(drawn, low, high, missing)
        if self.kind == "truth":
            return pl.Series(self.name, drawn >= 0.5).set(pl.Series(missing), None)
        if self.kind == "time":
            return self._as_time(drawn, missing)
        values = np.where(missing, 0.0, drawn)
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0
        return column_forms.from_numbers(values, missing, self.dtype, self.name)

    def _as_time(self, drawn: Floats, missing: Any) -> pl.Series:
        seconds: Floats = np.round(np.where(missing, 0.0, drawn)).astype(np.float64)
        if self.dtype == pl.Date:
            days = np.floor((seconds + _UNIX) / _DAY).astype(np.float64)
            return column_forms.from_numbers(days, missing, self.dtype, self.name)
        since = _UNIX if isinstance(self.dtype, pl.Datetime) else 0
        return column_forms.from_numbers(
            (seconds + since) * _ticks(self.dtype), missing, self.dtype, self.name
        )

    def _as_text(self, drawn: Floats, low: Floats, high: Floats, missing: Any) -> pl.Series:
        codes = np.floor(drawn).astype(np.int64)
        known = pl.DataFrame(
            list(self.texts.items()), schema={"code": pl.Int64, "text": pl.String}, orient="row"
        )
        begun = pl.DataFrame(
            [(*ends, text) for ends, text in self.beginnings.items()],
            schema={"low": pl.Float64, "high": pl.Float64, "begin": pl.String},
            orient="row",
        )
        found = (
            pl.DataFrame({"code": codes, "low": low, "high": high})
            .join(known, on="code", how="left", maintain_order="left")
            .join(begun, on=["low", "high"], how="left", maintain_order="left")
        )
        text = found.select(
            pl.coalesce("text", pl.concat_str(pl.col("begin").fill_null(""), pl.lit("*"), pl.col("code")))
        ).to_series()
        text = text.set(pl.Series(missing), None)
        if isinstance(self.dtype, pl.Enum):
            # A type of fixed levels has no room for a text that is none: what may not be shown is missing.
            text = text.set(~text.is_in(self.dtype.categories.to_list()), None)
        return text.cast(self.dtype).rename(self.name)


def coded(series: pl.Series) -> tuple[Coding, Floats, pl.Series | None]:
    """Code a column: how, its numbers, and for texts the sorted list of what occurs."""
    name, dtype = series.name, series.dtype
    if dtype == pl.Boolean:
        return _finished(Coding(name, dtype, "truth", 0.0, 0), series.cast(pl.Float64), None)
    if dtype.is_temporal():
        return _finished(Coding(name, dtype, "time", 0.0, 0), _seconds(series), None)
    if dtype.is_numeric():
        numbers = column_forms.as_numbers(series)
        bad = int(numbers.is_infinite().sum()) + int((numbers.abs() > _LARGEST).sum()) * dtype.is_integer()
        if bad:
            raise ColumnError(
                f"Column '{name}' has {bad:,} values that are infinite or too large to be told apart (above 2^53). "
                "Make them missing, or leave the column out."
            )
        there = numbers.drop_nulls().to_numpy()
        places = 0 if dtype.is_integer() else column_forms.decimals_of(there, single=dtype == pl.Float32)
        return _finished(Coding(name, dtype, "number", 0.0, places), numbers, None)
    if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        raise ColumnError(
            f"Column '{name}' is {type_name(dtype)}, which has no ranges. Make it a text or a number, or leave it out."
        )
    plain = series.rename("text").cast(pl.String)
    levels = plain.drop_nulls().unique().sort()
    codes = column_forms.places_among(plain, levels).cast(pl.Float64)
    return _finished(Coding(name, dtype, "text", 0.0), codes, levels)


def _finished(coding: Coding, numbers: pl.Series, levels: pl.Series | None) -> tuple[Coding, Floats, Any]:
    there = numbers.drop_nulls()
    most = float(there.max()) if len(there) else 0.0  # type: ignore[arg-type]
    least = float(there.min()) if len(there) else 0.0  # type: ignore[arg-type]
    null = null_code(least, most)
    return replace(coding, null=null), numbers.fill_null(null).to_numpy().astype(np.float64), levels


def null_code(low: float, high: float) -> float:
    """Which number stands for a missing value: one outside the range of the others.

    Examples
    --------
    >>> null_code(1.2, 1.3), null_code(-4, -2.5), null_code(0, 0)
    (2.6, -8.0, 1.0)
    """
    return 2.0 * high if high > 0 else 2.0 * low if low < 0 else 1.0


def with_texts(
    coding: Coding, levels: pl.Series, shown: Sequence[int], ranges: set[tuple[float, float]]
) -> Coding:
    """Keep of the texts those that may be shown, and what the texts of each range that is drawn from begin with."""
    texts = {int(code): str(levels[int(code)]) for code in shown if 0 <= code < len(levels)}
    begun = {}
    for low, high in ranges:
        ends = levels[max(int(low), 0) : max(min(int(np.ceil(high)), len(levels)), 0)]
        if len(ends):
            begun[low, high] = _same_beginning(str(ends[0]), str(ends[-1]))
    return replace(coding, texts=texts, beginnings=begun)


def _same_beginning(one: str, other: str) -> str:
    same = [here == there for here, there in zip(one, other, strict=False)]
    return one[: same.index(False) if False in same else len(same)]


def _seconds(series: pl.Series) -> pl.Series:
    if series.dtype == pl.Date:
        return series.to_physical().cast(pl.Float64) * _DAY - _UNIX
    since = _UNIX if isinstance(series.dtype, pl.Datetime) else 0
    return series.to_physical().cast(pl.Float64) / _ticks(series.dtype) - since


def _ticks(dtype: pl.DataType) -> int:
    """How many units of a time make a second."""
    if isinstance(dtype, pl.Datetime | pl.Duration):
        return {"ms": 10**3, "us": 10**6, "ns": 10**9}[dtype.time_unit]
    return 10**9


def _nearest(drawn: Floats, values: Floats) -> Floats:
    at = np.clip(np.searchsorted(values, drawn), 1, max(len(values) - 1, 1))
    if len(values) == 1:
        return np.full_like(drawn, values[0])
    before, after = values[at - 1], values[at]
    return np.where(drawn - before <= after - drawn, before, after)


_MOST_RECORDS = 2**31


@stored("cluster-buckets")
@dataclass(frozen=True, eq=False)
class ClusterBuckets:
    """The buckets of one cluster.

    Attributes
    ----------
    columns
        Places of the columns, in the order of the dimensions.
    stitch
        Those of them that are there already when the cluster is joined, the least spread out first.
    low, high, count
        Ranges and number of records of each bucket.
    patch
        Whether the columns that are there already stay as they are.
    """

    columns: tuple[int, ...]
    stitch: tuple[int, ...]
    low: Floats
    high: Floats
    count: Integers
    patch: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.count), len(self.columns))
        whole = self.count.dtype == np.int64 and self.count.ndim == 1 and bool((self.count >= 0).all())
        ends = self.low.dtype == self.high.dtype == np.float64 and self.low.shape == self.high.shape == shape
        if not (whole and ends and np.isfinite(self.low).all() and bool((self.low <= self.high).all())):
            raise ValueError("ranges or counts that no bucket can have")
        if int(self.count.sum()) > _MOST_RECORDS or not set(self.stitch) <= set(self.columns):
            raise ValueError("more records, or other columns, than a table can have")

    def drawn(self, codings: Sequence[Coding], rng: np.random.Generator) -> Array:
        """Draw the records: for each and every column its value and the ends of its range."""
        low, high = np.repeat(self.low, self.count, axis=0), np.repeat(self.high, self.count, axis=0)
        made = np.empty((*low.shape, 3))
        made[:, :, 1], made[:, :, 2] = low, high
        for place, column in enumerate(self.columns):
            coding = codings[column]
            step = 1.0 if coding.kind in ("text", "truth") else None
            if coding.kind in ("number", "time") and coding.decimals is not None:
                step = 10.0**-coding.decimals
            made[:, place, 0] = _within(low[:, place], high[:, place], step, rng.random(len(low)))
        return made


def drawn_table(
    clusters: Sequence[ClusterBuckets],
    codings: Sequence[Coding],
    ranges: Sequence[tuple[float, float]],
    stream: Stream,
) -> tuple[list[int], Array]:
    """Draw every cluster and join it to those before it; returns which columns the table has, and the table."""
    here: list[int] = list(clusters[0].columns)
    table = clusters[0].drawn(codings, stream("cluster 0"))
    for place, cluster in enumerate(clusters[1:], start=1):
        right = cluster.drawn(codings, stream(f"cluster {place}"))
        own = [column for column in cluster.columns if column not in here]
        shared = [(here.index(column), cluster.columns.index(column)) for column in cluster.stitch]
        table = stitched(
            table,
            right,
            shared,
            [ranges[column] for column in cluster.stitch],
            [cluster.columns.index(column) for column in own],
            np.uint64(stream(f"stitch {place}").integers(2**63)),
            patch=cluster.patch,
        )
        here += own
    return here, table


def decoded_table(here: Sequence[int], table: Array, codings: Sequence[Coding]) -> pl.DataFrame:
    """Turn a table of numbers into columns, in the order of the file."""
    order = sorted(range(len(here)), key=lambda place: here[place])
    return pl.DataFrame(
        [
            codings[here[place]].decoded(table[:, place, 0], table[:, place, 1], table[:, place, 2])
            for place in order
        ]
    )


def sized(table: Array, n: int, rng: np.random.Generator) -> Array:
    """Shuffle a table, and cut or repeat it so that it has ``n`` records."""
    if not len(table):
        return table
    order = generator(rng).permutation(len(table))
    if n > len(table):
        order = np.concatenate([order, rng.integers(len(table), size=n - len(table))])
    return table[order[:n]]


def _within(low: Floats, high: Floats, step: float | None, share: Floats) -> Floats:
    """Draw evenly between two ends, the lower included; on the grid of the column where it has one."""
    even = low + (high - low) * share
    if step is None:
        return even
    first, last = np.ceil(np.round(low / step, 6)), np.ceil(np.round(high / step, 6)) - 1.0
    on_grid = (first + np.floor((last - first + 1.0) * share)) * step
    return np.where(high == low, low, np.where(last >= first, on_grid, np.round(even / step) * step))
