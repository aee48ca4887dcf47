"""Keeping the outputs of a session: names, times, differencing, exceptions, and the package in the end."""

from __future__ import annotations

import datetime
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from discreet.core.errors import ParameterError, unknown_name
from discreet.engine import like
from discreet.io.naming import checked_name
from discreet.microdata import Microdata
from discreet.outputs.check_results import Finding, Status, worst
from discreet.outputs.output import Draft, Output
from discreet.outputs.register import OutputRegister, Registered
from discreet.outputs.settings import OutputPolicy


class Recorder:
    """What a session keeps and how it is handed on."""

    def __init__(
        self,
        policy: str | Path | OutputPolicy | Mapping[str, Any] | None = None,
        *,
        data: Any = None,
        researcher: str = "",
        project: str = "",
        purpose: str = "",
        earlier: Sequence[str | Path] = (),
        clock: Callable[[], datetime.datetime] | None = None,
    ) -> None:
        self.policy = OutputPolicy.load(policy)
        self.data = None if data is None else as_microdata(data)
        self.researcher, self.project, self.purpose = researcher, project, purpose
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        self.started = self._now()
        self._outputs: dict[str, Output] = {}
        self._made = 0
        self.register = OutputRegister(_earlier(earlier))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __iter__(self) -> Iterator[Output]:
        return iter(self._outputs.values())

    def __len__(self) -> int:
        return len(self._outputs)

    def __getitem__(self, name: str) -> Output:
        if name not in self._outputs:
            raise ParameterError(unknown_name(name, self._outputs, what="output"))
        return self._outputs[name]

    @property
    def status(self) -> Status:
        """The worst status of the outputs."""
        return worst(output.status for output in self)

    def explain(self, output: str | Output, reason: str) -> Output:
        """Ask for an exception: say why an output should go out although it does not pass.

        An output that fails is not meant for release, so others are not differenced with it; now that it is, they are.
        """
        if not reason.strip():
            raise ParameterError("An exception needs a reason that a checker can follow.")
        known = self[_name_of(output)]
        earlier = {finding.reason for finding in known.findings}
        entries = [entry for entry in self.register if entry.name == known.name]
        more = [finding for finding in self._differences(entries, "a") if finding.reason not in earlier]
        return self._change(known, exception=reason.strip(), checked=known.checked.with_more(more))

    def comment(self, output: str | Output, text: str) -> Output:
        """Add a comment for the checker."""
        known = self[_name_of(output)]
        return self._change(output, comments=(*known.comments, text))

    def rename(self, output: str | Output, name: str) -> Output:
        """Give an output another name."""
        old = self[_name_of(output)]
        self._free(name)
        renamed = old.but(name=name)
        self._outputs = {
            (name if n == old.name else n): (renamed if n == old.name else o)
            for n, o in self._outputs.items()
        }
        entries = [_renamed(e, name) if e.name == old.name else e for e in self.register]
        self.register = OutputRegister(entries)
        return renamed

    def remove(self, output: str | Output) -> None:
        """Withdraw an output: it is not packed, and no longer differenced."""
        name = self[_name_of(output)].name
        del self._outputs[name]
        self.register.drop(name)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the package for the checker: a folder, or a zip where the name ends in .zip."""
        from discreet.outputs.package import write_package

        return write_package(self, Path(path), overwrite=overwrite)

    def __repr__(self) -> str:
        lines = [f"Session under policy '{self.policy.name}': {len(self)} outputs, status {self.status}"]
        return "\n".join([*lines, *(f"  {output.line}" for output in self)])

    def _now(self) -> str:
        return str(self._clock().isoformat(timespec="seconds"))

    def _file(self, data: Any) -> Microdata:
        if data is None and self.data is None:
            raise ParameterError("There is no data: give data=… here, or to the session.")
        return self.data if data is None else as_microdata(data)  # type: ignore[return-value]

    def _record(self, draft: Draft, data: Microdata | None, name: str | None, comment: str) -> Output:
        """Name the output, difference it with all earlier ones, and enter it."""
        if name is None:
            self._made += 1
            name = f"output_{self._made}"
        self._free(name)
        entries = [_renamed(entry, name) for entry in draft.entries]
        barn = draft.checked.barns[0] if draft.checked.barns else "a"
        barn = barn if barn in "ad" else "a"
        found = self._differences(entries, barn)
        checked = draft.checked.with_more(found) if found else draft.checked
        for entry in entries:
            self.register.add(entry)
        result = draft.result
        if result is None and draft.tables:
            first = next(iter(draft.tables.values()))
            result = like(data, first) if data is not None else first
        output = Output(
            name=name,
            draft=draft,
            checked=checked,
            command=_command(),
            created=self._now(),
            result=result,
            comments=(comment,) if comment else (),
        )
        self._outputs[name] = output
        return output

    def _differences(self, entries: Sequence[Registered], barn: str) -> list[Finding]:
        """Hold entries against all outputs that are meant for release: those that fail are, once they are explained."""
        limit = self.policy.difference_threshold or self.policy.threshold
        withheld = {o.name for o in self if o.status == "fail" and not o.exception}
        found = {
            finding.reason: finding
            for entry in reversed(entries)
            for finding in self.register.differences(entry, threshold=limit, barn=barn, without=withheld)
        }
        # A margin says of the same people what its cells say: once is enough.
        return list(reversed(found.values()))

    def _change(self, output: str | Output, **changes: Any) -> Output:
        changed = self[_name_of(output)].but(**changes)
        self._outputs[changed.name] = changed
        return changed

    def _free(self, name: str) -> None:
        if name in self._outputs:
            raise ParameterError(
                f"There is already an output '{name}'. Give another name, or remove it first."
            )
        checked_name(name, "output")


def _command() -> str:
    """Read the call that made an output from the script, where there is one."""
    here = str(Path(__file__).parent)
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
    if frame is None:
        return ""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()


def _earlier(paths: Sequence[str | Path]) -> list[Registered]:
    from discreet.outputs.package import Package

    found: list[Registered] = []
    for path in paths:
        package = Package.load(path)
        withheld = {o["name"] for o in package if o["status"] == "fail" and not o["exception"]}
        label = Path(path).name
        found += [
            replace(entry, name=f"{entry.name} of {label}")
            for entry in package.register
            if entry.name not in withheld
        ]
    return found


def as_microdata(data: Any) -> Microdata:
    """Take Microdata as they are and wrap a bare frame."""
    if isinstance(data, Microdata):
        return data
    if isinstance(data, str | Path):
        raise ParameterError("data must be Microdata or a frame. Read a file with discreet.read(path).")
    return Microdata(data)


def _name_of(output: str | Output) -> str:
    return output.name if isinstance(output, Output) else output


def _renamed(entry: Registered, name: str) -> Registered:
    return replace(entry, name=name)
