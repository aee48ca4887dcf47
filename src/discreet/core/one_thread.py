"""Linear algebra on one thread, where the same seed must give the same bytes.

A sum that is spread over threads is added up in another order for every number of threads, and differs in its last bits
from machine to machine. Treatments and generators therefore keep the linear algebra below them to one thread; what they
spread over cores themselves (columns, trees, blocks of records) is cut in the same way however many there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS to one thread within the block.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     print(int((np.eye(2) @ np.eye(2)).sum()))
    2
    """
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(_: int) -> ThreadpoolController:
    """Find the libraries of linear algebra, which takes milliseconds, and anew only after a module was imported.

    A library comes into a program with a module that needs it, so that the number of modules says whether there may be
    another.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def on_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function that runs within `one_thread`."""

    @wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread():
            return function(*args, **kwargs)

    return within
