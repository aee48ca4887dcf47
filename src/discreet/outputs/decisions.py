"""The register of decisions: who accepted, rejected or asked about which output, and when.

One line of JSON a decision. Each line carries the hash of the line before it, so that a line that is changed, taken
out or put in breaks the chain from there on. A hash chain shows tampering to whoever kept a later hash; whoever may
write the whole file could write a new chain. With a key (in the environment, never in a file of the package) the hashes
are keyed, and only those who hold it can write a line that verifies.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import explained
from discreet.core.files.journals import append_line
from discreet.core.files.locks import alone
from discreet.core.files.texts import parsed_json

DECISIONS = ("accept", "reject", "ask")
KEY_VARIABLE = "DISCREET_REGISTER_KEY"
REGISTER_ENDING = ".decisions.jsonl"
_START = "0" * 64


def append_decision(
    path: str | Path,
    *,
    output: str,
    decision: str,
    checker: str,
    note: str = "",
    about: Mapping[str, Any] | None = None,
    now: datetime.datetime | None = None,
) -> dict[str, Any]:
    """Write one decision to the register and return it.

    Parameters
    ----------
    path
        The register; made where it is not there.
    output
        Name of the output.
    decision
        ``accept``, ``reject`` or ``ask``.
    checker
        Who decided.
    note
        Why, or the question. Only an output that is known to pass is accepted without one.
    about
        More that belongs to it: status of the output, checksum of the package. Where the package lies beside the
        register, it says what the status is.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> passed = {"status": "pass"}
    >>> _ = append_decision(file, output="output_1", decision="accept", checker="A. Checker", about=passed)
    >>> verify_register(file)
    1
    >>> append_decision(file, output="output_2", decision="accept", checker="A. Checker", about={"status": "fail"})
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: Say why it is accepted although its status is 'fail': note must not be empty.
    """
    if decision not in DECISIONS:
        raise ParameterError(f"decision is one of {', '.join(DECISIONS)}.")
    if not checker.strip():
        raise ParameterError("checker must say who decides.")
    file = Path(path)
    known = dict(about or {})
    stated = _status_beside(file, output)
    if stated is not None:
        known["status"] = stated
    if not note.strip():
        _require_reason(decision, known.get("status"))
    with _alone(file):
        return _append(file, output, decision, checker, note, known, now)


def _require_reason(decision: str, status: object) -> None:
    """Refuse a decision without a reason; what passes every check needs none to be accepted."""
    if decision != "accept":
        raise ParameterError("Say why it is rejected, or what the question is: note must not be empty.")
    if status is None:
        raise ParameterError(
            "Nothing says that the output passes: say why it is accepted (note), or give its status (about)."
        )
    if status != "pass":
        raise ParameterError(
            f"Say why it is accepted although its status is '{status}': note must not be empty."
        )


def _status_beside(register: Path, output: str) -> str | None:
    """Read the status of an output from the package that the register belongs to; None where there is none."""
    from discreet.outputs.package import Package

    package = register.with_name(register.name.removesuffix(REGISTER_ENDING))
    if package == register or not package.exists():
        return None
    return str(Package.load(package)[output]["status"])


def _append(  # noqa: PLR0917
    file: Path,
    output: str,
    decision: str,
    checker: str,
    note: str,
    about: Mapping[str, Any] | None,
    now: datetime.datetime | None,
) -> dict[str, Any]:
    known = read_decisions(file)
    verify_register(file)
    moment = now or datetime.datetime.now(datetime.UTC)
    entry = {
        "number": len(known) + 1,
        "time": moment.isoformat(timespec="seconds"),
        "output": output,
        "decision": decision,
        "checker": checker.strip(),
        "note": note.strip(),
        **dict(about or {}),
        "before": known[-1]["hash"] if known else _START,
    }
    entry["keyed"] = _key() is not None
    entry["hash"] = _hash(entry)
    # One write of one line at the end: a crash leaves the earlier lines as they were.
    append_line(file, json.dumps(entry, ensure_ascii=False, sort_keys=True))
    return entry


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold the register for one writer: two lines with the same number would break the chain."""
    with contextlib.ExitStack() as stack, explained(file.name, file.parent):
        try:
            stack.enter_context(alone(file))
        except BlockingIOError as error:
            raise InputError(str(error)) from None
        yield


def read_decisions(path: str | Path) -> list[dict[str, Any]]:
    """Read the register without verifying it; empty where there is none yet."""
    file = Path(path)
    if not file.exists():
        return []
    try:
        # Only the line feed ends a line: a note may hold what Unicode counts as an end as well.
        lines = [parsed_json(line) for line in file.read_bytes().split(b"\n") if line.strip()]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"The register '{file.name}' cannot be read: a line is damaged.") from error
    if not all(isinstance(line, dict) and "hash" in line and "before" in line for line in lines):
        raise InputError(f"The register '{file.name}' has a line that is no decision.")
    return lines


def verify_register(path: str | Path, *, last: str | None = None) -> int:
    """Verify the chain and return how many decisions it holds; refuse a register that was tampered with.

    Parameters
    ----------
    path
        The register.
    last
        The hash of the last decision, where somebody noted it: shows that lines were cut off at the end, which a chain
        alone cannot.
    """
    before = _START
    entries = read_decisions(path)
    for place, entry in enumerate(entries, start=1):
        name = Path(path).name
        if entry["before"] != before or entry.get("number") != place:
            raise InputError(
                f"The register '{name}' was tampered with: decision {place} does not follow the one before."
            )
        if entry.get("keyed") and _key() is None:
            raise InputError(
                f"The register '{name}' is keyed. Put its key into the environment variable {KEY_VARIABLE}."
            )
        if not hmac.compare_digest(
            repr(entry["hash"]).encode("utf-8", "replace"), repr(_hash(entry)).encode()
        ):
            raise InputError(f"The register '{name}' was tampered with: decision {place} was changed.")
        before = entry["hash"]
    if last is not None and before != last:
        raise InputError(f"The register '{Path(path).name}' does not end with the decision that was noted.")
    return len(entries)


def latest(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the last decision on every output."""
    return {str(entry["output"]): entry for entry in read_decisions(path)}


def _hash(entry: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in entry.items() if name != "hash"}
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True).encode("utf-8", "backslashreplace")
    key = _key() if entry.get("keyed") else None
    return hmac.new(key, text, hashlib.sha256).hexdigest() if key else hashlib.sha256(text).hexdigest()


def _key() -> bytes | None:
    value = os.environ.get(KEY_VARIABLE, "")
    return value.encode("utf-8") if value else None
