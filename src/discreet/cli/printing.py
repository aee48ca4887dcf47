r"""What reaches a terminal: plain signs, whatever the names of columns and files hold.

A terminal obeys some characters: they move the cursor, wipe what was said before, set the title of the window or turn
the direction of reading. A name may hold them, so that a file could rewrite the verdict about itself. They are shown as
codes (``\x1b``) instead; so are line breaks within a name, which could pass for a line of ours.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.text import Text

    from discreet.cli.source import Source
    from discreet.core.verdicts import Verdict


# All control characters but tab and line feed, and those that turn the direction of reading or break lines.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_names: dict[str, str] = {}


def note_names(names: Iterable[str]) -> None:
    """Note names whose line breaks and tabs are not to pass for ours."""
    for name in names:
        if re.search(r"[\n\t]", name):
            _names[name] = _IN_NAMES.sub(_code, name)


def printable(text: str) -> str:
    r"""Write control characters as codes.

    Examples
    --------
    >>> print(printable("pay\x1b[2J\u202e"))
    pay\x1b[2J\u202e
    """
    for name, shown in _names.items():
        text = text.replace(name, shown)
    return _OBEYED.sub(_code, text)


def printable_json(text: str) -> str:
    r"""Write in a JSON text those control characters as codes of JSON that JSON leaves as they are.

    Examples
    --------
    >>> print(printable_json('"\x7f"'))
    "\u007f"
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say_paragraph(text: str, *, err: bool = False) -> None:
    """Print a message that has no line breaks of its own: one in it stands in a name."""
    typer.echo(_IN_NAMES.sub(_code, text), err=err)


def say(text: Any = "", *, err: bool = False) -> None:
    """Print a line."""
    typer.echo(printable(str(text)), err=err)


def plain(text: Any, style: str = "") -> Text:
    """Make a text for a table on the terminal: names are the user's own and may look like markup or control it."""
    from rich.text import Text

    return Text(printable(str(text)), style=style)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(
        number, f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
    )


# What a command hands back to the shell: 0 is a clearance, everything else is not.
#
# 0 done (and every rule of the policy was judged and holds), 1 a defect in discreet, 2 bad input, 3 the policy is not
# met, 4 nothing failed, but something is left to judge: rules that need what was not there, outputs that need a person,
# 5 the same, and a person accepted all that is open.


DEFECT = 1
BAD_INPUT = 2
NOT_MET = 3
LEFT_TO_JUDGE = 4
ACCEPTED = 5
_OPTION = {"missing": "missing-token"}


def end_by(verdicts: Iterable[Verdict | bool | None]) -> None:
    """End a command by its verdicts; True stands for a policy that is met, None for one left open."""
    ways = {True: "met", False: "not met", None: "open"}
    found = {ways[one] if one is None or isinstance(one, bool) else one.outcome for one in verdicts}
    for outcome, code in (("not met", NOT_MET), ("open", LEFT_TO_JUDGE), ("accepted", ACCEPTED)):
        if outcome in found:
            raise typer.Exit(code)


def say_commands(verdicts: Iterable[Verdict | None], source: Source, **known: str | None) -> None:
    """Print the commands that would judge what is open, with the roles and reading options of this one.

    ``known`` are the names of files and policies that stand in them.
    """
    options = words_of({**source.roles, **source.reading})
    for command in dict.fromkeys(line for one in verdicts if one is not None for line in one.commands):
        words = [
            shlex.quote(known.get(word) or word) if word.isupper() else word for word in command.split(" ")
        ]
        say(f"To judge it: {' '.join([*words, *options])}")


def words_of(settings: Mapping[str, Any]) -> list[str]:
    """Write roles and reading options as they are typed."""
    return [
        word
        for name, value in settings.items()
        for one in _each(name, value)
        for word in (f"--{_OPTION.get(name, name).replace('_', '-')}", *([shlex.quote(one)] if one else []))
    ]


def _each(name: str, value: str | Sequence[str] | bool | None) -> list[str]:
    """Give the values of an option as they are typed: columns in one list, tokens one by one, of a flag none."""
    if not value:
        return []
    if value is True:
        return [""]
    if isinstance(value, str):
        return [value]
    return list(value) if name in ("missing", "dates") else [",".join(value)]
