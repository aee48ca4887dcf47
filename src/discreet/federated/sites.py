"""A site: a holder of data behind its owner's rules. It opens envelopes, holds them against the rules, and answers.

Whatever is not allowed is refused and logged; a refusal names columns and rules, never values. How many evaluations
were answered is kept in a file, so that a restart does not begin anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.locks import alone
from discreet.dp.ledger import Ledger
from discreet.federated import (
    counts_over_sites,
    generalized_linear,
    moments_over_sites,
    ranks_over_sites,
    robust_errors,
    shared_product,
    vertical_likelihood,
)
from discreet.federated.envelopes import Envelope, Sealer, packed, put_in, read_key, unpacked
from discreet.federated.masking import Masks
from discreet.federated.messages import (
    COORDINATOR,
    MAIN,
    Asked,
    Message,
    ProtocolError,
    Request,
    contents,
    values_of,
)
from discreet.federated.parties import Holder, Role
from discreet.federated.quantities import PROTECTED
from discreet.federated.site_rules import OwnerLimits, SiteFile, SiteSets

# Importing these enters their roles and quantities.
_ENTERED = (
    counts_over_sites, generalized_linear, moments_over_sites, ranks_over_sites, robust_errors,
    shared_product, vertical_likelihood,
)  # fmt: skip
FRESH_SECONDS = 300.0
_MOST_RUNS = 64
# The two answers of an evaluation together tell a residual under noise whose square is a fifth of that of one.
_ANSWERS = 5.0


class Site:
    """What answers for a holder of data, whichever way messages come."""

    def __init__(self, file: SiteFile, *, networked: bool = True) -> None:
        self.networked = networked
        self.file, self.allowed = file, file.allowed
        self.sealer = Sealer(file.name, read_key(file.seal), file.peers)
        self.holder = Holder(file.name, _read(file), ids=file.ids)
        self.holder.least_noise = file.allowed.least_noise
        self.holder.ledger = _ledger(file)
        self._state = _State(file.state)
        # Noise that is the same in every evaluation stays so over restarts.
        self.holder.masks = Masks.of_key(self._state.key)
        self.holder.pair_key = self.sealer.pair_key
        self.holder.limits = OwnerLimits(
            file.name, least_count=file.allowed.least_count, max_share=file.allowed.max_share
        )
        self._site_sets = SiteSets(file.site_sets, self._state.key, free=file.allowed.other_site_sets)
        self._numbers: dict[tuple[str, str], int] = {}
        self._sent = 0
        self._recent: deque[float] = deque()
        self._ended: dict[str, float] = {}
        self._runs: dict[str, tuple[float, int]] = {}  # when a run was last heard of, and its largest message

    @property
    def name(self) -> str:
        """What the others call it."""
        return self.file.name

    def answer(self, data: bytes, analyst: str) -> bytes:
        """Answer what an analyst (by the name in its certificate) brings; nothing is answered in part."""
        try:
            self.admit(analyst, len(data))
            envelopes = unpacked(data)
            self._limit_rate(len(envelopes))
            replies: list[Envelope] = []
            for envelope in envelopes:
                message = self._accepted(envelope, analyst)
                replies.extend(self._answered(message))
        except DiscreetError as error:
            self.note("refused", analyst, str(error))
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # What numpy or Python say of a message may hold values; that it does not fit is enough.
            told = f"'{self.name}' got a message that does not fit the protocol. It was dropped."
            self.note("refused", analyst, told)
            raise ProtocolError(told) from error
        for envelope in envelopes:
            out = envelope.outside
            self.note("answered", analyst, f"{out['protocol']}: {out['name']}", run=out["run"])
        return packed(replies)

    def warm_up(self) -> None:
        """Load what an answer needs before anybody waits for one."""
        message = Message(
            "warm-up", "", self.name, self.name, "warm-up", {"noise": self.holder.masks.normal((2, 2))}
        )
        values_of(contents(message.values))

    def forget(self, run: str) -> None:
        """Drop what belongs to a run."""
        self.holder.forget(run)
        self.sealer.forget(run)
        self._runs.pop(run, None)
        self._numbers = {key: number for key, number in self._numbers.items() if key[1] != run}
        # What belonged to the run may be brought again for as long as it counts as fresh.
        now = time.monotonic()
        self._ended = {known: at for known, at in self._ended.items() if now - at < 3 * FRESH_SECONDS}
        self._ended[run] = now

    def note(self, what: str, who: str, why: str, **more: Any) -> None:
        """Write a line into the log."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = {"time": now, "what": what, "who": who, "why": why, **more}
        try:
            with self.file.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError("The site cannot write its log, and answers nothing without it.") from error

    def admit(self, analyst: str, size: int) -> None:
        """Refuse a stranger, or a message of a size that the owner does not take."""
        if analyst not in self.allowed.analysts:
            raise ProtocolError(
                f"'{self.name}' does not answer this analyst. Its owner names those who may ask."
            )
        self.check_size(size)

    def check_size(self, size: int) -> None:
        """Refuse a message of a size that the owner does not take."""
        if size > self.allowed.max_bytes:
            raise ProtocolError(
                f"'{self.name}' takes no message of this size. Use fewer rows at a time (chunk_rows)."
            )

    def _limit_rate(self, more: int) -> None:
        now = time.monotonic()
        while self._recent and now - self._recent[0] > 60:
            self._recent.popleft()
        if len(self._recent) + more > self.allowed.max_messages_per_minute:
            raise ProtocolError(f"'{self.name}' is asked too often. Wait a minute.")
        self._recent.extend([now] * more)

    def _make_room(self, run: str, size: int) -> None:
        """Bound what runs that nobody ends keep in memory: the largest message of each, all together."""
        now = time.monotonic()
        held = max(size, self._runs.get(run, (now, 0))[1])
        others = {known: about for known, about in self._runs.items() if known != run}
        while (
            len(others) >= _MOST_RUNS
            or sum(one for _, one in others.values()) + held > 4 * self.allowed.max_bytes
        ):
            idle = min(others, key=lambda known: others[known][0])
            if now - others[idle][0] < FRESH_SECONDS:
                raise ProtocolError(
                    f"'{self.name}' has too many runs that were not ended. End them, or wait some minutes."
                )
            del others[idle]
            self.forget(idle)
        self._runs = {**others, run: (now, held)}

    def _accepted(self, envelope: Envelope, analyst: str) -> Message:
        out = envelope.outside
        sender, run, number = str(out["sender"]), str(out["run"]), int(out["number"])
        if out["receiver"] != self.name:
            raise ProtocolError(f"'{self.name}' got a message that is for somebody else.")
        if not abs(time.time() - float(out["time"])) <= FRESH_SECONDS:  # what is no number is not fresh
            raise ProtocolError(
                f"'{self.name}' got a message that is too old, or from a clock that is wrong."
            )
        if run in self._ended:
            raise ProtocolError(f"'{self.name}' got a message of a run that has ended. It was dropped.")
        if number <= self._numbers.get((sender, run), -1):
            raise ProtocolError(f"'{self.name}' got a message again that it had before. It was dropped.")
        from_site = sender in self.file.peers
        if from_site != out["sealed"] or (not from_site and sender != COORDINATOR):
            raise ProtocolError(
                f"'{self.name}' takes messages of sites sealed, and of analysts only from themselves."
            )
        self._make_room(run, len(envelope.inside))
        message = envelope.opened(self.sealer)
        self._numbers[sender, run] = number
        return message

    def _answered(self, message: Message) -> list[Envelope]:
        """Read a message, hold what it asks for against the owner's rules, and answer just that."""
        if message.protocol not in self.allowed.protocols:
            raise ProtocolError(f"The owner of '{self.name}' does not allow '{message.protocol}'.")
        if message.protocol == ranks_over_sites.PROTOCOL and self.networked:
            raise ProtocolError(f"'{self.name}' is on a network, where MPyC would pass by its owner's rules.")
        role = self.holder.role_for(message)
        request = role.read(message)
        from_site = message.sender in self.file.peers
        if role.takes[message.name].sender == ("coordinator" if from_site else "site"):
            raise ProtocolError(
                f"'{message.name}' does not come from '{message.sender}' in '{message.protocol}'."
            )
        self._allow(request)
        with self.holder.opened_for(request.asked) as asked:
            added = () if asked.quantity in PROTECTED else asked.added_with
            self._protect(asked, added)
            replies = self.holder.answer(role, request)
            if added:
                self._site_sets.enter(self.holder, asked.uses, added)
        return [self._put_in(reply, role) for reply in replies]

    def _allow(self, request: Request) -> None:
        """Hold what is asked for against the owner's rules, and count it; the data are not looked at."""
        allowed, asked = self.allowed, request.asked
        if asked.quantity and asked.quantity not in allowed.quantities:
            raise ProtocolError(f"The owner of '{self.name}' does not allow this kind of sum.")
        if asked.quantity == "noisy-counts" and self.holder.ledger is None:
            raise ProtocolError(
                f"The owner of '{self.name}' has set no budget for answers with noise ([ledger])."
            )
        for block, columns in asked.uses:
            for name in columns:
                if name not in allowed.columns:
                    raise ProtocolError(f"The owner of '{self.name}' does not allow the column '{name}'.")
            if self.holder.rows(block) < allowed.min_rows:
                raise ProtocolError(f"'{self.name}' has fewer rows than its owner lets anybody compute with.")
        for name in asked.others:
            self._known(name)
        if asked.dealer and asked.dealer not in (allowed.dealers or self.file.peers):
            raise ProtocolError(
                f"'{self.name}' takes no masks of '{asked.dealer}': whoever deals them can take them off. Let a third "
                "site deal; with two sites only, the owner names whom to trust (dealers)."
            )
        if asked.trust and not allowed.program_trusted:
            raise ProtocolError(
                f"'{self.name}' takes no part in '{request.protocol}' over several sites: a changed program of the "
                "analyst could learn single rows there, and the site could not tell. Use shared-product with a third "
                "site (mode='sufficient'), which gives the same fits; or the owner trusts the program (program_trusted "
                "= true)."
            )
        exact = asked.quantity and asked.quantity not in PROTECTED
        if exact and len(asked.added_with) < allowed.least_sites:
            raise ProtocolError(
                f"'{self.name}' adds its numbers over {allowed.least_sites} sites at least: of fewer, the others learn "
                "its own. Ask more sites; the owner sets least_sites."
            )
        if asked.counts:
            if self._state.evaluations >= allowed.max_evaluations:
                raise ProtocolError(
                    f"'{self.name}' has answered {allowed.max_evaluations:,} evaluations: all that its owner allows."
                )
            self._state.count()

    def _protect(self, asked: Asked, added: tuple[str, ...]) -> None:
        """Hold what would go out against the owner's limits. A refusal was counted before, as it tells something."""
        if added:
            self._site_sets.check(self.holder, asked.uses, added)
        if asked.moments:
            for block, columns in asked.uses:
                self.holder.limits.moments(self.holder, block, columns)
        if asked.scales:
            self._wear(asked)

    def _wear(self, asked: Asked) -> None:
        """Refuse an answer after which averaging would leave too little of the noise of a column."""
        least = self.allowed.least_left
        spread = self.holder.matrix(asked.columns, asked.block).std(axis=0)
        told = {
            f"{asked.block}/{name}": _ANSWERS * (size / max(scale, size * 1e-9)) ** 2
            for name, size, scale in zip(asked.columns, spread.tolist(), asked.scales, strict=True)
            if size > 0
        }
        for name, more in told.items():
            if (self._state.told.get(name, 0.0) + more) * least**2 > 1:
                raise ProtocolError(
                    f"'{self.name}' has answered so often about '{name}' that averaging would leave less than "
                    f"{least:g} standard deviations of noise. Use more noise (noise_scale), or mode='sufficient'."
                )
        self._state.tell(told)

    def _known(self, name: str) -> None:
        if name not in self.file.peers:
            raise ProtocolError(f"'{self.name}' knows no '{name}'. Its owner enters sites under [peers].")

    def _put_in(self, reply: Message, role: Role) -> Envelope:
        self._sent += 1
        to_site = reply.receiver != COORDINATOR
        if to_site:
            self._known(reply.receiver)
        if role.sends[reply.name] != ("site" if to_site else "coordinator"):
            raise ProtocolError(f"'{reply.name}' of '{reply.protocol}' does not go to '{reply.receiver}'.")
        return put_in(reply, self._sent, self.sealer if to_site else None)


