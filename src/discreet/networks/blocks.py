"""Records written out for a network (scaled numbers, then every category one-hot), and batches it learns from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from discreet.core.arrays import Codes
from discreet.networks.tables import CodedTable
from discreet.networks.training import Trainer, descended

_MOST_PAIRS = 60  # of columns, whose tables are compared


class Blocks:
    """Where the block of each category lies in the output of a network, and what is done to all blocks at once.

    Parameters
    ----------
    sizes
        How many codes each category has.
    device
        Where the tensors lie.

    Examples
    --------
    >>> blocks = Blocks((2, 3), torch.device("cpu"))
    >>> [round(share, 3) for share in blocks.softmax(torch.zeros(1, 5))[0].tolist()]
    [0.5, 0.5, 0.333, 0.333, 0.333]
    """

    def __init__(self, sizes: Sequence[int], device: torch.device) -> None:
        self.sizes = tuple(sizes)
        self.width = sum(self.sizes)
        self.starts = torch.tensor(
            [0, *np.cumsum(self.sizes)[:-1]][: len(self.sizes)], dtype=torch.int64, device=device
        )
        self.lengths = torch.tensor(self.sizes, dtype=torch.int64, device=device)
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.owner = torch.from_numpy(owner).to(device)
        self.member = torch.zeros(self.width, len(self.sizes), device=device)
        self.member[torch.arange(self.width, device=device), self.owner] = 1.0

    def one_hot(self, codes: torch.Tensor) -> torch.Tensor:
        """Write codes, one column a category, as zeros and ones."""
        made = torch.zeros(len(codes), self.width, device=codes.device)
        return made.scatter_(1, codes + self.starts, 1.0)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """Write one value a block at every code of it."""
        return values.index_select(1, self.owner)

    def largest(self, values: torch.Tensor) -> torch.Tensor:
        """Return the largest value of every block."""
        if (
            values.device.type == "cpu"
        ):  # Many small reductions down columns: there an order of magnitude faster.
            return torch.stack([part.amax(0) for part in values.T.contiguous().split(self.sizes)], 1)
        index = self.owner.expand(len(values), -1)
        lowest = values.new_full((len(values), len(self.sizes)), -torch.inf)
        return lowest.scatter_reduce(1, index, values, "amax")

    def padded(self, values: torch.Tensor, which: torch.Tensor) -> torch.Tensor:
        """Return of every record the values of one block, blocks that are shorter than others filled by -inf."""
        most = max(self.sizes)
        codes = torch.arange(most, device=values.device)
        own = values.gather(1, (self.starts[which][:, None] + codes).clamp_(max=self.width - 1))
        return own.masked_fill(codes >= self.lengths[which][:, None], -torch.inf)

    def log_softmax(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logarithms of the chances within every block."""
        return _LogSoftmax.apply(logits, self) if self.sizes else logits

    def softmax(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the chances within every block."""
        return _Softmax.apply(logits, self) if self.sizes else torch.exp(logits)

    def gumbel_softmax(self, logits: torch.Tensor, temperature: float) -> torch.Tensor:
        """Draw nearly one-hot vectors by which gradients can pass (Jang, Gu and Poole 2017)."""
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp_(1e-20, 1 - 1e-7)))
        return self.softmax((logits + noise) / temperature)

    def cross_entropy(self, logits: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Return the loss of every category and record: minus the logarithm of the chance of its code."""
        return -self.log_softmax(logits).gather(1, codes + self.starts)

    def drawn(self, chances: torch.Tensor) -> torch.Tensor:
        """Draw a code from each block, by chances or by their logarithms plus noise: the largest of a race."""
        race = torch.rand_like(chances).clamp_(min=1e-20).log_().neg_() / chances.clamp(min=1e-30)
        return self.argmax(-race)

    def argmax(self, values: torch.Tensor) -> torch.Tensor:
        """Return the code with the largest value of every block."""
        if not self.sizes:
            return torch.zeros(len(values), 0, dtype=torch.int64, device=values.device)
        return torch.stack([part.argmax(1) for part in values.split(self.sizes, 1)], 1)


class _Softmax(torch.autograd.Function):
    """The chances within every block; gradients by the closed form, for a recorded chain of steps costs more."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, blocks: Blocks) -> torch.Tensor:
        raised = torch.exp(logits - blocks.spread(blocks.largest(logits)))
        chances = raised / blocks.spread(raised @ blocks.member)
        ctx.blocks = blocks
        ctx.save_for_backward(chances)
        return chances

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> tuple[torch.Tensor, None]:
        (chances,) = ctx.saved_tensors
        own = above[0] * chances
        return own - chances * ctx.blocks.spread(own @ ctx.blocks.member), None


class _LogSoftmax(torch.autograd.Function):
    """The logarithms of the chances within every block, likewise."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, blocks: Blocks) -> torch.Tensor:
        shifted = logits - blocks.spread(blocks.largest(logits))
        logs = shifted - blocks.spread(torch.log(torch.exp(shifted) @ blocks.member))
        ctx.blocks = blocks
        ctx.save_for_backward(logs)
        return logs

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> tuple[torch.Tensor, None]:
        (logs,) = ctx.saved_tensors
        return above[0] - torch.exp(logs) * ctx.blocks.spread(above[0] @ ctx.blocks.member), None


class Records:
    """The records of a table on a device, written out batch by batch."""

    def __init__(self, table: CodedTable, device: torch.device) -> None:
        self.table = table
        self.device = device
        self.blocks = Blocks(table.sizes, device)
        self.numbers = torch.from_numpy(np.ascontiguousarray(table.numbers, dtype=np.float32)).to(device)
        self.codes = torch.from_numpy(np.ascontiguousarray(table.codes)).to(device, torch.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    def dense(self, rows: torch.Tensor) -> torch.Tensor:
        """Write some records out."""
        return torch.cat([self.numbers[rows], self.blocks.one_hot(self.codes[rows])], 1)


class Batches:
    """All records in a new order each epoch, cut into batches; the last few wait for the next order.

    ``rows`` are those of the batch at hand; they always lie in the same place, so that a recorded step finds them.
    """

    def __init__(self, count: int, size: int, device: torch.device) -> None:
        self.count, self.size, self.device = count, min(size, count), device
        self.per_epoch = max(count // self.size, 1)
        self.at = self.per_epoch
        self.order = torch.empty(0, dtype=torch.int64, device=device)
        self.rows = torch.zeros(self.size, dtype=torch.int64, device=device)

    def next(self) -> torch.Tensor:
        """Return the rows of the next batch."""
        if self.at >= self.per_epoch:
            self.order = torch.randperm(self.count, device=self.device)
            self.at = 0
        self.rows.copy_(self.order[self.at * self.size : (self.at + 1) * self.size])
        self.at += 1
        return self.rows


class TableTrainer(Trainer):
    """Networks that learn from batches of a coded table, by one optimizer."""

    adam: torch.optim.Adam
    moved: ClassVar[str]

    def __init__(
        self, table: CodedTable, shape: Any, batch: int, device: torch.device, held: CodedTable | None = None
    ) -> None:
        self.device, self.shape = device, shape
        self.records = Records(table, device)
        self.held = None if held is None else Records(held, device)
        self.numbers = table.numbers.shape[1]
        self.batches = Batches(len(table), batch, device)

    def steps_per_epoch(self) -> int:
        """How many batches there are."""
        return self.batches.per_epoch

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizer, under the name of what it moves."""
        return {self.moved: self.adam}

    def at_hand(self) -> None:
        """Choose the next batch."""
        self.batches.next()

    @abstractmethod
    def loss(self) -> torch.Tensor:
        """The loss of the batch at hand."""

    def learn(self) -> dict[str, torch.Tensor]:
        """Learn from one batch."""
        return {"loss": descended(self.adam, self.loss())}


def pair_distance(left: Codes, right: Codes, sizes: Sequence[int], rng: np.random.Generator) -> float:
    """Return the mean total variation distance of single and paired categories between two files of codes.

    Examples
    --------
    >>> codes = np.array([[0, 1], [1, 0]], "i4")
    >>> pair_distance(codes, codes, (2, 2), np.random.default_rng(1))
    0.0
    """
    count = len(sizes)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count) if sizes[a] * sizes[b] <= 100_000]
    chosen = [pairs[at] for at in rng.permutation(len(pairs))[:_MOST_PAIRS]]
    far = []
    for columns in (*((a,) for a in range(count)), *chosen):
        cells = [np.zeros(len(part), dtype=np.int64) for part in (left, right)]
        size = 1
        for column in columns:
            cells = [
                own * sizes[column] + part[:, column] for own, part in zip(cells, (left, right), strict=True)
            ]
            size *= sizes[column]
        shares = [np.bincount(own, minlength=size) / max(len(own), 1) for own in cells]
        far.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return float(np.mean(far)) if far else 0.0
