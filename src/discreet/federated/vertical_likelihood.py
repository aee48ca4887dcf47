"""What is the joint likelihood of columns that lie with different holders? The masked round robin, one role a party.

The coordinator (without data) proposes a mean and a covariance; the holders pass masked residuals and a running total
on; the coordinator ends with one number. Three things differ from the source, where it gives away more than it says:

- The running total travels on a ring under two uniform masks (of the first and of the last holder). In the clear, the
  next holder, who is told P_k, collects one linear equation about the rows before it from every evaluation.
- The noise Q_k is drawn on the scale of the data and divided by S_k, and the first holder uses the same R_1 and Q_1 in
  every evaluation. With fresh ones the coordinator averages them away; with a fixed Q that is not divided, two
  covariances are enough to solve for the rows.
- With row chunks the total goes on from chunk to chunk, so that no chunk's likelihood becomes known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.federated.kinds import floats, hexadecimal, optional, text, texts, whole
from discreet.federated.likelihood_steps import STEP, Step, Turns
from discreet.federated.messages import ALONE, Asked, Message, ProtocolError, Request, Takes, rows_asked, used
from discreet.federated.normal_likelihood import LOG_2_PI, Conditional, lower_factor, minus_two_log_likelihood
from discreet.federated.parties import HeldTotal, Holder, Role, plays
from discreet.federated.quantities import Ring, quantity

RING = Ring(192, 64)
PROTOCOL = "vertical-likelihood"
_BLOCK = 32


def dot(one: Floats, other: Floats) -> int:
    """Add up the elementwise products, on the ring's grid and without losing small parts to large ones.

    Masked sums are a million times larger than what they hide; a total in one floating-point number would round it off.

    Examples
    --------
    >>> dot(np.array([[1.5, 2.0]]), np.array([[2.0, 0.25]])) / 2**RING.frac
    3.5
    """
    left, right = np.ascontiguousarray(one).reshape(-1), np.ascontiguousarray(other).reshape(-1)
    whole = len(left) - len(left) % _BLOCK
    sums = np.einsum("ij,ij->i", left[:whole].reshape(-1, _BLOCK), right[:whole].reshape(-1, _BLOCK)).tolist()
    sums += (left[whole:] * right[whole:]).tolist()
    upper = math.fsum(sums)
    return on_grid(upper) + on_grid(math.fsum([*sums, -upper]))


def on_grid(value: float) -> int:
    """Write a number as a whole one on the ring's grid."""
    return round(math.ldexp(value, RING.frac))


class Noise:
    """The noise of a holder or of the coordinator; tests replace it by printed numbers."""

    def __init__(self, masks: Any) -> None:
        self.masks = masks

    def fresh(self, name: str, shape: tuple[int, int], scales: Floats) -> Floats:
        """Draw new noise for a matrix called ``name``, column by column on its scale."""
        drawn: Floats = self.masks.normal(shape)
        drawn *= scales
        return drawn

    def same(self, name: str, shape: tuple[int, int], scales: Floats, label: str) -> Floats:
        """Draw noise that is the same in every evaluation."""
        drawn: Floats = self.masks.kept(shape, f"{name} {label}")
        drawn *= scales
        return drawn

    def divided(self, noise: Floats, inverse: Floats) -> Floats:
        """Bring the noise Q to the scale of what it hides."""
        return np.asarray(noise @ inverse)

    def whole(self) -> int:
        """Draw the mask of a running total."""
        return int(self.masks.whole(RING.bits))


_LAW = {"columns": texts, "covariance": floats, "mean": floats}


def _evaluated(role: Any, message: Message) -> Asked:
    """Read whose columns an evaluation uses; it begins with the first rows, and the rest belongs to it.

    The means come row by row, under noise that only the analyst knows: two evaluations that differ in the mean of one
    row would tell that row, and no site can see the difference.
    """
    values = message.values
    step = Step.read(message)
    alone = () if values["keep_total"] else (ALONE,)
    others = tuple(name for name in step.nodes if name != role.party.name)
    begins = step.chunk == 0
    return Asked(
        (used(values),), counts=begins, moments=True, others=others, added_with=alone,
        scales=tuple(step.own_scales.tolist()) if begins else (), trust=True,
    )  # fmt: skip


