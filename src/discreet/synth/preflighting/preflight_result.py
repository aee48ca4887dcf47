"""What a look at a file found, what it proposes, and how the proposal is carried out and undone.

How long a synthesis will take, and how much memory, is told with it.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, DiscreetError, ParameterError, unknown_name
from discreet.core.files.untrusted import read_toml
from discreet.core.randomness import Seed, generator
from discreet.core.value_gate import MARK, gated, holds_values, is_withheld
from discreet.core.values import jsonable
from discreet.microdata import Microdata, require_microdata
from discreet.synth.preflighting.generator_proposal import cleaned, proposed_synthesizer, restored, words_of
from discreet.synth.preflighting.preflight_findings import CONFIDENCES, Finding
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.synthesizer import Synthesizer

_OTHER_DOORS = {
    "relational": "split the file into its tables and use discreet synthesize --schema",
    "multi-table": "use discreet synthesize FILE --method multi-table --set size=2",
}
_TABLES = ("rows", "accept", "order", "columns", "thresholds", "expected", "generators", "finding")


@dataclass(frozen=True, repr=False)
class Preflight:
    """What was found in a file before its synthesis; an editable plan.

    Attributes
    ----------
    findings
        One entry for each thing found.
    order
        The proposed order of synthesis.
    columns
        The columns of the file and their types.
    rows
        Number of records.
    expected
        ``fit_seconds``, ``sample_seconds`` and ``memory_bytes`` of a synthesis with CART, predicted.
    accept
        Which findings are acted on: ``"high"``, ``"medium"``, ``"low"`` (that confidence or better), or names.
    thresholds
        Those that differ from their defaults.
    generators
        Other generators that the file calls for, by name: ``why``, and their ``parameters``.
    """

    findings: tuple[Finding, ...]
    order: tuple[str, ...]
    columns: Mapping[str, str]
    rows: int
    expected: Mapping[str, Any] = field(default_factory=dict)
    accept: str | tuple[str, ...] = "high"
    thresholds: Mapping[str, float] = field(default_factory=dict)
    generators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise ParameterError(unknown_name(name, [finding.name for finding in self.findings], what="finding"))

    def of(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def accepted(self, accept: str | Sequence[str] | None = None) -> tuple[Finding, ...]:
        """Return the findings that are acted on."""
        chosen = self.accept if accept is None else accept
        known = [finding.name for finding in self.findings]
        for name in (chosen,) if isinstance(chosen, str) else chosen:
            if name not in known and name not in CONFIDENCES:
                raise ParameterError(unknown_name(name, [*CONFIDENCES, *known], what="finding"))
        return tuple(finding for finding in self.findings if finding.is_accepted(chosen))

    def _acted_on(self, accept: str | Sequence[str] | None) -> tuple[Finding, ...]:
        """Return the accepted findings, and refuse those that were saved without the values they need."""
        accepted = self.accepted(accept)
        for finding in accepted:
            if is_withheld(dict(finding.parameters)):
                raise ParameterError(
                    f"The finding '{finding.name}' was saved without its values, which are needed here. Save it with "
                    "show_values=True (--show-values), or look at the file again and repeat your decisions with "
                    "decided()."
                )
        return accepted

    def decided(self, *, accept: Sequence[str] = (), reject: Sequence[str] = ()) -> Preflight:
        """Return the plan with your own decisions about single findings, whatever their confidence."""
        for name in (*accept, *reject):
            _ = self[name]
        decisions = dict.fromkeys(accept, True) | dict.fromkeys(reject, False)
        return replace(
            self,
            findings=tuple(replace(f, accepted=decisions.get(f.name, f.accepted)) for f in self.findings),
        )

    @property
    def methods(self) -> dict[str, str]:
        """The method proposed for every column that is synthesized."""
        chosen = self.synthesizer()
        gone = (chosen.leave_out,) if isinstance(chosen.leave_out, str) else chosen.leave_out or ()
        given = chosen.method if isinstance(chosen.method, Mapping) else {}
        names = {name: given.get(name, "cart") for name in self.order if name not in gone}
        return {name: str(getattr(method, "name", method)) for name, method in names.items()}

    def synthesizer(self, *, accept: str | Sequence[str] | None = None, **options: Any) -> Sequential:
        """Make the synthesizer that the accepted findings propose.

        Parameters
        ----------
        accept
            As the attribute; its value unless given.
        options
            Other parameters of `Sequential`, which stand over what is proposed.
        """
        return proposed_synthesizer(self._acted_on(accept), self.order, options)

    def generator(self, name: str) -> Synthesizer:
        """Make one of the other generators that the file calls for, e.g. ``"population"``.

        It takes the file as it is; what the findings say about single columns is for `synthesizer` and for `apply`.
        """
        if name == "sequential":
            return self.synthesizer()
        if name not in self.generators:
            raise ParameterError(unknown_name(name, ["sequential", *self.generators], what="generator"))
        if name in _OTHER_DOORS:
            raise ParameterError(f"'{name}' is not written as a plan: {_OTHER_DOORS[name]}.")
        return Synthesizer.named(name, dict(self.generators[name].get("parameters", {})))

    def apply(self, data: Microdata, *, accept: str | Sequence[str] | None = None) -> Microdata:
        """Return the file as any generator can take it.

        Codes become missing (with one more column that tells which, where there are several), texts become numbers or
        dates, and columns that follow from others are left out.
        """
        require_microdata(data)
        self._check_columns(data)
        return data.with_frame(engine.in_kind(data, cleaned(engine.collect(data), self._acted_on(accept))))

    def restore(self, synthetic: Microdata, *, accept: str | Sequence[str] | None = None) -> Microdata:
        """Put back what `apply` took away: codes, texts, computed columns, column order and types."""
        require_microdata(synthetic, "synthetic")
        frame = restored(engine.collect(synthetic), self._acted_on(accept), self.columns)
        return synthetic.with_frame(engine.in_kind(synthetic, frame))

    @overload
    def synthesize(
        self,
        data: Microdata,
        generator: Synthesizer,
        *,
        copies: Literal[1] = 1,
        accept: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Microdata: ...
    @overload
    def synthesize(
        self,
        data: Microdata,
        generator: Synthesizer,
        *,
        copies: int,
        accept: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Any: ...
    def synthesize(
        self,
        data: Microdata,
        generator: Synthesizer,
        *,
        copies: int = 1,
        accept: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Any:
        """Clean the file, run any synthesizer on it, and restore what it draws."""
        drawn = generator.fit(self.apply(data, accept=accept), seed=seed).sample(copies=copies, seed=seed)
        files = [self.restore(file, accept=accept) for file in (drawn if copies > 1 else [drawn])]
        return files if copies > 1 else files[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan, ready for JSON or TOML. It holds codes and look-up tables, but no outlier."""
        return {
            "rows": self.rows,
            "accept": self.accept if isinstance(self.accept, str) else list(self.accept),
            "order": list(self.order),
            "columns": dict(self.columns),
            "thresholds": dict(self.thresholds),
            "expected": jsonable(dict(self.expected)),
            "generators": {name: dict(own) for name, own in self.generators.items()},
            "finding": [finding.to_dict() for finding in self.findings],
        }

    def to_toml(self, *, show_values: bool = False) -> str:
        """Return the plan as a text to read and edit: set ``accepted = true`` or ``false`` in a finding.

        Codes and look-up tables are values of the data: they are counted, and only written with ``show_values``. A
        finding without its values can be read and decided on, but not acted on.
        """
        import tomli_w

        document = gated(_without_none(self.to_dict()), show_values=show_values)
        marked = MARK if show_values and holds_values(document) else ""
        return marked + tomli_w.dumps(document)

    def save(self, path: str | Path, *, show_values: bool = False, overwrite: bool = False) -> Path:
        """Write the plan to a TOML file and return its path; with ``show_values`` so that it can be acted on."""
        from discreet.io.sidecar import save_text

        return save_text(self.to_toml(show_values=show_values), path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Preflight:
        """Read a plan that was saved and perhaps edited."""
        place = Path(path)
        document = read_toml(place, "plan file")
        try:
            return cls.from_dict(document)
        except DiscreetError as error:
            raise type(error)(f"In '{place.name}': {error}") from error

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Preflight:
        """Make the plan from plain values."""
        for table in document:
            if table not in _TABLES:
                raise ParameterError(unknown_name(table, _TABLES, what="entry"))
        for needed in ("rows", "order", "columns"):
            if needed not in document:
                raise ParameterError(
                    f"The plan has no '{needed}'. Make it again with discreet.synth.preflight."
                )
        accept = document.get("accept", "high")
        return cls(
            findings=tuple(Finding.from_dict(entry) for entry in document.get("finding", [])),
            order=tuple(document["order"]),
            columns=dict(document["columns"]),
            rows=int(document["rows"]),
            expected=dict(document.get("expected", {})),
            accept=accept if isinstance(accept, str) else tuple(accept),
            thresholds=dict(document.get("thresholds", {})),
            generators=dict(document.get("generators", {})),
        )

    def __str__(self) -> str:
        acted = {finding.name for finding in self.accepted()}
        lines = [
            f"Preflight of {self.rows:,} records, {len(self.columns)} columns: {len(self.findings)} findings"
        ]
        width = max((len(finding.name) for finding in self.findings), default=0)
        for finding in self.findings:
            mark = "+" if finding.name in acted else " "
            lines.append(f"{mark} {finding.name:<{width}}  {finding.confidence:<6}  {finding.words}")
            lines.append(f"  {'':<{width}}          {finding.action}.")
        lines += ["", "Findings marked + are acted on.", told(self.expected), *words_of(self.generators)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        acted = {finding.name for finding in self.accepted()}
        cells = [
            ("yes" if one.name in acted else "no", one.name, one.confidence, one.words, one.action)
            for one in self.findings
        ]
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in cells
        )
        head = "".join(
            f"<th>{name}</th>" for name in ("acted on", "finding", "confidence", "evidence", "action")
        )
        return f"<table><tr>{head}</tr>{rows}</table><p>{html.escape(told(self.expected))}</p>"

    def to_frame(self) -> pl.DataFrame:
        """Return the findings as a table."""
        acted = {finding.name for finding in self.accepted()}
        return pl.DataFrame(
            {
                "finding": [finding.name for finding in self.findings],
                "columns": [", ".join(finding.columns) for finding in self.findings],
                "confidence": [finding.confidence for finding in self.findings],
                "acted_on": [finding.name in acted for finding in self.findings],
                "evidence": [finding.words for finding in self.findings],
                "action": [finding.action for finding in self.findings],
                "reversible": [finding.reversible for finding in self.findings],
            },
            schema_overrides={"acted_on": pl.Boolean, "reversible": pl.Boolean},
        )

    def _check_columns(self, data: Microdata) -> None:
        gone = [name for name in self.columns if name not in data.schema]
        fresh = [name for name in data.columns if name not in self.columns]
        if gone or fresh:
            said = [f"'{name}' is gone" for name in gone[:3]] + [f"'{name}' is new" for name in fresh[:3]]
            raise ColumnError(
                f"The file is not the one that was looked at: {', '.join(said)}. Make a new preflight of it."
            )


def _without_none(value: Any) -> Any:
    """TOML has no missing value: leave such entries out."""
    if isinstance(value, Mapping):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value if item is not None]
    return value


