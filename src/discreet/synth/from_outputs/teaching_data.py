"""Microdata on which published analyses reproduce, made without access to the original.

`Raking` gives weights that bring such a file to the margins of a population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.constraints import Above, AtLeast, Entries, HoldsValues, Public, Share
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.files.untrusted import read_toml
from discreet.core.method_cards import made_from, method
from discreet.core.parameters import typed_parameters
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.values import jsonable
from discreet.dp.entropy import Stream
from discreet.io.sidecar import save_text
from discreet.microdata import Microdata
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins
from discreet.synth.from_outputs.bound_targets import LossScale
from discreet.synth.from_outputs.codebook import Codebook, Variable, empty_file
from discreet.synth.from_outputs.fitted_outputs import FittedOutputs, Run
from discreet.synth.from_outputs.output_search import Source, evolved, ticks_for
from discreet.synth.from_outputs.published_targets import Target
from discreet.synth.from_outputs.starting_file import Preparation, SwapStart
from discreet.synth.saved_models import stored_as
from discreet.synth.synthesizer import Synthesizer, seed_of

SCHEDULE = (0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00005, 0.00001, 0.000005)


@method(
    aim="published results",
    references=(
        "Elliot, M., Little, C. and Allmendinger, R. (2024). The production of bespoke synthetic teaching "
        "datasets without access to the original data. Privacy in Statistical Databases, LNCS 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class FromOutputs(Synthesizer):
    """Make microdata on which published analyses reproduce, from a codebook and the results alone.

    No original record is needed, so nothing beyond the published results is used. Students can practice on the file
    before they enter a secure lab; and if a file made from results alone lets somebody learn about individuals, the
    results themselves are risky.

    Also known as: bespoke teaching data; data from published outputs; simulated annealing.

    Parameters
    ----------
    codebook
        The variables, their allowed values and published margins.
    targets
        Published results: `Frequencies`, `CrossTab`, `LogitCoefs`, `LinearCoefs`, `CondMean`, `CondMedian`,
        `Correlation`.
    n
        Number of records.
    engine
        ``swap``: tables and margins are built exactly, then records exchange values until the models come out
        (recommended). ``ea``: an evolutionary search on the loss alone, as first published.
    runs
        Independent files made by `fit`; one with ``swap``, five with ``ea`` unless named.
    stop_when
        ``printed``: as soon as every figure equals the printed one at its precision. ``never``: use all effort.
    min_cell
        Records of either outcome behind every dummy of a logistic model.
    batches, proposals
        Effort of the swap engine: batches of proposals, the best of each being taken.
    loss_scale
        For ``ea``: ``raw`` differences, in standard errors (``se``), or in half printing units and zero within
        (``precision``).
    penalty
        For ``ea``: squared difference charged for a figure that a file cannot give (no records, separation).
    population, generations, mutation_schedule, crossover, init, mutation_source, tournament
        Of the evolutionary search. The mutation rates share the generations evenly; ``crossover`` is the chance that
        a pair of children exchange a tenth of their rows.
    weights
        Population margins to which a weight column is raked.

    What it costs
    -------------
    The file is right in what was targeted and made up in everything else: an analysis that was not a target gives
    whatever chance and the margins give.

    When not to use it
    ------------------
    Do not publish findings from such a file, and do not call it safe because it was made without the original:
    without a hold-out check (`FittedOutputs.risk`) that is not known.

    Examples
    --------
    >>> book = Codebook([Variable("SEX", levels=["m", "f"]), Variable("CAR", levels=["no", "yes"])])
    >>> from discreet.synth.from_outputs import CrossTab
    >>> made = FromOutputs(book, [CrossTab(["SEX", "CAR"], [[20, 30], [35, 15]])], n=100).fit(seed=1)
    >>> made.targets["met"].all(), made.sample().frame.height
    (True, 100)
    """

    needs_data: ClassVar[bool] = False

    codebook: Annotated[Codebook, HoldsValues()]
    targets: Annotated[Sequence[Target], HoldsValues()]
    n: Annotated[int, AtLeast(2)]
    engine: Literal["swap", "ea"] = "swap"
    runs: Annotated[int, AtLeast(1)] | None = None
    stop_when: Literal["printed", "never"] = "printed"
    min_cell: Annotated[int, AtLeast(0)] = 2
    batches: Annotated[int, AtLeast(1)] = 20_000
    proposals: Annotated[int, AtLeast(1)] = 512
    loss_scale: LossScale = "raw"
    penalty: Annotated[float, Above(0)] = 100.0
    population: Annotated[int, AtLeast(2)] = 24
    generations: Annotated[int, AtLeast(1)] = 2_000
    mutation_schedule: Annotated[Sequence[Annotated[float, Share()]], Entries(1), Public()] = SCHEDULE
    crossover: Annotated[float, Share()] = 0.0
    init: Source = "uniform"
    mutation_source: Source = "marginal"
    tournament: Annotated[int, AtLeast(1)] = 2
    weights: Annotated[Raking, Public()] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", tuple(self.targets))
        object.__setattr__(self, "mutation_schedule", tuple(float(rate) for rate in self.mutation_schedule))
        for target in self.targets:
            if not isinstance(target, Target):
                raise ParameterError(f"Targets are published results; {type(target).__name__} is none.")
        if not self.targets:
            raise ParameterError("There are no targets. Name at least one published result.")
        if self.weights is None and self.codebook.weight:
            raise ParameterError(
                f"The codebook has a weight variable '{self.codebook.weight}' but nothing to calibrate it to. "
                "Give population margins: weights=Raking({variable: {level: people}})."
            )
        if self.weights is not None and not self.codebook.weight:
            raise ParameterError(
                'The weights need a column: add Variable("weight", "weight") to the codebook.'
            )

    def fit(
        self, data: Microdata | None = None, *, progress: bool = False, seed: Seed = None
    ) -> FittedOutputs:
        """Make the files.

        Parameters
        ----------
        data
            Not used: no original is needed, and none is taken.
        seed
            Same inputs, same seed: same files.
        progress
            Show how far it is, on a terminal.

        Returns
        -------
        FittedOutputs
            The files with the table of targets, the trace of the search and the manifest.
        """
        if data is not None:
            raise ParameterError("from-outputs works from published results alone; do not give it data.")
        root = seed_of(seed)
        preparation = Preparation.of(self)
        start = SwapStart.of(preparation) if self.engine == "swap" else None
        count = self.runs or (1 if self.engine == "swap" else 5)
        runs = [
            self._run(preparation, start, Stream(root, self.name, f"run {number}"), progress=progress)
            for number in range(count)
        ]
        return FittedOutputs(
            empty_file(self.codebook),
            self.n,
            plan=self,
            runs=runs,
            seed=root,
            preparation=preparation,
            start=start,
        )

    def _run(
        self, preparation: Preparation, start: SwapStart | None, stream: Stream, *, progress: bool = False
    ) -> Run:
        """Make one file; every run has random numbers of its own."""
        short: list[str] = []
        if start is None:
            ticks = track(range(self.generations), description="Breeding files", progress=progress)
            file, trace = evolved(self, preparation.bounds, random=stream("evolution"), ticks=ticks)
        else:
            file, short = start.file(stream("start"))
            ticks = track(ticks_for(self.batches), description="Exchanging values", progress=progress)
            file, trace = start.search.run(
                file,
                stream("search"),
                batches=self.batches,
                proposals=self.proposals,
                stop=self.stop_when == "printed",
                ticks=ticks,
            )
        return Run.of(self, preparation, file, trace, short)

    def to_dict(self) -> dict[str, Any]:
        """Return codebook, targets and settings as they stand in TOML."""
        given: dict[str, Any] = {"n": self.n}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("codebook", "targets", "n", "weights") or value == item.default:
                continue
            given[item.name] = list(value) if isinstance(value, tuple) else value
        given["variable"] = [variable.to_dict() for variable in self.codebook.variables]
        given["target"] = [target.to_dict() for target in self.targets]
        if self.weights is not None:
            given["weights"] = self.weights.to_dict()
        return given

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> FromOutputs:
        """Read codebook, targets and settings as they stand in TOML."""
        given = dict(parameters)
        known = ["variable", "target", *(item.name for item in fields(cls))]
        for name in given:
            if name not in known or name in ("codebook", "targets"):
                raise ParameterError(f"In the description: {unknown_name(name, known, what='entry')}")
        for name in ("variable", "target", "n"):
            if name not in given:
                how = "n = …" if name == "n" else f"[[{name}]]"
                raise ParameterError(f"The description does not say '{name}'. Write {how}.")
        variables = [Variable.from_dict(entry) for entry in given.pop("variable")]
        targets = [Target.from_dict(entry) for entry in given.pop("target")]
        if "weights" in given:
            given["weights"] = Raking.from_dict(given["weights"])
        return cls(Codebook(variables), targets, **given)

    @classmethod
    def load(cls, path: str | Path) -> FromOutputs:
        """Read codebook, targets and settings from one TOML file."""
        return cls.from_dict(read_toml(path, "description"))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write codebook, targets and settings to one TOML file."""
        import tomli_w

        return save_text(tomli_w.dumps(self.to_dict()), path, overwrite=overwrite)


