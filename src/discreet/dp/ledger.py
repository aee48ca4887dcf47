"""How much privacy of a data source is left? One budget, one record a release, entered before any noise is drawn.

A ledger belongs to a data source and lies beside it (``survey.privacy.toml``). It can be read by anybody and holds no
data: what was published, with which mechanism, at what price. A release that would pass the budget is refused, and
because the record is written first, a crash afterwards can only have counted too much.

The checksums show that a file was changed by accident or by hand; whoever wants to forge them can. The ledger is a
tool of honest people.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import polars as pl

from discreet.dp.accounting import Total, together
from discreet.dp.budget import checked_epsilon
from discreet.dp.costs import Adjacency, Cost, Unit
from discreet.dp.ledger_files import FORMAT, as_toml, fingerprint, read_ledger, version
from discreet.errors import InputError, ParameterError
from discreet.files.atomic import replacing
from discreet.files.staging import held
from discreet.guarantees import Spending, in_plain_words
from discreet.policy import DELTA_TOO_LARGE, LARGEST_DELTA, Policy

SUFFIX = ".privacy.toml"


class Ledger:
    """The privacy budget of one data source.

    Parameters
    ----------
    epsilon, delta
        The budget of all releases together. ``delta``, the chance that nothing is promised at all, should be well below
        one in the number of records, and may not be more than 0.1.
    path
        Where the ledger is kept; without one it lives as long as the program. An existing file is opened, and must
        have been opened with the same budget, source and adjacency.
    source
        The file that the budget belongs to. Its content is remembered as a fingerprint: the ledger of another file is
        refused.
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
    discreet.errors.ParameterError: The privacy budget does not allow this release: 0.75 of epsilon 1 is spent, ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        path: str | Path | None = None,
        source: str | Path | None = None,
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
        self.path = None if path is None else Path(path)
        self._header: dict[str, Any] = {
            "format": FORMAT,
            "source": "" if source is None else Path(source).name,
            "fingerprint": "" if source is None else fingerprint(source),
            "epsilon": float(epsilon),
            "delta": float(delta),
            "adjacency": adjacency,
            "unit": unit,
            "closed": False,
        }
        self._entries: list[dict[str, Any]] = []
        if self.path is not None:
            self._make()
            with self._alone():
                self._join()

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
        return place.with_name(place.name.split(".")[0] + SUFFIX)

    @classmethod
    def load(cls, path: str | Path, *, source: str | Path | None = None) -> Ledger:
        """Open a ledger that exists, with the budget it was made with."""
        header, _ = read_ledger(Path(path))
        ledger = cls.__new__(cls)
        ledger.path, ledger._header, ledger._entries = Path(path), header, []
        if source is not None and header["fingerprint"] != fingerprint(source):
            raise InputError(
                f"The ledger '{Path(path).name}' belongs to another file than '{Path(source).name}', or the file has "
                "changed since. A changed file needs a decision: open a new ledger for it, or keep the old file."
            )
        with ledger._alone():
            ledger._refresh()
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

    def spend(self, costs: Cost | Sequence[Cost], *, disjoint: bool = False) -> None:
        """Enter a release, or refuse it; called before noise is drawn.

        Parameters
        ----------
        costs
            The price of the release; several where several numbers are published together, which are entered all or
            none.
        disjoint
            Whether the costs are about disjoint people. Only for code that divided the records itself.
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
        with self._alone():
            self._refresh()
            if self.closed:
                raise ParameterError("The ledger is closed: nothing more may be published from this source.")
            now = datetime.now(UTC).isoformat(timespec="seconds")
            group = len({entry["release"] for entry in self._entries}) + 1
            more = [
                {"release": group, "time": now, "disjoint": disjoint and len(entered) > 1, **_as_entry(cost)}
                for cost in entered
            ]
            self._check(self._entries + more)
            self._entries += more
            self._write()

    @classmethod
    def of_policy(
        cls, policy: str | Path | Policy, *, path: str | Path | None = None, source: str | Path | None = None
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
        from discreet.report.budget_report import write_budget_report

        return write_budget_report(self, path)

    def close(self) -> None:
        """Take no further release."""
        with self._alone():
            self._refresh()
            self._header["closed"] = True
            self._write()

    def table(self) -> pl.DataFrame:
        """The releases entered so far, one row a record."""
        return pl.DataFrame(self._entries) if self._entries else pl.DataFrame({"release": []})

    def spending(self) -> Spending:
        """The ledger as it stands, in words and rows for people."""
        (epsilon, delta), spent = self.budget, self.spent
        return Spending(
            f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else ""),
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
        bounds = f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
        return (
            f"Ledger({bounds}; {len({entry['release'] for entry in self._entries})} releases, epsilon "
            f"{spent.epsilon:.4g} spent{', closed' if self.closed else ''})"
        )

    def _total(self, entries: Sequence[dict[str, Any]]) -> Total:
        grouped: dict[int, list[dict[str, Any]]] = {}
        for entry in entries:
            grouped.setdefault(entry["release"], []).append(entry)
        costs: list[Cost | Sequence[Cost]] = []
        for group in grouped.values():
            made = [_as_cost(entry) for entry in group]
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

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the ledger against other writers; every writer puts a new file in its place."""
        if self.path is None:
            yield
            return
        while True:
            before = version(self.path)
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(held(self.path))
                except BlockingIOError as error:
                    raise InputError(
                        f"The ledger '{self.path.name}' is held by another program. Try again when it is done."
                    ) from error
                if version(self.path) == before:  # else somebody was faster, and the lock is on the old file
                    yield
                    return

    def _refresh(self) -> None:
        if self.path is not None:
            self._header, self._entries = read_ledger(self.path)

    def _join(self) -> None:
        asked = dict(self._header)
        self._refresh()
        for name in ("epsilon", "delta", "adjacency", "unit"):
            if asked[name] != self._header[name]:
                raise InputError(
                    f"The ledger '{self.path.name if self.path else ''}' exists and has another {name}. A budget is "
                    "set once: open it with the values it has (Ledger.load)."
                )
        if asked["fingerprint"] and asked["fingerprint"] != self._header["fingerprint"]:
            raise InputError(
                f"The ledger '{self.path.name if self.path else ''}' belongs to another file, or the file has changed "
                "since. A changed file needs a decision: open a new ledger for it, or keep the old file."
            )

    def _make(self) -> None:
        """Write an empty ledger unless there is one, or somebody else makes it at the same moment."""
        if self.path is None or self.path.exists():
            return
        try:
            self._write(overwrite=False)
        except InputError:
            if not self.path.exists():
                raise

    def _write(self, *, overwrite: bool = True) -> None:
        if self.path is None:
            return
        with replacing(self.path, overwrite=overwrite) as unfinished:
            unfinished.write_text(as_toml(self._header, self._entries), encoding="utf-8")


def _as_entry(cost: Cost) -> dict[str, Any]:
    return {name: value for name, value in asdict(cost).items() if value is not None}


def _as_cost(entry: dict[str, Any]) -> Cost:
    names = {field.name for field in fields(Cost)}
    return Cost(**{name: value for name, value in entry.items() if name in names})
