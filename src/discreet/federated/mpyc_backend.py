"""The hardened back end: sums, comparisons and ranked elements on Shamir shares, one process for each party.

`MPyC <https://github.com/lschoe/mpyc>`_ computes with an honest majority: fewer than half of the parties together learn
nothing but the result. Each process is handed the input of its party alone; they talk over sockets of this machine.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError, load_extra
from discreet.federated.messages import ProtocolError

_SECONDS = 120


def mpyc_sum(values: Sequence[Floats], *, frac_bits: int) -> Floats:
    """Add the numbers of three or more parties."""
    inputs = [[round(float(one) * 2**frac_bits) for one in own] for own in values]
    found = _together([{"task": "sum", "values": own} for own in inputs])
    return np.asarray(np.array(found, dtype=np.float64) / 2**frac_bits)


def mpyc_rank(places: Mapping[str, Integers], rank: int, size: int) -> int:
    """Find the k-th smallest of whole numbers below ``size`` over parties, opening only outcomes of comparisons."""
    shared = {"task": "rank", "rank": rank, "size": size}
    inputs: list[dict[str, Any]] = [
        {**shared, "values": [int(one) for one in own]} for own in places.values()
    ]
    while len(inputs) < 3:
        # With two parties there is no honest majority: one without data joins.
        inputs.append({**shared, "values": []})
    return int(_together(inputs)[0])


def mpyc_less(one: float, other: float, *, frac_bits: int = 24) -> bool:
    """Tell whether the number of one party is smaller than that of another, and nothing else; a third one helps.

    Examples
    --------
    >>> mpyc_less(2.5, 3.0)  # doctest: +SKIP
    True
    """
    inputs = [{"task": "less", "values": [round(value * 2**frac_bits)]} for value in (one, other)]
    return bool(_together([*inputs, {"task": "less", "values": [0]}])[0])


def _together(inputs: Sequence[Mapping[str, Any]]) -> list[int]:
    if len(inputs) < 3:
        raise ParameterError("MPyC needs three parties for an honest majority. Add one without data.")
    port = free_ports(len(inputs))
    started = [MpycParty(own, at, len(inputs), port) for at, own in enumerate(inputs)]
    try:
        results = [party.result() for party in started]
    finally:
        for party in started:
            party.end()
    if any(result != results[0] for result in results):
        raise ProtocolError("The parties of the MPyC computation do not agree on the result.")
    return results[0]


class MpycParty:
    """One party in a process of its own; it is handed its own input and nothing else."""

    def __init__(self, own: Mapping[str, Any], at: int, many: int, port: int) -> None:
        if importlib.util.find_spec("mpyc") is None:
            # Not imported here: it reads the command line of whoever imports it.
            load_extra("mpyc", extra="federated", purpose="The back end mpyc")
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "discreet.federated.mpyc_party",
                f"-M{many}", f"-I{at}", f"-B{port}", "--no-log",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(dict(own)))
        self._process.stdin.close()
        self._process.stdin = None

    def result(self) -> list[int]:
        """Wait for what all parties learn."""
        try:
            answer = self._process.communicate(timeout=_SECONDS)[0]
            return [int(one) for one in json.loads(answer.strip().splitlines()[-1])]
        except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
            raise ProtocolError(
                "A party of the MPyC computation fell silent. Nothing was learned."
            ) from error

    def end(self) -> None:
        """End the process, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def free_ports(many: int) -> int:
    """Find neighboring ports that nobody listens on, below those that the system gives to outgoing connections."""
    for _ in range(200):
        first = 15_000 + secrets.randbelow(16_000)
        if all(_is_free(first + at) for at in range(many)):
            return first
    raise ProtocolError("No free ports for the MPyC computation.")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
