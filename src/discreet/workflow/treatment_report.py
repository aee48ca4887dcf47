"""What was done to a file, what is left of the risk, and what it cost: the papers that go with a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from discreet import engine
from discreet._version import __version__
from discreet.core.guarantees import NOT_COMPARED
from discreet.core.randomness import Seed
from discreet.core.results import Assessment, Measure, Release
from discreet.core.values import jsonable
from discreet.core.verdicts import Acceptance, Verdict
from discreet.core.wording import not_judged_of
from discreet.dp import Ledger
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan, Treatment
from discreet.register import History
from discreet.utility import information_loss
from discreet.workflow.aligning import columns_that_count
from discreet.workflow.assessment import assess
from discreet.workflow.earlier_releases import with_history
from discreet.workflow.pairing import with_roles_of
from discreet.workflow.policy_judgment import judge
from discreet.workflow.trials import COST, Numbered

_GAPS = (
    "Local suppression was told to let gaps match anything (missing='wildcard'); in these figures suppressed cells "
    "count as a value of their own. missing='wildcard' (--missing wildcard) counts as the treatment did."
)


_ALONE = (
    "The release is differentially private, so this report holds no figure of the original: neither its risk nor its "
    "size, nor what the release costs, and the policy is judged by the release alone. For the house, discreet compare "
    "holds both files against each other; what it finds must not be published."
)


@dataclass(frozen=True, repr=False)
class ReleaseReport:
    """Everything a person needs to know to sign off a release.

    Attributes
    ----------
    release
        The treated file and the log of what was done.
    before, after
        The assessments of the original and of the release; None where the file has no keys. Beside differential privacy
        there is none of the original.
    cost
        What `discreet.utility.information_loss` says; beside differential privacy nothing, because it compares with the
        original.
    about
        The file and the run: ``source``, ``rows``, ``rows_released``, ``checksum``, ``versions``; beside differential
        privacy without the number of records and the checksum of the original.
    caveats
        What to keep in mind when reading the figures side by side.
    """

    release: Release
    before: Assessment | None
    after: Assessment | None
    cost: Measure
    about: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    show_values: bool = False
    judged: Verdict | None = None
    history: History = field(default_factory=History)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the release meets the policy, by itself and against its original; None where none was named."""
        return self.judged

    @property
    def line(self) -> str:
        """The outcome in one line."""
        said = self.verdict.line if self.verdict else "No policy was named, so there is no verdict."
        return f"{said} {self.cost.meaning}"

    @property
    def not_judged(self) -> str:
        """The released columns without a role, what was not judged of them, and what is known of earlier releases."""
        return not_judged_of(self.about)

    def of_file(self, path: str | Path) -> ReleaseReport:
        """Tie the report to the file the release was written to, by its checksum."""
        from discreet.io.naming import checksum

        place = Path(path)
        if not place.is_file():
            return self
        told = {"released_file": place.name, "released_checksum": checksum(place)}
        return replace(self, about={**self.about, **told})

    def entered(self, path: str | Path) -> ReleaseReport:
        """Enter the release in the register, where one was named, once it was written.

        One that does not meet its policy is entered only where somebody has signed that it goes out.
        """
        signed = (self.about.get("signed") or {}).get("decision") in ("release", "conditions")
        self.history.enter_made(self.release, path, self.judged, decided=signed)
        return replace(self, about={**self.about, "before": self.history.said})

    def signed(
        self, *, name: str, role: str = "", date: str = "", decision: str = "", remarks: str = ""
    ) -> ReleaseReport:
        """Fill in the block to sign: who decides (``release``, ``conditions``, ``no``), when, with which remarks."""
        told = {"name": name, "role": role, "date": date, "decision": decision, "remarks": remarks}
        return replace(self, about={**self.about, "signed": told})

    def to_dict(self) -> dict[str, Any]:
        """Return the report, ready for JSON: the public log, the risk before and after, and the cost."""
        return {
            **self.release.to_dict(),
            "about": jsonable(self.about),
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "before": self.before.to_dict() if self.before else None,
            "after": self.after.to_dict() if self.after else None,
            self.cost.name: self.cost.to_dict(),
            "caveats": list(self.caveats),
        }

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML file and return its path."""
        from discreet.report import write_release

        return write_release(self, path)

    def __str__(self) -> str:
        steps = [
            f"{number}. {step}"
            if step.counts_withheld
            else f"{number}. {step.treatment}: {sum(step.changed_cells.values()):,} cells changed"
            + (f", {step.removed_records:,} records removed" if step.removed_records else "")
            for number, step in enumerate(self.release.log, start=1)
        ]
        told = [*steps, "", self.line, f"Guarantee: {self.release.guarantee_in_words}"]
        if self.release.private:
            told.append(self.release.private.in_plain_words)
        return "\n".join([*told, *([self.not_judged] if self.not_judged else [])])

    __repr__ = __str__


def document_release(
    original: Microdata,
    release: Release,
    policy: Policy | str | Path | None = None,
    path: str | Path | None = None,
    *,
    ids: str | None = None,
    population: Microdata | None = None,
    missing: Missing = "category",
    show_values: bool = False,
    progress: bool = False,
    accept: Sequence[Acceptance] = (),
    previous: Mapping[str, Microdata] | None = None,
    register: History | str | Path | None = None,
) -> ReleaseReport:
    """What was done to this file, what is left of the risk, and what did it cost?

    Parameters
    ----------
    original
        The file before.
    release
        What a treatment or a plan made of it.
    policy
        A `Policy`, the path of a policy file or the name of a template; without one there is no verdict.
    path
        Where to write the report (HTML); nothing is written without it.
    ids
        A column that links the records of both files, where the plan removed or reordered records. `document_plan`
        needs none.
    population
        A file of the population, for the measures that need one.
    missing
        How missing key values count: ``category``, ``wildcard`` or ``drop``.
    show_values
        Show key values and the ends of distributions in the report.
    progress
        Show a progress bar on a terminal.
    accept
        Open rules of the policy that a named person takes responsibility for.
    previous
        Earlier releases of the same people, by name: what they and this one say together is judged too.
    register
        The register of what went out; `ReleaseReport.entered` writes the release into it. One that lies beside the file
        of the original is asked without being named.

    Returns
    -------
    ReleaseReport
        With ``before``, ``after``, ``cost``, ``verdict``, ``to_html(path)`` and ``to_dict()``.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.protect import Band
    >>> people = pl.DataFrame({"age": [30, 31, 32, 45, 46, 47] * 5, "ill": ["y", "n", "n"] * 10})
    >>> data = Microdata(people, keys="age", sensitive="ill")
    >>> report = document_release(data, Band(widths={"age": 20}).apply(data), "safe-setting")
    >>> report.before["k_anonymity"].value, report.after["k_anonymity"].value, round(report.cost.value, 2)
    (5, 15, 0.2)
    """
    rules = None if policy is None else Policy.load(policy)

    def cost() -> Measure:
        counted = columns_that_count(original, release.data)[0]
        named = [name for name in counted if name != ids]
        return information_loss(original, release.data, columns=named, ids=ids)

    return _reported(
        original,
        release,
        cost,
        path,
        rules=rules,
        population=population,
        missing=missing,
        show_values=show_values,
        progress=progress,
        accept=accept,
        history=History.of(original, register, previous),
    )


def document_plan(
    data: Microdata,
    plan: Treatment,
    policy: Policy | str | Path | None = None,
    path: str | Path | None = None,
    *,
    population: Microdata | None = None,
    missing: Missing = "category",
    show_values: bool = False,
    progress: bool = False,
    ledger: Ledger | None = None,
    record_key: str | Sequence[str] | None = None,
    accept: Sequence[Acceptance] = (),
    previous: Mapping[str, Microdata] | None = None,
    register: History | str | Path | None = None,
    seed: Seed = None,
) -> ReleaseReport:
    """Apply a plan and document it; records are followed through removal and reordering.

    ``report.release`` is what ``plan.apply(data, ledger=ledger, record_key=record_key, seed=seed)`` gives. The
    parameters are those of `document_release`.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.protect import Band, ReorderRecords
    >>> people = pl.DataFrame({"age": [30, 31, 32, 45, 46, 47] * 5, "ill": ["y", "n", "n"] * 10})
    >>> plan = Plan([Band(widths={"age": 20}), ReorderRecords()])
    >>> report = document_plan(Microdata(people, keys="age", sensitive="ill"), plan, seed=1)
    >>> round(report.cost.value, 2), report.cost.parameters["aligned"]
    (0.2, True)
    """
    rules = None if policy is None else Policy.load(policy)
    history = History.of(data, register, previous)
    steps = plan if isinstance(plan, Plan) else Plan([plan])
    if ledger is not None:  # numbered it is another file
        ledger.check_source(data)
    numbered = Numbered.of(data)
    made = steps.apply(numbered.data, ledger=ledger, record_key=record_key, seed=seed, progress=progress)
    followed = numbered.column in made.data.schema

    def cost() -> Measure:
        return information_loss(
            numbered.data if followed else data,
            made.data,
            columns=columns_that_count(data, made.data)[0],
            ids=numbered.column if followed else None,
        )

    release = replace(made, data=numbered.plain(made.data))
    return _reported(
        data,
        release,
        cost,
        path,
        labels=None if made.private else numbered.labels(made.data),
        rules=rules,
        population=population,
        missing=missing,
        show_values=show_values,
        progress=progress,
        accept=accept,
        history=history,
    )


def _reported(
    original: Microdata,
    release: Release,
    cost: Callable[[], Measure],
    path: str | Path | None,
    *,
    rules: Policy | None,
    missing: Missing,
    show_values: bool,
    accept: Sequence[Acceptance],
    history: History,
    labels: pl.DataFrame | None = None,
    **settings: Any,
) -> ReleaseReport:
    released = with_roles_of(original, release.data)
    # Beside differential privacy nothing is read from the original: what compares with it was not paid for.
    private = release.private is not None
    before, after = (
        assess(file, rules, missing=missing, show_values=show_values, **settings)
        if file is not None and file.roles.keys
        else None
        for file in (None if private else original, released)
    )
    judged = None
    if rules is not None:
        judged = judge(
            released,
            rules,
            None if private else original,
            population=settings.get("population"),
            missing=missing,
            measured=after.scenarios if after else None,
            labels=labels,
            accept=accept,
            register=History(),
        )
    judged = with_history(judged, history, released, policy=rules, accept=accept)
    # The release has one verdict, also where the page shows it beside the figures of the release alone.
    after = replace(after, verdict=judged) if after and judged else after
    report = ReleaseReport(
        release=release,
        before=before,
        after=after,
        cost=Measure(COST, None, {}, NOT_COMPARED) if private else cost(),
        about={
            **(_about_release(original, released, after) if private else _about(original, release, before)),
            "before": history.said,
        },
        caveats=tuple(_caveats(original, release, missing)),
        show_values=show_values,
        judged=judged,
        history=history,
    )
    if path is not None:
        report.to_html(path)
    return report


def _about(original: Microdata, release: Release, before: Assessment | None) -> dict[str, Any]:
    told = dict(before.about) if before else _without_keys(original)
    named = with_roles_of(original, release.data).roles.columns()
    told |= {
        "without_role": [name for name in release.data.columns if name not in named],
        "rows_released": engine.overview(release.data, ()).rows,
        "columns_released": len(release.data.columns),
        "columns_left_out": [name for name in original.columns if name not in release.data.schema],
    }
    return told


def _about_release(original: Microdata, released: Microdata, after: Assessment | None) -> dict[str, Any]:
    """Say which file and which run, with nothing that was counted in the original."""
    told = _about(original, Release(released), after)
    told |= {"source": original.metadata.source, "columns": len(original.columns), "checksum": None}
    return {name: said for name, said in told.items() if name not in ("rows", "reading")}


def _without_keys(data: Microdata) -> dict[str, Any]:
    return {
        "source": data.metadata.source,
        "rows": engine.overview(data, ()).rows,
        "columns": len(data.columns),
        "engine": engine.engine_name(data),
        "checksum": data.metadata.checksum,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"discreet": __version__},
    }


def _caveats(original: Microdata, release: Release, missing: Missing) -> list[str]:
    said = [_ALONE] if release.private else []
    gone = [key for key in original.roles.keys if key not in release.data.roles.keys]
    if gone:
        said.append(
            f"The release no longer has {', '.join(map(repr, gone))} as a key: its risk is measured by the keys that "
            "are left."
        )
    matching = any(step.parameters.get("missing") == "wildcard" for step in release.log)
    if missing == "category" and matching:
        said.append(_GAPS)
    return said
