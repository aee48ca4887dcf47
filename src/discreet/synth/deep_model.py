"""A network that was trained, from which synthetic records are drawn; its inputs, and its outputs read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array, Codes, Flags, Floats, Singles
from discreet.core.errors import InputError, load_extra
from discreet.dp.entropy import Stream
from discreet.networks.tables import CodedTable, ModeCoding, ScoreCoding
from discreet.synth.column_forms import Variable
from discreet.synth.saved_models import stored, unstored
from discreet.synth.whole_records import FittedRecords

_LARGEST = {"layers": 1_000}
_LARGEST_SIZE = 1_000_000


stored("mode-coding")(ModeCoding)
stored("score-coding")(ScoreCoding)


def check_shape(shape: Mapping[str, Any]) -> None:
    """Refuse sizes that no network has, as a model file may have them: they would never end."""
    for name, size in shape.items():
        if isinstance(size, int) and not 0 <= size <= _LARGEST.get(name, _LARGEST_SIZE):
            raise InputError(f"No network has such a number of {name}.")


@stored("fitted-network")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedNetwork(FittedRecords):
    """A network that was trained.

    Attributes
    ----------
    kind
        Which network it is.
    report
        How training went: epochs, seconds, losses, device, and why it ended.
    """

    kind: str
    shape: Mapping[str, Any]
    coding: TableCoding
    shares: Sequence[Floats]
    weights: Mapping[str, Array]
    report: Mapping[str, Any]
    device: str = field(default="auto", metadata=unstored())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape(self.shape)

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Draw numbers and codes from the network and turn them into variables."""
        asked = self._asked(wanted)
        numbers, codes = draw_from(self, n, int(stream("network").integers(2**62)), asked)
        return self.coding.decoded(numbers, codes, stream)

    def _asked(self, wanted: Mapping[str, Flags]) -> tuple[int, Floats] | None:
        """Choose the rarest of the things asked for: a column of the codes, and the chances of its places."""
        found: list[tuple[float, int, Floats]] = []
        at = 0
        for name, width in zip(self.blueprint.forms, self.blueprint.widths, strict=True):
            part = self.coding.parts[at]
            if name in wanted and isinstance(part, LevelCoding):
                column = self.coding.column_of(at)
                chances = self.shares[column] * part.wanted(wanted[name])
                if chances.sum() > 0 and column in self.coding.conditions:
                    found.append((float(chances.sum()), column, chances / chances.sum()))
            at += width
        if not found:
            return None
        _, column, chances = min(found, key=lambda one: one[0])
        return column, chances


def draw_from(
    model: FittedNetwork, n: int, seed: int, asked: tuple[int, Floats] | None
) -> tuple[Singles, Codes]:
    """Draw n records from a trained network: numbers and codes."""
    torch = load_extra("torch", extra="deep", purpose=f"Drawing from {model.kind}")
    from discreet.networks.blocks import Blocks
    from discreet.networks.training import chosen_device, drawing_memory_told, put_weights, quiet_threads

    device = chosen_device(model.device)
    sizes, numbers = model.coding.sizes, model.coding.numbers
    blocks = Blocks(sizes, device)
    with drawing_memory_told(), quiet_threads(1):
        if model.kind in ("ctgan", "dpgan", "pategan"):
            from discreet.networks.adversarial import Asked, GanShape, Generator, sample_gan

            shape = GanShape(**model.shape)
            conditions = Asked(
                sizes, model.coding.conditions if model.kind == "ctgan" else (), model.shares, model.rows
            )
            conditions = conditions.to(device)
            generator = Generator(shape, conditions.width, numbers + sum(sizes)).to(device)
            put_weights({"average": generator}, _part(model, "average"))
            wanted = None
            if asked is not None and asked[0] in conditions.columns:
                wanted = (conditions.columns.index(asked[0]), asked[1])
            return sample_gan(generator, conditions, blocks, shape, n, seed=seed, wanted=wanted)
        if model.kind == "tvae":
            from discreet.networks.autoencoder import Decoder, VaeShape, sample_vae

            vae = VaeShape(**model.shape)
            decoder = Decoder(numbers, numbers + sum(sizes), vae).to(device)
            put_weights({"decoder": decoder}, _part(model, "decoder"))
            return sample_vae(decoder, blocks, vae, n, seed=seed, device=device)
        if model.kind != "tabular-diffusion":
            raise ValueError("a network of an unknown kind")
        from discreet.networks.diffusion import Denoiser, DiffusionShape, Schedule, sample_diffusion

        form = DiffusionShape(**model.shape)
        denoiser = Denoiser(numbers + sum(sizes), form).to(device)
        put_weights({"average": denoiser}, _part(model, "average"))
        fixed = None
        if asked is not None:
            column, chances = asked
            start = int(np.sum(sizes[:column]))
            drawn = np.random.default_rng(seed).choice(len(chances), n, p=chances)
            one_hot = np.zeros((n, len(chances)), dtype=np.float32)
            one_hot[np.arange(n), drawn] = 1.0
            fixed = (slice(start, start + len(chances)), torch.from_numpy(one_hot).to(device))
        return sample_diffusion(
            denoiser,
            Schedule(form.steps).to(device),
            blocks,
            numbers,
            n,
            seed=seed,
            mixed_precision=form.mixed_precision,
            fixed=fixed,
        )


