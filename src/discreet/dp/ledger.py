"""How much privacy of a data source is left? One budget, one record a release, entered before any noise is drawn.

A ledger belongs to a data source and lies beside it (``survey.privacy.toml``). It says what was published, with which
mechanism, at what price. A release that would pass the budget is refused, and because the record is written first, a
crash afterwards can only have counted too much.

It holds no records, but fingerprints of the content of its source, by which the source is recognized. Whoever knows all
records but one could try out that one against a fingerprint, which no guarantee covers: the file is as confidential as
the data, and is made readable by its owner only. What may be shown is `Ledger.table`, `Ledger.to_html` and
``discreet budget show``, which hold no fingerprint.

The checksums show that a file was changed by accident or by hand; whoever wants to forge them can. An older copy that
is put back is noticed by every `Ledger` of the running program, and by no later one. The ledger is a tool of honest
people.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import polars as pl

from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import explained, replacing
from discreet.core.files.locks import alone
from discreet.core.guarantees import Spending, in_plain_words
from discreet.dp import ledger_files
from discreet.dp.calibration import checked_epsilon
from discreet.dp.costs import Adjacency, Cost, Total, Unit, together
from discreet.dp.ledger_files import Source
from discreet.microdata import Microdata
from discreet.policy import DELTA_TOO_LARGE, LARGEST_DELTA, Policy

SUFFIX = ".privacy.toml"
_FIXED = ("id", "source", "fingerprint", "epsilon", "delta", "adjacency", "unit")
_SEEN: dict[str, int] = {}
"""How many records each ledger had when this program last looked at it, by its number."""


class Ledger:
    """The privacy budget of one data source.

    Also known as: privacy accountant; odometer; budget.

    Parameters
    ----------
    epsilon, delta
        The budget of all releases together. ``delta``, the chance that nothing is promised at all, should be well below
        one in the number of records, and may not be more than 0.1.
    path
        Where the ledger is kept; without one it lives as long as the program. An existing file is opened, and must
        have been opened with the same budget, source and adjacency. Threads, processes and machines may spend from
        one file together. A ledger without a path can be shared by threads; a copy of it is the same ledger, and it is
        refused in another process, which would spend the budget again.
    source
        The file, or the data, that the budget belongs to. A file is recognized by its bytes, and data by their content,
        whatever the format, the engine and the order of records and columns. Other data are refused until
        `same_source` declares them to be about the same people. Parts of a file are recognized where they were made of
        it by ``data.with_frame(...)``. Without a source the ledger takes what it is given.
    adjacency
        Which files are neighbors; releases under another notion are converted where that is proved, and refused where
        it is not.
    unit
        Whose privacy is counted. A release about records costs nothing less for a person with several of them, so
        units are never mixed.

    Examples
    --------
    >>> ledger = Ledger(epsilon=1.0)
    >>> ledger.spend(Cost("laplace", "pure", epsilon=0.75, purpose="income by region"))
    >>> round(ledger.left, 6)
    0.25
    >>> ledger.spend(Cost("laplace", "pure", epsilon=0.5))
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: The privacy budget does not allow this release: 0.75 of epsilon 1 is spent, ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        path: str | Path | None = None,
        source: Source | None = None,
        adjacency: Adjacency = "add-remove",
        unit: Unit = "record",
    ) -> None:
        checked_epsilon(epsilon)
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 <= delta < 1:
            raise ParameterError("delta must be a number of 0 or more and less than 1.")
        if delta > LARGEST_DELTA:
            raise ParameterError(DELTA_TOO_LARGE)
        if adjacency not in get_args(Adjacency):
            raise ParameterError("adjacency must be 'add-remove' or 'replace'.")
        if unit not in get_args(Unit):
            raise ParameterError(f"unit must be one of {', '.join(map(repr, get_args(Unit)))}.")
        self._settle(None if path is None else ledger_files.resolved(path))
        self._header: dict[str, Any] = {
            "format": ledger_files.FORMAT,
            "id": secrets.token_hex(16),
            "follows": "",
            **(
                {"source": "", "fingerprint": "", "content": ""}
                if source is None
                else ledger_files.fingerprints(source)
            ),
            "epsilon": float(epsilon),
            "delta": float(delta),
            "adjacency": adjacency,
            "unit": unit,
            "closed": False,
            "same": [],
        }
        self._entries: list[dict[str, Any]] = []
        if self.path is not None:
            with self._alone():
                if self.path.exists():
                    self._join(source)
                else:
                    self._write(self._header, [])

    def _settle(self, path: Path | None) -> None:
        self.path = path
        self._threads = threading.RLock()
        self._process = os.getpid()

    @classmethod
    def beside(cls, source: str | Path, epsilon: float, delta: float = 0.0, **options: Any) -> Ledger:
        """Open the ledger that lies beside a file, or make it."""
        return cls(epsilon, delta, path=cls.place_beside(source), source=source, **options)

    @staticmethod
    def place_beside(source: str | Path) -> Path:
        """Where the ledger of a file lies.

        Examples
        --------
        >>> Ledger.place_beside("survey.csv.gz").name
        'survey.privacy.toml'
        """
        place = Path(source)
        if not place.name:
            raise InputError("A ledger lies beside a data file: name the file, not a folder.")
        if place.is_symlink():  # another name of the same data
            place = ledger_files.resolved(place)
        return place.with_name(place.name.split(".")[0] + SUFFIX)

    @classmethod
    def load(cls, path: str | Path, *, source: Source | None = None) -> Ledger:
        """Open a ledger that exists, with the budget it was made with."""
        ledger = cls.__new__(cls)
        ledger._settle(ledger_files.resolved(path))
        assert ledger.path is not None
        header, entries = ledger_files.read_ledger(ledger.path)
        if len(entries) < _SEEN.get(header["id"], 0):  # unless somebody has spent since
            with ledger._alone():
                header, entries = ledger._noted(*ledger_files.read_ledger(ledger.path))
        ledger._header, ledger._entries = header, entries
        if source is not None:
            ledger.check_source(source)
            ledger._add_content(source)
        return ledger

    def check_source(self, source: Source) -> None:
        """Refuse data that the ledger does not belong to; a ledger without a source takes any.

        Parameters
        ----------
        source
            A file, or data. Data that were read with `discreet.read`, and what was made of them with
            ``data.with_frame(...)``, are known by their file; others by their content.
        """
        if ledger_files.known_by(self._header, source):
            return
        if self.path is not None:  # somebody may have declared it meanwhile
            with self._alone():
                self._refresh()
            if ledger_files.known_by(self._header, source):
                return
        raise ledger_files.foreign(self.path)

    def same_source(self, source: Source, *, why: str) -> None:
        """Declare that a file, or data, are about the same people: they go on spending from this budget.

        For data that were corrected, records that were added, a part whose origin is not known. Nothing that was spent
        is given back. The declaration stays in the ledger.

        Parameters
        ----------
        source
            The file or the data.
        why
            Who decided it, and why.
        """
        if not why.strip():
            raise ParameterError("why must say who declares the data to be the same source, and why.")
        if not (self._header["fingerprint"] or self._header["content"]):
            raise ParameterError(
                "The ledger was opened without a source and takes any data: there is nothing to declare."
            )
        declared = {**ledger_files.fingerprints(source), "time": _now(), "why": ledger_files.well_formed(why)}
        with self._alone():
            self._refresh()
            self._write({**self._header, "same": [*self._header["same"], declared]}, self._entries)

    @classmethod
    def new_source(
        cls, source: str | Path, epsilon: float, delta: float = 0.0, *, why: str, **options: Any
    ) -> Ledger:
        """Open a budget of its own for a file that took the place of another and is about other people.

        The ledger of the earlier file is closed, kept beside the new one (``survey.1.privacy.toml``) and named in it.
        For changed or added records about the same people this is wrong, however few they are: see `same_source`.

        Parameters
        ----------
        source
            The file.
        epsilon, delta, options
            As for a new ledger.
        why
            Who decided it, and why.
        """
        if not why.strip():
            raise ParameterError("why must say who declares the file to be a new source, and why.")
        place = ledger_files.resolved(cls.place_beside(source))
        earlier = cls.load(place)
        if ledger_files.known_by(earlier._header, source):
            raise ParameterError("The file is the one that its ledger belongs to. A budget is set once.")
        # Wrong options are refused before anything is moved.
        cls(epsilon, delta, source=source, **options)
        with earlier._alone():
            earlier._rewrite(closed=True)
            names = (
                place.with_name(f"{place.name.removesuffix(SUFFIX)}.{n}{SUFFIX}") for n in range(1, 10_000)
            )
            kept = next(name for name in names if not name.exists())
            with explained(kept.name, kept.parent):
                place.rename(kept)
        ledger = cls(epsilon, delta, path=place, source=source, **options)
        with ledger._alone():
            ledger._rewrite(follows=ledger_files.well_formed(f"{kept.name}: {why}"))
        return ledger

    @property
    def budget(self) -> tuple[float, float]:
        """Epsilon and delta of all releases together."""
        return float(self._header["epsilon"]), float(self._header["delta"])

    @property
    def source(self) -> str:
        """The name of the file that the budget belongs to; empty where it was opened without one."""
        return str(self._header["source"])

    @property
    def spent(self) -> Total:
        """What all releases entered so far cost together."""
        return self._total(self._entries)

    @property
    def left(self) -> float:
        """How much of epsilon is left, for a pure release that is simply added."""
        return max(self.budget[0] - self.spent.epsilon, 0.0)

    @property
    def unproved(self) -> int:
        """How many records have the bounds of a method, and no proof for its arithmetic: the sum is then no promise."""
        return sum(not entry.get("proved", True) for entry in self._entries)

    @property
    def closed(self) -> bool:
        """Whether no further release is taken."""
        return bool(self._header["closed"])

    def spend(
        self, costs: Cost | Sequence[Cost], *, disjoint: bool = False, data: Microdata | None = None
    ) -> None:
        """Enter a release, or refuse it; called before noise is drawn.

        Parameters
        ----------
        costs
            The price of the release; several where several numbers are published together, which are entered all or
            none.
        disjoint
            Whether the costs are about disjoint people. Only for code that divided the records itself.
        data
            What the release is made of; data that the ledger does not belong to are refused. A release of numbers
            alone does not know what they were counted from.
        """
        entered = [costs] if isinstance(costs, Cost) else list(costs)
        if not entered:
            return
        for cost in entered:
            if cost.unit != self._header["unit"]:
                raise ParameterError(
                    f"The ledger counts the privacy of every {self._header['unit']}, the release that of every "
                    f"{cost.unit}. Bound what a {self._header['unit']} contributes, or open a ledger for every "
                    f"{cost.unit}."
                )
            cost.under(self._header["adjacency"])
        made = [ledger_files.as_entry(cost) for cost in entered]
        if data is not None:
            self.check_source(data)
        with self._alone():
            self._refresh()
            if self.closed:
                raise ParameterError("The ledger is closed: nothing more may be published from this source.")
            now = _now()
            group = len({entry["release"] for entry in self._entries}) + 1
            more = [
                {"release": group, "time": now, "disjoint": disjoint and len(entered) > 1, **entry}
                for entry in made
            ]
            self._check(self._entries + more)
            self._write(self._header, self._entries + more)

    @classmethod
    def of_policy(
        cls, policy: str | Path | Policy, *, path: str | Path | None = None, source: Source | None = None
    ) -> Ledger:
        """Open the ledger that a policy sets the budget of (``[budget]`` in its file).

        Examples
        --------
        >>> from discreet.policy import Policy
        >>> ours = Policy.from_dict({"rules": {"k_anonymity": {"at_least": 3}}, "budget": {"epsilon": 2.0}})
        >>> Ledger.of_policy(ours).budget
        (2.0, 0.0)
        """
        budget = Policy.load(policy).budget
        if budget is None:
            raise ParameterError(
                "The policy sets no privacy budget. Add a table [budget] with epsilon to it, or give epsilon."
            )
        return cls(
            budget.epsilon,
            budget.delta,
            path=path,
            source=source,
            adjacency=budget.adjacency,  # type: ignore[arg-type]
            unit=budget.unit,  # type: ignore[arg-type]
        )

    def against(self, policy: str | Path | Policy) -> tuple[str, ...]:
        """Say in which ways the ledger allows more than a policy does; nothing where it does not.

        Examples
        --------
        >>> from discreet.policy import Policy
        >>> ours = Policy.from_dict({"rules": {"k_anonymity": {"at_least": 3}}, "budget": {"epsilon": 2.0}})
        >>> Ledger(epsilon=3.0).against(ours)
        ('epsilon is 3, and the policy allows 2',)
        """
        budget = Policy.load(policy).budget
        if budget is None:
            return ()
        epsilon, delta = self.budget
        more = []
        if epsilon > budget.epsilon:
            more.append(f"epsilon is {epsilon:g}, and the policy allows {budget.epsilon:g}")
        if delta > budget.delta:
            more.append(f"delta is {delta:g}, and the policy allows {budget.delta:g}")
        # A promise about replacements holds for less than one about one record more or less, and is not the same.
        for name, asked in (("adjacency", budget.adjacency), ("unit", budget.unit)):
            if self._header[name] != asked:
                more.append(f"{name} is '{self._header[name]}', and the policy asks for '{asked}'")
        return tuple(more)

    @property
    def meaning(self) -> str:
        """What the releases so far mean for one person, in plain words."""
        if not self._entries:
            return "Nothing was published from this source yet."
        spent = self.spent
        words = in_plain_words(
            spent.epsilon,
            spent.delta,
            unit=str(self._header["unit"]),
            adjacency=self._header["adjacency"],
        )
        if self.unproved:
            words += (
                f" {self.unproved} of the records have the bounds of a method that is not proved for the arithmetic "
                "used, so this is counted and not guaranteed."
            )
        return words

    def to_html(self, path: str | Path) -> Path:
        """Write a page with the promise in plain words, all releases as a table and what is not covered."""
        from discreet.report.short_reports import write_budget_report

        return write_budget_report(self, path)

    def close(self) -> None:
        """Take no further release."""
        with self._alone():
            self._rewrite(closed=True)

    def table(self) -> pl.DataFrame:
        """The releases entered so far, one row a record."""
        return pl.DataFrame(self._entries) if self._entries else pl.DataFrame({"release": []})

    def spending(self) -> Spending:
        """The ledger as it stands, in words and rows for people."""
        (epsilon, delta), spent = self.budget, self.spent
        return Spending(
            _bounds(epsilon, delta),
            f"epsilon {spent.epsilon:.4g}" + (f", delta {spent.delta:g}" if spent.delta else ""),
            f"epsilon {self.left:.4g}",
            tuple(
                {
                    "release": str(entry["release"]),
                    "day": entry["time"][:10],
                    "mechanism": entry["mechanism"],
                    "price": f"rho {entry['rho']:.4g}"
                    if entry["definition"] == "zcdp"
                    else f"epsilon {entry['epsilon']:g}",
                    "delta": f"{entry['delta']:g}" if entry["delta"] else "",
                    "neighbors": entry["adjacency"],
                    "proved": "yes" if entry.get("proved", True) is not False else "no",
                    "purpose": entry["purpose"],
                }
                for entry in self._entries
            ),
        )

    def __repr__(self) -> str:
        epsilon, delta = self.budget
        spent = self.spent
        return (
            f"Ledger({_bounds(epsilon, delta)}; {len({entry['release'] for entry in self._entries})} releases, epsilon "
            f"{spent.epsilon:.4g} spent{', closed' if self.closed else ''})"
        )

    def _total(self, entries: Sequence[dict[str, Any]]) -> Total:
        grouped: dict[int, list[dict[str, Any]]] = {}
        for entry in entries:
            grouped.setdefault(entry["release"], []).append(entry)
        costs: list[Cost | Sequence[Cost]] = []
        for group in grouped.values():
            made = [ledger_files.as_cost(entry) for entry in group]
            if group[0]["disjoint"]:
                costs.append(made)
            else:
                costs.extend(made)
        return together(costs, delta=self.budget[1], adjacency=self._header["adjacency"])

    def _check(self, entries: Sequence[dict[str, Any]]) -> None:
        epsilon, delta = self.budget
        if delta > LARGEST_DELTA:  # a ledger that was opened before there was a limit
            raise ParameterError(DELTA_TOO_LARGE)
        try:
            after = self._total(entries)
        except ParameterError as error:
            raise ParameterError(
                f"The privacy budget does not allow this release: it needs more delta than the {delta:g} there is."
            ) from error
        # Shares of a budget that add up to it may pass it by a last digit.
        if after.epsilon > epsilon * (1 + 1e-12):
            raise ParameterError(
                f"The privacy budget does not allow this release: {self.spent.epsilon:.6g} of epsilon {epsilon:g} is "
                f"spent, and with it {after.epsilon:.6g} would be. Publish with a smaller epsilon, or not."
            )

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, _: Any) -> Ledger:
        return self

    def __getstate__(self) -> dict[str, Any]:
        if self.path is None:
            raise ParameterError(
                "A ledger in memory cannot be copied to another process or a file: each copy would spend the budget "
                "again. Keep it in a file: Ledger(..., path=...)."
            )
        return {"path": self.path, "header": self._header, "entries": self._entries}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._settle(state["path"])
        self._header, self._entries = state["header"], state["entries"]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the ledger against other threads, processes and machines."""
        if self.path is None:
            if os.getpid() != self._process:
                raise InputError(
                    "A ledger in memory belongs to the process that opened it: another would spend the budget again. "
                    "Keep it in a file: Ledger(..., path=...)."
                )
            with self._threads:
                yield
            return
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone(self.path))
            except BlockingIOError as error:
                raise InputError(str(error)) from error
            except OSError:
                with explained(self.path.name, self.path.parent):
                    raise
            yield

    def _refresh(self) -> None:
        """Read what the file says now, and refuse one that says less than it did."""
        if self.path is None:
            return
        header, entries = self._noted(*ledger_files.read_ledger(self.path))
        before, same = self._header, self._header["same"]
        # A ledger of the first format gets its number when it is next written.
        fixed = [name for name in _FIXED if before[name] != header[name] and (name != "id" or before[name])]
        if (
            fixed
            or entries[: len(self._entries)] != self._entries
            or header["same"][: len(same)] != same
            or (before["closed"] and not header["closed"])
        ):
            raise ledger_files.rolled_back(self.path)
        self._header, self._entries = header, entries

    def _noted(
        self, header: dict[str, Any], entries: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        number = header["id"]
        if number and len(entries) < _SEEN.get(number, 0):
            raise ledger_files.rolled_back(self.path)
        if number:
            _SEEN[number] = len(entries)
        return header, entries

    def _join(self, source: Source | None) -> None:
        assert self.path is not None
        asked = self._header
        header, entries = self._noted(*ledger_files.read_ledger(self.path))
        for name in ("epsilon", "delta", "adjacency", "unit"):
            if asked[name] != header[name]:
                raise InputError(
                    f"The ledger '{self.path.name}' exists and has another {name}. A budget is set once: open it with "
                    "the values it has (Ledger.load)."
                )
        self._header, self._entries = header, entries
        if source is not None:
            if not (header["fingerprint"] or header["content"]):
                raise InputError(
                    f"The ledger '{self.path.name}' exists and was opened without a source, or another file."
                )
            if not ledger_files.known_by(header, source):
                raise ledger_files.foreign(self.path)

    def _add_content(self, source: Source) -> None:
        """Add to an older ledger, which knows its file by its bytes alone, by what its content is known."""
        if self._header["content"] or not self._header["fingerprint"] or self.path is None:
            return
        found = ledger_files.fingerprints(source)
        if found["fingerprint"] == self._header["fingerprint"]:
            with contextlib.suppress(InputError), self._alone():  # where one may only read it stays as it is
                self._rewrite(content=found["content"])

    def _rewrite(self, **changes: Any) -> None:
        """Change the header of the ledger as it stands now."""
        self._refresh()
        self._write({**self._header, **changes}, self._entries)

    def _write(self, header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        """Write the ledger, then believe it."""
        header = {**header, "format": ledger_files.FORMAT, "id": header["id"] or secrets.token_hex(16)}
        if self.path is not None:
            with replacing(self.path) as unfinished:
                ledger_files.write_ledger(unfinished, header, entries)
            _SEEN[header["id"]] = len(entries)
        self._header, self._entries = header, entries


def _bounds(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
