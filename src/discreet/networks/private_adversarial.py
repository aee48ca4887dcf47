"""Generators that learn from real records through noise alone: private gradients of a critic, or noisy votes of many.

This module trains; it knows no mechanism and draws no noise of its own. What it reads of the records are whole numbers
with a bound that holds for every record: the clipped gradients of a critic (`Gradients`, for DPGAN of Xie, Lin, Wang,
Wang and Zhou 2018 after Abadi and others 2016), and the votes of teachers that have disjoint parts of the records
(`Teachers`, for PATE-GAN of Jordon, Yoon and van der Schaar 2019). Who calls it adds the noise before anything is
learned from them; all else sees noise only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from discreet.core.arrays import Codes, Floats, Integers
from discreet.networks.blocks import Blocks
from discreet.networks.training import descended, own_noise

_SAMPLE_BLOCK = 10_000
_LEAK = 0.2
_PER_ONE, _TABLE = 1024, 32 * 1024  # places of the table to 1, and its last place


@dataclass(frozen=True)
class PrivateShape:
    """The sizes and rates of generator and critics."""

    noise: int = 32
    width: int = 64
    critic: int = 32
    temperature: float = 0.5
    learning_rate: float = 2e-3
    match: float = 20.0


def generator_of(shape: PrivateShape, outputs: int) -> nn.Sequential:
    """Return the network that makes records from noise."""
    return nn.Sequential(
        nn.Linear(shape.noise, shape.width),
        nn.ReLU(),
        nn.Linear(shape.width, shape.width),
        nn.ReLU(),
        nn.Linear(shape.width, outputs),
    )


class PrivateGan:
    """A generator and the critic it learns from.

    Parameters
    ----------
    sizes
        How many codes each column has.
    shares
        The shares of the codes of all columns, one after the other, as far as they are known from noisy counts.
    shape
        Sizes and rates.
    """

    def __init__(self, sizes: tuple[int, ...], shares: Floats, shape: PrivateShape) -> None:
        self.shape = shape
        self.blocks = Blocks(sizes, torch.device("cpu"))
        self.shares = torch.from_numpy(np.asarray(shares, dtype=np.float32))
        self.generator = generator_of(shape, self.blocks.width)
        self.critic = critic_of(shape, self.blocks.width)
        rates: dict[str, Any] = {"lr": shape.learning_rate, "betas": (0.5, 0.9)}
        self.adam_generator = torch.optim.Adam(self.generator.parameters(), **rates)
        self.adam_critic = torch.optim.Adam(self.critic.parameters(), **rates)

    def drawn(self, n: int) -> torch.Tensor:
        """Draw records, nearly one-hot."""
        noise = torch.randn(n, self.shape.noise)
        return self.blocks.gumbel_softmax(self.generator(noise), self.shape.temperature)

    def critic_step(self, real: Floats, n: int) -> None:
        """Let the critic learn from a (noisy) gradient of real records, and from drawn ones."""
        with torch.no_grad():
            fake = self.drawn(n)
        self.adam_critic.zero_grad()
        functional.softplus(self.critic(fake)).mean().backward()
        at = 0
        for own in self.critic.parameters():
            part = torch.from_numpy(np.asarray(real[at : at + own.numel()], dtype=np.float32))
            assert own.grad is not None
            own.grad += part.reshape(own.shape)
            at += own.numel()
        self.adam_critic.step()

    def student_step(self, records: torch.Tensor, labels: Floats) -> None:
        """Let the critic learn what (noisy) votes say of drawn records."""
        truth = torch.from_numpy(np.asarray(labels, dtype=np.float32))
        loss = functional.binary_cross_entropy_with_logits(self.critic(records)[:, 0], truth)
        descended(self.adam_critic, loss)

    def generator_step(self, n: int) -> None:
        """Let the generator learn to please the critic, and to keep the shares that are known."""
        fake = self.drawn(n)
        off = fake.mean(0) - self.shares
        loss = functional.softplus(-self.critic(fake)).mean() + self.shape.match * (off**2).sum()
        descended(self.adam_generator, loss)

    def weights(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the weights of the generator; the critic draws nothing."""
        return {name: own.detach().numpy().copy() for name, own in self.generator.state_dict().items()}