def _part(model: FittedNetwork, name: str) -> dict[str, Array]:
    """Return the weights of one of the networks that were trained together."""
    return {key: value for key, value in model.weights.items() if key.startswith(f"{name}/")}


# How variables become the inputs of a network, and how its outputs become variables again.
#
# A number becomes a mode of its distribution and its place within the mode (mode-specific normalization), or its
# normal score. A category keeps its codes; where there are many, the rarest share one code, and which of them it is is
# drawn by their frequency.
NumberCoding = Literal["modes", "scores"]


@stored("level-coding")
@dataclass(frozen=True, eq=False)
class LevelCoding:
    """A category: codes that are kept, and those that share the last one.

    Attributes
    ----------
    kept
        The codes that stand for themselves, by place.
    pooled, shares
        The codes that share the last place, and how often each of them comes.
    """

    kept: Codes
    pooled: Codes
    shares: Floats

    @classmethod
    def of(cls, variable: Variable, weights: Floats | None, max_levels: int) -> LevelCoding:
        """Keep the most frequent levels."""
        counts = np.bincount(variable.values, weights, minlength=variable.levels).astype(np.float64)
        if variable.levels <= max_levels:
            return cls(np.arange(variable.levels, dtype=np.int32), np.empty(0, np.int32), np.empty(0))
        order = np.argsort(-counts, kind="stable")
        kept, pooled = np.sort(order[: max_levels - 1]), np.sort(order[max_levels - 1 :])
        return cls(kept.astype(np.int32), pooled.astype(np.int32), counts[pooled] / counts[pooled].sum())

    @property
    def size(self) -> int:
        """How many places there are."""
        return len(self.kept) + (len(self.pooled) > 0)

    def encode(self, codes: Codes) -> Codes:
        """Return the place of every code."""
        most = int(max(self.kept.max(initial=-1), self.pooled.max(initial=-1))) + 1
        place = np.full(most, len(self.kept), dtype=np.int32)
        place[self.kept] = np.arange(len(self.kept), dtype=np.int32)
        return np.asarray(place[codes], dtype=np.int32)

    def decode(self, places: Codes, rng: np.random.Generator) -> Codes:
        """Return a code for every place."""
        made = np.empty(len(places), dtype=np.int32)
        own = places < len(self.kept)
        made[own] = self.kept[places[own]]
        rest = int((~own).sum())
        if rest:
            made[~own] = self.pooled[rng.choice(len(self.pooled), rest, p=self.shares)]
        return made

    def wanted(self, codes: Flags) -> Flags:
        """Say which places can hold the codes that are wanted."""
        own = codes[self.kept]
        return np.append(own, codes[self.pooled].any()) if len(self.pooled) else own


OneCoding = LevelCoding | ModeCoding | ScoreCoding


