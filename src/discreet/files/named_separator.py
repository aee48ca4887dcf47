"""Does a file of separated text name its separator? Spreadsheets take a first line such as ``sep=;``, and write one."""

from __future__ import annotations

import re

_LINE = re.compile(r'\ufeff?"?sep=(\\t|[^\r\n"])"?[,;\t|]*\r?\n', re.IGNORECASE)


def named_separator(text: str) -> tuple[str | None, str]:
    r"""Return the separator that the first line names, None where it names none, and the text after that line.

    Examples
    --------
    >>> named_separator("sep=;\na;b\n1;2\n")
    (';', 'a;b\n1;2\n')
    >>> named_separator("sep;other\n1;2\n")
    (None, 'sep;other\n1;2\n')
    """
    named = _LINE.match(text)
    return (named[1].replace("\\t", "\t"), text[named.end() :]) if named else (None, text)
