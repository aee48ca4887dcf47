"""Code lists (``.cdl``): one code a line, a comma, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.core.errors import InputError
from discreet.core.files.atomic import replacing
from discreet.tables.argus.hierarchies import text_lines


def read_codelist(path: str | Path, *, encoding: str = "utf-8") -> dict[str, str]:
    r"""Read what codes mean.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "place.cdl"
    >>> _ = file.write_text('1,Groningen\n2,"Friesland, all of it"\n')
    >>> read_codelist(file)
    {'1': 'Groningen', '2': 'Friesland, all of it'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text_lines(Path(path), encoding), 1):
        code, comma, label = line.partition(",")
        code = code.strip().strip('"')
        if not comma or not code:
            raise InputError(
                f"Line {number} of '{Path(path).name}' is not a code, a comma and a label. Mend the line."
            )
        if code in found:
            raise InputError(f"Line {number} of '{Path(path).name}' repeats a code. Keep one label for each.")
        found[code] = label.strip().strip('"')
    return found


def write_codelist(labels: Mapping[str, str], path: str | Path) -> Path:
    """Write what codes mean and return the path."""
    for code in labels:
        if "," in code or "\n" in code or "\n" in labels[code]:
            raise InputError("A code in a code list cannot hold a comma or a line break. Recode it first.")
    lines = (f'{code},"{label}"\n' if "," in label else f"{code},{label}\n" for code, label in labels.items())
    with replacing(path) as unfinished:
        unfinished.write_text("".join(lines), encoding="utf-8")
    return Path(path)
