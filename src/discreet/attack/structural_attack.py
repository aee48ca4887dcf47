"""What does a trained model hold of the people it was trained on? Its parts are read, no attack is needed.

A leaf of a tree says something about the few people in it; a nearest-neighbor model, a support vector machine or a
kernel model carries records of people as they are; a model with nearly as many coefficients as records is the records
in other words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.attack.success import OPINION
from discreet.core.arrays import Array, Floats
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast
from discreet.core.errors import InputError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

SACRO = (
    "Ritchie, F., Tilbrook, A., Cole, C. et al. (2023). Machine learning models in trusted research environments: "
    "understanding operational risks. International Journal of Population Data Science 8(1). "
    "doi:10.23889/ijpds.v8i1.2165"
)
_DEEPEST = 4  # levels of models within models


@measure(
    room="attack",
    title="Model structure",
    headline="of the training records are held or isolated by the model",
    chapter="attackers",
    place=7,
    work="whole-file",
    references=(SACRO, OPINION),
    figures={
        "value": Figure(unit="share", better="lower"),
        "memorized_rows": Figure("Training records that the model carries", better="lower"),
        "memorized_share": Figure(
            "Share of training records that the model carries", unit="share", better="lower"
        ),
        "leaves": Figure("Leaves"),
        "smallest_leaf": Figure("People in the smallest leaf", better="higher"),
        "leaves_below": Figure("Leaves below the threshold", better="lower"),
        "exposed_share": Figure(
            "Training records in a leaf below the threshold", unit="share", better="lower"
        ),
        "model_parameters": Figure("Numbers the model has learned"),
        "degrees_of_freedom": Figure("Records beyond the numbers learned", better="higher"),
    },
)
@checked
def model_structure(
    model: Any, X: Any, y: Any = None, *, threshold: Annotated[int, AtLeast(1)] = 10
) -> Measure:
    """What does a trained model hold of the people it was trained on?

    Also known as: structural attack; SACRO-ML; safemodel.

    Parameters
    ----------
    model
        A fitted scikit-learn estimator, or a pipeline that ends in one.
    X, y
        What it was trained on, as it was given to ``fit``.
    threshold
        The fewest people that a leaf may hold.

    Returns
    -------
    Measure
        ``value`` is the share of training records that the model carries as they are or isolates in a leaf below the
        threshold, in any of its trees; None where its parts cannot be read. ``memorized_rows``, ``memorized_share``;
        ``leaves``, ``smallest_leaf``, ``leaves_below`` and ``exposed_share`` for trees and ensembles;
        ``model_parameters`` and ``degrees_of_freedom`` for linear models and networks. ``detail``: ``trees``.

    How to read it
    --------------
    A model that carries records is microdata and is released as such, or not at all. Leaves below the threshold are
    cells below the threshold: set ``min_samples_leaf``. Few degrees of freedom: the model is the data in other words.

    When not to trust it
    --------------------
    Only what lies in the model is looked for, in the form in which the estimator saw it. A model can have learned
    somebody by heart without carrying the record: `model_membership` tries that.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> model_structure(KNeighborsClassifier().fit(X, y), X, y).figures["memorized_rows"]
    20
    """
    final, seen = _as_seen(model, X)
    rows = len(seen)
    memorized = _memorized(final, seen)
    trees = list(_trees(final, seen))
    exposed = memorized.copy()
    told: list[dict[str, int]] = []
    for place, leaves in enumerate(trees):
        _, at, sizes = np.unique(leaves, return_inverse=True, return_counts=True)
        exposed |= sizes[at] < threshold
        told.append({
            "tree": place, "leaves": len(sizes), "smallest": int(sizes.min()), "below": int((sizes < threshold).sum())
        })  # fmt: skip
    numbers = _parameters(final)
    readable = bool(trees) or bool(memorized.any()) or numbers is not None
    figures = {
        "memorized_rows": int(memorized.sum()),
        "memorized_share": float(memorized.mean()),
        "leaves": sum(one["leaves"] for one in told) if trees else None,
        "smallest_leaf": min(one["smallest"] for one in told) if trees else None,
        "leaves_below": sum(one["below"] for one in told) if trees else None,
        "exposed_share": float(exposed.mean()) if trees else None,
        "model_parameters": numbers,
        "degrees_of_freedom": None if numbers is None else rows - numbers,
    }
    return Measure(
        name="model_structure",
        value=float(exposed.mean()) if readable else None,
        figures=figures,
        meaning=_in_words(type(final).__name__, figures, rows, threshold, readable),
        caveats=[
            "What a model has learned by heart need not lie in it as a record or a leaf; model_membership tries to "
            "tell members from others.",
            *(
                []
                if readable
                else [f"The parts of a {type(final).__name__} cannot be read here: nothing was cleared."]
            ),
        ],
        parameters={"model": type(final).__name__, "threshold": threshold, "records": rows},
        detail=Detail(
            trees=lambda: pl.DataFrame(
                told, schema={"tree": pl.Int64, "leaves": pl.Int64, "smallest": pl.Int64, "below": pl.Int64}
            )
        ),
    )


def _in_words(kind: str, figures: dict[str, Any], rows: int, threshold: int, readable: bool) -> str:
    if not readable:
        return f"Nothing could be read of what this {kind} holds of its {rows:,} training records."
    said = []
    if figures["memorized_rows"]:
        said.append(
            f"carries {figures['memorized_rows']:,} of its {rows:,} training records "
            f"({percent(figures['memorized_share'])})"
        )
    if figures["leaves"] is not None:
        said.append(
            f"has {figures['leaves_below']:,} of {figures['leaves']:,} leaves with fewer than {threshold} people, "
            f"which isolate {percent(figures['exposed_share'])} of them"
        )
    if figures["degrees_of_freedom"] is not None:
        said.append(
            f"has learned {figures['model_parameters']:,} numbers from {rows:,} records, which leaves "
            f"{figures['degrees_of_freedom']:,} degrees of freedom"
        )
    return (
        f"This {kind} {', and it '.join(said) if said else f'carries none of its {rows:,} training records'}."
    )


def _as_seen(model: Any, X: Any) -> tuple[Any, Floats]:
    """Follow a pipeline to its last step, and bring the records into the form in which that step saw them."""
    steps = getattr(model, "steps", None)
    data = X
    if steps:
        for _, step in steps[:-1]:
            if step is not None and step != "passthrough":
                data = step.transform(data)
        model = steps[-1][1]
    return model, as_matrix(data)


def as_matrix(data: Any) -> Floats:
    """Write records as numbers, one line each; what is no number has no place in a fitted model's memory."""
    plain = data.toarray() if hasattr(data, "toarray") else data
    plain = plain.to_numpy() if hasattr(plain, "to_numpy") else np.asarray(plain)
    if plain.ndim != 2 or not len(plain):
        raise InputError("X must be a table with one line a training record.")
    try:
        return np.ascontiguousarray(plain, dtype=np.float64)
    except (TypeError, ValueError):
        codes = [np.unique(column.astype(str), return_inverse=True)[1] for column in plain.T]
        return np.column_stack(codes).astype(np.float64)


