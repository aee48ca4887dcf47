"""An original and one release, of any size, made ready for the questions of a comparison; and how one is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import narwhals as nw
import polars as pl

from discreet import engine
from discreet.core.arrays import Words
from discreet.core.errors import DiscreetError, InputError
from discreet.core.randomness import KeyedDraws, Seed, generator
from discreet.core.roles import ROLES
from discreet.engine import Missing
from discreet.engine.comparable import as_text, plain_text
from discreet.engine.frames import has_row_order
from discreet.engine.precision import Setting
from discreet.engine.resolved_roles import unit_numbers
from discreet.microdata import Microdata
from discreet.pairs.coarser_labels import cut_to, in_bands, length_of_cut
from discreet.pairs.disguises import undisguised, unexplained
from discreet.workflow.aligning import AlignedFiles, agrees_by_row, align, in_memory
from discreet.workflow.pair_questions import PairCase, Reading


def pair_of(
    original: Microdata,
    copies: Sequence[Microdata],
    holdout: Microdata | None = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    models: Any = None,
    ids: str | None = None,
    aligned: bool | None = None,
    missing: Missing = "category",
    precision: Setting = None,
    labels: pl.DataFrame | None = None,
    rows: int | None = None,
    seed: Seed = None,
) -> PairCase:
    """Bring an original and the copies of one release together; the roles are those of the original.

    Queries of more records than ``rows`` (or of too many to hold) are not collected: a sample of about as many is, and
    the rest is counted where it is. ``labels`` has the released values of each original record, where they are known:
    see `align`.
    """
    for file in (original, *copies):
        file.need_plain_names()
    original = in_memory(original, rows)
    copies = [with_roles_of(original, in_memory(copy, rows)) for copy in copies]
    holdout = None if holdout is None else in_memory(holdout, rows)
    seed = 0 if seed is None else seed
    whole = [original, *copies, *([] if holdout is None else [holdout])]
    large = any(engine.is_lazy(data) for data in whole)
    held = drawn(whole, rows or ROWS, ids=ids, seed=seed) if large else whole
    settings = (columns, categorical, models, ids, aligned, missing, precision, holdout is not None)
    case = _case(original, held, settings, labels=None if large else labels, seed=seed)
    if large:
        counted = WholeFiles.of(case.files, held[1], original, copies, holdout)
        return case.a_sample_of(counted.files, counted.left_out)
    return _read_back(case, original, copies, holdout, settings)


def _read_back(
    case: PairCase,
    original: Microdata,
    copies: Sequence[Microdata],
    holdout: Microdata | None,
    settings: tuple[Any, ...],
) -> PairCase:
    """Add the release in the writing of the original, where it is written otherwise, and what nobody can read."""
    ours, *theirs = (engine.collect(file, file.columns) for file in (original, *copies))
    ways = list(zip_longest(*(undisguised(ours, copy, but=case.ids) for copy in theirs)))
    readings = []
    for way in ways:
        files = [
            copy if found is None else with_roles_of(original, copy.with_frame(found.frame))
            for copy, found in zip(copies, way, strict=True)
        ]
        told = dict.fromkeys(one.sentence for found in way if found is not None for one in found.disguises)
        with suppress(DiscreetError):  # what cannot be aligned holds no copy in this reading
            held = [original, *files, *([] if holdout is None else [holdout])]
            sure = all(found.sure for found in way if found is not None)
            read_back = _case(original, held, settings, labels=None, seed=case.seed)
            readings.append(Reading(read_back, " and ".join(told), sure))
    # What stands beside the column that it could be is something else, until a person says what.
    read = {
        one.released
        for way in ways
        for found in way
        if found is not None
        for one in found.disguises
        if one.column not in theirs[0].columns
    }
    extra = tuple(name for name in unexplained(ours, theirs[0]) if name not in read)
    return replace(case, readings=tuple(readings), unexplained=extra)


def _case(
    original: Microdata,
    held: Sequence[Microdata],
    settings: tuple[Any, ...],
    *,
    labels: pl.DataFrame | None,
    seed: Seed,
) -> PairCase:
    """Align an original, the copies and perhaps a holdout; ``settings`` are those of `pair_of`, in their order."""
    columns, categorical, models, ids, aligned, missing, precision, has_holdout = settings
    files = align(
        held[0],
        held[1:-1] if has_holdout else held[1:],
        held[-1] if has_holdout else None,
        columns=columns,
        ids=ids,
        aligned=aligned,
        labels=labels,
    )
    there = files.copies[0].schema
    return PairCase(
        files,
        tuple(key for key in original.roles.keys if key in there),
        tuple(column for column in original.roles.sensitive if column in there),
        tuple(categorical),
        ids,
        missing,
        seed,
        models,
        precision,
    )


def with_roles_of(original: Microdata, released: Microdata) -> Microdata:
    """Give a release the roles of its original; columns that only the release has keep theirs.

    A key or sensitive column that lost every value is no longer one, as if it had been left out.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"age": [30, 41], "zip": ["1", "2"], "ill": ["y", "n"]}), keys=["age", "zip"])
    >>> with_roles_of(people, Microdata(pl.DataFrame({"age": [30, 40], "ill": ["y", "n"]}))).roles.keys
    ('age',)
    """
    told = [name for name in (*original.roles.keys, *original.roles.sensitive) if name in released.schema]
    counted = engine.overview(released, told)
    emptied = {name for name in told if counted.missing[name] == counted.rows}
    there = [name for name in released.schema if name not in emptied]
    roles: dict[str, Any] = {}
    for role in ROLES:
        ours, theirs = getattr(original.roles, role), getattr(released.roles, role)
        if isinstance(ours, tuple):
            new = tuple(name for name in theirs if name not in original.schema)
            roles[role] = (*(name for name in ours if name in there), *new)
        else:
            roles[role] = ours if ours in there else theirs if theirs not in original.schema else None
    return _with_persons_of(original, released.with_roles(**roles))


def _with_persons_of(original: Microdata, released: Microdata) -> Microdata:
    """Let a release that left out whose its records are know it, where its rows are plainly those of the original."""
    role, unit = engine.counted_role(original), engine.counted_unit(original)
    rows = engine.overview(original, ()).rows
    if role is None or engine.counted_role(released) or engine.head_count(original) == rows:
        return released
    common = [name for name in released.columns if name in original.schema]
    files = (original, released)
    # Whoever is too large to hold is too large to look at row by row.
    ordered = all(has_row_order(data) and not engine.is_lazy(data) for data in files)
    if not common or not ordered or engine.overview(released, ()).rows != rows:
        return released.remembering(role, None)
    ours, theirs = (engine.collect(data, common) for data in (original, released))
    if not agrees_by_row(ours, theirs, common):
        return released.remembering(role, None)
    return released.remembering(role, unit_numbers(engine.collect(original, [str(unit)]).to_series()))


# An original and a release that are too large to hold: what is counted where they are, and a sample for the rest.
#
# The sample is aligned as two files in memory are. What that showed (which columns are compared, which values of the
# original became which label) is then said to the engine, so that the whole files are counted in the same form.


ROWS = 100_000
"""Records of a sample, about, unless the user names another number."""
_ENOUGH = 200
_PURPOSE = "the sample of a comparison"
_CATEGORIES = (nw.Categorical, nw.Enum)


def drawn(files: Sequence[Microdata], rows: int, *, ids: str | None, seed: Seed) -> list[Microdata]:
    """Bring a random sample of each file home; of files whose records belong together the same records.

    Parameters
    ----------
    files
        The original, the copies of one release, and a hold-out where there is one.
    rows
        Records of each sample, about.
    ids
        A column that links the records of the files.
    seed
        Same files, same seed: same samples.
    """
    many = [engine.overview(data, ()).rows for data in files]
    ordered = all(has_row_order(data) for data in files)
    linked = ids is not None or (ordered and len(set(many)) == 1)
    draws = KeyedDraws.of(int(generator(seed, "compare", "sample").integers(2**63)), "records")
    found = []
    for data, count in zip(files, many, strict=True):
        share = min(1.0, rows / max(max(many) if linked else count, 1))
        # Spark keeps no places: there the values themselves decide, equal records sharing their luck.
        by_values = () if engine.has_places(data) else data.columns
        key = (ids,) if ids is not None and ids in data.schema else by_values
        frame = engine.record_sample(data, share, draws, key=key, purpose=_PURPOSE)
        if count >= _ENOUGH > frame.height:
            raise InputError(
                f"The sample of a file has {frame.height} records, too few to compare. Raise rows."
            )
        held = data.with_frame(frame)
        # A database hands its records over in any order, so that the order must not be taken for a link.
        held.memory["unordered"] = not has_row_order(data)
        found.append(held)
    return found


@dataclass(frozen=True)
class WholeFiles:
    """The files where they are, in the form in which their sample was compared.

    Attributes
    ----------
    files
        What can be counted.
    left_out
        Columns that only the sample compares, because not every value could be brought to one form there.
    """

    files: AlignedFiles
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls,
        aligned: AlignedFiles,
        drawn_copy: Microdata,
        original: Microdata,
        copies: Sequence[Microdata],
        holdout: Microdata | None,
    ) -> WholeFiles:
        """Say to the engines what the alignment of the sample did; ``drawn_copy`` is the first copy as it was drawn."""
        left_out, texts, relabelled = [], [], {}
        for name in aligned.columns:
            now, before = aligned.copies[0].schema[name], drawn_copy.schema[name]
            if now != before and isinstance(before, _CATEGORIES) and now == nw.String:
                texts.append(name)
            elif now != before:
                left_out.append(name)
                continue
            if _differs(aligned.recoded, aligned.original, name):
                labels = _Labels.of(aligned, name, original, copies)
                if labels is None:
                    left_out.append(name)
                else:
                    relabelled[name] = labels
        grouped = [
            name
            for name in aligned.columns
            if name not in relabelled and _differs(aligned.told, aligned.recoded or aligned.original, name)
        ]
        kept = tuple(name for name in aligned.columns if name not in left_out)
        files = AlignedFiles(
            engine.known_by(original, aligned.original),
            tuple(
                engine.known_by(_as_text(copy, texts), sample)
                for copy, sample in zip(copies, aligned.copies, strict=True)
            ),
            holdout,
            aligned.wanted,
            aligned.alignment.only_about(kept),
            tuple(name for name in aligned.mixed if name in kept),
            engine.known_by(_relabelled(original, relabelled), aligned.recoded)
            if relabelled and aligned.recoded is not None
            else None,
            None,
            (*aligned.unread, *grouped),
        )
        return cls(files, tuple(left_out))


@dataclass(frozen=True)
class _Labels:
    """Which label each value of a column became, as the release shows it: by bands, by a cut, or one by one."""

    name: str
    bands: tuple[str, ...] = ()
    first: int | None = None
    pairs: tuple[tuple[str, str], ...] = ()

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        values = rows[self.name]
        if self.bands:
            found = in_bands(values, self.bands)
            assert found is not None
        elif self.first is not None:
            found = cut_to(plain_text(values), self.first)
        else:
            found = as_text(plain_text(values)).replace(dict(self.pairs))
        return {self.name: found.rename(self.name)}

    @classmethod
    def of(
        cls, aligned: AlignedFiles, name: str, original: Microdata, copies: Sequence[Microdata]
    ) -> _Labels | None:
        """Find how the sample was relabelled; None where that does not tell the label of every value of the file."""
        assert aligned.recoded is not None
        before, after = (engine.collect(data, [name])[name] for data in (aligned.original, aligned.recoded))
        if before.dtype.is_numeric():
            labels = {label for copy in copies for label in _distinct_texts(copy, name)}
            bands = in_bands(before, sorted(labels))
            if bands is not None and bands.equals(after):
                return cls(name, bands=tuple(sorted(labels)))
        elif plain_text(before).dtype == pl.String:
            theirs = plain_text(engine.collect(aligned.copies[0], [name])[name])
            first = length_of_cut(plain_text(before), theirs)
            if first is not None and cut_to(plain_text(before), first).equals(after):
                return cls(name, first=first)
        known = pl.DataFrame({"value": as_text(plain_text(before)), "label": after}).drop_nulls().unique()
        if known["value"].n_unique() < known.height or set(_distinct_texts(original, name)) - set(
            known["value"]
        ):
            return None  # one value has several labels, or none
        return cls(name, pairs=tuple(known.sort("value").iter_rows()))


def _distinct_texts(data: Microdata, name: str) -> list[str]:
    return as_text(plain_text(engine.distinct_values(data, name))).to_list()


def _differs(other: Microdata | None, data: Microdata, name: str) -> bool:
    """Whether a column was given other values."""
    if other is None:
        return False
    ours, theirs = (engine.collect(file, [name])[name] for file in (data, other))
    return ours.dtype != theirs.dtype or not ours.equals(theirs)


def _as_text(data: Microdata, names: Sequence[str]) -> Microdata:
    if not names:
        return data
    frame = data.wrapped.with_columns(*(nw.col(name).cast(nw.String) for name in names))
    return data.with_frame(frame.to_native(), same_records=True)


def _relabelled(data: Microdata, labels: Mapping[str, _Labels]) -> Microdata:
    """Give columns their labels, where the data is."""
    for name, own in labels.items():
        work = engine.ByRecord((name,), {name: pl.String()}, own)
        lazy = data if engine.is_lazy(data) else data.with_frame(engine.whole_frame(data).lazy())
        frame = engine.made_lazily(lazy, work, purpose=_PURPOSE)
        data = data.with_frame(frame, same_records=True)
    return data
