"""How are loops compiled? Once on a machine and kept on disk, and without doors that nobody uses.

Every door to a compiled function costs time at its first call: nothing here is called from C, and what only other
compiled functions call needs none to Python either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

# A plain 0 is a type of its own to the compiler: a function that is handed it, and later a count, is compiled twice.
ZERO: int = cast(int, np.int64(0))


def compiled(function: Function) -> Function:
    """Compile a function that Python calls."""
    return cast(Function, numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function))


def inner(function: Function) -> Function:
    """Compile a function that only other compiled ones call."""
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return cast(Function, numba.njit(cache=True, nogil=True, **options)(function))
