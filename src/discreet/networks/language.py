"""A decoder-only transformer that learns to write records token by token, and writes new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from discreet.core.arrays import Array
from discreet.networks.blocks import Batches
from discreet.networks.tokens import END, VOCABULARY, RowTokenizer
from discreet.networks.training import Trainer, half_precision, own_noise, set_rate

SAMPLE_BLOCK = 4096
_WARMUP = 100


@dataclass(frozen=True)
class LanguageShape:
    """The sizes and rates of the transformer."""

    layers: int = 4
    width: int = 128
    heads: int = 4
    dropout: float = 0.0
    learning_rate: float = 5e-4
    decay: float = 0.01
    mixed_precision: bool = True


class Layer(nn.Module):
    """Attention to what was written before, and a step of its own."""

    def __init__(self, shape: LanguageShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = shape.dropout
        self.before_attention = nn.LayerNorm(shape.width)
        self.attend = nn.Linear(shape.width, 3 * shape.width)
        self.merge = nn.Linear(shape.width, shape.width)
        self.before_step = nn.LayerNorm(shape.width)
        self.widen = nn.Linear(shape.width, 4 * shape.width)
        self.narrow = nn.Linear(4 * shape.width, shape.width)

    def forward(
        self, hidden: torch.Tensor, memory: tuple[torch.Tensor, torch.Tensor] | None = None, at: int = 0
    ) -> torch.Tensor:
        """Look at all tokens so far; with a memory, only the newest is computed and the others are remembered."""
        rows, length, width = hidden.shape
        shaped = self.attend(self.before_attention(hidden)).view(
            rows, length, 3, self.heads, width // self.heads
        )
        query, key, value = shaped.permute(2, 0, 3, 1, 4)
        if memory is not None:
            memory[0][:, :, at : at + length] = key
            memory[1][:, :, at : at + length] = value
            key, value = memory[0][:, :, : at + length], memory[1][:, :, : at + length]
        seen = functional.scaled_dot_product_attention(
            query, key, value, is_causal=memory is None, dropout_p=self.dropout if self.training else 0.0
        )
        hidden = hidden + self.merge(seen.transpose(1, 2).reshape(rows, length, width))
        return hidden + self.narrow(functional.gelu(self.widen(self.before_step(hidden))))


class Writer(nn.Module):
    """From the tokens before, and the places that are to be filled, to the chances of the tokens there."""

    def __init__(self, shape: LanguageShape, states: int) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(VOCABULARY, shape.width)
        self.places = nn.Embedding(states + 1, shape.width)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        self.apply(_started)

    def forward(
        self,
        before: torch.Tensor,
        states: torch.Tensor,
        memories: list[tuple[torch.Tensor, torch.Tensor]] | None = None,
        at: int = 0,
    ) -> torch.Tensor:
        """Return the logits of every place; ``before`` are the tokens that come just before each."""
        hidden = self.words(before) + self.places(states)
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden, None if memories is None else memories[number], at)
        return functional.linear(self.norm(hidden), self.words.weight)


def _started(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


class LanguageTrainer(Trainer):
    """The writer, learning the next token of every record."""

    recordable = False  # its kernels are large enough to be asked for one by one

    def __init__(
        self,
        tokens: Array,
        tokenizer: RowTokenizer,
        shape: LanguageShape,
        *,
        batch: int,
        device: torch.device,
        held: Array | None = None,
    ) -> None:
        self.device = device
        self.shape = shape
        self.end = tokenizer.states
        self.tokens, self.states = self._laid(tokens, tokenizer)
        self.held = None if held is None else self._laid(held, tokenizer)
        self.writer = Writer(shape, tokenizer.states).to(device)
        fused = device.type in ("cpu", "cuda")
        self.adam = torch.optim.AdamW(
            self.writer.parameters(), lr=shape.learning_rate, weight_decay=shape.decay, fused=fused
        )
        self.batches = Batches(len(tokens), batch, device)
        self.taken = 0

    def _laid(self, tokens: Array, tokenizer: RowTokenizer) -> tuple[torch.Tensor, torch.Tensor]:
        states = tokenizer.state_of(tokens)
        return (
            torch.from_numpy(tokens.astype(np.int32)).to(self.device),
            torch.from_numpy(states.astype(np.int32)).to(self.device),
        )

    def steps_per_epoch(self) -> int:
        """How many batches there are."""
        return self.batches.per_epoch

    def modules(self) -> dict[str, nn.Module]:
        """The writer."""
        return {"writer": self.writer}

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizer."""
        return {"writer": self.adam}

    def resumed(self, epochs: int) -> None:
        """Remember how far the rate has risen."""
        self.taken = epochs * self.steps_per_epoch()

    def _loss(self, tokens: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        tokens, states = tokens.long(), states.long()
        before = functional.pad(tokens[:, :-1], (1, 0))
        with half_precision(self.device, wanted=self.shape.mixed_precision):
            logits = self.writer(before, states)
        return next_token_loss(logits.float(), tokens, states < self.end)

    def at_hand(self) -> None:
        """Choose the next batch, and let the rate rise."""
        self.taken += 1
        set_rate(self.adam, self.shape.learning_rate * min(1.0, self.taken / _WARMUP))
        self.batches.next()

    def learn(self) -> dict[str, torch.Tensor]:
        """Learn from one batch."""
        rows = self.batches.rows
        loss = self._loss(self.tokens[rows], self.states[rows])
        self.adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.writer.parameters(), 1.0)
        self.adam.step()
        return {"loss": loss.detach()}

    def held_out_loss(self) -> float | None:
        """Return the loss a token of the records that were held out."""
        if self.held is None:
            return None
        self.writer.eval()
        with torch.no_grad():
            parts = [
                (float(self._loss(tokens, states)), len(tokens))
                for tokens, states in zip(self.held[0].split(1024), self.held[1].split(1024), strict=True)
            ]
        self.writer.train()
        return sum(loss * rows for loss, rows in parts) / sum(rows for _, rows in parts)


