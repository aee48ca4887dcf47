"""What a joint computation hands back: the number, who saw what, and what that tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.federated.leakage import Leakage
from discreet.federated.transcript import Transcript


class Answer(NamedTuple):
    """The result of a protocol with its transcript and its leakage; where it is one number it counts as that number.

    Examples
    --------
    >>> answer = Answer(3.0, Transcript(), Leakage("secure-sum"))
    >>> value, transcript, leakage = answer
    >>> value, float(answer), answer == 3.0
    (3.0, 3.0, True)
    """

    value: Any
    transcript: Transcript
    leakage: Leakage

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answer):
            return bool(np.array_equal(self.value, other.value)) and self.transcript == other.transcript
        return bool(np.array_equal(self.value, np.asarray(other)))

    def __hash__(self) -> int:
        return id(self)
