"""How real do packs of records look, and how steep is that judgement between real and drawn ones?

A critic of records (Arjovsky, Chintala and Bottou 2017) is held to slope one on the way from drawn packs to real ones
(Gulrajani and others 2017). Its layers are bent lines: which side of the bend an input lies on does not change when
the weights change by a little. So the slope is a product of the weights with what is left open, and its own gradient
needs no second pass through the gradient of the first.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

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
