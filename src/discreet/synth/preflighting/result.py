"""What a look at a file found, what it proposes, and how the proposal is carried out and undone."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, DiscreetError, ParameterError, unknown_name
from discreet.core.files.texts import read_toml
from discreet.core.randomness import Seed
from discreet.core.value_gate import MARK, gated, holds_values, is_withheld
from discreet.core.values import jsonable
from discreet.microdata import Microdata, require_microdata
from discreet.synth.preflighting.cost import told
from discreet.synth.preflighting.findings import CONFIDENCES, Finding
from discreet.synth.preflighting.generators import words_of
from discreet.synth.preflighting.proposing import proposed_synthesizer
from discreet.synth.preflighting.restoring import cleaned, restored
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
        marked = MARK if show_values and holds_values(document, "finding") else ""
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
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td>{html.escape(text)}</td>"
                for text in (
                    "yes" if finding.name in acted else "no",
                    finding.name,
                    finding.confidence,
                    finding.words,
                    finding.action,
                )
            )
            + "</tr>"
            for finding in self.findings
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
