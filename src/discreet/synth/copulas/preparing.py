"""What Gaussian and vine copulas have in common: reading a file, its strata, and fitting one model a stratum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth.column_forms import CategoryForm, Form
from discreet.synth.copulas.dimensions import Dimension, laid_out
from discreet.synth.copulas.fitted import Coupling, FittedCopula, Model
from discreet.synth.copulas.margins import FAMILIES, MARGINS, MarginKind
from discreet.synth.distributions.families import check_family
from discreet.synth.methods.given import Stratum
from discreet.synth.modelled_columns import Weights, take_in
from discreet.synth.sequential.plan import ColumnPlan, SynthesisPlan
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.stratified import Strata
from discreet.synth.synthesizer import Stream, empty_like

#: Fits the dependence of one stratum and says what should be known about it.
Fitter = Callable[[Sequence[Dimension], Floats | None, Stream], tuple[Coupling, tuple[str, ...]]]


@dataclass(frozen=True)
class Preparation:
    """The parameters that all copulas share."""

    margins: MarginKind | Mapping[str, MarginKind]
    families: Sequence[str]
    level_order: str
    special_codes: Mapping[str, Any] | None
    strata: Columns
    min_stratum: int | None
    weights: Weights
    few_values: int
    leave_out: Columns

    @classmethod
    def of(cls, synthesizer: Any) -> Preparation:
        """Take the shared parameters of a copula synthesizer."""
        given = {item.name: getattr(synthesizer, item.name) for item in fields(cls)}
        families = given["families"]
        return cls(**{**given, "families": (families,) if isinstance(families, str) else tuple(families)})

    def check(self) -> None:
        """Refuse what makes no sense whatever the data are."""
        kinds = self.margins.values() if isinstance(self.margins, Mapping) else [self.margins]
        for kind in kinds:
            if kind not in MARGINS:
                raise ParameterError(unknown_name(str(kind), MARGINS, what="kind of margin"))
        if isinstance(self.few_values, bool) or not isinstance(self.few_values, int) or self.few_values < 0:
            raise ParameterError("few_values must be a whole number of at least 0.")
        for family in self.families if self.families != FAMILIES else ():
            check_family(family)
        if self.level_order not in ("associated", "given"):
            raise ParameterError(
                unknown_name(str(self.level_order), ("associated", "given"), what="level_order")
            )

    def kinds(self, forms: Mapping[str, Form]) -> dict[str, MarginKind]:
        """Return the kind of margin of every column; categories are always as observed."""
        if not isinstance(self.margins, Mapping):
            return dict.fromkeys(forms, self.margins)
        for name, kind in self.margins.items():
            if name not in forms:
                raise ColumnError(f"{unknown_name(name, forms)} It was named under margins.")
            if isinstance(forms[name], CategoryForm) and kind != "empirical":
                raise ColumnError(f"Column '{name}' is no number, so its margin can only be empirical.")
        return {name: self.margins.get(name, "empirical") for name in forms}


def fit_copula(
    data: Microdata,
    options: Preparation,
    fitter: Fitter,
    *,
    kind: str,
    mixed: bool,
    stream: Stream,
    splits: bool = False,
) -> FittedCopula:
    """Fit margins and dependence, one model a stratum."""
    names = (options.strata,) if isinstance(options.strata, str) else tuple(options.strata or ())
    for name in names:
        if name not in data.schema:
            raise ColumnError(f"{unknown_name(name, data.columns)} It was named under strata.")
    intake = take_in(
        data,
        leave_out=options.leave_out,
        weights=options.weights,
        special_codes=options.special_codes,
        few_values=options.few_values,
        apart=names,
    )
    strata = _strata(data, intake.frame, [*intake.columns, *names], names, options)
    kinds = options.kinds(intake.forms)
    models: list[Model] = []
    labels: tuple[str, ...] = ()
    notes = list(strata.notes)
    for number, rows in enumerate(strata.rows):
        own = stream if rows is None else stream.child(f"stratum {number}")
        frame = intake.frame if rows is None else intake.frame[rows]
        weights = intake.weights if rows is None or intake.weights is None else intake.weights[rows]
        layout = laid_out(
            frame,
            intake.forms,
            weights=weights,
            kinds=kinds,
            families=options.families,
            mixed=mixed,
            orders=options.level_order == "associated",
            splits=splits,
        )
        coupling, about = fitter(layout.dimensions, weights, own)
        notes += [note for note in about if note not in notes]
        labels = labels or tuple(dimension.label for dimension in layout.dimensions)
        models.append(Model(layout.margins, coupling).calibrated(own("calibration")))
    shown = [name for name in data.columns if name in intake.forms or name in names]
    return FittedCopula(
        empty_like(data, intake.frame.select(shown)),
        intake.rows,
        kind=kind,
        labels=labels,
        forms=intake.forms,
        models=models,
        strata=strata,
        weighted=intake.weights is not None,
        notes=notes,
    )


def _strata(
    data: Microdata,
    frame: pl.DataFrame,
    columns: Sequence[str],
    names: Sequence[str],
    options: Preparation,
) -> Strata:
    weighted = data.roles.weight is not None and options.weights == "use"
    plan = SynthesisPlan(tuple(columns), tuple(ColumnPlan(name, Stratum()) for name in names), frame.height)
    return Strata.of(
        Sequential(
            min_stratum=options.min_stratum, stratum_sizes="population" if weighted and names else "drawn"
        ),
        plan,
        frame,
        frame[data.roles.weight] if weighted and data.roles.weight else None,
    )
