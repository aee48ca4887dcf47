"""Reading the TOML files that people write: plans, policies, studies, roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.errors import InputError
from discreet.files.inputs import note_read
from discreet.files.nesting import parsed_toml


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """Read a TOML file; errors name it as ``what``, such as "plan file", and never show what it holds.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "plan.toml"
    >>> _ = file.write_text("rows = 5")
    >>> read_toml(file, "plan file")
    {'rows': 5}
    """
    place = Path(path)
    note_read(place, kept="ledger" in what)  # a ledger is read to be written again
    try:
        # Some editors put a byte order mark in front.
        return parsed_toml(place.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InputError(f"There is no {what} '{place.name or path}' there. Check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The {what} '{place.name}' cannot be read as UTF-8 text.") from error
    except ValueError as error:
        raise InputError(f"The {what} '{place.name}' is not valid TOML: {error}.") from error
