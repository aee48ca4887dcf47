"""Who takes part: a party has a name, masks and perhaps data, and does what its role says with each message it gets.

A protocol is written once, as the roles of its parties. Which transport carries the messages, within one process or
between hospitals, makes no difference to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers, numbers_of
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.federated.leakage import Transcript
from discreet.federated.masking import Masks
from discreet.federated.messages import MAIN, Asked, Message, ProtocolError, Reach, Request, Takes


class Party:
    """Somebody who takes part in runs; without data of its own, unless it is a `Holder`."""

    def __init__(self, name: str, masks: Masks | None = None) -> None:
        self.name = name
        self.masks = masks or Masks()
        self._roles: dict[tuple[str, str], Role] = {}

    def plays(self, role: Role) -> None:
        """Take a role in a run."""
        self._roles[role.protocol, role.run] = role

    def receive(self, message: Message) -> list[Message]:
        """Do what the role says, and return what is to be sent."""
        role = self.role_for(message)
        return self.answer(role, role.read(message))

    def role_for(self, message: Message) -> Role:
        """Return the role that takes a message."""
        return self._roles.get((message.protocol, message.run)) or self._new_role(message)

    def answer(self, role: Role, request: Request) -> list[Message]:
        """Answer what a role has read."""
        self.plays(role)
        return role.on(request)

    def forget(self, run: str) -> None:
        """Drop everything that belongs to a run."""
        for key in [key for key in self._roles if key[1] == run]:
            del self._roles[key]

    def _new_role(self, message: Message) -> Role:
        raise ProtocolError(f"'{self.name}' holds no data and has no part in '{message.protocol}'.")


class Role:
    """What a party does in one run: one method ``on_…`` for each message, returning the messages it sends.

    Attributes
    ----------
    takes
        The messages that it takes.
    sends
        Whom each of its messages may reach. What one reader must not hold together goes to different ones.
    """

    protocol: ClassVar[str]
    takes: ClassVar[Mapping[str, Takes]] = {}
    sends: ClassVar[Mapping[str, Reach]] = {}

    def __init__(self, party: Any, run: str) -> None:
        self.party, self.run = party, run
        self._waiting: dict[str, Request] = {}

    def read(self, message: Message) -> Request:
        """Hold a message against what the role takes, and say what it asks for."""
        if message.name not in self.takes:
            raise ProtocolError(f"'{message.name}' is no message of the protocol '{self.protocol}'.")
        return self.takes[message.name].read(self, message)

    def on(self, request: Request) -> list[Message]:
        """Hand a message that was read to the method that takes it."""
        method: Callable[[Request], list[Message]] = getattr(self, f"on_{request.name.replace('-', '_')}")
        return method(request)

    def waiting(self, name: str) -> Request | None:
        """Return a message that waits for another one."""
        return self._waiting.get(name)

    def send(self, receiver: str, name: str, **values: Any) -> Message:
        """Make a message to another party of this run."""
        return Message(self.protocol, self.run, self.party.name, receiver, name, values)

    def both(self, message: Request, names: tuple[str, str]) -> dict[str, Request]:
        """Keep a message until the other one of two is there; then return both by name and forget them."""
        if message.name in self._waiting:
            raise ProtocolError(f"'{message.sender}' sent '{message.name}' twice.")
        other = next(name for name in names if name != message.name)
        if other not in self._waiting:
            self._waiting[message.name] = message
            return {}
        return {message.name: message, other: self._waiting.pop(other)}


class Holder(Party):
    """A party with data: one table, or one for each group of rows, under a name of its own.

    Parameters
    ----------
    name
        What the others call it.
    data
        A frame, or ``{block: frame}`` where it holds several groups of rows.
    ids
        Column that says whose rows they are, where rows are linked by it.
    """

    def __init__(
        self, name: str, data: pl.DataFrame | Mapping[str, pl.DataFrame], *, ids: str | None = None,
        masks: Masks | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, masks)
        self.blocks = dict(data) if isinstance(data, Mapping) else {MAIN: data}
        self.ids = ids
        if ids is not None:
            self.blocks = {block: _linked(frame, ids, name) for block, frame in self.blocks.items()}
        self.least_noise = 0.0
        self.ledger: Any = None  # the owner's budget for answers with noise (`discreet.dp.Ledger`)
        self.limits: Any = None  # what an owner lets go out (`discreet.federated.owner_limits.OwnerLimits`)
        self.pair_key: Any = None  # a key with another site, for the masks of a sum (`Sealer.pair_key`)
        self.held_totals: dict[str, HeldTotal] = {}
        self._open: dict[str, tuple[str, ...]] | None = None
        self._matrices: dict[tuple[str, tuple[str, ...]], Floats] = {}

    @contextlib.contextmanager
    def opened_for(self, asked: Asked) -> Iterator[Asked]:
        """Give out nothing but the columns that were asked for and allowed, while an answer is worked out."""
        self._open = dict(asked.uses)
        try:
            yield asked
        finally:
            self._open = None

    def frame(self, block: str = MAIN) -> pl.DataFrame:
        """Return the table of a block, or those of its columns that are open."""
        whole = self._block(block)
        if self._open is None:
            return whole
        return whole.select(name for name in whole.columns if name in self._open.get(block, ()))

    def rows(self, block: str = MAIN) -> int:
        """Return how many rows a block has."""
        return self._block(block).height

    def row_ids(self, block: str = MAIN) -> list[str]:
        """Return whose rows they are, as texts; nothing where rows have no ids."""
        return [] if self.ids is None else self._block(block)[self.ids].cast(str).to_list()

    def row_digest(self, block: str, run: str) -> str:
        """Make a digest of whose rows they are, in their order; nothing where rows have no ids."""
        ids = self.row_ids(block)
        if not ids:
            return ""
        told = hashlib.sha256(run.encode())
        for one in ids:
            told.update(one.encode() + b"\0")
        return told.hexdigest()

    def row_texts(self, block: str = MAIN) -> list[str]:
        """Return each row as one text, all columns of the site together."""
        frame = self._block(block)
        texts = pl.all().cast(pl.String).fill_null("")
        return frame.select(pl.concat_str(texts, separator="\x1f")).to_series().to_list()

    def _block(self, block: str) -> pl.DataFrame:
        if block not in self.blocks:
            raise ProtocolError(f"'{self.name}' has no block of rows '{block}'.")
        return self.blocks[block]

    def matrix(self, columns: Sequence[str], block: str = MAIN) -> Floats:
        """Return columns as numbers, refusing gaps; made once."""
        key, frame = (block, tuple(columns)), self.frame(block)
        if key not in self._matrices or not set(columns) <= set(frame.columns):
            self._matrices[key] = _numbers(frame, columns, self.name)
        return self._matrices[key]

    def _new_role(self, message: Message) -> Role:
        if message.protocol not in ROLES:
            raise ProtocolError(f"'{self.name}' knows no protocol '{message.protocol}'.")
        return ROLES[message.protocol](self, message.run)


@dataclass(frozen=True)
class HeldTotal:
    """The total of a group of rows that a holder keeps for a secure sum, and from which columns it was made."""

    total: int
    uses: tuple[str, tuple[str, ...]]


ROLES: dict[str, type[Role]] = {}
"""The part that a holder of data plays in each protocol."""


def plays(kind: type[Role]) -> type[Role]:
    """Enter a role as the one that holders of data play in its protocol."""
    ROLES[kind.protocol] = kind
    return kind


def by_party(given: Any, parameter: str, *, named: str = "party") -> dict[str, Any]:
    """Name what several parties bring, a list or ``{party: …}``, or refuse what is neither.

    Examples
    --------
    >>> by_party([1, 2], "values"), by_party({"A": 1}, "values")
    ({'party 1': 1, 'party 2': 2}, {'A': 1})
    """
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    if isinstance(given, str | bytes) or not (hasattr(given, "__iter__") and hasattr(given, "__len__")):
        raise ParameterError(
            f"{parameter} must be a list with one entry for each {named}, or {{{named}: entry}}."
        )
    return {f"{named} {at + 1}": one for at, one in enumerate(given)}


def as_frame(data: Any, *, prefix: str = "x", start: int = 0) -> pl.DataFrame:
    """Take a frame, Microdata or an array of numbers as a table; columns of an array are numbered.

    Examples
    --------
    >>> as_frame(np.zeros((2, 2)), start=3).columns
    ['x4', 'x5']
    """
    from discreet import engine
    from discreet.microdata import Microdata

    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, Microdata):
        return engine.collect(data, list(data.schema))
    if isinstance(data, np.ndarray | list | tuple):
        array = numbers_of(data, "A table", missing=True, infinite=True, empty=True)
        matrix: Array = array[:, None] if array.ndim == 1 else array
        if matrix.ndim != 2:
            raise ParameterError("A block of data is a table: rows and columns.")
        return pl.DataFrame({f"{prefix}{start + at + 1}": matrix[:, at] for at in range(matrix.shape[1])})
    return as_frame(Microdata(data))


def coded_by(series: pl.Series, code: Callable[[Any], int]) -> Integers:
    """Number values by a function that is asked once for each different one."""
    values = series.unique(maintain_order=True)
    table = pl.DataFrame({"value": values, "code": [code(value) for value in values.to_list()]})
    joined = series.to_frame("value").join(
        table, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["code"].to_numpy().astype(np.int64)


def _numbers(frame: pl.DataFrame, columns: Sequence[str], owner: str) -> Floats:
    for name in columns:
        need_known([name], frame.columns, before=f"At '{owner}': ")
        series = frame[name]
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise ColumnError(f"At '{owner}': '{name}' does not hold numbers. Code it first.")
        if series.null_count() or (series.dtype.is_float() and not series.is_finite().all()):
            raise ColumnError(
                f"At '{owner}': '{name}' has missing or infinite values. Impute within the site first "
                "(federated.marginal_imputation), or leave these rows out at every site."
            )
    return np.ascontiguousarray(frame.select(pl.col(list(columns)).cast(pl.Float64)).to_numpy())


def _linked(frame: pl.DataFrame, ids: str, owner: str) -> pl.DataFrame:
    need_known([ids], frame.columns, before=f"At '{owner}': ")
    if frame[ids].null_count() or frame[ids].n_unique() != frame.height:
        raise InputError(
            f"At '{owner}': '{ids}' does not tell the rows apart (missing or repeated). Rows must link one to one."
        )
    return frame.sort(ids)


# How messages get from one party to another, and the list that is kept of them.
#
# `Transport.carry` passes messages on until nobody has anything to send. In one process the parties are objects; over a
# network or between processes (`discreet.federated.remote_transport`) only those who are here are objects, and the rest
# are reached by their names.


_MOST_MESSAGES = 10_000_000


class Transport:
    """Carries messages between parties that are all here, and keeps the transcript.

    Parameters
    ----------
    parties
        Those who take part, under names of their own.
    keep
        Keep the contents of all messages in the transcript, for lessons and tests.
    """

    def __init__(self, parties: Iterable[Party] = (), *, keep: bool = False) -> None:
        self.transcript = Transcript(keep=keep)
        self._here: dict[str, Party] = {}
        for party in parties:
            self.join(party)

    def join(self, party: Party) -> None:
        """Let a party take part."""
        if party.name in self._here:
            raise ParameterError(f"Two parties are called '{party.name}'. Give each its own name.")
        self._here[party.name] = party

    @property
    def names(self) -> Sequence[str]:
        """Who can be reached."""
        return tuple(self._here)

    def new_run(self) -> str:
        """Name a run that nobody has heard of."""
        return secrets.token_hex(16)

    def carry(self, messages: Iterable[Message]) -> None:
        """Pass messages on, and what comes back, until nobody has anything to send."""
        queue = deque(messages)
        passed = 0
        while queue:
            batch = [queue.popleft()]
            while queue and queue[0].receiver == batch[0].receiver:
                batch.append(queue.popleft())
            for message in batch:
                self.note(message)
            queue.extend(self.deliver(batch))
            passed += len(batch)
            if passed > _MOST_MESSAGES:
                raise ProtocolError("The parties do not come to an end. The run was stopped.")

    def note(self, message: Message) -> None:
        """Enter a message into the transcript."""
        self.transcript.note(message)

    def deliver(self, batch: Sequence[Message]) -> list[Message]:
        """Hand messages to their receiver, and return what it sends."""
        receiver = batch[0].receiver
        if receiver not in self._here:
            raise ProtocolError(f"There is no party '{receiver}' to be reached.")
        return [reply for message in batch for reply in self._here[receiver].receive(message)]

    def forget(self, run: str) -> None:
        """Let everybody drop what belongs to a run that ended."""
        for party in self._here.values():
            party.forget(run)


InProcess = Transport
