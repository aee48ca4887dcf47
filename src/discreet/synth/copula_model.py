"""What Gaussian and vine copulas have in common: reading a file, its strata, one model a stratum, and draws from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, load_extra, unknown_name
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.copula import EmpiricalMargin
from discreet.numerics.correlation import root_of
from discreet.synth import copula_columns
from discreet.synth.column_forms import CategoryForm, Form, NumberForm, check_named, listed
from discreet.synth.distributions.families import check_family
from discreet.synth.methods.observed_values import Stratum
from discreet.synth.saved_models import stored
from discreet.synth.sequential.fitting_records import Strata
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.synthesis_plan import ColumnPlan, SynthesisPlan
from discreet.synth.synthesizer import Fitted, empty_like
from discreet.synth.whole_records import Weights, take_in


class Coupling(ABC):
    """The dependence between the dimensions of a copula."""

    @abstractmethod
    def uniforms(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n records of dependent uniform numbers."""


_CHUNK = 50_000  # records drawn at a time


@stored("vine-coupling")
@dataclass(frozen=True, eq=False)
class VineCoupling(Coupling):
    """A vine of pyvinecopulib, kept as its JSON text."""

    vine: str
    width: int

    def uniforms(self, n: int, rng: np.random.Generator) -> Floats:
        """Turn independent uniform numbers into dependent ones."""
        library = load_extra("pyvinecopulib", extra="vines", purpose="Drawing from this vine copula")
        independent = np.asfortranarray(rng.random((n, self.width)))
        return np.asarray(library.Vinecop.from_json(self.vine).inverse_rosenblatt(independent))


@stored("normal-coupling")
@dataclass(frozen=True, eq=False)
class NormalCoupling(Coupling):
    """Correlated normal variables."""

    correlation: Floats

    def uniforms(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw normal variables and take their ranks in the whole population."""
        from scipy.special import ndtr

        root = root_of(self.correlation).T
        uniform = np.empty((n, len(root)), order="F")
        for start in range(0, n, _CHUNK):
            rows = slice(start, min(start + _CHUNK, n))
            uniform[rows] = ndtr(rng.standard_normal((rows.stop - start, len(root))) @ root)
        return uniform


#: Fits the dependence of one stratum and says what should be known about it.
Fitter = Callable[
    [Sequence[copula_columns.Dimension], Floats | None, Stream], tuple[Coupling, tuple[str, ...]]
]


@dataclass(frozen=True)
class Preparation:
    """The parameters that all copulas share."""

    margins: copula_columns.MarginKind | Mapping[str, copula_columns.MarginKind]
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
        for family in self.families if self.families != copula_columns.FAMILIES else ():
            check_family(family)

    def kinds(self, forms: Mapping[str, Form]) -> dict[str, copula_columns.MarginKind]:
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
    names = listed(options.strata)
    check_named({"strata": names}, data.columns)
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
        layout = copula_columns.laid_out(
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


_CALIBRATION = 100_000


@stored("copula")
@dataclass(frozen=True, eq=False)
class Model:
    """The copula of one stratum."""

    margins: Mapping[str, copula_columns.ColumnMargin]
    coupling: Coupling

    def calibrated(self, rng: np.random.Generator) -> Model:
        """Return the copula with the cuts of nested margins where they give the shares of the levels."""
        if not any(margin.nested for margin in self.margins.values()):
            return self
        uniform = self.coupling.uniforms(_CALIBRATION, rng)
        margins, at = {}, 0
        for name, margin in self.margins.items():
            own = uniform[:, at : at + margin.width]
            margins[name] = margin.calibrated(own) if margin.nested else margin
            at += margin.width
        return Model(margins, self.coupling)

    def draw(self, n: int, forms: Mapping[str, Form], rng: np.random.Generator) -> pl.DataFrame:
        """Draw n records."""
        uniform = self.coupling.uniforms(n, rng)
        columns, at = [], 0
        for name, form in forms.items():
            margin = self.margins[name]
            ordinary = form.n_ordinary if isinstance(form, NumberForm) else 0
            if margin.width == 2 and not margin.nested and isinstance(self.coupling, NormalCoupling):
                states = margin.margins[0]
                assert isinstance(states, EmpiricalMargin)
                tie = float(self.coupling.correlation[at, at + 1])
                uniform[:, at + 1] = copula_columns.given_a_value(uniform[:, at + 1], states, tie, ordinary)
            columns.append(form.joined(margin.parts(uniform[:, at : at + margin.width], ordinary)))
            at += margin.width
        return pl.DataFrame(columns)


@stored("fitted-copula")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedCopula(Fitted):
    """A copula that was fitted.

    Attributes
    ----------
    kind
        ``"gaussian"``, ``"d-vine"``, ``"r-vine"`` or ``"c-vine"``.
    labels
        The dimensions: a column each, the state and the value of one with missing values or special codes, or the
        parts of a category that one scale cannot hold. Those of the first stratum where there are several.
    notes
        What the user should know: mended correlations, relations that the copula cannot have, pooled strata.
    """

    kind: str
    labels: Sequence[str]
    forms: Mapping[str, Form]
    models: Sequence[Model]
    strata: Strata
    weighted: bool
    notes: Sequence[str]

    def __post_init__(self) -> None:
        self.combining_rule = "pseudo-likelihood" if self.weighted else "simple"

    @property
    def correlation(self) -> pl.DataFrame | None:
        """The latent correlations, of the first stratum where there are several; None for a vine of the library."""
        coupling = self.models[0].coupling
        if not isinstance(coupling, NormalCoupling):
            return None
        return pl.DataFrame(
            {"dimension": self.labels}
            | {label: coupling.correlation[:, at] for at, label in enumerate(self.labels)}
        )

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw one synthetic file, stratum by stratum."""
        sizes, _ = self.strata.divided(n, pl.DataFrame(), stream("strata"))
        parts = []
        for number, (size, model) in enumerate(zip(sizes, self.models, strict=True)):
            if not size:
                continue
            own = stream.child(f"stratum {number}")
            table = model.draw(size, self.forms, own("records"))
            fixed = self.strata.values(number, size, own("values"))
            parts.append(pl.concat([table, fixed], how="horizontal") if fixed.width else table)
        return pl.concat(parts) if len(parts) > 1 else parts[0]