def critic_of(shape: PrivateShape, inputs: int) -> nn.Sequential:
    """Return a critic: how real does a record look?"""
    return nn.Sequential(nn.Linear(inputs, shape.critic), nn.LeakyReLU(_LEAK), nn.Linear(shape.critic, 1))


class Gradients:
    """The gradients by which a critic learns from real records, in whole steps of a length that is bounded.

    A gradient longer than 1 is made 1 long; then it is cut to whole steps towards zero, of which ``most`` are a length
    of 1. Whole numbers are added without error, and the length is tested in whole numbers, so that one record moves the
    sum by no more than ``most``. For this to hold, what a record adds must not hang on which others are beside it, not
    in its last digit: everything is computed element by element, with additions in a fixed order, and the one function
    that libraries compute differently at the end of an array is read from a table.

    Parameters
    ----------
    critic
        The critic of `critic_of`.
    starts
        Where the codes of each column begin among the inputs.
    most
        How many steps a length of 1 has.
    """

    def __init__(self, critic: nn.Module, starts: Integers, most: int) -> None:
        self.critic, self.starts, self.most = critic, starts, most
        places = np.arange(-_TABLE, _TABLE + 1) / _PER_ONE
        self.table = 1 / (1 + np.exp(places))

    def total(self, codes: Integers) -> Integers:
        """Return the sum of the gradients of records, given by their codes, one column a column."""
        with np.errstate(all="ignore"):  # weights that have run away give gradients that count as nothing
            return self._total(codes)

    def _total(self, codes: Integers) -> Integers:
        first, shift, second, last = (
            own.detach().numpy().astype(np.float64) for own in self.critic.parameters()
        )
        inputs = first.T[codes + self.starts]
        before = np.zeros((len(codes), len(shift))) + shift
        for column in range(codes.shape[1]):
            before = before + inputs[:, column]
        bend = np.where(before > 0, 1.0, _LEAK)
        hidden = before * bend
        judged = np.zeros(len(codes)) + last[0]
        for place in range(len(shift)):
            judged = judged + hidden[:, place] * second[0, place]
        judged = np.nan_to_num(judged, nan=0.0, posinf=np.inf, neginf=-np.inf)
        at = np.clip(np.rint(judged * _PER_ONE), -_TABLE, _TABLE).astype(np.int64) + _TABLE
        slope = -self.table[at]
        inner = slope[:, None] * second * bend
        outer = slope[:, None] * hidden
        return self._added(codes, first.shape, self._wholes(inner, outer, slope, codes.shape[1] + 1))

    def _wholes(
        self, inner: Floats, outer: Floats, slope: Floats, often: int
    ) -> tuple[Integers, Integers, Integers]:
        """Return the parts of every gradient in whole steps; the inner part stands in it ``often`` times."""
        length = slope * slope
        for place in range(inner.shape[1]):
            length = length + outer[:, place] * outer[:, place] + often * (inner[:, place] * inner[:, place])
        shorter = self.most / np.maximum(np.sqrt(length), 1.0)
        parts = [np.trunc(np.nan_to_num(own * shorter[:, None])) for own in (inner, outer, slope[:, None])]
        # Whatever went wrong before, no part is longer than all may be, and so no square passes 64 bits.
        whole = [np.clip(own, -self.most, self.most).astype(np.int64) for own in parts]
        squared = often * (whole[0] ** 2).sum(1) + (whole[1] ** 2).sum(1) + whole[2][:, 0] ** 2
        good = (squared <= self.most**2)[:, None]
        return whole[0] * good, whole[1] * good, whole[2] * good

    def _added(
        self, codes: Integers, size: tuple[int, ...], wholes: tuple[Integers, Integers, Integers]
    ) -> Integers:
        """Add up, in the order of the parameters of the critic."""
        inner, outer, slope = wholes
        first = np.zeros((size[1], size[0]), dtype=np.int64)
        for column in range(codes.shape[1]):
            np.add.at(first, codes[:, column] + self.starts[column], inner)
        return np.concatenate([first.T.ravel(), inner.sum(0), outer.sum(0), slope.sum(0)])


