"""A variational autoencoder of records (TVAE), and the robust one that outliers cannot pull (beta-divergence).

Xu and others (2019); Akrami, Joshi, Li, Aydöre and Leahy (2022). A record is encoded as a point with an uncertainty;
the decoder gives the law of every column at that point: normal for numbers, chances for categories. What is drawn is
drawn from that law, so that rare levels come as often as they should.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from discreet.core.arrays import Codes, Singles
from discreet.networks.blocks import Blocks, Records, TableTrainer
from discreet.networks.tables import CodedTable
from discreet.networks.training import adam, own_noise, set_rate

SAMPLE_BLOCK = 4000
_LEAST_SPREAD, _MOST_SPREAD = 0.01, 1.0


@dataclass(frozen=True)
class VaeShape:
    """The sizes and rates of encoder and decoder."""

    latent: int = 128
    width: int = 256
    layers: int = 2
    learning_rate: float = 1e-3
    decay: float = 1e-5
    fit_weight: float = 1.0
    beta: float = 0.0


def _layers(before: int, width: int, count: int) -> tuple[nn.Sequential, int]:
    parts: list[nn.Module] = []
    for _ in range(count):
        parts += [nn.Linear(before, width), nn.ReLU()]
        before = width
    return nn.Sequential(*parts), before


class Encoder(nn.Module):
    """From a record to the middle and the (log) variance of a point."""

    def __init__(self, inputs: int, shape: VaeShape) -> None:
        super().__init__()
        self.body, width = _layers(inputs, shape.width, shape.layers)
        self.ends = nn.Linear(width, 2 * shape.latent)

    def forward(self, records: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return middle and log variance."""
        middle, log_variance = self.ends(self.body(records)).chunk(2, 1)
        return middle, log_variance


class Decoder(nn.Module):
    """From a point to raw numbers, logits of categories, and the spread of each number."""

    def __init__(self, numbers: int, outputs: int, shape: VaeShape) -> None:
        super().__init__()
        self.body, width = _layers(shape.latent, shape.width, shape.layers)
        self.ends = nn.Linear(width, outputs)
        self.spread = nn.Parameter(torch.full((numbers,), 0.1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Return the raw outputs."""
        return self.ends(self.body(points))

    @property
    def spreads(self) -> torch.Tensor:
        """The spreads of numbers, kept from vanishing."""
        return self.spread.clamp(_LEAST_SPREAD, _MOST_SPREAD)


def fit_loss(
    raw: torch.Tensor,
    numbers: torch.Tensor,
    codes: torch.Tensor,
    *,
    spreads: torch.Tensor,
    blocks: Blocks,
    beta: float = 0.0,
) -> torch.Tensor:
    """Return how badly the laws of the decoder fit the records, summed over columns, one number a record.

    With beta 0 that is minus the log-likelihood (without the constant of normal laws). Above 0 it is the
    beta-cross-entropy, in which a value that the law finds impossible counts no more than a bounded amount.
    """
    width = numbers.shape[1]
    middle = torch.tanh(raw[:, :width])
    far = (numbers - middle) ** 2 / (2 * spreads**2)
    if beta <= 0:
        return (far + torch.log(spreads)).sum(1) + blocks.cross_entropy(raw[:, width:], codes).sum(1)
    logs = -far - torch.log(spreads) - 0.5 * math.log(2 * math.pi)
    whole = (2 * math.pi * spreads**2) ** (-beta / 2) / math.sqrt(1 + beta)
    of_numbers = -(1 + beta) / beta * (torch.exp(beta * logs) - 1) + whole
    log_chances = blocks.log_softmax(raw[:, width:])
    own = log_chances.gather(1, codes + blocks.starts)
    total = torch.exp((1 + beta) * log_chances) @ blocks.member
    of_codes = -(1 + beta) / beta * (torch.exp(beta * own) - 1) + total
    return of_numbers.sum(1) + of_codes.sum(1)


def normal_divergence(middle: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """Return how far the normal laws of points lie from the standard one, one number a record."""
    return -0.5 * (1 + log_variance - middle**2 - log_variance.exp()).sum(1)


class VaeTrainer(TableTrainer):
    """Encoder and decoder, trained together."""

    moved = "both"

    def __init__(
        self,
        table: CodedTable,
        shape: VaeShape,
        batch: int,
        device: torch.device,
        held: CodedTable | None = None,
    ) -> None:
        super().__init__(table, shape, batch, device, held)
        self.encoder = Encoder(table.width, shape).to(device)
        self.decoder = Decoder(self.numbers, table.width, shape).to(device)
        parameters = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.adam = adam(parameters, device, lr=shape.learning_rate, weight_decay=shape.decay)

    def modules(self) -> dict[str, nn.Module]:
        """Both networks; the decoder draws."""
        return {"encoder": self.encoder, "decoder": self.decoder}

    def loss(self) -> torch.Tensor:
        """The loss of the batch at hand."""
        return self._loss(self.records, self.batches.rows)

    def _loss(self, records: Records, rows: torch.Tensor) -> torch.Tensor:
        middle, log_variance = self.encoder(records.dense(rows))
        points = middle + torch.randn_like(middle) * torch.exp(0.5 * log_variance)
        fit = fit_loss(
            self.decoder(points),
            records.numbers[rows],
            records.codes[rows],
            spreads=self.decoder.spreads,
            blocks=records.blocks,
            beta=self.shape.beta,
        )
        return (self.shape.fit_weight * fit + normal_divergence(middle, log_variance)).mean()

    def pace(self, done: float) -> None:
        """Keep the rate for the first half of the training, then let it fall to nothing."""
        set_rate(self.adam, self.shape.learning_rate * min(1.0, 2 * (1 - done)))

    def held_out_loss(self) -> float | None:
        """Return the loss of the records that were held out."""
        if self.held is None:
            return None
        with torch.no_grad():
            return float(self._loss(self.held, torch.arange(len(self.held), device=self.device)))


def sample_vae(
    decoder: Decoder, blocks: Blocks, shape: VaeShape, n: int, *, seed: int, device: torch.device
) -> tuple[Singles, Codes]:
    """Draw n records: numbers and codes."""
    decoder.eval()
    numbers, codes = [], []
    with own_noise(seed, device), torch.inference_mode():
        for start in range(0, n, SAMPLE_BLOCK):
            points = torch.randn(min(SAMPLE_BLOCK, n - start), shape.latent, device=device)
            raw = decoder(points)
            width = raw.shape[1] - blocks.width
            middle = torch.tanh(raw[:, :width])
            made = middle + torch.randn_like(middle) * decoder.spreads
            numbers.append(made.clamp(-1, 1).cpu().numpy())
            codes.append(blocks.drawn(blocks.softmax(raw[:, width:])).cpu().numpy().astype(np.int32))
    return np.concatenate(numbers), np.concatenate(codes)