@contextlib.contextmanager
def opened_site(file: SiteFile, *, networked: bool = True) -> Iterator[Site]:
    """Open a site for this process alone: two of them would count its answers, and keep its limits, apart."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone(file.state))
        except BlockingIOError as error:
            raise InputError(f"The site '{file.name}' is served already. {error}") from error
        yield Site(file, networked=networked)


class _State:
    """What a site keeps over restarts: what was answered how often, how far noise is worn off, and the key of noise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.evaluations, self.key = 0, os.urandom(32)
        self.told: dict[str, float] = {}
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
                self.evaluations, self.key = int(known["evaluations"]), bytes.fromhex(known["key"])
                self.told = {str(name): float(one) for name, one in known.get("told", {}).items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"'{path.name}' cannot be read: without it the site does not know what it answered."
                ) from error
        else:
            self._write()

    def count(self) -> None:
        self.evaluations += 1
        self._write()

    def tell(self, more: Mapping[str, float]) -> None:
        self.told |= {name: self.told.get(name, 0.0) + one for name, one in more.items()}
        self._write()

    def _write(self) -> None:
        unfinished = self.path.with_suffix(".unfinished")
        text = json.dumps({"evaluations": self.evaluations, "key": self.key.hex(), "told": self.told})
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            unfinished.replace(self.path)
        except OSError as error:
            raise InputError(
                "The site cannot keep count of what it answered, and answers nothing without it."
            ) from error


def _read(file: SiteFile) -> dict[str, pl.DataFrame]:
    from discreet import engine
    from discreet.io import read

    wanted = list(dict.fromkeys([*file.allowed.columns, *([file.ids] if file.ids else [])]))
    columns = set()
    blocks = {}
    for block, path in file.data.items():
        data = read(str(path), **file.reading)
        there = [name for name in wanted if name in data.schema]
        columns |= set(there)
        blocks[block] = engine.collect(data, there)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(f"The site allows '{missing[0]}', which its data do not have.")
    return blocks


def _ledger(file: SiteFile) -> Ledger | None:
    """Open the owner's budget for answers with noise, where there is one."""
    if file.budget is None:
        return None
    source = file.data.get(MAIN)
    return Ledger(file.budget, path=file.ledger, source=source)
