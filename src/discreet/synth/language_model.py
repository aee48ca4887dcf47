"""Synthesis by a language model that writes records (after Tabula and GReaT), with a tokenizer of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.constraints import Above, AtLeast, Between
from discreet.core.errors import DiscreetError, ParameterError, load_extra
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.networks.tokens import RowTokenizer, TokenColumn
from discreet.synth.column_forms import CategoryForm, Variable
from discreet.synth.deep_generators import _Network, documented
from discreet.synth.deep_model import check_shape, repeated
from discreet.synth.saved_models import stored, stored_as, unstored
from discreet.synth.synthesizer import seed_of
from discreet.synth.whole_records import FittedRecords, Prepared, prepare

_DIGITS = 4  # of a number without an end, beside its spread
_LARGEST = 1e17
_MOST_ROUNDS = 20
_MOST_AT_ONCE = 100_000


@method(
    aim="records",
    work="whole-file",
    references=(
        "Zhao, Z., Birke, R. and Chen, L. Y. (2025). TabuLa: harnessing language models for tabular data synthesis. "
        "Advances in Knowledge Discovery and Data Mining, Lecture Notes in Computer Science 15873.",
        "Borisov, V., Seßler, K., Leemann, T., Pawelczyk, M. and Kasneci, G. (2023). Language models are realistic "
        "tabular data generators. International Conference on Learning Representations.",
    ),
)
@documented
@dataclass(frozen=True)
class LanguageModel(_Network):
    """Which records does a language model write that has read nothing but the file?

    A record is a short text: the levels of categories as codes, numbers in groups of digits, columns in a fixed order
    with a category (a sensitive one, where there is one) first. A decoder-only transformer, started from nothing,
    learns the next token. A synthetic record starts with a level of the first column, drawn by its frequency; the model
    writes the rest. What cannot be read, or has values beyond those of the file, is rejected and counted
    (``fitted.rejections``).

    Also known as: GReaT; TabuLa; TABULA; large language model; LLM.

    Parameters
    ----------
    layers, width, heads
        Of the transformer; 12 layers of 768 with 12 heads have about 86 million parameters, 11 of them 79 million.
    temperature
        1 draws by the learned chances; below 1 likely tokens are drawn more often still, and records become more alike.
    guided
        Never draw a token that cannot stand where it is; False lets the model write freely and rejects more.
    middle_padding
        Fill every number up to its own longest length instead of marking its end.
    <shared>

    When not to use it
    ------------------
    It learns files by heart more readily than the others: published comparisons find its records nearer to real ones
    than fresh real records would be. Keep ``held_out`` above 0, and measure with `discreet.risk.identifiability`. It
    needs an accelerator for more than a few hundred thousand cells.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> LanguageModel(epochs=1).fit(Microdata(people), seed=1).sample(3, seed=1).frame.shape  # doctest: +SKIP
    (3, 2)
    """

    smaller: ClassVar[str] = "batch, width or layers"

    epochs: Annotated[int, AtLeast(1)] = 50
    batch: Annotated[int, AtLeast(1)] = 128
    learning_rate: Annotated[float, Above(0)] = 1e-3
    held_out: Annotated[float, Between(0, 1, below=True)] = 0.1
    layers: Annotated[int, AtLeast(1)] = 4
    width: Annotated[int, AtLeast(1)] = 128
    heads: Annotated[int, AtLeast(1)] = 4
    temperature: Annotated[float, Above(0)] = 1.0
    guided: bool = True
    middle_padding: bool = False

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ParameterError(f"{self.name}: width must be a multiple of heads.")

    def _network(self) -> tuple[Any, Any]:
        from discreet.networks.language import LanguageShape, LanguageTrainer

        return LanguageShape, LanguageTrainer

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedLanguageModel:  # type: ignore[override]
        """Train the model; parameters as for the other networks."""
        load_extra("torch", extra="deep", purpose="Training LanguageModel")
        file = prepare(self, data)
        stream = Stream(seed_of(seed), self.name)
        tokenizer, order, scales, values = written(file, data, middle_padding=self.middle_padding)
        if file.weights is not None:
            values = values[repeated(file.weights, stream("weights"))]
        tokens, held = tokenizer.encode(values), None
        tokenizer.learn(tokens)
        if self.held_out and len(tokens) > 10:
            mixed = stream("held out").permutation(len(tokens))
            count = max(round(self.held_out * len(tokens)), 1)
            tokens, held = tokens[np.sort(mixed[count:])], tokens[np.sort(mixed[:count])]
        _, trainer = self._network()
        weights, report = self._trained(
            lambda device: trainer(
                tokens, tokenizer, self._shape(), batch=self.batch, device=device, held=held
            ),
            stream,
            progress=progress,
        )
        first = tokenizer.columns[0]
        shares = (
            np.bincount(values[:, 0], minlength=first.size) / len(values) if first.is_level else np.empty(0)
        )
        return FittedLanguageModel(
            file.like,
            file.rows,
            blueprint=file.blueprint,
            shape=asdict(self._shape()),
            tokenizer=tokenizer,
            order=order,
            scales=scales,
            shares=shares,
            weights=weights,
            report=report.to_dict(),
            temperature=self.temperature,
            guided=self.guided,
            device=self.device,
            max_rounds=self.max_rounds,
            left_out=file.left_out,
            weighted=file.weights is not None,
        )


def written(
    file: Prepared, data: Microdata, *, middle_padding: bool
) -> tuple[RowTokenizer, list[int], list[float], Integers]:
    """Turn variables into whole numbers to be written: tokenizer, order of variables, scales, and the numbers."""
    scales = [1.0 if not one.is_number else _scale(one) for one in file.variables]
    order = _order(file, data)
    columns, values = [], []
    for place in order:
        variable = file.variables[place]
        if variable.is_number:
            whole = np.rint(np.clip(variable.values * scales[place], -_LARGEST, _LARGEST)).astype(np.int64)
            columns.append(TokenColumn.number(whole))
        else:
            whole = np.asarray(variable.values, dtype=np.int64)
            columns.append(TokenColumn.level(variable.levels))
        values.append(whole)
    return RowTokenizer(columns, middle_padding=middle_padding), order, scales, np.column_stack(values)


def _scale(variable: Variable) -> float:
    """Return what a number is multiplied with to be whole."""
    if variable.decimals is not None:
        return float(10.0**variable.decimals)
    spread = float(np.std(variable.values)) or 1.0
    return float(10.0 ** (_DIGITS - np.floor(np.log10(spread))))


def _order(file: Prepared, data: Microdata) -> list[int]:
    """Put a category first, a sensitive one where there is one; the others follow as in the file."""
    starts = np.append(0, np.cumsum(file.blueprint.widths))
    places = {name: int(starts[at]) for at, name in enumerate(file.blueprint.forms)}
    levels = [name for name, form in file.blueprint.forms.items() if isinstance(form, CategoryForm)]
    sensitive = [name for name in data.roles.sensitive if name in levels]
    rest = list(range(len(file.variables)))
    if not levels:
        return rest
    first = places[(sensitive or levels)[0]]
    return [first, *(place for place in rest if place != first)]


stored_as(
    "row-tokenizer",
    RowTokenizer,
    Mapping[str, Sequence[Sequence[int]] | bool | Integers | None],
    RowTokenizer.to_dict,
    RowTokenizer.from_dict,
)


@stored("fitted-language-model")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedLanguageModel(FittedRecords):
    """A language model that was trained.

    Attributes
    ----------
    report
        How training went.
    rejections
        Of the last drawing: records that were written, and those that were rejected.
    """

    shape: Mapping[str, Any]
    tokenizer: RowTokenizer
    order: Sequence[int]
    scales: Sequence[float]
    shares: Floats
    weights: Mapping[str, Array]
    report: Mapping[str, Any]
    temperature: float
    guided: bool
    device: str = field(default="auto", metadata=unstored())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape(self.shape)
        if sorted(self.order) != list(range(sum(self.blueprint.widths))):
            raise ValueError("an order of other columns")
        self.rejections = {"written": 0, "rejected": 0}

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Write records until n can be read."""
        load_extra("torch", extra="deep", purpose="Drawing from a language model")
        from discreet.networks.language import LanguageShape, Writer, write_rows
        from discreet.networks.training import chosen_device, drawing_memory_told, put_weights, quiet_threads

        kept: list[Integers] = []
        have = written_ = 0
        with drawing_memory_told(), quiet_threads(1):
            writer = Writer(LanguageShape(**self.shape), self.tokenizer.states).to(chosen_device(self.device))
            put_weights({"writer": writer}, self.weights)
            for number in range(_MOST_ROUNDS):
                own = stream.child(f"rows {number}")
                rate = max(have / written_, 1 / written_) if written_ else 1.0
                # A model that has learned next to nothing must not be asked for millions at once.
                size = min(max(round(1.2 * (n - have) / rate), 20), max(10 * n, 1_000), _MOST_AT_ONCE)
                tokens = write_rows(
                    writer,
                    self.tokenizer,
                    size,
                    seed=int(own("tokens").integers(2**62)),
                    temperature=self.temperature,
                    guided=self.guided,
                    start=self._starts(size, own("start"), wanted),
                )
                values, good = self.tokenizer.decode(tokens)
                kept.append(values[good])
                have, written_ = have + int(good.sum()), written_ + size
                if have >= n:
                    break
        self.rejections = {"written": written_, "rejected": written_ - have}
        if have < n:
            raise DiscreetError(
                f"Of {written_:,} records that the model wrote, {written_ - have:,} cannot be read or have values "
                "beyond those of the file. Train it for more epochs, or keep guided=True."
            )
        return self._variables(np.concatenate(kept)[:n])

    def _starts(self, n: int, rng: np.random.Generator, wanted: Mapping[str, Flags]) -> Array | None:
        """Draw the first column by its frequency, of the levels asked for where some are."""
        if not len(self.shares):
            return None
        chances = self.shares
        at = np.append(0, np.cumsum(self.blueprint.widths))
        name = list(self.blueprint.forms)[int(np.searchsorted(at, self.order[0], side="right")) - 1]
        if name in wanted:
            chances = np.where(wanted[name], chances, 0.0)
            if not chances.sum() > 0:
                return None
        codes = rng.choice(len(chances), n, p=chances / chances.sum())
        only = RowTokenizer(self.tokenizer.columns[:1], middle_padding=self.tokenizer.middle_padding)
        return only.encode(codes[:, None])

    def _variables(self, values: Integers) -> list[Array]:
        parts: list[Array] = [np.empty(0)] * len(self.order)
        for column, place in enumerate(self.order):
            own = values[:, column]
            level = self.tokenizer.columns[column].is_level
            parts[place] = own.astype(np.int32) if level else own / self.scales[place]
        return parts
