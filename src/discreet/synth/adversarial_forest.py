"""Synthesis by an adversarial random forest (Watson, Blesch, Kapar and Wright 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Array, Flags, Floats
from discreet.core.constraints import AtLeast, Between, HoldsValues, Public
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth.adversarial_forest_leaves import Contest, Leaves, leaves_of
from discreet.synth.column_forms import CategoryForm
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Stream, Synthesizer, seed_of
from discreet.synth.whole_records import FittedRecords, Weights, prepare


@method(
    aim="records",
    work="whole-file",
    references=(
        "Watson, D. S., Blesch, K., Kapar, J. and Wright, M. N. (2023). Adversarial random forests for density "
        "estimation and generative modeling. Proceedings of Machine Learning Research 206, 5357–5375.",
    ),
)
@dataclass(frozen=True)
class AdversarialForest(Synthesizer):
    """Which records can a forest not tell from the real ones?

    A forest learns to tell the records from others whose columns were drawn independently; then from others whose
    columns were drawn independently within the leaves of the last forest; and so on, until it cannot tell them apart.
    Within the leaves of that last forest columns have next to nothing to do with each other, so that a record is drawn
    by choosing a tree, a leaf of it in the share of its real records, and every column by itself.

    Parameters
    ----------
    trees
        How many trees each forest has.
    min_leaf
        The fewest real records in a leaf; leaves with fewer are joined to their neighbors.
    delta
        The contest ends when the forest is right, on records it was not grown on, in at most 0.5 + delta of the cases.
    max_rounds
        How many forests are grown at most; also how often records that break a constraint are drawn again.
    numbers
        What a leaf knows of a number: ``"normal"`` its mean and spread, within the borders of the leaf; ``"uniform"``
        its borders only; ``"observed"`` the values of its records, which are then values of people.
    special_codes, semicontinuous
        ``{column: [values]}``: codes that are no numbers (-8 for "refused"), and values at which numbers pile up; a
        value that a fifth of the records have is found without being named.
    constraints
        Rules that every record keeps (see `check_rules`): columns that they define are computed, broken inequalities
        mended, and records that break others drawn again.
    weights
        ``"use"`` weights everything by the survey weights, so that the synthetic file is like a simple random sample of
        the population; ``"ignore"`` leaves them aside. The synthetic file has no weights.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Where relations are close (a total and its parts, rules between columns), leaves are too coarse: write them as
    constraints, or take `Sequential`. Do not take the result for anonymous; measure it.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> fitted = AdversarialForest(trees=5).fit(Microdata(people), seed=1)
    >>> fitted.sample(4, given={"sex": "f"}, seed=1).frame["size"].to_list()
    [160, 160, 160, 160]
    """

    trees: Annotated[int, AtLeast(1)] = 30
    min_leaf: Annotated[int, AtLeast(1)] = 5
    delta: Annotated[float, Between(0, 0.5, below=True)] = 0.0
    max_rounds: Annotated[int, AtLeast(1)] = 10
    numbers: Literal["normal", "uniform", "observed"] = "normal"
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    semicontinuous: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    constraints: Annotated[Sequence[str], HoldsValues(in_expressions=True)] = ()
    weights: Weights = "use"
    few_values: int = 2
    leave_out: Annotated[Columns, Public()] = None

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedForest:
        """Run the contest and keep what the leaves of the last forest hold.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            Of the trees and of the records they are held against.
        progress
            Show how far it is, on a terminal.
        """
        file = prepare(self, data)
        stream = Stream(seed_of(seed), "adversarial forest")
        contest = Contest(file.variables, file.blueprint.widths, file.weights)
        forest, accuracies = contest.run(
            trees=self.trees,
            min_leaf=self.min_leaf,
            good_enough=0.5 + self.delta,
            max_rounds=self.max_rounds,
            stream=stream,
            progress=progress,
        )
        leaves = leaves_of(
            forest,
            contest.codes,
            variables=file.variables,
            widths=file.blueprint.widths,
            weights=file.weights,
            min_leaf=self.min_leaf,
            kind=self.numbers,
        )
        return FittedForest(
            file.like,
            file.rows,
            blueprint=file.blueprint,
            leaves=leaves,
            accuracies=accuracies,
            left_out=file.left_out,
            weighted=file.weights is not None,
        )


@stored("fitted-forest")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedForest(FittedRecords):
    """A forest that was fitted.

    Attributes
    ----------
    leaves
        What the leaves of all trees know.
    accuracies
        How often each forest of the contest was right on records it was not grown on: 0.5 is no better than chance.
    """

    leaves: Leaves
    accuracies: Sequence[float]

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Choose leaves, those that are likely to hold what was asked for where something was; then every column."""
        places = self._categories()
        likely: Floats | None = None
        for name, codes in wanted.items():
            own = self.leaves.likely(places[name], codes)
            likely = own if likely is None else likely * own
        leaves = self.leaves.chosen(n, likely, stream("leaves"))
        parts: list[Array] = []
        category = number = 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            rng = stream("column", name)
            if isinstance(form, CategoryForm):
                only = None
                if name in wanted:
                    only = wanted[name][self.leaves.codes[self.leaves.rows, category]].astype(np.float64)
                donors = self.leaves.donors(leaves, rng, only)
                parts.append(self.leaves.codes[donors, category])
                category += 1
                continue
            donors = self.leaves.donors(leaves, rng)
            if width == 2:
                parts.append(self.leaves.codes[donors, category])
                category += 1
            observed = self.leaves.values.shape[1] > 0
            parts.append(
                self.leaves.values[donors, number] if observed else self.leaves.numbers(number, leaves, rng)
            )
            number += 1
        return parts

    def _categories(self) -> dict[str, int]:
        """Say in which column of the codes each category stands; states of numbers stand among them."""
        found, at = {}, 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            if isinstance(form, CategoryForm):
                found[name] = at
                at += 1
            elif width == 2:
                at += 1
        return found