# How long will it take, and how much memory, before it is tried?
#
# Trees are grown on a few records of this very file, on this very machine, and the time is carried over to all
# records. Compiling on first use (some seconds, once per installation) is left out of it.
_PROBES = (2000, 8000)
_WARM_UP = 200
# Bytes a cell takes at the peak of a fit, on top of the file: the column as numbers, its codes for trees, the
# donors in leaf order, and working copies of what is being grown. Measured, see tests/synth/test_preflight.py.
_BYTES_PER_CELL = 40
_BYTES_PER_ROW = 60
_USUAL_PROCESS = 300e6


def expected_cost(synthesizer: Sequential, data: Microdata, frame: pl.DataFrame) -> dict[str, Any]:
    """Predict seconds and peak memory of fitting and sampling this synthesizer by growing small ones first."""
    rows = frame.height
    sizes = sorted({min(rows, size) for size in _PROBES})
    try:
        _timed(synthesizer, data, frame, min(rows, _WARM_UP))
        timings = [_timed(synthesizer, data, frame, size) for size in sizes]
    except DiscreetError as error:
        return {"note": f"Nothing could be timed: {error}"}
    fit = _carried_over(sizes, [timing[0] for timing in timings], rows)
    sample = _carried_over(sizes, [timing[1] for timing in timings], rows)
    memory = frame.estimated_size() * 2 + rows * (_BYTES_PER_ROW + _BYTES_PER_CELL * frame.width)
    return {
        "method": "cart",
        "fit_seconds": fit,
        "sample_seconds": sample,
        "memory_bytes": int(memory + peak_memory()),
        "rows": rows,
        "probe_rows": sizes[-1],
        "note": "Compiling on first use comes on top, some seconds once. Memory is that of the whole process.",
    }


