"""The package that a checker gets: results, status, reasons, checksums, who, when and why.

A folder (or zip) with one CSV a table, one CSV with the confidentiality flags of its numbers, an Excel workbook with
status symbols where the extra is installed, ``manifest.json`` that a machine can read, and ``checksums.txt`` in the
format of ``sha256sum``. The manifest also holds the register for differencing; it is for the checker, never released.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet._version import __version__
from discreet.core.errors import DiscreetError, InputError
from discreet.core.files import atomic
from discreet.core.files.untrusted import parsed_json
from discreet.io.delimited import guarded
from discreet.outputs.check_results import Finding, Status, worst
from discreet.outputs.finished_files import judged
from discreet.outputs.finished_grids import read_grids
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.register import Registered

if TYPE_CHECKING:
    from discreet.outputs.session_questions import Recorder


FORMAT = "discreet output package"
VERSION = 1
MANIFEST, CHECKSUMS, WORKBOOK = "manifest.json", "checksums.txt", "results.xlsx"
_LARGEST = 512 * 1024 * 1024


@dataclass(frozen=True)
class Package:
    """A package as it was read, its checksums verified.

    Attributes
    ----------
    path
        Where it lies.
    about
        Who, when, why; format and versions.
    policy
        The thresholds it was made under.
    outputs
        One entry an output: name, kind, status, findings, questions, exception, files.
    files
        The content of every file, by name.
    register
        What is differenced with later outputs.
    """

    path: Path
    about: Mapping[str, Any]
    policy: OutputPolicy
    outputs: tuple[Mapping[str, Any], ...]
    files: Mapping[str, bytes] = field(repr=False)
    register: tuple[Registered, ...] = field(default=(), repr=False)

    @classmethod
    def load(cls, path: str | Path, policy: OutputPolicy | str | Path | None = None) -> Package:
        """Read a package, a folder or a zip, and refuse one whose files do not match their checksums.

        A package of a session has the status it was made with, and fails where the counts in its tables contradict it;
        a result folder of ACRO is judged anew. Both are held against ``policy`` where one is given.
        """
        source = Path(path)
        files = package_contents(source)
        if MANIFEST not in files:
            if "results.json" in files:
                from discreet.outputs.acro import read_acro

                return read_acro(source, policy)
            raise InputError(f"'{source.name}' is no output package: it has no {MANIFEST}.")
        _verify(files, source.name)
        try:
            document = checked_manifest(parsed_json(files[MANIFEST]))
            register = tuple(Registered.from_dict(entry) for entry in document["register"]["entries"])
            own = OutputPolicy.from_dict(document["policy"])
            rules = own if policy is None else OutputPolicy.load(policy)
            outputs = tuple(borne_out(output, files, rules) for output in document["outputs"])
            return cls(source, document["about"], rules, outputs, files, register)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InputError(f"The manifest of '{source.name}' cannot be read: it is damaged.") from error

    @property
    def checksum(self) -> str:
        """SHA-256 of the manifest, which holds those of all files."""
        name = MANIFEST if MANIFEST in self.files else "results.json"
        return hashlib.sha256(self.files[name]).hexdigest()

    @property
    def status(self) -> Status:
        """The worst status of the outputs."""
        return worst(output["status"] for output in self.outputs)

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        for output in self.outputs:
            if output["name"] == name:
                return output
        raise InputError(f"The package has no output '{name}'.")

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.outputs)

    def tables(self, name: str) -> dict[str, pl.DataFrame]:
        """Read the tables of an output."""
        return {
            file["name"]: pl.read_csv(io.BytesIO(self.files[file["name"]]), infer_schema_length=None)
            for file in self[name]["files"]
            if file["name"].lower().endswith(".csv") and file.get("role", "table") != "flags"
        }

    def __str__(self) -> str:
        who = " ".join(str(self.about.get(name) or "") for name in ("researcher", "project")).strip()
        lines = [
            f"{self.path.name}: {len(self.outputs)} outputs, status {self.status}"
            + (f" ({who})" if who else "")
        ]
        for output in self.outputs:
            reasons = [f["reason"] for f in output["findings"] if f["status"] != "pass"]
            lines.append(
                f"  {output['status']:<6}  {output['name']} ({output['kind']}) {' '.join(reasons)}".rstrip()
            )
        return "\n".join(lines)


def write_package(session: Recorder, target: Path, *, overwrite: bool = False) -> Path:
    """Write a session as a package, whole or not at all."""
    if not len(session):
        raise InputError("The session has no outputs, so there is nothing to pack.")
    files = _session_files(session)
    if target.suffix.lower() == ".zip":
        with (
            atomic.replacing(target, overwrite=overwrite) as unfinished,
            zipfile.ZipFile(unfinished, "w") as archive,
        ):
            for name, content in files.items():
                # A fixed time: the same session gives the same bytes.
                item = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                item.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(item, content)
        return target
    write_folder(files, target, overwrite=overwrite)
    return target


def write_folder(files: Mapping[str, bytes], target: Path, *, overwrite: bool) -> None:
    """Write files to a folder that takes its name only when it is complete; replace nothing but a package."""
    ours = any((target / name).is_file() for name in (MANIFEST, "results.json"))
    if overwrite and target.is_dir() and not ours:
        raise InputError(
            f"'{target.name}' is there and no output package; it was left as it is. Give another name."
        )
    atomic.write_folder(files, target, overwrite=overwrite)


def _session_files(session: Recorder) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    outputs = []
    for output in session:
        entry = output.to_dict()
        entry["files"] = []
        for place, (title, table) in enumerate(output.tables.items()):
            name = f"{output.name}_{place}.csv"
            files[name] = as_csv(table)
            entry["files"].append({"name": name, "title": title, "role": "table"})
            if title in output.draft.flags:
                flagged = f"{output.name}_{place}.flags.csv"
                files[flagged] = as_csv(output.draft.flags[title])
                entry["files"].append({"name": flagged, "title": title, "role": "flags"})
        for path in output.draft.files:
            blocked = session.policy.blocks(path)
            if blocked:
                raise InputError(f"'{path.name}' is refused: {blocked}.")
            name = f"{output.name}_{path.name}"
            files[name] = path.read_bytes()
            entry["files"].append({"name": name, "title": path.name, "role": "custom"})
        for file in entry["files"]:
            file["sha256"] = hashlib.sha256(files[file["name"]]).hexdigest()
        outputs.append(entry)
    from discreet.outputs.output import workbook

    book = workbook(session)
    if book is not None:
        files[WORKBOOK] = book
    document = {
        "about": {
            "format": FORMAT,
            "version": VERSION,
            "made_with": f"discreet {__version__}",
            "researcher": session.researcher,
            "project": session.project,
            "purpose": session.purpose,
            "started": session.started,
            "before": session.before,
            "status": session.status,
        },
        "policy": session.policy.to_dict(),
        "outputs": outputs,
        "register": {"do_not_release": True, "entries": session.register.to_list()},
    }
    files[MANIFEST] = (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in files.items()]
    files[CHECKSUMS] = ("\n".join(lines) + "\n").encode("utf-8")
    return files


def as_csv(table: pl.DataFrame) -> bytes:
    """Write a table for a checker, who may open it in a spreadsheet: no label of it is computed there."""
    return guarded(table.lazy()).collect().write_csv().encode("utf-8")


def package_contents(source: Path) -> dict[str, bytes]:
    """Read every file of a package; names that point elsewhere are refused."""
    if source.is_dir():
        paths = [path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink()]
        if sum(path.stat().st_size for path in paths) > _LARGEST:
            raise InputError(f"'{source.name}' is too large for a package of outputs.")
        return {path.relative_to(source).as_posix(): path.read_bytes() for path in paths}
    if not source.is_file():
        raise InputError(f"There is no package '{source.name}' there.")
    try:
        with zipfile.ZipFile(source) as archive:
            items = [item for item in archive.infolist() if not item.is_dir()]
            if sum(item.file_size for item in items) > _LARGEST:
                raise InputError(f"'{source.name}' is too large for a package of outputs.")
            for item in items:
                parts = PurePosixPath(item.filename).parts
                if item.filename.startswith("/") or ".." in parts or re.match(r"^[A-Za-z]:", item.filename):
                    raise InputError(f"'{source.name}' has a file whose name points out of the package.")
            return {item.filename: archive.read(item) for item in items}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"'{source.name}' is neither a folder nor a zip of outputs.") from error


def _verify(files: Mapping[str, bytes], name: str) -> None:
    if CHECKSUMS not in files:
        raise InputError(f"'{name}' has no {CHECKSUMS}, so nothing says that its files are as they were.")
    listed = {}
    for line in files[CHECKSUMS].decode("utf-8", errors="replace").split("\n"):
        if not line.strip():
            continue
        digest, _, file = line.partition("  ")
        listed[file.rstrip("\r")] = digest
    extra = sorted(set(files) - set(listed) - {CHECKSUMS})
    if extra:
        raise InputError(
            f"'{name}' has {len(extra)} files that are not in its list of checksums, such as '{extra[0]}'."
        )
    for file, digest in listed.items():
        if file not in files or hashlib.sha256(files[file]).hexdigest() != digest:
            raise InputError(
                f"The file '{file}' of '{name}' is missing or was changed after the package was made."
            )


# What a manifest must hold before anybody relies on it: the shape of its entries, checked once when it is read.
#
# A package may come from anywhere. An entry that lacks its reason or has a status nobody knows would otherwise fail in
# the middle of a page, and two outputs of one name would let a decision on one pass for both.


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


# Do the tables of a package bear out the status that its manifest claims?
#
# A manifest is written where the data are, and whoever may write it may change it. The counts in its tables can be seen
# by everybody: where they fail the rules although the manifest says otherwise, or the checker's policy is stricter than
# the one the package was made under, the output fails.


# Rounded and noisy counts may be small: that is what they are for.
_CHANGED = ("round", "noise")
_SEEN = ("low count", "low total", "records")


def borne_out(
    output: Mapping[str, Any], files: Mapping[str, bytes], policy: OutputPolicy
) -> Mapping[str, Any]:
    """Return an output of a package, with a failure added where its own tables contradict its status."""
    if output["status"] == "fail" or output.get("mitigation") in _CHANGED:
        return output
    counts = output["kind"] == "cross table"
    found: list[Finding] = []
    for file in output["files"]:
        name = file["name"]
        if file.get("role") != "table" or name not in files:
            continue
        try:
            grids = read_grids(Path(name), files[name])
        except DiscreetError:
            continue
        checked = judged(grids, policy, are_counts=counts, named_only=not counts)
        found += [finding for finding in checked if finding.status == "fail" and finding.check in _SEEN]
    said = [
        Finding(f.check, f.barn, "fail", f"The table itself says: {f.reason}", places=f.places) for f in found
    ]
    return with_findings(output, said)


def with_findings(output: Mapping[str, Any], more: Sequence[Finding]) -> Mapping[str, Any]:
    """Return an output of a package with further findings."""
    if not more:
        return output
    findings = [*output["findings"], *(finding.to_dict() for finding in more)]
    return {**output, "findings": findings, "status": worst(finding["status"] for finding in findings)}
