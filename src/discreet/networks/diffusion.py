"""Records made by undoing noise step by step: Gaussian noise on numbers, multinomial noise on categories.

Kotelnikov, Baranchuk, Rubachev and Babenko (2023), after Ho, Jain and Abbeel (2020) and Hoogeboom and others (2021).
The network sees a noisy record and how noisy it is; it learns the noise of the numbers and the chances of the clean
levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from discreet.core.arrays import Codes, Floats, Singles
from discreet.networks.blocks import Blocks, Records, TableTrainer
from discreet.networks.tables import CodedTable
from discreet.networks.training import Average, adam, half_precision, own_noise, set_rate

SAMPLE_BLOCK = 20_000
_OFFSET = 0.008  # keeps the first steps of the cosine schedule from vanishing
_MOST_NOISE = 0.999


@dataclass(frozen=True)
class DiffusionShape:
    """The sizes and rates of the network and the number of steps of noise."""

    steps: int = 200
    width: int = 512
    layers: int = 2
    learning_rate: float = 2e-3
    decay: float = 0.0
    average: float = 0.999
    category_weight: float = 1.0
    mixed_precision: bool = True


def cosine_schedule(steps: int) -> tuple[Floats, Floats]:
    """Return what is kept of the signal in each step (alpha), and up to each step (Nichol and Dhariwal 2021).

    Examples
    --------
    >>> alpha, kept = cosine_schedule(10)
    >>> bool((alpha > 0).all() and (np.diff(kept) < 0).all())
    True
    """
    places = np.arange(steps + 1) / steps
    level = np.cos((places + _OFFSET) / (1 + _OFFSET) * math.pi / 2) ** 2
    alpha = 1 - np.minimum(1 - level[1:] / level[:-1], _MOST_NOISE)
    return alpha, np.cumprod(alpha)


class Schedule(nn.Module):
    """The noise of every step, and the laws that follow from it."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        alpha, kept = cosine_schedule(steps)
        before = np.append(1.0, kept[:-1])
        self.steps = steps
        for name, values in (("alpha", alpha), ("kept", kept), ("before", before)):
            self.register_buffer(name, torch.from_numpy(values).float(), persistent=False)

    def noisy_numbers(self, numbers: torch.Tensor, noise: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Return numbers after so many steps of noise."""
        kept = self.kept[step][:, None]
        return torch.sqrt(kept) * numbers + torch.sqrt(1 - kept) * noise

    def number_posterior(
        self, noisy: torch.Tensor, clean: torch.Tensor, step: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and variance of the numbers one step earlier, given the noisy and the clean ones."""
        alpha, kept, before = (own[step][:, None] for own in (self.alpha, self.kept, self.before))
        mean = (torch.sqrt(before) * (1 - alpha) * clean + torch.sqrt(alpha) * (1 - before) * noisy) / (
            1 - kept
        )
        return mean, (1 - alpha) * (1 - before) / (1 - kept)

    def noisy_chances(self, one_hot: torch.Tensor, step: torch.Tensor, even: torch.Tensor) -> torch.Tensor:
        """Return the chances of the levels after so many steps of noise; ``even`` are equal chances."""
        kept = self.kept[step][:, None]
        return kept * one_hot + (1 - kept) * even

    def level_posterior(
        self, noisy: torch.Tensor, clean: torch.Tensor, step: torch.Tensor, even: torch.Tensor, blocks: Blocks
    ) -> torch.Tensor:
        """Return the chances of the levels one step earlier, given noisy levels and (chances of) clean ones.

        For chances of clean levels it is the mean of the posteriors of all of them. Chances that were learned by
        cross-entropy know the noisy level already; to put them into the formula for one clean level would let it count
        twice, and every step would keep too much of what the noise drew.
        """
        alpha, before = self.alpha[step][:, None], self.before[step][:, None]
        kept = alpha * before
        likely = kept * noisy + (1 - kept) * even  # of the noisy level, were this one the clean one
        clean = clean / likely
        whole = (clean @ blocks.member)[:, blocks.owner]
        together = (alpha * noisy + (1 - alpha) * even) * (before * clean + (1 - before) * even * whole)
        return together / (together @ blocks.member)[:, blocks.owner]


class Denoiser(nn.Module):
    """From a noisy record and its step to the noise of the numbers and the logits of the clean levels."""

    def __init__(self, width: int, shape: DiffusionShape) -> None:
        super().__init__()
        self.places = 128
        self.time = nn.Sequential(
            nn.Linear(self.places, shape.width), nn.SiLU(), nn.Linear(shape.width, shape.width)
        )
        self.start = nn.Linear(width, shape.width)
        self.body = nn.ModuleList([nn.Linear(shape.width, shape.width) for _ in range(shape.layers)])
        self.end = nn.Linear(shape.width, width)
        rates = torch.exp(-math.log(10_000.0) * torch.arange(self.places // 2) / (self.places // 2))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, records: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """Return the raw outputs."""
        angles = step[:, None].float() * self.rates
        hidden = self.start(records) + self.time(torch.cat([torch.cos(angles), torch.sin(angles)], 1))
        for layer in self.body:
            hidden = hidden + torch.nn.functional.silu(layer(torch.nn.functional.silu(hidden)))
        return self.end(torch.nn.functional.silu(hidden))


class DiffusionTrainer(TableTrainer):
    """The denoiser, and a slow average of it that draws."""

    moved = "denoiser"

    def __init__(
        self,
        table: CodedTable,
        shape: DiffusionShape,
        batch: int,
        device: torch.device,
        held: CodedTable | None = None,
    ) -> None:
        super().__init__(table, shape, batch, device, held)
        self.schedule = Schedule(shape.steps).to(device)
        self.denoiser = Denoiser(table.width, shape).to(device)
        self.slow = Average(self.denoiser, shape.average)
        self.average = self.slow.network
        self.adam = adam(self.denoiser.parameters(), device, lr=shape.learning_rate, weight_decay=shape.decay)
        self.even = even_chances(self.records.blocks)

    def modules(self) -> dict[str, nn.Module]:
        """The network that learns and the average that draws."""
        return {"denoiser": self.denoiser, "average": self.average}

    def loss(self) -> torch.Tensor:
        """The loss of the batch at hand."""
        return self._loss(self.denoiser, self.records, self.batches.rows)

    def _loss(self, network: nn.Module, records: Records, rows: torch.Tensor) -> torch.Tensor:
        step = torch.randint(self.shape.steps, (len(rows),), device=self.device)
        numbers, codes = records.numbers[rows], records.codes[rows]
        noise = torch.randn_like(numbers)
        noisy = self.schedule.noisy_numbers(numbers, noise, step)
        chances = self.schedule.noisy_chances(records.blocks.one_hot(codes), step, self.even)
        levels = records.blocks.one_hot(records.blocks.drawn(chances))
        with half_precision(self.device, wanted=self.shape.mixed_precision, recorded=True):
            raw = network(torch.cat([noisy, levels], 1), step)
        raw = raw.float()
        of_numbers = ((raw[:, : self.numbers] - noise) ** 2).sum(1)
        of_codes = records.blocks.cross_entropy(raw[:, self.numbers :], codes).sum(1)
        return (of_numbers + self.shape.category_weight * of_codes).mean()

    def pace(self, done: float) -> None:
        """Let the rate fall to nothing."""
        set_rate(self.adam, self.shape.learning_rate * (1 - done))

    def held_out_loss(self) -> float | None:
        """Return the loss of the records that were held out, with the same noise at every look."""
        if self.held is None:
            return None
        rows = torch.arange(len(self.held), device=self.device)
        with own_noise(1, self.device), torch.no_grad():
            return float(self._loss(self.average, self.held, rows))


def even_chances(blocks: Blocks) -> torch.Tensor:
    """Return equal chances of all levels of each category."""
    return (1.0 / blocks.member.sum(0))[blocks.owner] if blocks.sizes else blocks.member.sum(1)


def sample_diffusion(
    denoiser: nn.Module,
    schedule: Schedule,
    blocks: Blocks,
    numbers: int,
    n: int,
    *,
    seed: int,
    mixed_precision: bool = False,
    fixed: tuple[slice, torch.Tensor] | None = None,
) -> tuple[Singles, Codes]:
    """Draw n records by undoing noise; ``fixed`` holds the levels of one category where they were asked for."""
    device = schedule.alpha.device
    even = even_chances(blocks)
    denoiser.eval()
    made: list[Singles] = []
    codes: list[Codes] = []
    with own_noise(seed, device), torch.inference_mode():
        for start in range(0, n, SAMPLE_BLOCK):
            size = min(SAMPLE_BLOCK, n - start)
            values = torch.randn(size, numbers, device=device)
            levels = blocks.one_hot(blocks.drawn(even.expand(size, -1)))
            for at in range(schedule.steps - 1, -1, -1):
                if fixed is not None:
                    levels[:, fixed[0]] = fixed[1][start : start + size]
                step = torch.full((size,), at, device=device)
                with half_precision(device, wanted=mixed_precision):
                    raw = denoiser(torch.cat([values, levels], 1), step)
                raw = raw.float()
                kept = schedule.kept[at]
                clean = (values - torch.sqrt(1 - kept) * raw[:, :numbers]) / torch.sqrt(kept)
                clean = clean.clamp(-4.5, 4.5)  # beyond what normal scores of a file reach
                mean, variance = schedule.number_posterior(values, clean, step)
                values = mean + torch.sqrt(variance) * torch.randn_like(values) if at else mean
                chances = blocks.softmax(raw[:, numbers:])
                if at:
                    chances = schedule.level_posterior(levels, chances, step, even, blocks)
                levels = blocks.one_hot(blocks.drawn(chances))
            made.append(values.cpu().numpy())
            codes.append(blocks.argmax(levels).cpu().numpy().astype(np.int32))
    return np.concatenate(made), np.concatenate(codes)