def _waiting(role: Any, message: Message) -> Asked:
    """Read what the message that came before this one asked for: both together are answered."""
    before = role.waiting("conditional")
    return Asked() if before is None else Asked(before.asked.uses)


@plays
class Node(Role):
    """The part of a holder of columns.

    Residuals under noise go to the coordinator, the noise to the next holder: nobody gets both.
    """

    protocol = PROTOCOL
    takes: ClassVar = {
        "join": Takes({"columns": texts, "block": optional(text)}, asks=rows_asked()),
        "first": Takes({**STEP, **_LAW, "last_noise": floats}, asks=_evaluated),
        "conditional": Takes({**STEP, **_LAW, "weights": floats, "noise": floats}, asks=_evaluated),
        "masks": Takes({**STEP, "q": floats, "r": floats, "m": optional(floats), "total": hexadecimal}, "site",
                       _waiting),
        "last": Takes({**STEP, "q": floats, "total": hexadecimal}, "site"),
        "alone": Takes({"columns": texts, "block": text, "mu": floats, "sigma": floats, "evaluation": whole},
                       asks=rows_asked()),
    }  # fmt: skip
    sends: ClassVar = {
        "joined": "coordinator", "answers": "coordinator", "chunk": "coordinator", "total": "coordinator",
        "masks": "site", "last": "site",
    }  # fmt: skip

    def __init__(self, party: Any, run: str) -> None:
        super().__init__(party, run)
        self.noise = getattr(party, "noise", None) or Noise(party.masks)
        self._kept: dict[str, tuple[Floats, Floats]] = {}
        self._spread: dict[tuple[str, tuple[str, ...]], Floats] = {}
        self._columns: tuple[str, ...] = ()
        self._bound: Any = None
        self._turns = Turns()
        self._begun: Step | None = None

    def on_join(self, message: Request) -> list[Message]:
        """Tell the number of rows, the spread of one's columns, and a digest of whose rows they are."""
        own = self.party.matrix(message.asked.columns, message.asked.block)
        digest = self.party.row_digest(message.asked.block, self.run)
        return [self.send(message.sender, "joined", rows=len(own), scales=own.std(axis=0), rows_are=digest)]

    def on_first(self, message: Request) -> list[Message]:
        """Begin a chunk: the part of the first holder."""
        step = Step.read(message)
        if step.place != 0:
            raise ProtocolError("Only the first holder begins.")
        if step.chunk == 0:
            self.mask = self.noise.whole()
            self.total = self.mask
        self._begun = step
        self.last_noise = message.array("last_noise", (step.rows, None))
        residual = self._own(message, step) - message.array("mean", (step.rows, step.width))
        return self._passed_on(message, step, residual, self.total, None, np.zeros(step.width))

    def on_conditional(self, message: Request) -> list[Message]:
        """Go on once the coordinator's message and the masks of the holder before are both there."""
        found = self.both(message, ("conditional", "masks"))
        if not found:
            return []
        central, before = found["conditional"], found["masks"]
        step = Step.read(central)
        told = Step.read(before, place=step.place)
        if (
            before.sender != step.nodes[step.place - 1]
            or told.place != step.place - 1
            or not step.same_as(told)
        ):
            raise ProtocolError(f"'{central.sender}' and '{before.sender}' speak of different evaluations.")
        widths, place = step.widths, step.place
        earlier, later = widths[place - 1], sum(widths[place:])
        total = RING.words([int(str(before.values["total"]), 16)])[0]
        noise = central.array("noise", (step.rows, earlier))
        total = _reduced(total - dot(noise, before.array("q", (step.rows, earlier))))
        weights, cover = central.array("weights", (later, earlier)), before.array("r", (step.rows, earlier))
        mean = central.array("mean", (step.rows, later)) - (cover - noise) @ weights.T
        hidden = cover @ weights.T
        if place > 1:
            mean, hidden = mean - before.array("m", (step.rows, later)), hidden + before.values["m"]
        # The noise of the holder before is in what is sent on. Whoever chose the weights must not read it there.
        hidden = np.sqrt((hidden**2).mean(axis=0))
        residual = self._own(central, step) - mean[:, : step.width]
        return self._passed_on(central, step, residual, total, mean[:, step.width :], hidden)

    on_masks = on_conditional

    def _passed_on(  # noqa: PLR0917
        self, message: Request, step: Step, residual: Floats, total: int, later: Floats | None, hidden: Floats
    ) -> list[Message]:
        covariance = message.array("covariance", (step.width, step.width))
        if lower_factor(covariance) is None:
            raise ProtocolError("The covariance that was sent is not positive definite.")
        inverse = np.linalg.inv(covariance)
        inverse = (inverse + inverse.T) / 2
        r, q = self._drawn(step, inverse, hidden[: step.width], message.asked.columns)
        scaled = residual @ inverse
        # <D1 S^-1, D2> + <R S^-1, R> is <a S^-1, a>: R cancels, and leaving it out spares its rounding errors.
        constant = step.rows * (step.width * LOG_2_PI + float(np.linalg.slogdet(covariance)[1]))
        total = _reduced(total + on_grid(constant) + dot(scaled, residual))
        turned = r @ inverse
        coordinator = message.sender
        answers: dict[str, Any] = {"a1": scaled + turned, "a2": scaled - turned + q, "place": step.place}
        onward: dict[str, Any] = {"q": q, "place": step.place}
        last = step.place == len(step.widths) - 1
        if not last:
            onward["r"] = r
        if later is not None and not last:
            scales = step.scales[sum(step.widths[: step.place + 1]) :]
            cover = self.noise.fresh("m", later.shape, np.maximum(scales, hidden[step.width :]))
            answers["later"] = later + cover
            onward["m"] = cover
        if last:
            own_mask = self.noise.whole() if step.is_last_chunk else 0
            total = (total + own_mask) % (1 << RING.bits)
            if step.is_last_chunk:
                answers["mask"] = _hex(own_mask)
        onward |= {"total": _hex(total), **step.described()}
        return [
            self.send(coordinator, "answers", **answers),
            self.send(step.nodes[(step.place + 1) % len(step.nodes)], "last" if last else "masks", **onward),
        ]

    def on_alone(self, message: Request) -> list[Message]:
        """Evaluate rows of which one has all columns; the total is kept for a secure sum."""
        size = len(message.asked.columns)
        value = minus_two_log_likelihood(
            self.party.matrix(message.asked.columns, message.asked.block),
            message.array("mu", (size,)),
            message.array("sigma", (size, size)),
        )
        if not math.isfinite(value):
            raise ProtocolError("The covariance that was sent is not positive definite.")
        key = f"{self.run} {message.values['evaluation']}"
        self.party.held_totals[key] = HeldTotal(_reduced(on_grid(value)), message.asked.uses[0])
        return [self.send(message.sender, "total", evaluation=message.values["evaluation"])]

    def on_last(self, message: Request) -> list[Message]:
        """End a chunk: take the noise of the last holder out of the total, and after the last chunk hand it over."""
        step, begun = Step.read(message, place=0), self._begun
        if begun is None or message.sender != begun.nodes[-1] or not step.same_as(begun):
            raise ProtocolError(f"'{message.sender}' ends an evaluation that was not begun.")
        self._begun = None
        q = message.array("q", self.last_noise.shape)
        self.total = _reduced(int(str(message.values["total"]), 16) - dot(self.last_noise, q))
        if not step.is_last_chunk:
            return [self.send(step.coordinator, "chunk", chunk=step.chunk)]
        self.total = (self.total - self.mask) % (1 << RING.bits)
        if step.keep_total:
            # The totals of several groups of rows are added by a secure sum.
            self.party.held_totals[step.key] = HeldTotal(self.total, (step.block, self._columns))
            return [self.send(step.coordinator, "total", evaluation=step.evaluation)]
        return [self.send(step.coordinator, "total", total=_hex(self.total), evaluation=step.evaluation)]

    def _drawn(
        self, step: Step, inverse: Floats, hidden: Floats, columns: Sequence[str]
    ) -> tuple[Floats, Floats]:
        shape = (step.rows, step.width)
        scales = np.maximum(step.own_scales, hidden)
        if step.place == 0:
            # Other rows, columns or scales are other noise: the same draw over two of them would be solved for.
            label = json.dumps(
                [step.block, list(columns), step.start, step.rows, [float(one).hex() for one in scales]]
            )
            if label not in self._kept:
                r, q = (self.noise.same(name, shape, scales, label) for name in ("r", "q"))
                self._kept = {label: (r, q)}
            r, q = self._kept[label]
        else:
            r, q = (self.noise.fresh(name, shape, scales) for name in ("r", "q"))
        return r, self.noise.divided(q, inverse)

    def _own(self, message: Request, step: Step) -> Floats:
        if len(message.asked.columns) != step.width:
            raise ProtocolError(f"'{message.sender}' asks for another number of columns than it says.")
        bound = (message.asked.columns, step.nodes, step.block, step.keep_total, step.scales.tolist())
        if step.chunk and bound != self._bound:
            raise ProtocolError("An evaluation is one over all its rows. The run was ended.")
        self._bound, self._columns = bound, message.asked.columns
        own: Floats = self.party.matrix(message.asked.columns, step.block)
        self._turns.take(
            evaluation=step.evaluation, chunk=step.chunk, chunks=step.chunks, start=step.start, rows=step.rows,
            all_rows=len(own),
        )  # fmt: skip
        if message.asked.uses[0] not in self._spread:
            # Once for all chunks: it takes a pass over all rows.
            self._spread[message.asked.uses[0]] = own.std(axis=0)
        least = self.party.least_noise * self._spread[message.asked.uses[0]]
        if (step.own_scales < least * (1 - 1e-9)).any():
            raise ProtocolError(
                f"The noise that was proposed is less than the owner of '{self.party.name}' asks for."
            )
        return own[step.start : step.start + step.rows]


