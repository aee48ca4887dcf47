"""Which field of a form does a refusal belong to? The work says it; the page puts the sentence there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from discreet.core.errors import DiscreetError


class RefusedError(Exception):
    """What the library refused, or what went wrong, said to the person at the page.

    ``field`` names the field it belongs to; empty where it belongs to the whole action.
    """

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field


@contextmanager
def caused_by(field: str) -> Iterator[None]:
    """Mark what the library refuses in here as caused by one field of the page; the innermost mark counts.

    Examples
    --------
    >>> from discreet.core.errors import ParameterError
    >>> try:
    ...     with caused_by("policy"):
    ...         raise ParameterError("There is no such policy.")
    ... except ParameterError as error:
    ...     print(field_of(error))
    policy
    """
    try:
        yield
    except DiscreetError as error:
        if not field_of(error):
            error.field = field  # type: ignore[attr-defined]
        raise


def field_of(error: BaseException) -> str:
    """Return the field that an error was caused by; empty where none was named."""
    return str(getattr(error, "field", ""))
