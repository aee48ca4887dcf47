"""A Bayesian network synthesizer: columns in bins, each drawn given a few others, privately if asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast, HoldsValues, Public, Share
from discreet.core.declared_types import all_declared, is_range
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp import rational_epsilon
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import refuse_several_records
from discreet.microdata import Microdata, require_microdata
from discreet.numerics.codes import CodedColumns
from discreet.synth import bayesian_network_model, whole_records
from discreet.synth.bayesian_network_model import CellLaw, FittedBayesianNetwork, Node, WithinBin
from discreet.synth.binned_columns import Attribute, declared_attribute, levels_of, observed_attribute
from discreet.synth.column_forms import as_numbers, check_named, is_numeric, listed
from discreet.synth.sequential.whole_units import units_left_out
from discreet.synth.synthesizer import Synthesizer, empty_like, seed_of

_LONG_TEXT = 0.5
_LEAST_ROWS = 50
_NO_NOISE = "no noise was added (epsilon is 0)."


@method(
    aim="records",
    work="class-wise",
    references=(
        "Zhang, J., Cormode, G., Procopiuc, C. M., Srivastava, D. and Xiao, X. (2017). PrivBayes: private "
        "data release via Bayesian networks. ACM Transactions on Database Systems 42(4), 1–41.",
        "Ping, H., Stoyanovich, J. and Howe, B. (2017). DataSynthesizer: privacy-preserving synthetic "
        "datasets. SSDBM 2017.",
    ),
)
@dataclass(frozen=True)
class BayesianNetwork(Synthesizer):
    """Which records does a small network of dependent columns draw?

    Columns are cut into bins. One after the other they are placed into a network, each with the few columns that say
    most about it (mutual information) as parents, and drawn from its counts given them (PrivBayes: Zhang et al. 2017;
    DataSynthesizer: Ping et al. 2017). With ``epsilon`` the choice and the counts carry noise, and where the fit has no
    seed the synthetic file is differentially private (`discreet.core.guarantees`).

    Also known as: PrivBayes; DataSynthesizer; Bayesian network; greedy Bayes.

    Parameters
    ----------
    parents
        Most columns that one is drawn from. None: 2 without noise; with noise 3, 2 or 1, as many as keep the counts
        useful.
    epsilon
        Privacy budget; 0 adds no noise and gives no guarantee. The guarantee is one for records, so that a file with a
        role ``person`` or ``contributor`` is refused (`MST` and `AIM` bound what a person adds). Half of it pays for
        the structure, half for the counts (a quarter each, and half for the counts, with ``within_bin="histogram2"``).
    domain
        ``{column: [levels]}``, or ``(low, high)`` for a number. With ``epsilon`` every column needs one unless its type
        has it (Enum, Boolean): what is read off the data is not protected. Numbers beyond the range count as its end,
        undeclared levels as missing. Whole ends or levels declare whole numbers and ``(0.0, 1.0)`` decimals: what is
        drawn has the declared types.
    never_missing
        With ``epsilon``: columns that cannot be missing. All others may be, whatever the data say.
    category_threshold
        Numbers with at most this many distinct values are categories.
    bins, bins_by
        Number of bins of other numbers, of equal ``"width"`` or by ``"quantile"`` (each about equally full, at least
        five records). None: by quantile without noise, of equal width with it.
    heap
        A number that this share of the records have is no part of a bin but drawn by itself, so that zeros and other
        piles stay what they are; None looks for none. With ``epsilon`` none is looked for.
    semicontinuous
        ``{column: [values]}``: values at which numbers pile up, drawn by themselves however many have them. With
        ``epsilon`` they count as public, as the domain does.
    within_bin
        Which number of its bin a record gets: ``"uniform"``, any; ``"empirical"``, an observed one; ``"histogram2"``,
        by a histogram ten times finer; ``"spikes+uniform"``, observed ones at which records pile up, any otherwise.
        With ``epsilon`` only the first and the third.
    weights
        ``"use"`` counts every record with its survey weight; ``"ignore"`` counts records. Not with ``epsilon``.
    least_records
        Without noise: where fewer records share the values of the parents, a column is drawn given one parent less, and
        so on. At 1, whoever is alone with them is copied.
    max_cells
        Largest table of a column and its parents.
    structure_rows
        Without noise the structure is learned on at most this many records.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Do not use it for numbers that matter to a digit: uniform draws within bins invent values. Look at the file with
    `discreet.synth.preflight` first: codes of missing values and outliers make bins that hold nearly everybody. Without
    ``epsilon`` there is no guarantee. `Sequential` keeps more, at a similar cost.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "works": [True, False] * 100})
    >>> fitted = BayesianNetwork(parents=1).fit(Microdata(people), seed=1)
    >>> fitted.guarantee is None, fitted.sample(3, seed=1).frame.shape
    (True, (3, 2))
    """

    parents: Annotated[int, AtLeast(1)] | None = None
    epsilon: Annotated[float, AtLeast(0)] = 0.0
    domain: Annotated[Mapping[str, Any], Public()] | None = None
    never_missing: Annotated[Columns, Public()] = None
    category_threshold: Annotated[int, AtLeast(1)] = 20
    bins: Annotated[int, AtLeast(2)] = 20
    bins_by: Literal["width", "quantile"] | None = None
    heap: Annotated[float, Share(above=True)] | None = 0.05
    semicontinuous: Annotated[Mapping[str, Sequence[Any]], HoldsValues(by_column=True)] | None = None
    within_bin: WithinBin = "uniform"
    weights: Literal["use", "ignore"] = "use"
    least_records: Annotated[int, AtLeast(1)] = 5
    max_cells: Annotated[int, AtLeast(4)] = 10_000_000
    structure_rows: Annotated[int, AtLeast(2)] = 100_000
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        if self.epsilon:
            dp.checked_epsilon(self.epsilon)
        if self.epsilon and self.within_bin in ("empirical", "spikes+uniform"):
            raise ParameterError(
                f"epsilon cannot be honored with within_bin='{self.within_bin}', which draws observed values. Use "
                "'uniform' or 'histogram2'."
            )
        if self.epsilon and self.bins_by == "quantile":
            raise ParameterError(
                "epsilon cannot be honored with bins by quantile: they are read off the data."
            )

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedBayesianNetwork:
        """Learn the network and its counts; with a ledger the price is entered before noise is drawn."""
        require_microdata(data)
        if self.epsilon:
            refuse_several_records(data)
        frame = engine.collect(data)
        if self.epsilon:
            frame = all_declared(frame, self.domain or {})
        stream = Stream(seed_of(seed), "bayesian-network", seeded=seed is not None, ledger=ledger, data=data)
        names, keys, left_out = self._columns(data, frame)
        if len(names) < 2:
            raise ParameterError("A network needs at least two columns. Name fewer columns in leave_out.")
        if frame.height < 2:
            raise ParameterError(f"A network needs at least two records; the file has {frame.height}.")
        attributes = [self._attribute(frame[name]) for name in names]
        too_large = [a.name for a in attributes if a.size > self.max_cells]
        if too_large:
            raise ColumnError(
                f"Column '{too_large[0]}' alone has more than max_cells={self.max_cells:,} cells. Leave it out."
            )
        coded = _Coded(
            attributes,
            [attribute.encode(frame[attribute.name]) for attribute in attributes],
            [attribute.size for attribute in attributes],
            self._weights(data, frame),
        )
        budgets = Budgets.of(
            self.epsilon, self.within_bin, has_numbers=any(a.edges is not None for a in attributes)
        )
        budgets.check_drawable(len(names), sum(a.edges is not None for a in attributes))
        stream.enter(claimed(self.epsilon), _NO_NOISE, purpose="synthetic file")
        network = self._structure(coded, budgets.structure, stream.child("structure"))
        joint = shared_table(network) if self.epsilon else 0
        laws = self._laws(network, coded, budgets.counts, joint, stream)
        within = self._within(coded, frame, budgets.bins, stream)
        kept = [name for name in data.columns if name not in left_out]
        fitted = FittedBayesianNetwork(
            empty_like(data, frame.select(kept), levels_of(attributes) if self.epsilon else None),
            frame.height,
            attributes=attributes,
            network=network,
            laws=laws,
            within=within,
            keys={name: frame.schema[name] for name in keys},
            joint=joint,
            left_out=left_out,
        )
        fitted.promise(claimed(self.epsilon), _NO_NOISE, seeded=stream.seeded, ledger=ledger)
        if coded.weights is not None:
            fitted.combining_rule = "pseudo-likelihood"
        return fitted

    def _columns(self, data: Microdata, frame: pl.DataFrame) -> tuple[list[str], list[str], dict[str, str]]:
        """Say which columns are in the network, which are regenerated as keys, and which are left out, and why."""
        given = listed(self.leave_out)
        named = {
            "leave_out": given,
            "domain": self.domain,
            "semicontinuous": self.semicontinuous,
            "never_missing": listed(self.never_missing),
        }
        check_named(named, data.columns)
        left_out = dict.fromkeys(given, "as asked for")
        left_out |= {n: "an identifier" for n in data.roles.identifiers if n not in left_out}
        if data.roles.weight and data.roles.weight not in left_out:
            left_out[data.roles.weight] = "the weight, which synthetic records of a population do not need"
        left_out |= units_left_out(data, None if self.epsilon else frame, left_out)
        names, keys = [], []
        for name in frame.columns:
            if name in left_out:
                continue
            # With noise nothing may depend on how many values there are; the domain decides instead.
            distinct = 0 if self.epsilon else frame[name].n_unique()
            text = frame.schema[name] == pl.String
            if (
                frame.height >= _LEAST_ROWS
                and distinct == frame.height
                and (text or frame.schema[name].is_integer())
            ):
                keys.append(name)
            elif text and frame.height >= _LEAST_ROWS and distinct > _LONG_TEXT * frame.height:
                left_out[name] = "a text that is different in nearly every record"
            else:
                names.append(name)
        return names, keys, left_out

    def _weights(self, data: Microdata, frame: pl.DataFrame) -> Floats | None:
        if data.roles.weight is None or self.weights == "ignore":
            return None
        if self.epsilon:
            raise ParameterError(
                "epsilon cannot be honored with survey weights: one record may then count many times. Set "
                "weights='ignore'."
            )
        return whole_records.weights_of(data, frame)

    def _attribute(self, series: pl.Series) -> Attribute:
        domain = (self.domain or {}).get(series.name)
        ranged = is_range(domain) if self.epsilon else _is_range(domain, series.dtype)
        domain = tuple(domain or ()) if ranged else domain
        never = listed(self.never_missing)
        if self.epsilon or domain is not None:
            missing = series.name in never if self.epsilon else series.null_count() == 0
            return declared_attribute(
                series, domain, bins=self.bins, never_missing=missing, heaps=self._piles(series)
            )
        if series.null_count() == len(series):
            raise ColumnError(f"Column '{series.name}' is missing in every record. Name it under leave_out.")
        return observed_attribute(
            series,
            threshold=self.category_threshold,
            bins=self.bins,
            by=self.bins_by or "quantile",
            heap=self.heap,
            declared=self._piles(series),
        )

    def _piles(self, series: pl.Series) -> Sequence[Any]:
        """The values of a column that were declared to pile up."""
        own = (self.semicontinuous or {}).get(series.name, ())
        if len(own) and not is_numeric(series.dtype):
            raise ColumnError(f"semicontinuous names column '{series.name}', which holds no numbers.")
        return own

    def _structure(self, coded: _Coded, epsilon: float, stream: Stream) -> list[Node]:
        rng = stream()
        codes, weights, records = coded.codes, coded.weights, len(coded.codes[0])
        if not self.epsilon and records > self.structure_rows:
            rows = np.sort(rng.choice(records, size=self.structure_rows, replace=False))
            codes = [own[rows] for own in codes]
            weights = None if weights is None else weights[rows]
        return bayesian_network_model.greedy_network(
            bayesian_network_model.Informations(codes, coded.sizes, weights),
            parents=self.parents
            or bayesian_network_model.automatic_parents(records, len(codes), self.epsilon),
            records=records,
            epsilon=epsilon,
            max_cells=self.max_cells,
            rng=rng,
            words=stream.words("choices"),
        )

    def _laws(
        self, network: Sequence[Node], coded: _Coded, epsilon: float, joint: int, stream: Stream
    ) -> list[CellLaw]:
        """Count every column given its parents; the first ones share a noisy table, which saves budget."""
        tables = len(network) - joint
        # Replacing a record moves one count down and another up: each table changes by 2.
        each = dp.rational_epsilon(epsilon, 2 * tables) if epsilon else None
        columns = CodedColumns(coded.codes, coded.sizes)
        laws = []
        for place in range(joint, len(network)):
            node = network[place]
            words = stream.words("counts", str(place))
            if each is not None and place == joint:
                together = [own.child for own in network[: joint + 1]]
                root = columns.project(together)
                child = root.crossed()
                laws.append(CellLaw.noisy(np.zeros_like(child), child, (1, root.cells), each, words))
                continue
            parents = columns.project(node.parents)
            above = parents.crossed() if node.parents else np.zeros(len(coded.codes[0]), dtype=np.int64)
            child, size = coded.codes[node.child], coded.sizes[node.child]
            if each is not None:
                laws.append(CellLaw.noisy(above, child, (parents.cells, size), each, words))
            else:
                above_sizes = [coded.sizes[parent] for parent in node.parents]
                laws.append(
                    CellLaw.counted(
                        above, child, size, coded.weights, sizes=above_sizes, least=self.least_records
                    )
                )
        return laws

    def _within(
        self, coded: _Coded, frame: pl.DataFrame, epsilon: float, stream: Stream
    ) -> dict[str, bayesian_network_model.BinLaw]:
        pairs = zip(coded.attributes, coded.codes, strict=True)
        numbers = [(attribute, own) for attribute, own in pairs if attribute.edges is not None]
        laws = {}
        for attribute, own in numbers:
            assert attribute.edges is not None
            there = own < attribute.ordinary
            values = as_numbers(frame[attribute.name]).fill_null(0.0).to_numpy()[there]
            laws[attribute.name] = bayesian_network_model.BinLaw.fit(
                np.clip(values, attribute.edges[0], attribute.edges[-1]),
                own[there],
                attribute.edges,
                way=self.within_bin,
                epsilon=dp.rational_epsilon(epsilon, 2 * len(numbers)) if epsilon else None,
                weights=None if coded.weights is None else coded.weights[there],
                words=stream.words("within", attribute.name),
            )
        return laws


@dataclass(frozen=True, eq=False)
class _Coded:
    """The file as codes."""

    attributes: Sequence[Attribute]
    codes: Sequence[Integers]
    sizes: Sequence[int]
    weights: Floats | None


def _is_range(domain: Any, dtype: pl.DataType) -> bool:
    """A plan file has no tuples: two numbers for a column of numbers are its range."""
    if not (is_numeric(dtype) and isinstance(domain, Sequence) and len(domain) == 2):
        return False
    return isinstance(domain, tuple) or not dtype.is_integer()


# How is the privacy budget of a network divided, and what does it guarantee?


@dataclass(frozen=True)
class Budgets:
    """How the privacy budget is divided."""

    structure: float = 0.0
    counts: float = 0.0
    bins: float = 0.0

    @classmethod
    def of(cls, epsilon: float, within_bin: str, *, has_numbers: bool) -> Budgets:
        """Halve it; finer histograms within bins take half of what the structure has."""
        if within_bin == "histogram2" and has_numbers:
            return cls(epsilon / 4, epsilon / 2, epsilon / 4)
        return cls(epsilon / 2, epsilon / 2)

    def check_drawable(self, columns: int, numbers: int) -> None:
        """Refuse a budget whose shares are too small to be drawn exactly, before it is spent.

        How many tables are counted follows from the network; there are never more than columns.
        """
        for share, draws in (
            (self.structure, columns - 1),
            (self.counts, 2 * columns),
            (self.bins, 2 * numbers),
        ):
            if share and draws:
                rational_epsilon(share, draws)


def shared_table(network: Sequence[Node]) -> int:
    """Return the last place whose column and parents are all columns placed so far: one table serves them all."""
    last = 0
    for place, node in enumerate(network):
        if {node.child, *node.parents} == {own.child for own in network[: place + 1]}:
            last = place
        else:
            break
    return last


def claimed(epsilon: float) -> DifferentialPrivacy | None:
    """Return what a network with this budget guarantees; None without noise."""
    if not epsilon:
        return None
    return DifferentialPrivacy(
        epsilon,
        against="the replacement of one record",
        covers=" for the network and its counts, and so for any number of files drawn from it; the number of records "
        "and the declared domain count as public",
        adjacency="replace",
    )
