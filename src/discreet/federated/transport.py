"""How messages get from one party to another, and the list that is kept of them.

`Transport.carry` passes messages on until nobody has anything to send. In one process the parties are objects; over a
network or between processes (`discreet.federated.remote_transport`) only those who are here are objects, and the rest
are reached by their names.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Sequence

from discreet.core.errors import ParameterError
from discreet.federated.leakage import Transcript
from discreet.federated.messages import Message, ProtocolError
from discreet.federated.parties import Party

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
