"""What every session does: keep outputs (names, times, differencing, exceptions, the package), and answer on models."""

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
from discreet.outputs import model_outputs, relation_statistics
from discreet.outputs.check_results import Finding, Status, worst
from discreet.outputs.output import Draft, Output
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.register import OutputRegister, Registered
from discreet.outputs.released_sets import PeopleSets, entries_of, found_in, sets_of, told_of
from discreet.register import History, Register
from discreet.register.releases import NOBODY_KNOWS


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
        register: str | Path | None = None,
        clock: Callable[[], datetime.datetime] | None = None,
    ) -> None:
        self.policy = OutputPolicy.load(policy)
        self.data = None if data is None else as_microdata(data)
        self.researcher, self.project, self.purpose = researcher, project, purpose
        self._clock = clock or (lambda: datetime.datetime.now(datetime.UTC))
        self.started = self._now()
        self._outputs: dict[str, Output] = {}
        self._made = 0
        self.register = OutputRegister(entries_of(earlier))
        self._sets: dict[str, list[tuple[Registered, PeopleSets]]] = {}
        self._enters = register is not None
        self.releases = History.of(self.data, register, synthetic=True).opened()
        """What went out of the data before, where a register says so."""

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
        self._sets[name] = self._sets.pop(old.name, [])
        return renamed

    def remove(self, output: str | Output) -> None:
        """Withdraw an output: it is not packed, and no longer differenced."""
        name = self[_name_of(output)].name
        del self._outputs[name]
        self.register.drop(name)
        self._sets.pop(name, None)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the package for the checker: a folder, or a zip where the name ends in .zip."""
        from discreet.outputs.package import write_package

        written = write_package(self, Path(path), overwrite=overwrite)
        if self._enters and self.releases is not None:
            self._enter_in(self.releases, written)
        return written

    @property
    def before(self) -> str:
        """What is known of what went out before, in a sentence."""
        if self.releases is None:
            return NOBODY_KNOWS
        return f"The register '{self.releases.path.name}' holds {len(self.releases.releases)} releases."

    def __repr__(self) -> str:
        lines = [f"Session under policy '{self.policy.name}': {len(self)} outputs, status {self.status}"]
        return "\n".join([*lines, *(f"  {output.line}" for output in self), self.before])

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
        found = [*self._differences(entries, barn), *self._since_earlier(name, entries, barn)]
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

    def _since_earlier(self, name: str, entries: Sequence[Registered], barn: str) -> list[Finding]:
        """Hold entries against what went out of earlier sessions, and keep whom they are about until they are saved."""
        if self.releases is None:
            return []
        limit = self.policy.difference_threshold or self.policy.threshold
        made = [(entry, sets_of(entry, self.releases, self.data)) for entry in entries]
        self._sets[name] = [(entry, sets) for entry, sets in made if sets is not None]
        found = [
            finding
            for entry, sets in self._sets[name]
            for finding in found_in(self.releases, entry, sets, limit, barn)
        ]
        return list({finding.reason: finding for finding in found}.values())

    def _enter_in(self, releases: Register, package: Path) -> None:
        """Enter what is meant for release, each output once."""
        from discreet.outputs.package import Package

        known = [line["sets"] for line in releases.of_kind("output")]
        mark = Package.load(package).checksum
        for output in self:
            if output.status == "fail" and not output.exception:
                continue
            for entry, sets in self._sets.get(output.name, ()):
                if sets.sets not in known:
                    told = told_of(entry, sets, releases)
                    releases.enter("output", file=package.name, checksum=mark, output=output.name, **told)

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


# What a session is asked about relations and models: correlations, ratios, tests, regressions and other fits.


def owner_of(data: Microdata) -> str | None:
    """Who a record belongs to, by the roles: what is counted are people (or firms), not records."""
    return data.roles.person or data.roles.contributor


class ModelQuestions(Recorder):
    """Relations and models whose disclosure risk is checked as they are made; `Session` adds the tables."""

    def correlation(
        self,
        columns: Sequence[str],
        data: Any = None,
        *,
        method: str = "pearson",
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Correlate variables pair by pair: ``pearson``, ``spearman`` or ``kendall``."""
        file = self._file(data)
        return self._record(
            relation_statistics.correlate(
                file, list(columns), self.policy, method=method, subject=owner_of(file)
            ),
            file,
            name,
            comment,
        )

    def odds_ratio(
        self,
        exposure: str | None = None,
        outcome: str | None = None,
        data: Any = None,
        *,
        counts: Any = None,
        where: Mapping[str, Any] | None = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Compute an odds ratio from two columns with two values each, or from ``counts=[[a, b], [c, d]]``."""
        return self._ratio(exposure, outcome, data, counts, where, show_counts, name, comment, risk=False)

    def risk_ratio(
        self,
        exposure: str | None = None,
        outcome: str | None = None,
        data: Any = None,
        *,
        counts: Any = None,
        where: Mapping[str, Any] | None = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Compute a risk ratio: the risk of the first outcome, first row over second."""
        return self._ratio(exposure, outcome, data, counts, where, show_counts, name, comment, risk=True)

    def test(
        self,
        kind: str,
        *columns: str,
        data: Any = None,
        show_counts: bool = False,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Run a test: t, welch, paired-t, mann-whitney, wilcoxon, ks, anova, kruskal, levene, shapiro, chi2, fisher.

        Name the variable first and the group column last. ``show_counts`` prints group counts, which are then checked.
        """
        file = self._file(data)
        draft = relation_statistics.significance_table(
            kind, file, columns, self.policy, show_counts=show_counts, subject=owner_of(file)
        )
        return self._record(draft, file, name, comment)

    def ols(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a linear regression, ``"pay ~ age + C(sex)"``. Options as for `model`."""
        return self.model("ols", formula, data, **options)

    def logit(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a logistic regression. Options as for `model`."""
        return self.model("logit", formula, data, **options)

    def probit(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a probit regression. Options as for `model`."""
        return self.model("probit", formula, data, **options)

    def poisson(self, formula: str, data: Any = None, **options: Any) -> Output:
        """Fit a Poisson regression. Options as for `model`."""
        return self.model("poisson", formula, data, **options)

    def model(
        self,
        family: str,
        formula: str,
        data: Any = None,
        *,
        subject: str | None = None,
        where: Mapping[str, Any] | None = None,
        shown: Sequence[str] = (),
        name: str | None = None,
        comment: str = "",
        **options: Any,
    ) -> Output:
        """Fit any model that statsmodels has a formula for: ols, wls, glm, logit, probit, mnlogit, poisson, ….

        ``shown`` names what is shown beside the coefficients: residuals or predictions fail. Other options go to
        statsmodels. ``.result`` is the fitted model; what would go out are coefficients and fit statistics.
        """
        file = self._file(data)
        owner = subject or owner_of(file)
        draft = model_outputs.fit(
            family,
            formula,
            file,
            self.policy,
            subject=owner,
            where=where,
            options=options,
            shown=shown,
        )
        return self._record(draft, None, name, comment)

    def fitted(
        self, model: Any, *, shown: Sequence[str] = (), name: str | None = None, comment: str = ""
    ) -> Output:
        """Check a model that statsmodels has already fitted."""
        draft = model_outputs.checked_statsmodels(model, self.policy, shown=shown)
        return self._record(draft, None, name, comment)

    def sklearn(
        self,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        others: tuple[Any, Any] | None = None,
        shown: Sequence[str] = (),
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Check a fitted scikit-learn model: linear ones as models, trees as tables, the rest by what they hold.

        Records that a model carries and leaves of few people are refused (`discreet.attack.model_structure`); what
        else it may have learned is for a human. With ``others``, the records and outcomes of people it was not
        trained on, it is attacked as well (`discreet.attack.model_membership`).
        """
        draft = model_outputs.checked_sklearn(model, X, y, self.policy, shown=shown, others=others)
        return self._record(draft, None, name, comment)

    def _ratio(  # noqa: PLR0917
        self,
        exposure: str | None,
        outcome: str | None,
        data: Any,
        counts: Any,
        where: Mapping[str, Any] | None,
        show_counts: bool,
        name: str | None,
        comment: str,
        *,
        risk: bool,
    ) -> Output:
        file = None if counts is not None else self._file(data)
        draft = relation_statistics.ratio_table(
            file,
            self.policy,
            rows=exposure,
            columns=outcome,
            counts=counts,
            where=where,
            subject=owner_of(file) if file is not None else None,
            risk=risk,
            show_counts=show_counts,
        )
        return self._record(draft, file, name, comment)
