"""Synthesis by a vine copula: relations built from pairs of columns, given others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError, load_extra, unknown_name
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.copula import fit_d_vine
from discreet.synth import copula_model
from discreet.synth.copula_columns import FAMILIES, Dimension, MarginKind
from discreet.synth.copula_model import FittedCopula
from discreet.synth.synthesizer import Synthesizer, seed_of
from discreet.synth.whole_records import Weights

Structure = Literal["d-vine", "c-vine", "r-vine"]
_FAMILY_SETS = {
    "gaussian": ("indep", "gaussian"),
    "one-parameter": ("indep", "gaussian", "clayton", "gumbel", "frank", "joe"),
    "parametric": (
        "indep", "gaussian", "student", "clayton", "gumbel", "frank", "joe", "bb1", "bb6", "bb7", "bb8", "tawn",
    ),
    "nonparametric": ("indep", "tll"),
}  # fmt: skip
_EDGE = 1e-9
#: A dimension with fewer values a record than this, or with a value more frequent than this, is discrete.
_FEW, _FREQUENT = 0.2, 0.02


@method(
    aim="records",
    work="whole-file",
    references=(
        "Aas, K., Czado, C., Frigessi, A. and Bakken, H. (2009). Pair-copula constructions of multiple "
        "dependence. Insurance: Mathematics and Economics 44(2), 182–198.",
    ),
)
@dataclass(frozen=True)
class VineCopula(Synthesizer):
    """Which records have the same columns, and pairs that go together as much, also within groups of others?

    A vine builds the relations of many columns from pairs: first of neighbors, then of columns given those between
    them. The pairs may bend and lean as they like, where a Gaussian copula knows one shape.

    The D-vine of this package (``pair_copulas="information"``) has Gaussian pairs that are matched to the mutual
    information of neighbors and to the conditional information of the others; it needs no other package. Everything
    else is fitted by pyvinecopulib (``pip install 'discreet[vines]'``).

    Also known as: vine copula; R-vine; D-vine; pair-copula construction.

    Parameters
    ----------
    structure
        ``"d-vine"``: columns along a path; ``"c-vine"``: around one column after the other; ``"r-vine"``: whatever
        tree fits best.
    pair_copulas
        ``"information"`` (D-vines only, and there the default); ``"gaussian"``, ``"one-parameter"`` (default of the
        other structures), ``"parametric"`` (all families; slow), ``"nonparametric"``; or names of families.
    order
        Of a D- or C-vine: ``"greedy"``, from each column to the one it goes with most, ``"given"``, or a list of
        columns. An R-vine finds its own.
    truncate
        Trees above this number are left out: relations given many others are mostly noise. None keeps all.
    discrete
        How the library fits columns of few values: ``"native"`` by the probabilities of their cells, or ``"jitter"``
        by spreading each value over its interval, which is faster and weakens relations.
    max_records
        The library fits at most so many records, evenly spaced; None takes all.
    groups
        Numbers are matched on so many quantile groups, for ``"information"``.
    margins, families, level_order, special_codes, strata, min_stratum, weights, few_values, leave_out
        As in `GaussianCopula`. Missing values and special codes lie below all values of their column here.

    When not to use it
    ------------------
    Do not use it for many columns of many categories: trees (`Sequential`) are faster and follow them better. A
    nonparametric vine with empirical margins comes close to the records it was fitted to; measure before release.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"size": [1, 1, 2, 2, 3, 3] * 50, "kind": ["a", "a", "b", "b", "c", "b"] * 50})
    >>> VineCopula().fit(Microdata(people), seed=1).sample(4, seed=1).frame.shape
    (4, 2)
    """

    structure: Structure = "d-vine"
    pair_copulas: Annotated[str, Public()] | Annotated[Sequence[str], Public()] | None = None
    order: Literal["greedy", "given"] | ColumnNames = "greedy"
    truncate: Annotated[int, AtLeast(0)] | None = 3
    discrete: Literal["native", "jitter"] = "native"
    max_records: Annotated[int, AtLeast(10)] | None = 10_000
    groups: Annotated[int, AtLeast(2)] = 10
    margins: Annotated[MarginKind, Public()] | Annotated[Mapping[str, MarginKind], Public()] = "empirical"
    families: Annotated[Sequence[str], Public()] = FAMILIES
    level_order: Literal["associated", "given"] = "associated"
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    strata: Annotated[Columns, Public()] = None
    min_stratum: int | None = None
    weights: Weights = "use"
    few_values: Annotated[int, AtLeast(0)] = 2
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        if self.pair_copulas is None:
            object.__setattr__(
                self, "pair_copulas", "information" if self.structure == "d-vine" else "one-parameter"
            )
        if isinstance(self.pair_copulas, str) and self.pair_copulas not in ("information", *_FAMILY_SETS):
            raise ParameterError(
                unknown_name(self.pair_copulas, ("information", *_FAMILY_SETS), what="set of pair copulas")
            )
        if self.pair_copulas == "information" and self.structure != "d-vine":
            raise ParameterError(
                f"pair_copulas='information' is for D-vines. Use 'one-parameter' for a {self.structure}."
            )
        if isinstance(self.order, str) and self.order not in ("greedy", "given"):
            raise ParameterError(unknown_name(self.order, ("greedy", "given"), what="order"))
        copula_model.Preparation.of(self).check()

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedCopula:
        """Fit margins and the vine.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            For drawn pairs and jitter.
        progress
            Kept for the signature of all synthesizers.
        """
        own = self.pair_copulas == "information"
        if not own:
            load_extra("pyvinecopulib", extra="vines", purpose=f"A {self.structure} with these pair copulas")
        stream = Stream(seed_of(seed), "vine copula")
        return copula_model.fit_copula(
            data,
            copula_model.Preparation.of(self),
            self._by_information if own else self._by_library,
            kind=self.structure,
            mixed=True,
            stream=stream,
        )

    def _by_information(
        self, dimensions: Sequence[Dimension], weights: Floats | None, stream: Stream
    ) -> tuple[copula_model.Coupling, tuple[str, ...]]:
        coarse = [dimension.grouped(self.groups) for dimension in dimensions]
        found = fit_d_vine(
            [dimension.ranks for dimension in coarse],
            ordered=[dimension.ordered for dimension in coarse],
            weights=weights,
            order=self.order if isinstance(self.order, str) else self._places(dimensions),  # type: ignore[arg-type]
            truncate=self.truncate,
            seed=stream("vine"),
        )
        notes: tuple[str, ...] = ()
        if found.unreached:
            notes = (
                "Pairs of columns that share more information than a Gaussian pair copula can give them: "
                f"{len(found.unreached)}. They come out weaker than they are.",
            )
        return copula_model.NormalCoupling(found.correlation), notes

    def _by_library(
        self, dimensions: Sequence[Dimension], weights: Floats | None, stream: Stream
    ) -> tuple[copula_model.Coupling, tuple[str, ...]]:
        library = load_extra("pyvinecopulib", extra="vines", purpose="A vine copula")
        if len(dimensions) < 2:
            return copula_model.NormalCoupling(np.eye(1)), ()
        size = len(dimensions[0].ranks)
        most = size if self.max_records is None else min(size, self.max_records)
        rows = np.unique(np.linspace(0, size - 1, most).astype(np.int64))
        upper = np.column_stack([np.minimum(np.cumsum(d.shares), 1.0)[d.ranks[rows]] for d in dimensions])
        lower = upper - np.column_stack([d.shares[d.ranks[rows]] for d in dimensions])
        discrete = [len(d.shares) < _FEW * size or float(d.shares.max()) > _FREQUENT for d in dimensions]
        inside = lower + stream("jitter").random(lower.shape) * (upper - lower)
        middle = (lower + upper) / 2
        native = self.discrete == "native"
        columns = [
            upper[:, at] if is_discrete and native else inside[:, at] if is_discrete else middle[:, at]
            for at, is_discrete in enumerate(discrete)
        ]
        if native:
            columns += [lower[:, at] for at, is_discrete in enumerate(discrete) if is_discrete]
        types = ["d" if is_discrete and native else "c" for is_discrete in discrete]
        controls = library.FitControlsVinecop(
            family_set=self._families(library),
            trunc_lvl=len(dimensions) if self.truncate is None else self.truncate,
            weights=np.empty(0) if weights is None else np.ascontiguousarray(weights[rows]),
        )
        table = np.asfortranarray(np.clip(np.column_stack(columns), _EDGE, 1 - _EDGE))
        vine = library.Vinecop.from_data(
            table, controls, structure=self._structure(library, dimensions, middle), var_types=types
        )
        return copula_model.VineCoupling(vine.to_json(), len(dimensions)), ()

    def _families(self, library: Any) -> list[Any]:
        asked = self.pair_copulas
        names = _FAMILY_SETS[asked] if isinstance(asked, str) else tuple(asked or ())
        known = [name for name in dir(library.BicopFamily) if not name.startswith("_")]
        for name in names:
            if name not in known:
                raise ParameterError(unknown_name(name, known, what="pair copula"))
        return [getattr(library.BicopFamily, name) for name in names]

    def _structure(self, library: Any, dimensions: Sequence[Dimension], middle: Floats) -> Any:
        if self.structure == "r-vine":
            return None
        if self.order == "given":
            places = list(range(len(dimensions)))
        elif self.order == "greedy":
            places = _greedy(middle, path=self.structure == "d-vine")
        else:
            places = self._places(dimensions)
        make = library.DVineStructure if self.structure == "d-vine" else library.CVineStructure
        # The library counts from 1, and the root of a C-vine stands last.
        ordered = [place + 1 for place in places]
        return make(ordered if self.structure == "d-vine" else ordered[::-1])

    def _places(self, dimensions: Sequence[Dimension]) -> list[int]:
        labels = [dimension.label for dimension in dimensions]
        for name in self.order:
            if name not in labels:
                raise ParameterError(f"{unknown_name(name, labels)} It was named under order.")
        if sorted(self.order) != sorted(labels):
            raise ParameterError("order must name every column of the copula once.")
        return [labels.index(name) for name in self.order]


def _greedy(uniform: Floats, *, path: bool) -> list[int]:
    """Order columns by rank correlation: along a path, or from the one that goes with all others most."""
    spread = uniform.std(axis=0)
    shifted = (uniform - uniform.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    strength = np.abs(shifted.T @ shifted) / len(uniform)
    np.fill_diagonal(strength, 0.0)
    if not path:
        return [int(at) for at in np.argsort(-strength.sum(axis=0), kind="stable")]
    found = [int(strength.max(axis=1).argmax())]
    while len(found) < len(strength):
        nearness = strength[found[-1]].copy()
        nearness[found] = -1.0
        found.append(int(nearness.argmax()))
    return found