class Teachers:
    """Critics that each know a part of the records that no other knows.

    Parameters
    ----------
    parts
        The rows of each teacher.
    records
        All records, one-hot.
    shape
        Sizes and rates.
    """

    def __init__(self, parts: list[Integers], records: torch.Tensor, shape: PrivateShape) -> None:
        many, inputs = len(parts), records.shape[1]
        self.records = records
        self.counts = torch.tensor([len(own) for own in parts])
        longest = max(int(self.counts.max()), 1)
        self.rows = torch.zeros(many, longest, dtype=torch.int64)
        for place, own in enumerate(parts):
            self.rows[place, : len(own)] = torch.from_numpy(np.asarray(own, dtype=np.int64))
        spread = inputs**-0.5
        self.first = ((torch.rand(many, inputs, shape.critic) * 2 - 1) * spread).requires_grad_()
        self.first_shift = torch.zeros(many, 1, shape.critic, requires_grad=True)
        self.second = ((torch.rand(many, shape.critic, 1) * 2 - 1) * shape.critic**-0.5).requires_grad_()
        self.second_shift = torch.zeros(many, 1, 1, requires_grad=True)
        weights = [self.first, self.first_shift, self.second, self.second_shift]
        self.adam = torch.optim.Adam(weights, lr=shape.learning_rate, betas=(0.5, 0.9))

    def __len__(self) -> int:
        return len(self.counts)

    def judged(self, records: torch.Tensor) -> torch.Tensor:
        """Return what every teacher says of its records, (teachers, records)."""
        hidden = functional.leaky_relu(records @ self.first + self.first_shift, _LEAK)
        return (hidden @ self.second + self.second_shift)[..., 0]

    def learn(self, fake: torch.Tensor, n: int) -> None:
        """Let every teacher learn from n of its own records and from drawn ones.

        The loss is a sum over teachers, and Adam works on each weight by itself: no teacher learns from another.
        """
        places = (torch.rand(len(self), n) * self.counts[:, None]).long()
        rows = self.rows.gather(1, places.clamp(max=self.rows.shape[1] - 1))
        some = (self.counts > 0)[:, None]
        real = functional.softplus(-self.judged(self.records[rows])) * some
        loss = (real.mean(1) + functional.softplus(self.judged(fake)).mean(1)).sum()
        descended(self.adam, loss)

    def votes(self, records: torch.Tensor) -> Integers:
        """Return how many teachers take each record for real: one teacher changes each by one at most."""
        with torch.no_grad():
            return np.asarray((self.judged(records) > 0).sum(0).numpy(), dtype=np.int64)


def drawn_codes(
    shape: PrivateShape, weights: dict[str, Any], sizes: tuple[int, ...], n: int, *, seed: int
) -> Codes:
    """Draw the codes of n records from the weights of a generator."""
    cpu = torch.device("cpu")
    blocks = Blocks(sizes, cpu)
    generator = generator_of(shape, blocks.width)
    generator.load_state_dict({name: torch.from_numpy(np.asarray(own)) for name, own in weights.items()})
    made = []
    with own_noise(seed, cpu), torch.inference_mode():
        for start in range(0, n, _SAMPLE_BLOCK):
            noise = torch.randn(min(_SAMPLE_BLOCK, n - start), shape.noise)
            made.append(blocks.drawn(blocks.softmax(generator(noise))).numpy().astype(np.int32))
    return np.concatenate(made) if made else np.empty((0, len(sizes)), dtype=np.int32)
