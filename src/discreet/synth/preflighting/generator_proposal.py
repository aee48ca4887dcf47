"""From findings to a synthesizer: what each accepted finding sets, takes out of a file, and puts back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from discreet.core.errors import ColumnError, ParameterError
from discreet.expressions import parse
from discreet.io.column_types import parsed
from discreet.microdata import Microdata
from discreet.synth.column_forms import plain_text
from discreet.synth.methods.method import Method
from discreet.synth.methods.observed_values import Collinear, Near
from discreet.synth.preflighting.preflight_findings import Finding
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.visit_sequence import in_order
from discreet.synth.sequential.whole_units import same_within
from discreet.synth.written_values import as_computed, as_read, as_written


def proposed_synthesizer(
    accepted: Sequence[Finding], order: Sequence[str], options: Mapping[str, Any]
) -> Sequential:
    """Set the parameters of a sequential synthesis by the findings; ``options`` stand over them."""
    gone = left_out(accepted, with_derived=False)
    coded = [f for f in accepted if f.kind == "coded-missing"]
    named = dict.fromkeys(f.column for f in coded if not f.parameters.get("text") and f.column not in gone)
    codes = {
        name: sorted({code for f in coded if f.column == name for code in f.parameters["codes"]})
        for name in named
    }
    codes |= written_numbers(accepted, gone)
    methods: dict[str, str | Method] = {}
    for finding in accepted:
        if finding.kind == "look-up" and finding.parameters["of"] not in gone and finding.column not in gone:
            methods[finding.column] = Collinear(of=_root(finding, accepted))
        # An expression knows nothing of codes; a column with coded inputs is modelled like any other.
        elif finding.kind in ("sum", "product") and not any(
            name in gone or (name in codes and name != finding.column) for name in finding.columns
        ):
            text = finding.parameters["expression"]
            methods[finding.column] = Near(expression=text) if finding.parameters.get("near") else f"~{text}"
    rules: dict[str, list[dict[str, Any]]] = {}
    edges: dict[str, set[str]] = {}
    for finding in accepted:
        blocked = any(name in gone for name in finding.columns) or finding.column in methods
        if finding.kind == "given-value" and not blocked:
            rule = {"when": finding.parameters["when"]}
            if "value" in finding.parameters:
                rule["value"] = finding.parameters["value"]
            rules.setdefault(finding.column, []).append(rule)
            edges.setdefault(finding.column, set()).add(finding.columns[1])
        if finding.kind in DERIVED and finding.column in methods:
            edges.setdefault(finding.column, set()).update(finding.columns[1:])
    spikes = {
        f.column: [v for v in f.parameters["values"] if v not in codes.get(f.column, ())]
        for f in accepted
        if f.kind == "spikes" and f.column not in gone and f.column not in methods
    }
    units = [f.column for f in accepted if f.kind == "household"]
    few = [f.parameters["distinct"] for f in accepted if f.kind == "few-values" and f.column not in gone]
    constraints = [
        f.parameters["constraint"]
        for f in accepted
        if f.kind == "inequality" and not any(name in gone for name in f.columns)
    ]
    proposed: dict[str, Any] = {
        "visit_sequence": tuple(in_order([name for name in order if name not in (*gone, *units)], edges)),
        "method": methods or "cart",
        "special_codes": {name: own for name, own in codes.items() if name not in methods} or None,
        "semicontinuous": {name: own for name, own in spikes.items() if own} or None,
        "rules": rules or None,
        "few_values": max(few, default=1),
        "constraints": tuple(constraints),
        "leave_out": tuple(gone) or None,
        "together": units[0] if units else "auto",
    }
    return Sequential(**(proposed | dict(options)))


def written_numbers(accepted: Sequence[Finding], gone: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the codes of every text column that is to be taken for numbers and can be written back."""
    found: dict[str, list[Any]] = {}
    for finding in accepted:
        if finding.kind == "number-as-text" and finding.reversible and finding.column not in gone:
            found[finding.column] = list(finding.parameters.get("codes", ()))
    return found


def _root(finding: Finding, accepted: Sequence[Finding]) -> str:
    """Follow a chain of look-ups to its start: what follows from a column that is looked up follows from its source."""
    source = str(finding.parameters["of"])
    behind = {f.column: str(f.parameters["of"]) for f in accepted if f.kind == "look-up"}
    for _ in behind:
        source = behind.get(source, source)
    return source


# Which generators does a file call for, beside the one that draws its columns one after the other?
_FEW_LEVELS = 20
_MANY_COLUMNS = 10
_STRUCTURE = 2
_USUAL = ("age", "sex", "gender")