def next_token_loss(logits: torch.Tensor, tokens: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the tokens that are there, filling left aside."""
    losses = functional.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")
    return (losses * there).sum() / there.sum().clamp(min=1)


def write_rows(
    writer: Writer,
    tokenizer: RowTokenizer,
    n: int,
    *,
    seed: int,
    temperature: float = 1.0,
    guided: bool = True,
    start: Array | None = None,
) -> Array:
    """Write n records; ``start`` are the tokens of the first column, where they are given."""
    device = writer.words.weight.device
    shape = writer.shape
    tables = {name: torch.from_numpy(table).to(device) for name, table in tokenizer.tables().items()}
    allowed = torch.from_numpy(tokenizer.allowed()).to(device)
    longest = tokenizer.longest
    writer.eval()
    blocks = []
    with (
        own_noise(seed, device),
        torch.inference_mode(),
        half_precision(device, wanted=shape.mixed_precision),
    ):
        kind = torch.bfloat16 if torch.is_autocast_enabled(device.type) else torch.float32
        for first in range(0, n, SAMPLE_BLOCK):
            rows = min(SAMPLE_BLOCK, n - first)
            sizes = (rows, shape.heads, longest, shape.width // shape.heads)
            empty = [torch.zeros(sizes, device=device, dtype=kind) for _ in range(2 * shape.layers)]
            memories = list(zip(empty[::2], empty[1::2], strict=True))
            state = torch.zeros(rows, dtype=torch.int64, device=device)
            token = torch.zeros(rows, dtype=torch.int64, device=device)
            made = torch.zeros(rows, longest, dtype=torch.int16, device=device)
            for place in range(longest):
                logits = writer(token[:, None], state[:, None], memories, place)[:, 0].float()
                if guided:
                    logits = logits.masked_fill(~allowed[state], -torch.inf)
                chances = torch.softmax(logits / temperature, 1)
                token = torch.multinomial(chances, 1)[:, 0]
                if start is not None and place < start.shape[1]:
                    token = torch.from_numpy(start[first : first + rows, place].astype(np.int64)).to(device)
                token = torch.where(state < tokenizer.states, token, 0)
                made[:, place] = token
                ends = tables["last"][state] | (tables["varies"][state] & (token == END))
                state = torch.where(ends, tables["next"][state], (state + 1).clamp(max=tokenizer.states))
            blocks.append(made.cpu().numpy())
    return np.concatenate(blocks)
