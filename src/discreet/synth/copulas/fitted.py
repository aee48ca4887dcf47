"""A fitted copula: margins and dependence, one pair a stratum, from which synthetic files are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import load_extra
from discreet.microdata import Microdata
from discreet.numerics.copula import EmpiricalMargin
from discreet.numerics.correlation import root_of
from discreet.synth.column_forms import Form, NumberForm, restored_form
from discreet.synth.copulas.margins import ColumnMargin, given_a_value
from discreet.synth.sequential.stratified import Strata
from discreet.synth.synthesizer import Fitted, Stream

_CHUNK = 50_000  # records drawn at a time
_CALIBRATION = 100_000


class Coupling(ABC):
    """The dependence between the dimensions of a copula."""

    @abstractmethod
    def uniforms(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw n records of dependent uniform numbers."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the dependence for a model file."""

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Coupling:
        """Make the dependence again."""
        if "vine" in state:
            return VineCoupling(state["vine"], state["width"])
        return NormalCoupling(state["correlation"])


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

    def state(self) -> dict[str, Any]:
        """Return the correlations."""
        return {"correlation": self.correlation}


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

    def state(self) -> dict[str, Any]:
        """Return the text."""
        return {"vine": self.vine, "width": self.width}


@dataclass(frozen=True, eq=False)
class Model:
    """The copula of one stratum."""

    margins: Mapping[str, ColumnMargin]
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
                uniform[:, at + 1] = given_a_value(uniform[:, at + 1], states, tie, ordinary)
            columns.append(form.joined(margin.parts(uniform[:, at : at + margin.width], ordinary)))
            at += margin.width
        return pl.DataFrame(columns)


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

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        kind: str,
        labels: Sequence[str],
        forms: Mapping[str, Form],
        models: Sequence[Model],
        strata: Strata,
        weighted: bool,
        notes: Sequence[str],
    ) -> None:
        super().__init__(like, rows)
        self.kind = kind
        self.labels = tuple(labels)
        self.forms = dict(forms)
        self.models = list(models)
        self.strata = strata
        self.weighted = weighted
        self.notes = tuple(notes)
        self.combining_rule = "pseudo-likelihood" if weighted else "simple"

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

    def state(self) -> dict[str, Any]:
        """Return the model for a file; empirical margins hold values of real records."""
        return {
            "kind": self.kind,
            "labels": list(self.labels),
            "forms": {name: form.state() for name, form in self.forms.items()},
            "models": [
                {
                    "margins": {name: margin.state() for name, margin in model.margins.items()},
                    "coupling": model.coupling.state(),
                }
                for model in self.models
            ],
            "strata": self.strata.state(),
            "weighted": self.weighted,
            "notes": list(self.notes),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        models = [
            Model(
                {name: ColumnMargin.restored(margin) for name, margin in model["margins"].items()},
                Coupling.restored(model["coupling"]),
            )
            for model in state["models"]
        ]
        return cls(
            like,
            rows,
            kind=state["kind"],
            labels=state["labels"],
            forms={name: restored_form(form) for name, form in state["forms"].items()},
            models=models,
            strata=Strata.restored(state["strata"]),
            weighted=state["weighted"],
            notes=state["notes"],
        )
