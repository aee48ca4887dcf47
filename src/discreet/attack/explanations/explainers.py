"""Who explains? The methods of this room, an explainer of the ``shap`` package, or any function of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from discreet.attack.explanations.shapley import Method, Predict, explain
from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError, load_extra, unknown_name
from discreet.core.number_arrays import called
from discreet.core.parameters import checked

Explainer = Method | Callable[[Predict, Floats, Floats], Any] | Any

ShapKind = Literal["exact", "permutation", "linear", "tree"]


@dataclass(frozen=True)
class Explained:
    """Explanations of one set of records, and whether they were estimated."""

    values: Floats
    approximate: bool


@dataclass(frozen=True)
class Explaining:
    """One way of explaining, asked about several sets of records."""

    explainer: Explainer
    predict: Predict
    reference: Floats
    groups: Sequence[Sequence[int]] | None = None
    permutations: int = 64
    force: bool = False
    allow_nan: bool = False
    seed: int | None = None

    @property
    def label(self) -> str:
        """What a table calls it."""
        if isinstance(self.explainer, str):
            return self.explainer
        return getattr(self.explainer, "__name__", type(self.explainer).__name__)

    def of(self, records: Floats) -> Explained:
        """Explain records: one row each, one column a feature and class."""
        if isinstance(self.explainer, str):
            if self.explainer not in get_args(Method):
                raise ParameterError(unknown_name(self.explainer, get_args(Method), what="explainer"))
            found = explain(
                self.predict,
                records,
                self.reference,
                self.explainer,  # type: ignore[arg-type]
                groups=self.groups,
                permutations=self.permutations,
                force=self.force,
                allow_nan=self.allow_nan,
                seed=self.seed,
            )
            return Explained(found.values, found.approximate)
        if hasattr(self.explainer, "shap_values"):
            answer = called(self.explainer.shap_values, "explainer", records)
        elif callable(self.explainer):
            answer = called(self.explainer, "explainer", self.predict, records, self.reference)
        else:
            raise ParameterError(
                f"explainer must be one of {', '.join(map(repr, get_args(Method)))}, an explainer of the package shap, "
                "or a function of the model, the records and the references."
            )
        # Nobody but the explainer knows whether it is exact; it counts as an estimate.
        return Explained(self._by_feature(_flat(answer, len(records))), approximate=True)

    def _by_feature(self, values: Floats) -> Floats:
        """Add up the columns of a group, where an explainer knows nothing of groups."""
        columns = self.reference.shape[1]
        if values.shape[1] % columns:
            players = columns if self.groups is None else len(self.groups)
            if values.shape[1] % players:
                raise ParameterError(
                    f"The explainer gave {values.shape[1]} numbers a record for {columns} columns; it must give one a "
                    "column, or one a column and class."
                )
            return values
        if self.groups is None:
            return values
        cube = values.reshape(len(values), -1, columns)
        parts = [cube[:, :, list(group)].sum(axis=2) for group in self.groups]
        return np.stack(parts, axis=2).reshape(len(values), -1)


@checked
def shap_explainer(
    kind: ShapKind, *, model: Any = None, seed: int | None = None, **options: Any
) -> Callable[[Predict, Floats, Floats], Floats]:
    """How do I let the package ``shap`` explain?

    Parameters
    ----------
    kind
        Which of its explainers. ``tree`` and ``linear`` look into the model itself. Any other explainer of shap can be
        given as ``explainer=`` as it is, once made for a model and a background.
    model
        The fitted model, for ``tree`` and ``linear``; the others ask ``predict``.
    seed
        For ``permutation``.
    options
        Handed to the call of the explainer, e.g. ``max_evals``.

    Returns
    -------
    A function to be given as ``explainer=``.

    Examples
    --------
    >>> shap_explainer("exact").__name__
    'shap exact'
    """
    if kind not in get_args(ShapKind):
        raise ParameterError(unknown_name(str(kind), get_args(ShapKind), what="explainer of shap"))
    if kind in ("tree", "linear") and model is None:
        raise ParameterError(f"The {kind} explainer of shap looks into the model: give it as model=.")

    def explained(predict: Predict, records: Floats, reference: Floats) -> Floats:
        shap = load_extra("shap", extra="dev", purpose="Explaining with shap")
        if kind == "tree":
            made = shap.TreeExplainer(model, reference).shap_values(records, check_additivity=False)
            return _flat(made, len(records))
        if kind == "linear":
            return _flat(shap.LinearExplainer(model, reference).shap_values(records), len(records))
        masker = shap.maskers.Independent(reference, max_samples=len(reference))
        if kind == "exact":
            return _flat(shap.explainers.Exact(predict, masker)(records, **options).values, len(records))
        maker = shap.explainers.Permutation(predict, masker, seed=seed)
        return _flat(maker(records, silent=True, **options).values, len(records))

    explained.__name__ = f"shap {kind}"
    return explained


def _flat(answer: Any, records: int) -> Floats:
    """One row a record, whatever form an explainer gives its answer: a list of classes, a cube, an object around it."""
    given = getattr(answer, "values", answer)
    try:
        cube = np.stack(given, axis=2) if isinstance(given, list) else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError("The explainer must give numbers, one row a record.") from error
    if cube.ndim not in (2, 3) or len(cube) != records:
        raise ParameterError(f"The explainer must give one row a record: {records:,} rows.")
    if not np.isfinite(cube).all():
        raise ParameterError("The explainer gave values that are NaN or infinite.")
    return cube if cube.ndim == 2 else cube.transpose(0, 2, 1).reshape(records, -1)