def fitting_generators(
    data: Microdata, frame: pl.DataFrame, findings: Sequence[Finding]
) -> dict[str, dict[str, Any]]:
    """Name the generators that suit the file: why, and with which parameters; column names only, no values."""
    made: dict[str, dict[str, Any]] = {}
    household = next((f for f in findings if f.kind == "household" and f.confidence == "high"), None)
    unit = household.column if household is not None else None
    person = data.roles.person
    if unit is not None and unit != person:
        made["households"] = {
            "why": f"records that share '{unit}' are a household, which any generator can keep whole",
            "parameters": {},
        }
        parameters = _population(data, frame, findings, unit)
        if data.roles.weight is not None and parameters is not None:
            made["population"] = {
                "why": f"'{unit}' are households and '{data.roles.weight}' says how many each stands for: a population",
                "parameters": parameters,
            }
    if person is not None and person in frame.columns and frame[person].n_unique() < frame.height:
        ordered = f", in the order of '{data.roles.time}'" if data.roles.time else ""
        made["relational"] = {
            "why": f"a person has several records (by '{person}'): persons as parents, records as children{ordered}",
            "parameters": {},
        }
        made["syndiffix"] = {
            "why": f"a person has several records (by '{person}'), and persons are what it counts",
            "parameters": {"person": person},
        }
    gone = {*left_out(findings, with_derived=False), *data.roles.identifiers, data.roles.weight, unit, person}
    if len([name for name in frame.columns if name not in gone]) >= _MANY_COLUMNS:
        made["multi-table"] = {
            "why": "one wide table of so many columns loses most; tables of what an analysis needs lose less",
            "parameters": {"size": 2},
        }
    return made


def _population(
    data: Microdata, frame: pl.DataFrame, findings: Sequence[Finding], unit: str
) -> dict[str, Any] | None:
    """Say what of a household is copied and what is simulated; None where nothing can be copied."""
    counted = {name for f in findings if f.kind == "household" for name in f.columns}
    roles = data.roles
    out = {
        *left_out(findings, with_derived=False),
        *counted,
        *roles.identifiers,
        *roles.strata,
        roles.weight,
        roles.person,
        unit,
    }
    names = [name for name in frame.columns if name not in out]
    shared = set(same_within(frame, unit, names))
    complete = [name for name in names if name not in shared and not frame[name].null_count()]
    # Age and sex by their usual names, else what stands first.
    complete.sort(key=lambda name: (not any(usual in name.lower() for usual in _USUAL), names.index(name)))
    structure = complete[:_STRUCTURE]
    if not structure:
        return None
    rest = [name for name in names if name not in structure]
    numbers = [
        name for name in rest if frame.schema[name].is_numeric() and frame[name].n_unique() > _FEW_LEVELS
    ]
    parameters: dict[str, Any] = {"structure": structure}
    categories = [name for name in rest if name not in numbers]
    if categories:
        parameters["categorical"] = categories
    if numbers:
        parameters["continuous"] = numbers
    return parameters


