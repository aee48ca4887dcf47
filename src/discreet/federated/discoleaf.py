"""One readable tree over sites that do not pool rows: common bins, randomized values, local trees, one merged tree.

Each site bins numbers on a range that all agree on, exchanges every value at random with known chances (`protect.Pram`,
the one implementation), grows a shallow tree on what is left, and sends the tree. The merged tree votes like all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import check_fields, checked
from discreet.core.randomness import Seed
from discreet.federated.leakage import Leakage, Learned
from discreet.federated.masking import child_seed
from discreet.federated.merged_trees import MergedTree, Tree, as_tree, merge_trees
from discreet.federated.parties import as_frame, coded_by
from discreet.federated.randomized_bins import (
    bin_codes,
    bin_edges,
    freedman_diaconis_bins,
    invariant_pram_epsilon,
    public_matrix,
    threshold_of,
)
from discreet.federated.ranked_elements import robust_range
from discreet.microdata import Microdata
from discreet.protect import Pram

_MISSING = "(missing)"
_OF_COUNTS = {
    "own": "Epsilon is local, for a fixed and public matrix. The matrices were made from each site's own counts, "
    "which costs more than it says.",
    "noisy": "Epsilon counts both the exchange of a value and the noisy counts of its column, from which the "
    "matrix was made.",
    "prior": "The matrices were made from public counts: epsilon is all that a record pays for its own values.",
}
PerColumn = float | Mapping[str, float]


@dataclass(frozen=True)
class Discoleaf:
    """Which readable tree do the sites agree on?

    Also known as: DISCOLEAF; personalized discretization; federated decision trees.

    Parameters
    ----------
    target
        The class to predict.
    continuous, categorical
        The columns that predict it.
    bins
        ``"fd"`` (Freedman and Diaconis, by each site's own rows), a number, or ``{column: number}``.
    theta
        Strength of the randomization, one number or ``{column: number}``; 0.3 and more leaves little of a tree.
    epsilon
        Instead of theta, the local epsilon of each column.
    max_depth
        Depth of the local trees.
    protect_target
        Randomize the class too. Otherwise it is not protected, and the result says so.
    share
        The common range lies between these shares of all values; the exact extremes ``(0, 1)`` are each the value of
        one person.
    precision
        The step of values in the search for the range, one number or ``{column: number}``.
    coding
        Categories as ``"one-hot"`` columns, or as ``"integer"`` codes in sorted order.
    counts
        What the chances of the randomization are made from. ``"own"``: each site's own counts, which the matrix then
        gives away. ``"noisy"``: counts of each site with Laplace noise of ``counts_epsilon``. Or a public prior,
        ``{column: {level or bin: count}}``, the same at every site and known without the data; bins are numbered from
        0, and what it does not name counts as a quarter of the average.
    counts_epsilon
        With ``counts="noisy"``: what the counts of each column cost.
    backend
        How ranks are found (`ranked_element`).
    max_bins, max_nodes
        Caps.

    References
    ----------
    Kwatra, S. and Torra, V. (2024). DISCOLEAF: personalized discretization of continuous attributes for learning
    with federated decision trees. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915.
    doi:10.1007/978-3-031-69651-0
    """

    target: str
    continuous: Sequence[str] = ()
    categorical: Sequence[str] = ()
    bins: Literal["fd"] | int | Mapping[str, int] = "fd"
    theta: PerColumn = 0.1
    epsilon: PerColumn | None = None
    max_depth: int = 3
    protect_target: bool = False
    share: tuple[float, float] = (0.01, 0.99)
    precision: PerColumn = 1.0
    coding: Literal["one-hot", "integer"] = "one-hot"
    backend: Literal["plain", "simulated-shares", "mpyc"] = "simulated-shares"
    counts: Literal["own", "noisy"] | Mapping[str, Mapping[Any, float]] = "own"
    counts_epsilon: float = 1.0
    max_bins: int = 50
    max_nodes: int = 100_000

    def __post_init__(self) -> None:
        check_fields(self)
        names = [*self.continuous, *self.categorical]
        if not names:
            raise ParameterError("Name columns that predict the class: continuous, categorical or both.")
        if len(set(names)) != len(names) or self.target in names:
            raise ParameterError("A column is continuous, categorical or the target, and stands once.")
        thetas = self.theta.values() if isinstance(self.theta, Mapping) else [self.theta]
        if any(not 0 <= one <= 1 for one in thetas):
            raise ParameterError("theta must lie between 0 and 1.")
        if self.max_depth < 1 or self.max_bins < 1:
            raise ParameterError("max_depth and max_bins must be at least 1.")

    def fit(self, clients: Any, *, seed: Seed = None) -> DiscoleafFit:
        """Run all steps over the tables of the sites."""
        frames = [as_frame(client) for client in clients]
        self._check(frames)
        ranges = {name: self._range(frames, name, seed) for name in self.continuous}
        levels = {name: _levels(frames, name) for name in (*self.categorical, self.target)}
        sites = []
        for at, frame in enumerate(frames):
            sites.append(self._site(frame, ranges, levels, child_seed(seed, "client", str(at))))
        merged = merge_trees([site.tree for site in sites], max_nodes=self.max_nodes, too_large="vote")
        return DiscoleafFit(self, merged, tuple(sites), ranges, levels, self._told(len(frames), sites))

    def _check(self, frames: list[pl.DataFrame]) -> None:
        if not frames:
            raise ParameterError("There are no clients.")
        wanted = [*self.continuous, *self.categorical, self.target]
        for at, frame in enumerate(frames):
            if not frame.height:
                raise ParameterError(f"Client {at + 1} has no rows.")
            for name in wanted:
                need_known([name], frame.columns, before=f"Client {at + 1}: ")
                if name in self.continuous and not frame[name].dtype.is_numeric():
                    raise ColumnError(
                        f"Client {at + 1}: '{name}' is named continuous and does not hold numbers."
                    )
                if frame[name].dtype.is_numeric() != frames[0][name].dtype.is_numeric():
                    raise ColumnError(f"'{name}' holds numbers at some clients and other values at others.")
            if frame[self.target].null_count():
                raise ColumnError(
                    f"Client {at + 1}: '{self.target}' has missing values. Leave these rows out."
                )

    def _range(self, frames: list[pl.DataFrame], name: str, seed: Seed) -> tuple[float, float]:
        step = _of(self.precision, name, 1.0)
        parties = []
        for frame in frames:
            known = frame[name].drop_nulls().cast(pl.Float64).drop_nans().to_numpy()
            parties.append(np.rint(known / step) * step)
        if not any(len(one) for one in parties):
            raise ColumnError(f"'{name}' has no values at any client.")
        if len(parties) == 1:
            low, high = np.quantile(parties[0], self.share, method="inverted_cdf")
        else:
            domain = (-(2**31) * step, (2**31 - 1) * step)
            low, high = robust_range(
                parties, self.share, domain=domain, precision=step, backend=self.backend, seed=seed
            )  # fmt: skip
        return float(low), float(high)

    def _site(
        self,
        frame: pl.DataFrame,
        ranges: Mapping[str, tuple[float, float]],
        levels: Mapping[str, list[Any]],
        seed: int | None,
    ) -> Site:
        """Everything that one site does with its own rows."""
        from sklearn.tree import DecisionTreeClassifier

        columns: dict[str, pl.Series] = {}
        edges: dict[str, Floats] = {}
        rules: dict[str, str] = {}
        for name in self.continuous:
            values = frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            many, rules[name] = self._bins(values, name)
            low, high = ranges[name]
            edges[name] = bin_edges(low, high, many if high > low else 1)
            columns[name] = pl.Series(name, bin_codes(values, edges[name]))
        for name in (*self.categorical, self.target):
            columns[name] = pl.Series(name, _codes(frame[name], levels[name]))
        coded = pl.DataFrame(columns)
        hidden = [*self.continuous, *self.categorical, *([self.target] if self.protect_target else [])]
        strength: dict[str, Any] = (
            {"theta": {name: _of(self.theta, name, 0.1) for name in hidden}}
            if self.epsilon is None
            else {"epsilon": {name: _of(self.epsilon, name, 1.0) for name in hidden}}
        )
        if self.counts != "own":
            bins = {name: len(own) - 1 for name, own in edges.items()}
            strength = {
                "matrix": self._matrices(coded, hidden, bins, levels, strength, seed),
                "invariant": False,
            }
        release = Pram(columns=hidden, **strength).apply(Microdata(coded), seed=seed)
        drawn = release.data.frame
        said = {**release.log[0].parameters, **release.log[0].internal}
        paid = self.counts_epsilon if self.counts == "noisy" else 0.0
        epsilons = {str(name): float(value) + paid for name, value in said["local_epsilon"].items()}
        design, names = self._design(drawn, levels)
        grown = DecisionTreeClassifier(criterion="gini", max_depth=self.max_depth, random_state=0)
        grown.fit(design, drawn[self.target].to_numpy())
        tree = _on_values(as_tree(grown, names), edges)
        return Site(frame.height, tree, epsilons, edges, rules, drawn)

    def _matrices(  # noqa: PLR0917
        self, coded: pl.DataFrame, hidden: Sequence[str], bins: Mapping[str, int],
        levels: Mapping[str, list[Any]], strength: Mapping[str, Any], seed: int | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Make chances that tell nothing exact about a site, over all codes whether they occur or not."""
        return {
            name: public_matrix(
                coded[name].to_numpy(), [-1, *range(bins[name])] if name in bins else list(range(len(levels[name]))),
                labels=None if name in bins else levels[name], prior=self._prior(name),
                counts_epsilon=self.counts_epsilon, seed=seed,
                **{kind: own[name] for kind, own in strength.items()},
            )
            for name in hidden
        }  # fmt: skip

    def _prior(self, name: str) -> Mapping[Any, float] | None:
        if not isinstance(self.counts, Mapping):
            return None
        if name not in self.counts:
            raise ParameterError(f"counts names no public counts of '{name}', which is randomized.")
        return self.counts[name]

    def _bins(self, values: Floats, name: str) -> tuple[int, str]:
        if self.bins == "fd":
            known = values[np.isfinite(values)]
            return freedman_diaconis_bins(known, max_bins=self.max_bins) if len(known) else (1, "empty")
        many = self.bins.get(name) if isinstance(self.bins, Mapping) else self.bins
        if not isinstance(many, int) or many < 1:
            raise ParameterError(f"bins must name a number of at least 1 for '{name}'.")
        return many, "given"

    def _design(self, drawn: pl.DataFrame, levels: Mapping[str, list[Any]]) -> tuple[Floats, list[str]]:
        made = {name: drawn[name].to_numpy().astype(np.float64) for name in self.continuous}
        for name in self.categorical:
            made |= self.columns_of(name, drawn[name].to_numpy(), len(levels[name]))
        return np.column_stack(list(made.values())), list(made)

    def columns_of(self, name: str, codes: Array, levels: int) -> dict[str, Array]:
        """Write the codes of a category as the columns that a tree is grown on."""
        if self.coding == "integer":
            return {name: codes.astype(np.float64)}
        return {f"{name}={at}": (codes == at).astype(np.float64) for at in range(levels)}

    def _told(self, many: int, sites: list[Site]) -> Leakage:
        notes = [
            _OF_COUNTS["prior" if isinstance(self.counts, Mapping) else self.counts],
            "Columns of a record add up; the tree that a site sends is made from randomized values only.",
        ]
        if not self.protect_target:
            notes.append(f"'{self.target}' was not randomized: the class of a record is not protected.")
        learned = [
            Learned("server", f"client {at + 1}", f"server learns the tree of client {at + 1}, made from values "
                    f"that were exchanged with a local epsilon of {sum(site.epsilons.values()):.4g} for a record")
            for at, site in enumerate(sites)
        ]  # fmt: skip
        if self.continuous and many > 1:
            learned.append(Learned("every client", "the others", "every client learns the common range of each number, "
                                   "and the outcomes of the comparisons that found it"))  # fmt: skip
        return Leakage("discoleaf", tuple(learned), (), tuple(notes))


@dataclass(frozen=True)
class Site:
    """What came out at one site; ``protected`` is its randomized table, which stays there unless it is asked for."""

    rows: int
    tree: Tree
    epsilons: Mapping[str, float]
    edges: Mapping[str, Floats] = field(repr=False)
    bin_rules: Mapping[str, str] = field(repr=False)
    protected: pl.DataFrame = field(repr=False)


@dataclass(frozen=True)
class DiscoleafFit:
    """The merged tree, with the epsilon of every column and site."""

    settings: Discoleaf
    merged: MergedTree
    sites: tuple[Site, ...]
    ranges: Mapping[str, tuple[float, float]]
    levels: Mapping[str, list[Any]] = field(repr=False)
    leakage: Leakage = field(repr=False)

    @property
    def epsilon_of_record(self) -> float:
        """The largest sum of epsilons over the columns of a record, over sites."""
        return max(sum(site.epsilons.values()) for site in self.sites)

    def predict(self, data: Any) -> list[Any]:
        """Predict the class of every row of a table in the form of the sites' own."""
        return self._predicted(self.merged, data)

    def vote(self, data: Any) -> list[Any]:
        """Let the local trees vote, row by row: what the merged tree must give."""
        voting = MergedTree(None, tuple(site.tree for site in self.sites), (1.0,) * len(self.sites))
        return self._predicted(voting, data)

    def _predicted(self, tree: MergedTree, data: Any) -> list[Any]:
        codes = tree.predict(self._coded(as_frame(data)))
        return [self.levels[self.settings.target][int(code)] for code in codes]

    def quality(self, data: Any) -> dict[str, float]:
        """Say how well the tree predicts a table: accuracy, and precision, recall and F1 averaged over classes."""
        from sklearn.metrics import accuracy_score, precision_recall_fscore_support

        frame = as_frame(data)
        truth = frame[self.settings.target].to_list()
        found = self.predict(frame)
        as_text = [list(map(str, one)) for one in (truth, found)]
        precision, recall, f1, _ = precision_recall_fscore_support(
            *as_text, average="macro", zero_division=0.0
        )
        return {"accuracy": float(accuracy_score(*as_text)), "precision": float(precision), "recall": float(recall),
                "f1": float(f1)}  # fmt: skip

    def _coded(self, frame: pl.DataFrame) -> dict[str, Array]:
        made: dict[str, Array] = {}
        for name in self.settings.continuous:
            values = frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
            low, high = self.ranges[name]
            made[name] = np.where(np.isnan(values), -np.inf, np.clip(values, low, high))
        for name in self.settings.categorical:
            codes = _codes(frame[name], self.levels[name])
            made |= self.settings.columns_of(name, codes, len(self.levels[name]))
        return made


@checked
def record_epsilon(counts: Mapping[str, Sequence[float]], theta: PerColumn) -> dict[str, float]:
    """Which local epsilon has each column of a record, and all of them together (under ``record``)?

    Examples
    --------
    >>> found = record_epsilon({"sex": [21790, 10771], "job": [50, 30, 20]}, 0.1)
    >>> {name: round(value, 4) for name, value in found.items()}
    {'sex': 2.9018, 'job': 3.843, 'record': 6.7448}
    """
    found = {name: invariant_pram_epsilon(own, _of(theta, name, 0.1)) for name, own in counts.items()}
    return {**found, "record": sum(found.values())}


def _on_values(tree: Tree, edges: Mapping[str, Floats]) -> Tree:
    """Bring thresholds between bin codes to the scale of the values, where the trees of all sites can be compared."""
    if not isinstance(tree, tuple):
        return tree
    name, threshold, left, right = tree
    if name in edges:
        threshold = threshold_of(int(np.floor(threshold)), edges[name])
    return (name, threshold, _on_values(left, edges), _on_values(right, edges))


def _levels(frames: list[pl.DataFrame], name: str) -> list[Any]:
    found = {
        _MISSING if value is None else value for frame in frames for value in frame[name].unique().to_list()
    }
    return sorted(found, key=str)


def _codes(series: pl.Series, levels: list[Any]) -> Array:
    place = {level: at for at, level in enumerate(levels)}
    return coded_by(series, lambda value: place.get(_MISSING if value is None else value, -1))


def _of(given: PerColumn, name: str, otherwise: float) -> float:
    return float(given.get(name, otherwise)) if isinstance(given, Mapping) else float(given)