def told(expected: Mapping[str, Any]) -> str:
    """Say the cost in one line."""
    if "fit_seconds" not in expected:
        return str(expected.get("note", "The cost was not predicted (probe=False)."))
    return (
        f"Expected with CART: {_seconds(expected['fit_seconds'])} to fit, {_seconds(expected['sample_seconds'])} a "
        f"synthetic copy, {expected['memory_bytes'] / 1e9:.1f} GB of memory at most. {expected['note']}"
    )


def peak_memory() -> int:
    """Return the most memory that this process has held so far, in bytes."""
    try:
        import resource
    except ImportError:
        return int(_USUAL_PROCESS)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _timed(synthesizer: Sequential, data: Microdata, frame: pl.DataFrame, size: int) -> tuple[float, float]:
    rng = generator(0, "preflight", "probe", str(size))
    rows = np.sort(rng.choice(frame.height, size=size, replace=False))
    part = data.with_frame(engine.in_kind(data, frame[rows]))
    began = time.perf_counter()
    fitted = synthesizer.fit(part, seed=0)
    between = time.perf_counter()
    fitted.sample(seed=0)
    return between - began, time.perf_counter() - between


def _carried_over(sizes: list[int], seconds: list[float], rows: int) -> float:
    """Carry the time over to all records: a part that every file takes, and one that grows like n log n."""
    work = [size * np.log2(size + 1) for size in sizes]
    aim = rows * np.log2(rows + 1)
    if len(sizes) == 1:
        return float(seconds[0] * aim / work[0])
    slope = max((seconds[1] - seconds[0]) / (work[1] - work[0]), 0.25 * seconds[1] / work[1])
    start = max(seconds[1] - slope * work[1], 0.0)
    return float(start + slope * aim)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 60 else f"{value / 60:.1f} min"