class Coordinator(Role):
    """The part of the coordinator for one group of linked rows; its noise is P."""

    protocol = PROTOCOL
    takes: ClassVar = {
        "joined": Takes({"rows": whole, "scales": floats, "rows_are": text}, "site"),
        "answers": Takes({"a1": floats, "a2": floats, "place": whole, "later": optional(floats),
                          "mask": optional(hexadecimal)}, "site"),
        "chunk": Takes({"chunk": whole}, "site"),
        "total": Takes({"total": optional(hexadecimal), "evaluation": whole}, "site"),
    }  # fmt: skip

    def __init__(
        self, party: Any, run: str, nodes: Sequence[str], columns: Sequence[Sequence[str]], block: str
    ) -> None:
        super().__init__(party, run)
        self.nodes, self.columns, self.block = list(nodes), [list(own) for own in columns], block
        self.noise = getattr(party, "noise", None) or Noise(party.masks)
        self.joined: dict[str, tuple[int, Floats, str]] = {}

    def join(self) -> list[Message]:
        """Ask every holder for its number of rows."""
        return [
            self.send(node, "join", columns=own, block=self.block)
            for node, own in zip(self.nodes, self.columns, strict=True)
        ]

    def on_joined(self, message: Request) -> list[Message]:
        """Note what a holder tells."""
        width = len(self.columns[self.nodes.index(message.sender)])
        scales = message.array("scales", (width,))
        self.joined[message.sender] = (int(message.values["rows"]), scales, str(message.values["rows_are"]))
        return []

    def evaluate(
        self,
        number: int,
        mu: Floats,
        parts: list[Conditional],
        *,
        factor: float,
        chunk_rows: int,
        keep_total: bool,
    ) -> list[Message]:
        """Begin an evaluation."""
        self.number, self.mu, self.parts, self.keep_total = number, mu, parts, keep_total
        self.rows = next(iter(self.joined.values()))[0]
        own = np.concatenate([self.joined[node][1] for node in self.nodes])
        # A column that does not vary is hidden on the scale of the others.
        spread = np.where(own > 0, own, own.max(initial=0.0) or 1.0)
        self.scales = factor * spread
        self.chunks = max(1, -(-self.rows // chunk_rows))
        self.chunk_rows = chunk_rows
        self.correction = 0
        self.result: float | None = None
        self.finished = False
        self.chunk = 0
        self.last_mask = 0
        return self._begin_chunk()

    def _begin_chunk(self) -> list[Message]:
        size = min(self.chunk_rows, self.rows - self.chunk * self.chunk_rows)
        self.size = size
        starts = np.concatenate([[0], np.cumsum(self._widths)])
        self.noises = [
            self.noise.fresh(f"p{at + 1}", (size, width), self.scales[starts[at] : starts[at + 1]])
            for at, width in enumerate(self._widths)
        ]
        mean = self.mu[starts[0] : starts[1]] + self.noises[0]
        return [self._to(0, "first", mean=mean, last_noise=self.noises[-1])]

    def on_answers(self, message: Request) -> list[Message]:
        """Take the noise of one holder's answers into account, and send the next one its conditional mean."""
        place = int(message.values["place"])
        if not 0 <= place < len(self.nodes) or message.sender != self.nodes[place]:
            raise ProtocolError(f"'{message.sender}' answers out of turn.")
        part, noise, shape = self.parts[place], self.noises[place], (self.size, self._widths[place])
        a1 = message.array("a1", shape)
        self.correction += dot(noise, a1 + message.array("a2", shape) + noise @ part.inverse)
        if "mask" in message.values:
            self.last_mask = int(str(message.values["mask"]), 16)
        if place == len(self.nodes) - 1:
            return []
        after = sum(self._widths[: place + 1])
        later = (
            self.mu[after:] + np.concatenate(self.noises[1:], axis=1)
            if place == 0
            else message.array("later", (self.size, len(self.mu) - after))
        )
        mean = later + a1 @ part.onward
        return [self._to(place + 1, "conditional", mean=mean, weights=part.weights, noise=noise)]

    def alone(self, number: int, mu: Floats, sigma: Floats) -> list[Message]:
        """Ask the one holder of a group for its total."""
        self.correction, self.last_mask, self.finished, self.keep_total = 0, 0, False, True
        own = {"columns": self.columns[0], "block": self.block, "evaluation": number}
        return [self.send(self.nodes[0], "alone", mu=mu, sigma=sigma, **own)]

    def on_chunk(self, message: Request) -> list[Message]:
        """Go on with the next rows."""
        self.chunk += 1
        return self._begin_chunk()

    def on_total(self, message: Request) -> list[Message]:
        """Put the total and the corrections together."""
        self.finished = True
        if not self.keep_total:
            total = int(str(message.values["total"]), 16) - self.last_mask + self.correction
            self.result = float(RING.decode(RING.words([total]))[0])
        return []

    @property
    def _widths(self) -> list[int]:
        return [len(own) for own in self.columns]

    def _to(self, place: int, name: str, **values: Any) -> Message:
        step = Step(
            self.nodes, self._widths, place, self.chunk * self.chunk_rows, self.size, self.chunk, self.chunks,
            self.number, self.block, self.party.name, self.keep_total, self.scales, self.run,
        )  # fmt: skip
        values |= {"columns": self.columns[place], "covariance": self.parts[place].covariance}
        return self.send(self.nodes[place], name, **step.described(), **values)


def _hex(total: int) -> str:
    """Write a total so that its length tells nothing."""
    return format(total, f"0{RING.bits // 4}x")


def _reduced(total: int) -> int:
    return int(total) % (1 << RING.bits)


def _held_uses(holder: Any, asked: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Say from which columns the totals that are asked for were made; each is told in one sum."""
    found = [holder.held_totals[key] for key in asked["keys"] if key in holder.held_totals]
    if not found or len(set(asked["keys"])) != len(asked["keys"]):
        raise ProtocolError(f"'{holder.name}' holds no total of the evaluations that were named.")
    return tuple(dict.fromkeys(one.uses for one in found))


@quantity("held-totals", {"keys": texts}, moments=True, uses=_held_uses)
def _held_totals(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The totals of groups of rows that a holder was left with, which only their sum may tell."""
    kept = [holder.held_totals.pop(key) for key in asked["keys"] if key in holder.held_totals]
    return RING.words([sum(one.total for one in kept)])