# Weights that bring a made-up file to the margins of a population.


@dataclass(frozen=True)
@typed_parameters
class Raking:
    """Calibrate a weight column to population margins by iterative proportional fitting.

    Parameters
    ----------
    margins
        ``{variable: {level: number of people}}``.
    clip
        Smallest and largest weight, as a multiple of the mean weight.
    rounds
        Most rounds of fitting.

    Examples
    --------
    >>> Raking({"SEX": {1: 24_000, 2: 26_000}}).clip
    (0.3, 3.0)
    """

    margins: Mapping[str, Mapping[Any, float]]
    clip: Sequence[float] = (0.3, 3.0)
    rounds: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", tuple(float(bound) for bound in self.clip))
        if not self.margins:
            raise ParameterError("Raking needs margins: {variable: {level: number of people}}.")
        if len(self.clip) != 2 or not 0 <= self.clip[0] < 1 < self.clip[1]:
            raise ParameterError("clip must be two multiples of the mean weight, one below 1 and one above.")
        for name, margin in self.margins.items():
            if any(not count >= 0 for count in margin.values()) or sum(margin.values()) <= 0:
                raise ParameterError(f"The population margin of '{name}' must hold counts of at least 0.")

    def check(self, codebook: Codebook) -> tuple[str, ...]:
        """Refuse margins that the codebook does not know, and tell where they contradict one another."""
        sizes = [self._wanted(codebook, name).sum() for name in self.margins]
        largest, smallest = max(sizes), min(sizes)
        if largest - smallest <= 1e-9 * largest:
            return ()
        return (
            f"The population margins of the weights add up to between {smallest:,.0f} and {largest:,.0f}; all were "
            f"brought to {sizes[0]:,.0f}, the sum of the first.",
        )

    def weigh(self, codebook: Codebook, file: Floats) -> tuple[Floats, pl.DataFrame]:
        """Return the weights, and the margins published and reached."""
        margins = [self._margin(codebook, name, file) for name in self.margins]
        mean = margins[0].wanted.sum() / len(file)
        low, high = (bound * mean for bound in self.clip)
        weights = fit_margins(
            np.full(len(file), mean),
            margins,
            tolerance=1e-10 * mean,
            rounds=self.rounds,
            empty=1.0,
            within=lambda weights: np.clip(weights, low, high),
        ).cells
        rows = []
        for margin, name in zip(margins, self.margins, strict=True):
            rows += [
                {"variable": name, "level": str(level), "population": float(people), "reached": float(got)}
                for level, people, got in zip(
                    codebook[name].levels, margin.wanted, margin.sums(weights), strict=True
                )
            ]
        return weights, pl.DataFrame(rows).with_columns(difference=pl.col("reached") - pl.col("population"))

    def _margin(self, codebook: Codebook, name: str, file: Floats) -> GroupMargin:
        wanted = self._wanted(codebook, name)
        first = next(iter(self.margins.values()))
        # Margins of different sources rarely agree on the size of the population; the first one settles it.
        wanted *= sum(first.values()) / wanted.sum()
        return GroupMargin(file[:, codebook.index(name)].astype(np.int64), wanted)

    def _wanted(self, codebook: Codebook, name: str) -> Floats:
        variable = codebook[name]
        if not variable.is_categorical:
            raise ParameterError(
                f"Weights are raked to categories; '{name}' is a number. Give it levels first."
            )
        wanted = np.zeros(len(variable.levels))
        for level, count in self.margins[name].items():
            wanted[variable.position(level)] = count
        if len(self.margins[name]) != len(variable.levels):
            raise ParameterError(f"The population margin of '{name}' must name every level of the codebook.")
        return wanted

    def to_dict(self) -> dict[str, Any]:
        """Return the raking as it stands in TOML."""
        margins = {
            name: {str(level): n for level, n in margin.items()} for name, margin in self.margins.items()
        }
        return {"margins": margins, "clip": list(self.clip), "rounds": self.rounds}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Raking:
        """Read a raking as it stands in TOML."""
        return made_from(cls, "weights", entries)


stored_as(
    "from-outputs", FromOutputs, dict[str, Any], lambda plan: jsonable(plan.to_dict()), FromOutputs.from_dict
)