def words_of(generators: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say in lines which generators suit."""
    return [f"It also suits {name}: {own['why']}." for name, own in generators.items()]


# Take out of a file what a generator should not see, and put it back into what the generator drew.
DERIVED = ("look-up", "sum", "product")
_DROPPED = ("identifier", "near-unique-text", "all-missing")
_ORDINARY, _MISSING = "ordinary", "missing"


def left_out(accepted: Sequence[Finding], *, with_derived: bool = True) -> list[str]:
    """Name the columns that are left out of a synthesis."""
    kinds = (*_DROPPED, *DERIVED) if with_derived else _DROPPED
    return list(dict.fromkeys(f.column for f in accepted if f.kind in kinds))


def cleaned(frame: pl.DataFrame, accepted: Sequence[Finding]) -> pl.DataFrame:
    """Return the file as a generator should see it."""
    frame = _typed(_with_text_states(frame, accepted), accepted)
    for name, codes in _codes(accepted).items():
        series = frame[name]
        hit = _has(series, codes)
        if _needs_state(series, codes):
            frame = _with_state(frame, name, hit)
        frame = frame.with_columns(pl.when(~hit).then(pl.col(name)).alias(name))
    gone = [name for name in left_out(accepted) if name in frame.columns]
    return frame.drop(gone)


def restored(frame: pl.DataFrame, accepted: Sequence[Finding], columns: Mapping[str, str]) -> pl.DataFrame:
    """Put back codes, given values, computed columns, texts, types and the order of the columns."""
    codes = _codes(accepted)
    # Rules and look-ups were found in the texts, so the texts come back first.
    for finding in accepted:
        if finding.kind == "date-as-text" and finding.column in frame.columns:
            frame = frame.with_columns(pl.col(finding.column).dt.strftime(finding.parameters["form"]))
        elif finding.kind == "number-as-text" and finding.column in frame.columns:
            frame = _as_texts(frame, finding)
    for name, own in codes.items():
        if name in frame.columns:
            frame = _recoded(frame, name, own)
    for finding in accepted:
        if finding.kind == "given-value" and set(finding.columns) <= set(frame.columns):
            frame = _given(frame, finding)
    for finding in topological([f for f in accepted if f.kind in DERIVED]):
        absent = [name for name in finding.columns[1:] if name not in frame.columns]
        if absent:
            raise ColumnError(
                f"'{finding.column}' is computed from '{absent[0]}', which the synthetic file does not have. Restore a "
                "file that was drawn from the cleaned one."
            )
        frame = frame.with_columns(_derived(frame, finding, codes, columns))
    for finding in accepted:
        if finding.kind == "all-missing" and finding.column not in frame.columns:
            dtype = dtype_of(columns.get(finding.column, "String"))
            frame = frame.with_columns(pl.lit(None, dtype=dtype).alias(finding.column))
    own = [name for name in columns if name in frame.columns]
    helpers = [_state_name(name) for name in (*codes, *_text_codes(accepted))]
    return frame.select(*own, *(n for n in frame.columns if n not in columns and n not in helpers))


def _with_text_states(frame: pl.DataFrame, accepted: Sequence[Finding]) -> pl.DataFrame:
    """Set aside which code a text had, before its column becomes numbers."""
    for name, codes in _text_codes(accepted).items():
        if codes and _needs_state(frame[name], codes):
            frame = _with_state(frame, name, _has(frame[name], codes))
    return frame


def _with_state(frame: pl.DataFrame, name: str, hit: pl.Series) -> pl.DataFrame:
    """Add a column that says of each value which code it is, that it is missing, or that it is an ordinary one."""
    code = pl.when(hit).then(pl.col(name).cast(pl.String)).when(pl.col(name).is_null()).then(pl.lit(_MISSING))
    return frame.with_columns(code.otherwise(pl.lit(_ORDINARY)).alias(_state_name(name)))


def _as_texts(frame: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    """Write numbers as the file wrote them, and put the codes back."""
    name, codes = finding.column, finding.parameters.get("codes", ())
    frame = frame.with_columns(
        as_written(frame[name], finding.parameters.get("way") or "shortest").alias(name)
    )
    return _recoded(frame, name, codes) if codes else frame


def _text_codes(accepted: Sequence[Finding]) -> dict[str, list[Any]]:
    """Return the codes of columns whose texts become numbers."""
    dropped = left_out(accepted)
    return {
        f.column: list(f.parameters.get("codes", ()))
        for f in accepted
        if f.kind == "number-as-text" and f.column not in dropped
    }


def topological(derived: Sequence[Finding]) -> list[Finding]:
    """Put computed columns after those they are computed from."""
    waiting, done = list(derived), []
    while waiting:
        open_names = {finding.column for finding in waiting}
        ready = [finding for finding in waiting if not open_names & set(finding.columns[1:])]
        if not ready:
            names = ", ".join(f"'{finding.column}'" for finding in waiting)
            raise ParameterError(f"{names} are computed from one another in a circle. Reject one of them.")
        done += ready
        waiting = [finding for finding in waiting if finding not in ready]
    return done


def dtype_name(dtype: pl.DataType) -> str:
    """Write a type as it stands in a plan file.

    Examples
    --------
    >>> dtype_name(pl.Int64()), dtype_name(pl.Enum(["a", "b"]))
    ('Int64', 'Enum|a|b')
    """
    if isinstance(dtype, pl.Enum):
        return "|".join(["Enum", *(text.replace("|", "\\u007c") for text in dtype.categories.to_list())])
    return str(dtype.base_type())


def dtype_of(text: str) -> pl.DataType:
    """Read a type of a plan file; what it does not know is a text."""
    head, *levels = text.split("|")
    if head == "Enum":
        return pl.Enum([level.replace("\\u007c", "|") for level in levels])
    kind = getattr(pl, head, pl.String)
    found: pl.DataType = kind() if isinstance(kind, type) else pl.String()
    return found


def _typed(frame: pl.DataFrame, accepted: Sequence[Finding]) -> pl.DataFrame:
    for finding in accepted:
        if finding.kind == "number-as-text":
            kind = pl.Int64 if finding.parameters.get("way") == "whole" else pl.Float64
            frame = frame.with_columns(as_read(frame[finding.column]).cast(kind).alias(finding.column))
        elif finding.kind == "date-as-text":
            frame = frame.with_columns(
                parsed(pl.col(finding.column), finding.parameters["form"], strict=False)
            )
    return frame


def _codes(accepted: Sequence[Finding]) -> dict[str, list[Any]]:
    elsewhere = (*left_out(accepted), *_text_codes(accepted))
    found: dict[str, list[Any]] = {}
    for finding in accepted:
        if finding.kind == "coded-missing" and finding.column not in elsewhere:
            known = found.setdefault(finding.column, [])
            known += [code for code in finding.parameters["codes"] if code not in known]
    return found


def _has(series: pl.Series, codes: Sequence[Any]) -> pl.Series:
    plain = plain_text(series)
    return plain.is_in(pl.Series(codes, strict=False).cast(plain.dtype).implode()).fill_null(False)


def _needs_state(series: pl.Series, codes: Sequence[Any]) -> bool:
    """One code and nothing else missing can be told from the gap alone; otherwise a column must say which."""
    return len(codes) > 1 or series.null_count() > 0


def _state_name(name: str) -> str:
    return f"{name}: code"


def _recoded(frame: pl.DataFrame, name: str, codes: Sequence[Any]) -> pl.DataFrame:
    dtype = frame.schema[name]
    state = _state_name(name)
    if state not in frame.columns:
        code = pl.lit(pl.Series([codes[0]], strict=False).cast(_plain(dtype)).cast(dtype)).first()
        return frame.with_columns(pl.col(name).fill_null(code))
    told = pl.col(state).cast(pl.String)
    code_like = told.cast(dtype, strict=False)
    return frame.with_columns(
        pl.when(told == _ORDINARY)
        .then(pl.col(name))
        .when(told != _MISSING)
        .then(code_like)
        .otherwise(pl.lit(None, dtype=dtype))
        .alias(name)
    )


def _given(frame: pl.DataFrame, finding: Finding) -> pl.DataFrame:
    when = parse(finding.parameters["when"], frame.schema).condition
    dtype = frame.schema[finding.column]
    value = pl.lit(pl.Series([finding.parameters.get("value")], strict=False).cast(dtype)).first()
    return frame.with_columns(
        pl.when(when).then(value).otherwise(pl.col(finding.column)).alias(finding.column)
    )


def _derived(
    frame: pl.DataFrame, finding: Finding, codes: Mapping[str, Sequence[Any]], columns: Mapping[str, str]
) -> pl.Series:
    dtype = dtype_of(columns.get(finding.column, "String"))
    if finding.kind == "look-up":
        return looked_up(frame[finding.parameters["of"]], finding, dtype)
    inputs = frame.select(
        pl.when(~pl.lit(_has(frame[name], codes[name]))).then(pl.col(name)).alias(name)
        if name in codes
        else pl.col(name)
        for name in finding.columns[1:]
    )
    computed = inputs.select(parse(finding.parameters["expression"], inputs.schema).value.alias("c"))["c"]
    return as_computed(computed, dtype, finding.parameters.get("decimals")).rename(finding.column)


def looked_up(source: pl.Series, finding: Finding, dtype: pl.DataType) -> pl.Series:
    """Compute a column from another by cut points or by a table; what the table does not have is missing."""
    if "cuts" in finding.parameters:
        cuts = finding.parameters["cuts"]
        numbers = source.cast(pl.Float64)
        # A value between two groups belongs to the lower one, as age 24.5 does to 16-24.
        lows = pl.Series([float(cut["low"]) for cut in cuts])
        at = lows.search_sorted(numbers.fill_null(0.0), side="right").cast(pl.Int64) - 1
        at = at.clip(0).set(numbers.is_null(), None)
        return _as_type(pl.Series([cut["value"] for cut in cuts]), dtype).gather(at).rename(finding.column)
    values = [None if value == [] else value for value in finding.parameters["values"]]
    plain = source.cast(_plain(source.dtype))
    keys = pl.Series(finding.parameters["keys"]).cast(plain.dtype, strict=False)
    table = pl.DataFrame({"key": keys, "value": _as_type(pl.Series(values, strict=False), dtype)})
    return (
        plain.to_frame("key")
        .join(table, on="key", how="left", maintain_order="left")["value"]
        .rename(finding.column)
    )


def _as_type(series: pl.Series, dtype: pl.DataType) -> pl.Series:
    return series.cast(dtype, strict=False)


def _plain(dtype: pl.DataType) -> pl.DataType:
    return pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype
