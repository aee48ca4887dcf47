"""Arrays by what they hold: the types that signatures speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]
