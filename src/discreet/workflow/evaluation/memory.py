"""How much memory a piece of work takes at most, where the operating system tells."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class PeakMemory:
    """Watch the memory of this process while a block runs.

    ``megabytes`` is the highest use during the block above what was in use before, or None where the system keeps no
    such figure that can be set back (it does on Linux).

    Examples
    --------
    >>> with PeakMemory() as watched:
    ...     _ = bytearray(1_000_000)
    >>> watched.megabytes is None or watched.megabytes >= 0
    True
    """

    def __init__(self) -> None:
        self.megabytes: float | None = None
        self._before: float | None = None

    def __enter__(self) -> PeakMemory:
        try:
            # 5 sets the high-water mark of this process back to what it uses now.
            _RESET.write_text("5")
            self._before = _status("VmRSS")
        except OSError:
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            self.megabytes = max(_status("VmHWM") - self._before, 0.0)


def used_by(process: int | None) -> float | None:
    """Return the megabytes that another process uses now; None where that cannot be seen."""
    try:
        return _read(Path(f"/proc/{process}/status"), "VmRSS")
    except (OSError, StopIteration):
        return None


def _status(name: str) -> float:
    return _read(_STATUS, name)


def _read(file: Path, name: str) -> float:
    lines = file.read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024
