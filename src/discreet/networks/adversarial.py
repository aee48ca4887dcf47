"""A generator and a critic that are trained against each other: the conditional GAN for tables (CTGAN).

Xu, Skoularidou, Cuesta-Infante and Veeramachaneni (2019). The generator is asked for a level of one category at a time,
levels by the logarithm of their frequency, so that rare ones are learned too; the critic judges packs of records
(Lin, Khetan, Fanti and Oh 2018) and is held to slope one (Gulrajani and others 2017). Beside the critic the generator
learns by the tables of all pairs of columns (`discreet.networks.adversarial`), and a slow average of it draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from discreet.core.arrays import Codes, Floats, Singles
from discreet.networks.blocks import Blocks, Records, pair_distance
from discreet.networks.tables import CodedTable, log_frequencies, rows_by_code
from discreet.networks.training import Average, Trainer, adam, descended, own_noise, set_rate

SAMPLE_BLOCK = 4000


@dataclass(frozen=True)
class GanShape:
    """The sizes and rates of generator and critic."""

    noise: int = 128
    width: int = 256
    layers: int = 2
    pack: int = 10
    temperature: float = 0.5
    learning_rate: float = 2e-4
    decay: float = 1e-6
    penalty: float = 10.0
    dropout: float = 0.5
    average: float = 0.999
    match: float = 30.0


class Asked(nn.Module):
    """The conditions: which level of which category is asked for, in training and in sampling."""

    def __init__(
        self, sizes: Sequence[int], columns: Sequence[int], shares: Sequence[Floats], rows: int
    ) -> None:
        super().__init__()
        self.columns = tuple(columns)
        sizes = [sizes[column] for column in self.columns]
        self.width = sum(sizes)
        most = max(sizes, default=1)
        uptos, real = np.ones((len(sizes), most)), np.ones((len(sizes), most))
        for at, column in enumerate(self.columns):
            uptos[at, : sizes[at]] = np.cumsum(log_frequencies(shares[column], rows))
            uptos[at, sizes[at] - 1 :] = 1.0
            real[at, : sizes[at]] = np.cumsum(shares[column])
            real[at, sizes[at] - 1 :] = 1.0
        offsets = np.append(0, np.cumsum(sizes))[:-1] if sizes else np.empty(0)
        self.register_buffer("uptos", torch.from_numpy(uptos).float(), persistent=False)
        self.register_buffer("shares", torch.from_numpy(real).float(), persistent=False)
        self.register_buffer("places", torch.tensor(self.columns, dtype=torch.int64), persistent=False)
        self.register_buffer("offsets", torch.from_numpy(offsets).long(), persistent=False)

    def draw(self, n: int, *, training: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Draw the category (its place among the conditions) and the level of n records."""
        device = self.offsets.device
        column = torch.randint(len(self.columns), (n,), device=device)
        upto = (self.uptos if training else self.shares)[column]
        level = (torch.rand(n, 1, device=device) >= upto[:, :-1]).sum(1)
        return column, level

    def vector(self, column: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """Write conditions as zeros and a one."""
        made = torch.zeros(len(column), self.width, device=column.device)
        return made.scatter_(1, (self.offsets[column] + level)[:, None], 1.0)


class Residual(nn.Module):
    """A layer whose output stands beside its input."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(before, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what is new beside what came in."""
        return torch.cat([torch.relu(self.norm(self.linear(inputs))), inputs], 1)


class Generator(nn.Module):
    """From noise and a condition to the raw outputs of a record."""

    def __init__(self, shape: GanShape, conditions: int, outputs: int) -> None:
        super().__init__()
        width = shape.noise + conditions
        layers: list[nn.Module] = []
        for _ in range(shape.layers):
            layers.append(Residual(width, shape.width))
            width += shape.width
        layers.append(nn.Linear(width, outputs))
        self.body = nn.Sequential(*layers)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return numbers before they are bounded, and logits of all categories."""
        return self.body(inputs)


def bounded(raw: torch.Tensor, numbers: int, blocks: Blocks, temperature: float) -> torch.Tensor:
    """Turn raw outputs into a record: numbers within -1 and 1, categories nearly one-hot."""
    return torch.cat([torch.tanh(raw[:, :numbers]), blocks.gumbel_softmax(raw[:, numbers:], temperature)], 1)


class GanTrainer(Trainer):
    """Generator and critic, a step of each in turn."""

    def __init__(
        self,
        table: CodedTable,
        shape: GanShape,
        batch: int,
        device: torch.device,
        held: CodedTable | None = None,
    ) -> None:
        self.device = device
        self.shape = shape
        self.records = Records(table, device)
        shares = [table.shares(column) for column in range(len(table.sizes))]
        self.asked = Asked(table.sizes, table.conditions, shares, len(table)).to(device)
        self.numbers = table.numbers.shape[1]
        self.held = held
        pack = max(min(shape.pack, len(table)), 1)
        self.batch = max(min(batch, len(table)) // pack, 1) * pack
        self.shape = GanShape(**{**shape.__dict__, "pack": pack})
        self.generator = Generator(self.shape, self.asked.width, table.width).to(device)
        self.slow = Average(self.generator, shape.average)
        self.average = self.slow.network
        self.critic = Critic(
            table.width + self.asked.width,
            pack=pack,
            width=shape.width,
            layers=shape.layers,
            dropout=shape.dropout,
        ).to(device)
        rates: dict[str, Any] = {"lr": shape.learning_rate, "betas": (0.5, 0.9)}
        self.adam_generator = adam(self.generator.parameters(), device, weight_decay=shape.decay, **rates)
        self.adam_critic = adam(self.critic.parameters(), device, **rates)
        self._index(table)
        self.wanted = self._wanted(table) if shape.match and table.width <= MOST_INPUTS else None

    def _index(self, table: CodedTable) -> None:
        """Lay the rows of every level side by side, so that records of a level are drawn without a search."""
        most = max((table.sizes[column] for column in table.conditions), default=1)
        orders = np.zeros((len(table.conditions), len(table)), dtype=np.int32)
        starts = np.zeros((len(table.conditions), most + 1), dtype=np.int64)
        for at, column in enumerate(table.conditions):
            order, own = rows_by_code(table.codes[:, column], table.sizes[column])
            orders[at] = order
            starts[at, : len(own)] = own
            starts[at, len(own) :] = own[-1]
        self.orders = torch.from_numpy(orders).to(self.device)
        self.starts = torch.from_numpy(starts).to(self.device)

    def _wanted(self, table: CodedTable) -> torch.Tensor:
        """Return the products of pairs in the real records, as often as training asks for records like them."""
        chances = np.full(len(table), 1 / len(table))
        if table.conditions:
            chances = np.zeros(len(table))
            for column in table.conditions:
                codes = table.codes[:, column]
                counts = np.bincount(codes, minlength=table.sizes[column])
                asked = log_frequencies(table.shares(column), len(table)) / np.maximum(counts, 1)
                chances += asked[codes] / len(table.conditions)
        return pair_products(self.records, torch.from_numpy(chances).float().to(self.device))

    def steps_per_epoch(self) -> int:
        """How many steps see as many records as there are."""
        return max(len(self.records) // self.batch, 1)

    def modules(self) -> dict[str, nn.Module]:
        """The average draws; generator and critic are needed for going on with training only."""
        return {"generator": self.generator, "average": self.average, "critic": self.critic}

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Both optimizers."""
        return {"generator": self.adam_generator, "critic": self.adam_critic}

    def _conditions(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw what is asked for and real records that have it: category, level, vector and rows."""
        if not self.asked.width:
            rows = torch.randint(len(self.records), (self.batch,), device=self.device)
            none = torch.zeros(self.batch, dtype=torch.int64, device=self.device)
            return none, none, torch.zeros(self.batch, 0, device=self.device), rows
        column, level = self.asked.draw(self.batch, training=True)
        first, last = self.starts[column, level], self.starts[column, level + 1]
        place = first + (torch.rand(self.batch, device=self.device) * (last - first)).long()
        rows = self.orders[column, place.clamp(max=len(self.records) - 1)].long()
        return column, level, self.asked.vector(column, level), rows

    def _raw(self, vector: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(len(vector), self.shape.noise, device=self.device)
        return self.generator(torch.cat([noise, vector], 1))

    def pace(self, done: float) -> None:
        """Keep the rates for the first half of the training, then let them fall to nothing."""
        for optimizer in self.optimizers().values():
            set_rate(optimizer, self.shape.learning_rate * min(1.0, 2 * (1 - done)))

    def learn(self) -> dict[str, torch.Tensor]:
        """Draw records, let the critic learn from them, then the generator from what the critic now says of them."""
        column, level, vector, rows = self._conditions()
        raw = self._raw(vector)
        fake = bounded(raw, self.numbers, self.records.blocks, self.shape.temperature)
        drawn = torch.cat([fake, vector], 1)
        judged = self._critic_step(drawn.detach(), torch.cat([self.records.dense(rows), vector], 1))
        with held_still(self.critic.parameters()):
            loss = -self.critic(drawn).mean()
            if self.wanted is not None:
                loss = loss + self.shape.match * table_distance(fake, self.wanted)
            if self.asked.width:
                logits = raw[:, self.numbers :]
                loss = loss + asked_loss(logits, self.records.blocks, self.asked.places, column, level)
            return {"critic": judged, "generator": descended(self.adam_generator, loss)}

    def _critic_step(self, fake: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Let the critic learn to tell real packs from drawn ones."""
        drawn, true, slopes = self.critic.both(fake, real)
        loss = drawn.mean() - true.mean() + slope_penalty(slopes, self.shape.penalty)
        return descended(self.adam_critic, loss)

    def held_out_loss(self) -> float | None:
        """Return how far tables of drawn records lie from those of the records that were held out."""
        if self.held is None:
            return None
        _, codes = sample_gan(
            self.average, self.asked, self.records.blocks, self.shape, len(self.held), seed=1
        )
        return pair_distance(codes, self.held.codes, self.held.sizes, np.random.default_rng(1))


def asked_loss(
    logits: torch.Tensor, blocks: Blocks, places: torch.Tensor, column: torch.Tensor, level: torch.Tensor
) -> torch.Tensor:
    """Return the cross-entropy of the level that was asked for, in the category that was asked about."""
    own = blocks.padded(logits, places[column])
    return nn.functional.cross_entropy(own, level)


def sample_gan(
    generator: nn.Module,
    asked: Asked,
    blocks: Blocks,
    shape: GanShape,
    n: int,
    *,
    seed: int,
    wanted: tuple[int, Floats] | None = None,
) -> tuple[Singles, Codes]:
    """Draw n records: numbers and codes.

    ``wanted`` asks for levels of one category: its place among the conditions, and the chances of its levels.
    """
    device = asked.offsets.device
    generator.eval()
    numbers, codes = [], []
    with own_noise(seed, device), torch.inference_mode():
        for start in range(0, n, SAMPLE_BLOCK):
            size = min(SAMPLE_BLOCK, n - start)
            if not asked.width:
                vector = torch.zeros(size, 0, device=device)
            else:
                column, level = asked.draw(size, training=False)
                if wanted is not None:
                    chances = torch.from_numpy(wanted[1]).float().to(device)
                    level = torch.multinomial(chances, size, replacement=True)
                    column = torch.full_like(level, wanted[0])
                vector = asked.vector(column, level)
            noise = torch.randn(size, shape.noise, device=device)
            raw = generator(torch.cat([noise, vector], 1))
            width = raw.shape[1] - blocks.width
            made = bounded(raw, width, blocks, shape.temperature)
            numbers.append(made[:, :width].cpu().numpy())
            codes.append(blocks.argmax(made[:, width:]).cpu().numpy().astype(np.int32))
    return np.concatenate(numbers), np.concatenate(codes)


# How real do packs of records look, and how steep is that judgement between real and drawn ones?
#
# A critic of records (Arjovsky, Chintala and Bottou 2017) is held to slope one on the way from drawn packs to real
# ones (Gulrajani and others 2017). Its layers are bent lines: which side of the bend an input lies on does not change
# when the weights change by a little. So the slope is a product of the weights with what is left open, and its own
# gradient needs no second pass through the gradient of the first.
_LEAK = 0.2  # how much of a negative value a layer lets through


class Critic(nn.Module):
    """How real do packs of records look?

    Parameters
    ----------
    inputs
        How many inputs a record has.
    pack
        How many records are judged at once.
    width, layers
        Of the network.
    dropout
        The share of each layer that is left out at random while it learns.
    """

    def __init__(self, inputs: int, *, pack: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.pack = pack
        self.dropout = dropout
        before = inputs * pack
        parts: list[nn.Module] = []
        for _ in range(layers):
            parts += [nn.Linear(before, width), nn.LeakyReLU(_LEAK), nn.Dropout(dropout)]
            before = width
        parts.append(nn.Linear(before, 1))
        self.body = nn.Sequential(*parts)

    def forward(self, records: torch.Tensor) -> torch.Tensor:
        """Return one number a pack."""
        return self.body(records.reshape(len(records) // self.pack, -1))

    def both(self, fake: torch.Tensor, real: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Judge drawn and real packs, and return the slopes at a random place between each of them too.

        Both go through the layers together. The first layer is a line before its bend: what it gives between two packs
        lies between what it gives for them.
        """
        lines = self._lines()
        packs = torch.cat([fake, real]).reshape(2 * len(real) // self.pack, -1)
        first = lines[0](packs)
        judged = self.body[1:](first)
        with torch.no_grad():
            drawn, true = first.chunk(2)
            mix = torch.rand(len(true), 1, device=real.device)
            open_ = self._open(drawn + mix * (true - drawn))
        slopes = lines[-1].weight * open_[-1]
        for line, through in zip(reversed(lines[1:-1]), reversed(open_[:-1]), strict=True):
            slopes = (slopes @ line.weight) * through
        drawn, true = judged.chunk(2)
        return drawn, true, slopes @ lines[0].weight

    def _lines(self) -> list[nn.Linear]:
        return [part for part in self.body if isinstance(part, nn.Linear)]

    def _open(self, first: torch.Tensor) -> list[torch.Tensor]:
        """Return how much each layer lets through of its inputs, from what the first gives before its bend."""
        found: list[torch.Tensor] = []
        values = first
        for line in self._lines()[1:]:
            through = torch.where(values > 0, 1.0, _LEAK)
            if self.training and self.dropout:
                through = through * nn.functional.dropout(torch.ones_like(through), self.dropout)
            found.append(through)
            values = line(values * through)
        return found


def slope_penalty(slopes: torch.Tensor, penalty: float) -> torch.Tensor:
    """Return the penalty for slopes, one row a pack, whose length is not one.

    Examples
    --------
    >>> float(slope_penalty(torch.tensor([[0.6, 0.8], [2.0, 0.0]]), 10.0))
    5.0
    """
    return penalty * ((slopes.norm(2, 1) - 1) ** 2).mean()


class held_still:  # noqa: N801 - used as a statement
    """Let gradients pass through a network within the block without being gathered for its own weights."""

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        self._weights = list(weights)

    def __enter__(self) -> None:
        for own in self._weights:
            own.requires_grad_(False)

    def __exit__(self, *_: object) -> None:
        for own in self._weights:
            own.requires_grad_(True)


# How far do the tables of drawn records lie from those of real ones, in a form that a generator can learn from?
#
# A critic judges packs of records; that a level comes in 12 percent of them instead of 10 it hardly sees. The
# products of all pairs of inputs, averaged over records, are the one- and two-way tables of all categories, and with
# numbers the means by level and the covariances. Their squared distance from those of the file is the second thing a
# generator learns by (as the information loss of Zhao, Kunar, Birke and Chen 2021, for pairs instead of single
# columns).
MOST_INPUTS = 1_000  # beyond, the table of all pairs would be larger than the networks
_AT_ONCE = 8_192


def with_one(records: torch.Tensor) -> torch.Tensor:
    """Put a one before every record, so that products of pairs contain the single inputs too."""
    return torch.cat([records.new_ones(len(records), 1), records], 1)


def pair_products(records: Records, weights: torch.Tensor) -> torch.Tensor:
    """Return the products of all pairs of inputs, averaged over the records by weights that sum to one."""
    total = torch.zeros((), device=records.device)
    for rows in torch.arange(len(records), device=records.device).split(_AT_ONCE):
        own = with_one(records.dense(rows))
        total = total + own.T @ (own * weights[rows, None])
    return total


def table_distance(drawn: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return the squared distance between the products of drawn records and those wanted, by a fair estimate.

    The square of one noisy estimate would reward a generator for drawing with less variety than the file has; the
    product of the errors of two halves does not.

    Examples
    --------
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(4, 1)
    >>> own = with_one(rows)
    >>> float(table_distance(rows, own.T @ own / 8))
    0.0
    """
    half = len(drawn) // 2
    errors = [own.T @ own / len(own) - wanted for own in with_one(drawn).split([half, len(drawn) - half])]
    return (errors[0] * errors[1]).sum()
