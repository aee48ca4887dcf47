"""What a manifest must hold before anybody relies on it: the shape of its entries, checked once when it is read.

A package may come from anywhere. An entry that lacks its reason or has a status nobody knows would otherwise fail in
the middle of a page, and two outputs of one name would let a decision on one pass for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATUSES = ("pass", "review", "fail")
_TEXTS = ("questions", "notes", "comments", "barns", "variables", "mitigations")


def checked_manifest(document: Any) -> Mapping[str, Any]:
    """Return the manifest if it has the shape of one, else raise a ValueError that names the entry.

    Examples
    --------
    >>> checked_manifest({"about": {}, "policy": {}, "register": {"entries": []}, "outputs": [{"name": 5}]})
    Traceback (most recent call last):
    ValueError: name of an output
    """
    _need(isinstance(document, Mapping), "the manifest")
    for name in ("about", "policy", "register"):
        _need(isinstance(document.get(name), Mapping), name)
    _need(_is_list_of(document["register"].get("entries"), Mapping), "entries of the register")
    _need(_is_list_of(document.get("outputs"), Mapping), "outputs")
    for output in document["outputs"]:
        _check_output(output)
    names = [output["name"] for output in document["outputs"]]
    _need(len(set(names)) == len(names), "two outputs of one name")
    found: Mapping[str, Any] = document
    return found


def _check_output(output: Mapping[str, Any]) -> None:
    for name in ("name", "kind"):
        _need(isinstance(output.get(name), str), f"{name} of an output")
    _need(output.get("status") in _STATUSES, "status of an output")
    _need(_is_list_of(output.get("barns"), str), "barns of an output")
    for name in _TEXTS:
        _need(_is_list_of(output.get(name, []), str), f"{name} of an output")
    for name in ("exception", "mitigation", "command"):
        _need(output.get(name) is None or isinstance(output[name], str), f"{name} of an output")
    _need(_is_list_of(output.get("findings"), Mapping), "findings of an output")
    for finding in output["findings"]:
        _need(finding.get("status") in _STATUSES, "status of a finding")
        _need(all(isinstance(finding.get(name), str) for name in ("check", "reason")), "words of a finding")
        places = finding.get("places", [])
        _need(
            _is_list_of(places, Mapping) and all("cell" in place for place in places), "places of a finding"
        )
    _need(_is_list_of(output.get("files"), Mapping), "files of an output")
    for file in output["files"]:
        _need(isinstance(file.get("name"), str), "name of a file")
        _need(isinstance(file.get("title", ""), str), "title of a file")


def _is_list_of(values: Any, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
