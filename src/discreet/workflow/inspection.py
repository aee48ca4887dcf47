"""Which columns identify, which would an intruder know, which must stay secret? A proposal to check.

`inspect` looks at every column (its name, its type, how many values it has, what its texts look like) and
proposes a role with the reason and a word on how sure that is. It decides nothing: the proposal becomes
roles only when somebody saves it or passes it on.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import polars.selectors as cs

from discreet import engine
from discreet.core.roles import ROLES, Roles
from discreet.core.usual_names import is_numbered, is_weight_of_homes, numbers_people, stands_for_missing
from discreet.core.values import jsonable
from discreet.core.wording import percent
from discreet.io.sidecar import save_text, toml_value
from discreet.microdata import Microdata
from discreet.workflow.role_rules import Column, Proposal, may_repeat_people, propose

_MANY_COLUMNS = 200
_FEW_ROWS = 1_000
_SAMPLE = 5_000
_MOST_LOOKED_AT = 100_000
_OFTEN = 20  # a key with so many records a value, or more, tells another column by no accident
_VARIED = 0.1
_MOSTLY = 0.5
_ONE_ONLY = ("weight", "household", "psu", "person")


@dataclass(frozen=True)
class Inspection:
    """Proposed roles, column by column, with the reasons.

    Attributes
    ----------
    proposal
        The roles, ready for ``Microdata`` once somebody has looked at them.
    columns
        One row a column: type, distinct values, share missing, distinction, separation, proposed role,
        confidence and reasons. Holds no data values.
    rows
        How many records the file has.
    key_distinction
        Distinct combinations of the proposed keys per record: 1 means that the keys tell everybody apart.
    codes
        By column, the codes that look as if they stood for a missing value.
    """

    proposal: Roles
    columns: pl.DataFrame
    rows: int
    key_distinction: float | None = None
    source: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    codes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready document."""
        return {
            "source": self.source,
            "rows": self.rows,
            "proposal": self.proposal.to_dict(),
            "key_distinction": self.key_distinction,
            "columns": [jsonable(row) for row in self.columns.to_dicts()],
            "reading": jsonable(self.reading),
        }

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the proposal as a roles file, each column with its reason as a comment, and return its path."""
        return save_text(self._as_toml(), path, overwrite=overwrite)

    def __str__(self) -> str:
        shown = {name: " ".join(name.split()) for name in self.columns["column"]}
        width = max(len(name) for name in shown.values())
        lines = [f"Proposed roles for {self._what()}. Nothing is decided: check them.", ""]
        for row in self.columns.iter_rows(named=True):
            role = row["role"] or "no role"
            lines.append(
                f"{shown[row['column']]:<{width}}  {role:<11}  {row['confidence']:<12}  {row['reasons']}"
            )
        if self.key_distinction is not None:
            lines += ["", self._about_keys()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self).splitlines()[0])}</p>{self.columns._repr_html_()}"

    def _what(self) -> str:
        return f"{self.source or 'the data'} ({self.rows:,} records, {self.columns.height} columns)"

    def _about_keys(self) -> str:
        assert self.key_distinction is not None
        keys = len(self.proposal.keys)
        combinations = round(self.key_distinction * self.rows)
        return (
            f"The {'proposed key has' if keys == 1 else f'{keys} proposed keys have'} {combinations:,} different "
            f"{'values' if keys == 1 else 'combinations'} for {self.rows:,} records "
            f"({percent(self.key_distinction)} as many)."
        )

    def _as_toml(self) -> str:
        lines = [
            f"# Roles proposed for {toml_value(self.source or 'the data')}, {self.rows:,} records.",
            "# Nothing is decided: move a column to another role, or delete it, where the proposal is wrong.",
        ]
        lines += [f"# {self._about_keys()}"] if self.key_distinction is not None else []
        lines += ["", "[roles]"]
        for role, columns in self.proposal.to_dict().items():
            lines += ["", *self._comments(role), f"{role} = {toml_value(columns)}"]
        without = self._comments(None)
        lines += ["", "# Without a role:", *without] if without else []
        return "\n".join(lines) + "\n"

    def _comments(self, role: str | None) -> list[str]:
        rows = self.columns.filter(pl.col("role").eq_missing(pl.lit(role, dtype=pl.String)))
        return [
            f"# {toml_value(row['column'])} ({row['confidence']}): {row['reasons']}"
            for row in rows.iter_rows(named=True)
        ]


def inspect(data: Microdata | Any) -> Inspection:
    """Propose a role for every column, with the reason.

    Roles that the data already has are kept. Every column is counted in one query; names, types and a
    sample of the first records say the rest. A column that is left over and that a key tells (the density of a
    region, the band of an age) is proposed as a key too: who knows the one knows the other.

    Parameters
    ----------
    data
        The file, with or without roles; a bare frame will do.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "email": [f"p{i}@example.org" for i in range(40)],
    ...     "sex": ["f", "m"] * 20,
    ...     "income": [1000 + 7 * (i % 9) for i in range(40)],
    ... })
    >>> print(inspect(Microdata(frame)).proposal.to_dict())
    {'keys': ['sex'], 'sensitive': ['income'], 'identifiers': ['email']}
    """
    data = data if isinstance(data, Microdata) else Microdata(data)
    counted, nested = _counted(data)
    given = {column: role for role in reversed(ROLES) for column in _of_role(data.roles, role)}
    proposals: dict[str, Proposal] = {}
    for column in counted:
        proposal = propose(column, data.columns)
        proposals[column.name] = _with_given(proposal, given.get(column.name))
    for name in nested:
        proposals[name] = Proposal(None, "sure", (_why_uncounted(data.schema[name]),))
    proposals = _one_each({name: proposals[name] for name in data.columns}, given)
    proposals |= _told_by_keys(data, counted, proposals)
    coded = _coded(data, counted)
    notes = {name: _about_codes(*found) for name, found in coded.items()}
    proposals = _with_notes(proposals, notes, data.metadata.reading)
    roles = _roles(proposals, data.roles)
    return Inspection(
        proposal=roles,
        columns=_table(data, counted, proposals),
        rows=engine.overview(data, ()).rows,
        key_distinction=_key_distinction(data, roles, counted),
        source=data.metadata.source,
        reading=data.metadata.reading,
        codes={name: codes for name, (codes, _) in coded.items()},
    )


def _counted(data: Microdata) -> tuple[list[Column], list[str]]:
    """Count all columns in one query and take the sample in a second; a small, wide file is all sample."""
    schema = data.schema
    nested = [name for name, dtype in schema.items() if dtype.is_nested() or dtype in (nw.Binary, nw.Unknown)]
    names = [name for name in data.columns if name not in nested]
    if not names and nested:
        return [], nested
    places = {f"c{place}": name for place, name in enumerate(names)}
    if len(names) > _MANY_COLUMNS:
        head = engine.collect(engine.scan(data, places).head(_FEW_ROWS + 1))
        if 0 < head.height <= _FEW_ROWS:
            return [_looked_at(head[place], name, schema[name]) for place, name in places.items()], nested
    rows = engine.overview(data, names).rows
    missing = engine.overview(data, names).missing
    numeric = [place for place, name in places.items() if schema[name].is_numeric()]
    questions = [nw.col(place).n_unique().alias(f"{place}_n") for place in places]
    questions += [nw.col(place).min().cast(nw.Float64).alias(f"{place}_low") for place in numeric]
    questions += [nw.col(place).max().cast(nw.Float64).alias(f"{place}_high") for place in numeric]
    answers = engine.collect(engine.scan(data, places).select(*questions)).row(0, named=True)
    sample = engine.collect(engine.scan(data, places).head(_SAMPLE))
    columns = [
        Column(
            name=name,
            dtype=schema[name],
            rows=rows,
            # The engines count "missing" as one value more.
            distinct=int(answers[f"{place}_n"]) - (missing[name] > 0),
            missing=missing[name],
            low=answers.get(f"{place}_low"),
            high=answers.get(f"{place}_high"),
            sample=sample[place],
        )
        for place, name in places.items()
    ]
    return columns, nested


def _looked_at(values: pl.Series, name: str, dtype: Any) -> Column:
    """Count one short column by itself: a query of thousands of such counts takes an engine most of a minute."""
    is_number = dtype.is_numeric()
    return Column(
        name=name,
        dtype=dtype,
        rows=len(values),
        distinct=len(set(values.drop_nulls().to_list())),
        missing=values.null_count(),
        low=None if not is_number else _as_number(values.min()),
        high=None if not is_number else _as_number(values.max()),
        sample=values,
    )


def _as_number(value: Any) -> float | None:
    return None if value is None else float(value)


def _coded(data: Microdata, counted: list[Column]) -> dict[str, tuple[tuple[str, ...], float]]:
    """Find the codes that stand for a missing value, as the preflight of a synthesis does, and how often they do."""
    from discreet.synth.preflighting.column_kinds import coded_missing
    from discreet.synth.preflighting.preflight_findings import Look, Thresholds

    texts = {
        column.name: codes
        for column in counted
        if column.is_text and (codes := _coded_texts(engine.distinct_values(data, column.name)))
    }
    places = {
        f"c{place}": column.name
        for place, column in enumerate(counted)
        if column.dtype.is_numeric() or column.name in texts
    }
    if not places:
        return {}
    frame = engine.collect(engine.scan(data, places).head(_MOST_LOOKED_AT))
    found = {}
    for finding in coded_missing(Look(frame.select(cs.numeric()), Thresholds()), {}):
        if finding.confidence == "low":
            continue
        codes = tuple(str(code) for code in finding.parameters["codes"])
        found[places[finding.columns[0]]] = codes, float(finding.evidence["share"])
    for place, name in places.items():
        if name in texts:
            found[name] = (
                texts[name],
                float(frame[place].cast(pl.String).is_in(list(texts[name])).sum() / frame.height),
            )
    return found


def _coded_texts(values: pl.Series) -> tuple[str, ...]:
    """Find the texts of a column that stand for a missing value; a column of nothing else has none.

    Examples
    --------
    >>> _coded_texts(pl.Series(["yes", "no", "k.A.", "-99"])), _coded_texts(pl.Series(["NA", "?"]))
    (('-99', 'k.A.'), ())
    """
    texts = values.alias("v").drop_nulls().cast(pl.String)
    words = int((~texts.str.contains(r"^\s*[-+]?\d+([.,]\d+)?\s*$")).sum()) > _MOSTLY * len(texts)
    found = sorted(text for text in texts.to_list() if stands_for_missing(text, among_words=words))
    return tuple(found) if 0 < len(found) < len(texts) else ()


def _about_codes(codes: tuple[str, ...], share: float) -> str:
    tokens = " ".join(f"--missing-token={shlex.quote(code)}" for code in codes)
    named = [code if code.strip() else "a text of blanks" for code in codes]
    return (
        f"{' and '.join(named)} look{'s' * (len(codes) == 1)} like a code for missing "
        f"({percent(share)} of the records): read the file with {tokens} if so"
    )


def _with_notes(
    proposals: Mapping[str, Proposal], codes: Mapping[str, str], reading: Mapping[str, Any]
) -> dict[str, Proposal]:
    """Add what must be known about a column before anything is computed from it."""
    doubtful = dict.fromkeys(
        reading.get("ambiguous_dates", ()),
        "its dates can be read day first or month first: read the file with --dates dmy or --dates mdy",
    )
    return {
        name: replace(
            proposal,
            reasons=(*proposal.reasons, *(notes[name] for notes in (codes, doubtful) if name in notes)),
        )
        for name, proposal in proposals.items()
    }


def _told_by_keys(
    data: Microdata, counted: list[Column], proposals: Mapping[str, Proposal]
) -> dict[str, Proposal]:
    """Find the columns that are sensitive for want of a better role, but that a key tells for every record."""
    keys = [
        column
        for column in counted
        if proposals[column.name].role == "keys" and 1 < column.distinct <= column.rows / _OFTEN
    ]
    found = {}
    for column in counted:
        proposal = proposals[column.name]
        if proposal.role != "sensitive" or proposal.confidence != "please check":
            continue
        if column.distinct < 2 or (column.separation or 0.0) < _VARIED:
            continue
        for key in keys:
            levels = key.distinct + (key.missing > 0)
            if column.distinct + (column.missing > 0) > levels:
                continue
            pairs = engine.scan(data, {"k": key.name, "c": column.name}).unique().select(nw.len().alias("n"))
            if int(engine.collect(pairs).item()) == levels:
                reason = f"every value of '{key.name}', a key, goes with one value of it only"
                found[column.name] = Proposal("keys", "please check", (*proposal.reasons, reason))
                break
    return found


def _why_uncounted(dtype: Any) -> str:
    if dtype == nw.Binary:
        return "it holds binary data, which names and looks say nothing about"
    if dtype.is_nested():
        return "it holds lists or records, which cannot be counted"
    return "it has no values of a type that can be counted"


def _with_given(proposal: Proposal, role: str | None) -> Proposal:
    if role is None:
        return proposal
    if proposal.role == role:
        return Proposal(role, "sure", ("you said so", *proposal.reasons))
    instead = f"without that it would be proposed as {proposal.role or 'no role'}: {proposal.reasons[0]}"
    return Proposal(role, "sure", ("you said so", instead))


def _one_each(proposals: dict[str, Proposal], given: Mapping[str, str]) -> dict[str, Proposal]:
    """Keep one weight, household and sampling unit: what the user named, else the surest, else the first.

    Where the file has a weight of persons beside that of their households, its records are persons.
    """
    kept = dict(proposals)
    for role in _ONE_ONLY:
        found = [name for name, proposal in proposals.items() if proposal.role == role]
        found.sort(
            key=lambda name: (
                name not in given,
                proposals[name].confidence != "sure",
                is_weight_of_homes(name),
            )
        )
        for name in found[1:]:
            reason = f"'{found[0]}' is taken as {role}, and there can be one only"
            kept[name] = Proposal(None, "please check", (*proposals[name].reasons, reason))
    return kept


def _of_role(roles: Roles, role: str) -> tuple[str, ...]:
    columns = getattr(roles, role)
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def _roles(proposals: Mapping[str, Proposal], given: Roles) -> Roles:
    found: dict[str, list[str]] = {role: list(_of_role(given, role)) for role in ROLES}
    for name, proposal in proposals.items():
        if proposal.role and name not in found[proposal.role]:
            found[proposal.role].append(name)
    # Who the records belong to must be known, and must not be read in a release.
    found["identifiers"] += [
        name for name in found["person"] if name not in given.columns() and name not in found["identifiers"]
    ]
    return Roles.of(**found)


def unnamed_person(data: Microdata) -> str | None:
    """Name the column by which some people seem to have several records, where no role says whose they are.

    A column with any other role than that of an identifier was decided about.
    """
    if engine.counted_role(data) is not None:
        return None
    decided = set(data.roles.columns()) - set(data.roles.identifiers)
    names = [
        name for name in data.columns if name not in decided and (is_numbered(name) or numbers_people(name))
    ]
    for name in names:
        if not (data.schema[name].is_integer() or data.schema[name] in (nw.String, nw.Categorical, nw.Enum)):
            continue
        counted = engine.overview(data, [name])
        values = counted.rows - counted.missing[name]
        if may_repeat_people(name, values, len(engine.distinct_values(data, name).drop_nulls())):
            return name
    return None


def _key_distinction(data: Microdata, roles: Roles, counted: list[Column]) -> float | None:
    """Count the combinations of the proposed keys, in the engine of the data."""
    if not roles.keys or not counted:
        return None
    places = {f"k{place}": name for place, name in enumerate(roles.keys)}
    combinations = engine.scan(data, places).unique().select(nw.len().alias("n"))
    return int(engine.collect(combinations).item()) / counted[0].rows


def _table(data: Microdata, counted: list[Column], proposals: Mapping[str, Proposal]) -> pl.DataFrame:
    known = {column.name: column for column in counted}
    schema = {
        "column": pl.String,
        "dtype": pl.String,
        "distinct": pl.Int64,
        "missing_share": pl.Float64,
        "distinction": pl.Float64,
        "separation": pl.Float64,
        "role": pl.String,
        "confidence": pl.String,
        "reasons": pl.String,
    }
    rows = [
        {
            "column": name,
            "dtype": str(data.schema[name]).split("(")[0],
            "distinct": known[name].distinct if name in known else None,
            "missing_share": known[name].missing / known[name].rows if name in known else None,
            "distinction": known[name].distinction if name in known else None,
            "separation": known[name].separation if name in known else None,
            "role": proposal.role,
            "confidence": proposal.confidence,
            "reasons": "; ".join(proposal.reasons),
        }
        for name, proposal in proposals.items()
    ]
    return pl.DataFrame(rows, schema=schema)