@stored("table-coding")
@dataclass(frozen=True, eq=False)
class TableCoding:
    """The coding of all variables, in order."""

    parts: tuple[OneCoding, ...]

    @classmethod
    def of(
        cls,
        variables: Sequence[Variable],
        ordinary: Sequence[Flags | None],
        weights: Floats | None,
        stream: Stream,
        *,
        numbers: NumberCoding,
        max_levels: int,
        modes: int = 10,
    ) -> TableCoding:
        """Learn the codings; ``ordinary`` says where a number with states has a value."""
        parts: list[OneCoding] = []
        for variable, there in zip(variables, ordinary, strict=True):
            if not variable.is_number:
                parts.append(LevelCoding.of(variable, weights, max_levels))
                continue
            own = variable.values if there is None else variable.values[there]
            values = own if len(own) else np.zeros(1)
            if numbers == "scores":
                parts.append(ScoreCoding.of(values))
            else:
                parts.append(ModeCoding.of(values, stream("modes", variable.name), modes))
        return cls(tuple(parts))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column of the codes has: categories and modes, in the order of the variables."""
        return tuple(part.size for part in self.parts if not isinstance(part, ScoreCoding))

    @property
    def conditions(self) -> tuple[int, ...]:
        """The columns of the codes that are categories, of more than one level."""
        kinds = [part for part in self.parts if not isinstance(part, ScoreCoding)]
        return tuple(at for at, part in enumerate(kinds) if isinstance(part, LevelCoding) and part.size > 1)

    @property
    def numbers(self) -> int:
        """How many numbers there are."""
        return sum(not isinstance(part, LevelCoding) for part in self.parts)

    def column_of(self, variable: int) -> int:
        """Return the column of the codes that a variable has."""
        return sum(not isinstance(part, ScoreCoding) for part in self.parts[:variable])

    def table(
        self,
        variables: Sequence[Variable],
        ordinary: Sequence[Flags | None],
        weights: Floats | None,
        stream: Stream,
    ) -> CodedTable:
        """Code the records; survey weights become repetitions, evenly spread."""
        rows = len(variables[0])
        numbers, codes = [], []
        for variable, there, part in zip(variables, ordinary, self.parts, strict=True):
            if isinstance(part, LevelCoding):
                codes.append(part.encode(np.asarray(variable.values, dtype=np.int32)))
                continue
            rng = stream("places", variable.name)
            values = np.asarray(variable.values, dtype=np.float64)
            if there is not None and there.any() and not there.all():
                # Where there is no value the network gets one of another record: gaps have no value of their own.
                values = np.where(there, values, rng.choice(values[there], rows))
            if isinstance(part, ScoreCoding):
                numbers.append(part.encode(values, rng))
            else:
                places, modes = part.encode(values, rng)
                numbers.append(places)
                codes.append(modes)
        table = CodedTable(
            np.column_stack(numbers).astype(np.float32) if numbers else np.empty((rows, 0), np.float32),
            np.column_stack(codes).astype(np.int32) if codes else np.empty((rows, 0), np.int32),
            self.sizes,
            self.conditions,
        )
        return table if weights is None else table.take(repeated(weights, stream("weights")))

    def decoded(self, numbers: Singles, codes: Codes, stream: Stream) -> list[Array]:
        """Turn what a network drew into variables."""
        made: list[Array] = []
        number = code = 0
        for place, part in enumerate(self.parts):
            if isinstance(part, LevelCoding):
                made.append(part.decode(codes[:, code], stream("pooled", str(place))))
                code += 1
            elif isinstance(part, ScoreCoding):
                made.append(part.decode(numbers[:, number]))
                number += 1
            else:
                made.append(part.decode(numbers[:, number], codes[:, code]))
                number, code = number + 1, code + 1
        return made


def repeated(weights: Floats, rng: np.random.Generator) -> Array:
    """Draw records by weight, evenly spread: each comes the whole number of times below or above its weight.

    Examples
    --------
    >>> repeated(np.array([2.0, 1.0, 1.0]), np.random.default_rng(1)).tolist()
    [0, 0, 1, 2]
    """
    total = round(float(weights.sum()))
    ends = np.cumsum(weights) * (total / weights.sum())
    return np.minimum(np.searchsorted(ends, np.arange(total) + rng.random(), side="right"), len(weights) - 1)
