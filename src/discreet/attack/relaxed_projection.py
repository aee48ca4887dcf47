"""Many runs of relaxed projection, on the processor or on a graphics card, each with a seed of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.attack.counting_queries import Coded
from discreet.core.arrays import Floats, Integers, Singles
from discreet.core.errors import ParameterError
from discreet.core.randomness import generator

Device = Literal["auto", "cpu", "cuda"]
_PRODUCTS_AT_ONCE = 1 << 27


@dataclass(frozen=True)
class Projection:
    """What every run has in common.

    ``low`` and ``high`` are shares: between them a query is answered as published.
    """

    coded: Coded
    low: Floats
    high: Floats
    rows: int
    steps: int
    learning_rate: float
    batch: int
    seed: int
    prior: Integers | None = None

    def start(self, run: int) -> tuple[Singles, np.random.Generator]:
        """Free numbers to begin with: random, or bent towards records of a prior."""
        rng = generator(self.seed, "reconstruct", str(run))
        theta = rng.normal(size=(self.coded.width, self.rows)).astype(np.float32)
        if self.prior is not None:
            many = len(self.prior)
            picked = (
                rng.permutation(many)[: self.rows]
                if many >= self.rows
                else rng.integers(many, size=self.rows)
            )
            top, bottom = theta.max(axis=0), theta.min(axis=0)
            theta[:] = 2 * np.minimum(bottom, -np.abs(bottom))
            for a, start in enumerate(self.coded.starts[:-1]):
                theta[start + self.prior[picked, a], np.arange(self.rows)] = np.maximum(top, np.abs(top))
        return theta, rng

    def runs(self, count: int, *, device: Device = "auto", workers: int | None = None) -> Iterator[Singles]:
        """The chances of all rows after each run, in the order of the runs."""
        if device == "cuda" or (device == "auto" and _card_is_there()):
            yield from _on_card(self, count)
            return
        threads = max(1, min(workers or os.cpu_count() or 1, count))
        with ThreadPoolExecutor(threads) as pool:
            # A few runs ahead of what is read: the chances of all runs at once would fill the memory.
            waiting = [pool.submit(self._on_processor, run) for run in range(min(2 * threads, count))]
            for run in range(count):
                yield waiting.pop(0).result()
                if run + 2 * threads < count:
                    waiting.append(pool.submit(self._on_processor, run + 2 * threads))

    def _on_processor(self, run: int) -> Singles:
        from discreet.attack.projection_kernels import members_of, projected

        theta, rng = self.start(run)
        members, bounds = members_of(self.coded.factors)
        made: Singles = projected(
            theta,
            self.coded.starts,
            members,
            bounds,
            self.coded.queries,
            self.low,
            self.high,
            self.steps,
            self.batch,
            self.learning_rate,
            rng,
        )
        return made

    def answers(self, p: Singles) -> Floats:
        """The share that each query counts, given the chances of a run."""
        from discreet.attack.projection_kernels import answered, factored, members_of

        members, bounds = members_of(self.coded.factors)
        s = np.empty((len(bounds) - 1, p.shape[1]), dtype=np.float32)
        made = np.empty(len(self.coded.queries))
        factored(p, members, bounds, s)
        answered(s, self.coded.queries, np.empty(p.shape[1], dtype=np.float32), made)
        return made


def _card_is_there() -> bool:
    """Whether torch is installed and sees a card; without torch nobody asks for one."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _on_card(projection: Projection, count: int) -> Iterator[Singles]:
    """All runs side by side on a graphics card, as many at a time as its memory takes."""
    from discreet.core.errors import load_extra

    torch = load_extra("torch", extra="deep", purpose="Rebuilding on a graphics card")
    if not torch.cuda.is_available():
        raise ParameterError("device='cuda' needs a graphics card, and torch sees none. Use device='cpu'.")
    free, _ = torch.cuda.mem_get_info()
    # Six arrays of free numbers and two of factors are held at once, in 4 bytes each.
    one = 4 * projection.rows * (6 * projection.coded.width + 2 * len(projection.coded.factors))
    together = int(max(1, min(count, free // (4 * one))))
    for begin in range(0, count, together):
        yield from _runs_on_card(torch, projection, range(begin, min(begin + together, count)))


def _runs_on_card(torch: Any, own: Projection, numbers: Sequence[int]) -> Iterator[Singles]:
    card, coded = torch.device("cuda"), own.coded
    started = [own.start(run) for run in numbers]
    theta = torch.tensor(np.stack([theta for theta, _ in started]), device=card)
    draws = torch.Generator(device=card)
    draws.manual_seed(int(started[0][1].integers(2**62)))
    allowed = torch.tensor(coded.factors.astype(np.float32), device=card)
    # One factor more that is always 1 stands where a query has fewer than others.
    table = torch.tensor(np.where(coded.queries < 0, len(coded.factors), coded.queries), device=card)
    low, high = (torch.tensor(ends, device=card, dtype=torch.float32) for ends in (own.low, own.high))
    first, second = torch.zeros_like(theta), torch.zeros_like(theta)
    chunk = max(1, _PRODUCTS_AT_ONCE // (len(numbers) * own.rows))
    pieces = range(0, len(table), chunk)
    blocks = [slice(int(a), int(b)) for a, b in zip(coded.starts[:-1], coded.starts[1:], strict=True)]

    def softmax() -> Any:
        return torch.cat([torch.softmax(theta[:, block], dim=1) for block in blocks], dim=1)

    for step in range(1, own.steps + 1):
        p = softmax()
        s = torch.cat([allowed @ p, torch.ones_like(p[:, :1])], dim=1)
        made = torch.cat(
            [
                torch.stack([s[:, table[q : q + chunk, k]] for k in range(table.shape[1])])
                .prod(dim=0)
                .mean(dim=2)
                for q in pieces
            ],
            dim=1,
        )
        off = torch.clamp(made - low, max=0) + torch.clamp(made - high, min=0)
        size = off.abs()
        if float(size.sum(dim=1).max()) <= 1e-6:
            break
        picked = torch.multinomial(size + 1e-12, own.batch, replacement=True, generator=draws)
        often = torch.zeros_like(size).scatter_add_(1, picked, torch.ones_like(picked, dtype=size.dtype))
        norm = torch.sqrt((often * off * off).sum(dim=1, keepdim=True)).clamp(min=1e-20)
        pull = often * off / (norm * own.batch * own.rows)
        slope = torch.zeros_like(s)
        for q in pieces:
            part = table[q : q + chunk]
            values = [s[:, part[:, k]] for k in range(part.shape[1])]
            for k in range(part.shape[1]):
                others = pull[:, q : q + chunk, None]
                for j, value in enumerate(values):
                    if j != k:
                        others = others * value
                slope.index_add_(1, part[:, k], others.expand(-1, -1, own.rows).contiguous())
        back = allowed.T @ slope[:, :-1]
        gradient = torch.cat(
            [p[:, b] * (back[:, b] - (p[:, b] * back[:, b]).sum(dim=1, keepdim=True)) for b in blocks], dim=1
        )
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient * gradient
        theta = theta - own.learning_rate * (first / (1 - 0.9**step)) / (
            torch.sqrt(second / (1 - 0.999**step)) + 1e-8
        )
    yield from softmax().cpu().numpy()