def _memorized(model: Any, seen: Floats) -> Array:
    """Find the training records that stand in an array of the model, as the model saw them."""
    known = _keys(seen)
    found = np.zeros(len(seen), dtype=bool)
    for part in _parts(model):
        for held in vars(part).values() if hasattr(part, "__dict__") else ():
            table = held.toarray() if hasattr(held, "toarray") and hasattr(held, "shape") else held
            is_table = isinstance(table, np.ndarray) and table.ndim == 2 and table.dtype.kind in "fiu"
            if is_table and len(table) and table.shape[1] == seen.shape[1]:
                found |= np.isin(known, _keys(table.astype(np.float64)))
    return found


def _keys(table: Floats) -> Array:
    """Write each line as one value that can be looked up."""
    plain = np.ascontiguousarray(table + 0.0)
    return np.asarray(plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel())


def _parts(model: Any, depth: int = 0) -> Iterator[Any]:
    """Give the model and the models it is made of; an ensemble of many is looked at one by one."""
    yield model
    if depth >= _DEEPEST or not hasattr(model, "__dict__"):
        return
    for name, held in vars(model).items():
        inside = held.ravel().tolist() if isinstance(held, np.ndarray) and held.dtype == object else held
        inside = list(inside.values()) if isinstance(inside, dict) else inside
        several = inside if isinstance(inside, list | tuple) else [inside]
        for one in several:
            part = one[1] if isinstance(one, tuple) and len(one) > 1 else one
            if hasattr(part, "fit") and name.endswith("_"):
                yield from _parts(part, depth + 1)


def _trees(model: Any, seen: Floats) -> Iterator[Array]:
    """Say for every tree in which leaf each training record ends."""
    for part in _parts(model):
        if hasattr(part, "tree_") and hasattr(part, "apply"):
            yield part.apply(seen.astype(np.float32))
        elif hasattr(part, "_predictors") and hasattr(part, "_bin_mapper"):
            yield from _histogram_leaves(part, seen)


def _histogram_leaves(model: Any, seen: Floats) -> Iterator[Array]:
    """Walk the training records down the trees of histogram boosting, whose leaves have no names."""
    for group in model._predictors:
        for predictor in group:
            nodes = predictor.nodes
            at = np.zeros(len(seen), dtype=np.int64)
            if nodes["is_categorical"].any():
                # Sets of levels are kept in bits. How many are in each leaf is kept as well; who, is not needed to
                # count them. Records that were set aside in training are put with the most.
                counts = nodes["count"][nodes["is_leaf"].astype(bool)].astype(np.int64)
                leaves = np.full(len(seen), int(counts.argmax()), dtype=np.int64)
                filled = np.repeat(np.arange(len(counts)), counts)[: len(seen)]
                leaves[: len(filled)] = filled
                yield leaves
                continue
            for _ in range(int(nodes["depth"].max()) + 1):
                node = nodes[at]
                values = seen[np.arange(len(seen)), node["feature_idx"].astype(np.int64)]
                left = np.where(
                    np.isnan(values), node["missing_go_to_left"].astype(bool), values <= node["num_threshold"]
                )
                step = np.where(left, node["left"], node["right"]).astype(np.int64)
                at = np.where(node["is_leaf"].astype(bool), at, step)
            yield at


def _parameters(model: Any) -> int | None:
    """Count the numbers that a linear model or a network has learned; None for others."""
    if hasattr(model, "coefs_") and hasattr(model, "intercepts_"):
        return int(sum(np.size(part) for part in (*model.coefs_, *model.intercepts_)))
    if hasattr(model, "coef_") and not hasattr(model, "support_vectors_"):
        return int(np.size(model.coef_) + np.size(getattr(model, "intercept_", ())))
    return None
