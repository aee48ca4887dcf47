"""A session: make statistics as usual, and each comes back with its status.

Every output is held against the policy, against the rules of its statbarn, and against all earlier outputs of the
session. The session is then packed for a human checker. Nothing leaves by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.engine import resolve_weight
from discreet.microdata import Microdata
from discreet.outputs import count_tables, distribution_statistics, group_statistics, survival_curves
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.output import Draft, Output
from discreet.outputs.output_cells import entered_people
from discreet.outputs.question import Question
from discreet.outputs.session_questions import ModelQuestions, owner_of

Columns = str | Sequence[str] | None
Declared = Sequence[Mapping[str, Any]]


class Session(ModelQuestions):
    """Make statistics whose disclosure risk is checked as they are made.

    Also known as: ACRO session; acro.

    Parameters
    ----------
    policy
        An `OutputPolicy`, the name of a template, or a TOML file with a table ``[outputs]``.
    data
        Microdata or any frame; each call may name another. The role ``person`` says who a record belongs to, so that
        people are counted and not records.
    researcher, project, purpose
        Who, for what, and why; they stand in the package.
    earlier
        Packages of the same project: their outputs are differenced with those of this session.
    register
        The register of what went out of the data, made where it is not there; outputs are held against it, and entered
        when the session is saved. One that lies beside the file that was read is asked without being named.
    clock
        Where the time comes from; the system unless given.

    Examples
    --------
    >>> import polars as pl
    >>> jobs = ["a"] * 30 + ["b"] * 10 + ["a"] * 42 + ["b"] * 3
    >>> people = pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 45, "job": jobs})
    >>> with Session(data=people) as s:
    ...     found = s.crosstab("sex", "job")
    >>> found.status, found.reasons, found.mitigations
    ('fail', ('1 cell is below the threshold of 10 people.',), ('suppress', 'secondary-suppress', 'round', ...))
    """

    def crosstab(
        self,
        rows: Columns,
        columns: Columns = None,
        data: Any = None,
        *,
        margins: bool = False,
        normalize: count_tables.Normalize | None = None,
        weight: str | None = None,
        where: Mapping[str, Any] | None = None,
        structural_zeros: Declared = (),
        trivial: Declared = (),
        levels: Mapping[str, Sequence[Any]] | None = None,
        missing: str = "category",
        subject: str | None = None,
        mitigate: str | None = None,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Count people by rows and columns.

        Parameters
        ----------
        rows, columns
            The dimensions that go down and across.
        margins
            Whether totals are shown.
        normalize
            Show shares of ``"all"``, of the ``"rows"`` or of the ``"columns"``; numerator, denominator and complement
            are then checked.
        weight
            Show weighted counts, by the role ``weight`` unless another is named; the threshold is held against people.
        where
            The records meant, ``{"region": ["north", "east"]}``.
        structural_zeros
            Impossible combinations, ``[{"sex": "m", "pregnant": "yes"}]``: their empty cells say nothing.
        trivial
            Cells in which a whole line lies by definition.
        levels
            Declared levels of a dimension; those that do not occur become empty cells.
        missing
            ``"category"``: missing values are a level; ``"drop"``: their records are left out.
        subject
            Who a record belongs to; the role ``person`` unless given.
        mitigate
            ``suppress``, ``secondary-suppress``, ``round``, ``noise`` or ``collapse``, and check again. Noise is that
            of `discreet.tables.CellKey`: it needs to know people apart (``subject``, or the role person or
            identifiers), and a secret key in the environment variable ``DISCREET_KEY``.
        """
        file = self._file(data)
        down, across = _names(rows), _names(columns)
        question = self._question(
            file,
            (*down, *across),
            where=where,
            subject=subject,
            weight=resolve_weight(file, weight),
            levels=levels,
            missing=missing,
        )
        draft = count_tables.tabulate(
            file,
            question,
            self.policy,
            across=len(across),
            margins=margins,
            normalize=normalize,
            structural=structural_zeros,
            trivial=trivial,
            mitigate=mitigate,
        )
        return self._record(draft, file, name, comment)

    def summary(
        self,
        values: str,
        by: Columns = None,
        data: Any = None,
        *,
        columns: Columns = None,
        statistics: Sequence[str] = ("count", "mean"),
        margins: bool = False,
        weight: str | None = None,
        where: Mapping[str, Any] | None = None,
        structural_ends: Sequence[float] = (),
        structural_zeros: Declared = (),
        levels: Mapping[str, Sequence[Any]] | None = None,
        missing: str = "category",
        subject: str | None = None,
        mitigate: str | None = None,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Summarize a variable by group: count, total, mean, sd, variance, minimum, maximum, median, mode and more.

        Each statistic is checked by the rules of its statbarn; the worst status wins.

        Parameters
        ----------
        values
            The variable.
        by, columns
            The dimensions that go down and across.
        statistics
            What is computed of it.
        margins
            Whether the lines over all groups are shown too; they are checked like any other group. Where a group is
            suppressed, so are the lines that would give it away.
        structural_ends
            Values that everybody knows to be the end of the scale.
        mitigate
            ``suppress``, ``collapse``, ``round``, ``top-code``, ``drop-outliers`` or ``percentile``, and check again.
        """
        file = self._file(data)
        down, across = _names(by), _names(columns)
        question = self._question(
            file,
            (*down, *across),
            value=values,
            where=where,
            subject=subject,
            weight=resolve_weight(file, weight),
            levels=levels,
            missing=missing,
        )
        chosen = [statistics] if isinstance(statistics, str) else list(statistics)
        draft = group_statistics.summarize(
            file,
            question,
            self.policy,
            chosen,
            across=len(across),
            margins=margins,
            structural_ends=structural_ends,
            structural=structural_zeros,
            mitigate=mitigate,
        )
        return self._record(draft, file, name, comment)

    pivot = summary

    def quantiles(
        self,
        values: str,
        by: Columns = None,
        data: Any = None,
        *,
        probabilities: Sequence[float] = (0.25, 0.5, 0.75),
        where: Mapping[str, Any] | None = None,
        subject: str | None = None,
        mitigate: str | None = None,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Compute quantiles by group. Mitigation: ``round``, ``coarser-quantiles``, ``suppress``."""
        file = self._file(data)
        question = self._question(file, _names(by), value=values, where=where, subject=subject)
        draft = distribution_statistics.quantile_table(
            file, question, self.policy, probabilities, mitigate=mitigate
        )
        return self._record(draft, file, name, comment)

    def histogram(
        self,
        values: str,
        data: Any = None,
        *,
        bins: int = 10,
        edges: Sequence[float] | None = None,
        where: Mapping[str, Any] | None = None,
        mitigate: str | None = None,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Count a variable in bins. Mitigation: ``suppress``, ``round``, ``collapse``."""
        file = self._file(data)
        question = self._question(file, (), value=values, where=where)
        draft = distribution_statistics.histogram_table(
            file, question, self.policy, bins=bins, edges=edges, mitigate=mitigate
        )
        return self._record(draft, file, name, comment)

    def gini(
        self, values: str, by: Columns = None, data: Any = None, *, weight: str | None = None, **options: Any
    ) -> Output:
        """Compute Gini coefficients by group. Options: where, subject, name, comment."""
        heavy = resolve_weight(self._file(data), weight)
        file, question, name, comment = self._grouped(values, by, data, options, weight=heavy)
        return self._record(
            distribution_statistics.inequality_table(file, question, self.policy), file, name, comment
        )

    def lorenz(
        self, values: str, data: Any = None, *, points: int = 10, mitigate: str | None = None, **options: Any
    ) -> Output:
        """Compute a Lorenz curve. Mitigation: ``coarser-curve``. Options: where, subject, name, comment."""
        file, question, name, comment = self._grouped(values, None, data, options)
        draft = distribution_statistics.lorenz_table(file, question, self.policy, points, mitigate)
        return self._record(draft, file, name, comment)

    def hhi(self, values: str, by: Columns = None, data: Any = None, **options: Any) -> Output:
        """Compute Herfindahl-Hirschman indexes by group. Options: where, subject, name, comment."""
        file, question, name, comment = self._grouped(values, by, data, options)
        return self._record(
            distribution_statistics.herfindahl_table(file, question, self.policy), file, name, comment
        )

    def concentration(
        self, values: str, by: Columns = None, data: Any = None, *, n: int = 4, **options: Any
    ) -> Output:
        """Compute the share of the n largest units by group. Options: where, subject, name, comment."""
        file, question, name, comment = self._grouped(values, by, data, options)
        draft = distribution_statistics.top_share_table(file, question, self.policy, n)
        return self._record(draft, file, name, comment)

    def survival(
        self,
        time: str,
        event: str,
        by: str | None = None,
        data: Any = None,
        *,
        where: Mapping[str, Any] | None = None,
        show_counts: bool = True,
        mitigate: str | None = None,
        name: str | None = None,
        comment: str = "",
    ) -> Output:
        """Estimate a Kaplan-Meier curve by group. Mitigation: ``group-times`` (and cut the tail), ``drop-tail``."""
        file = self._file(data)
        draft = survival_curves.survival_table(
            file,
            self.policy,
            time=time,
            event=event,
            by=by,
            where=where,
            subject=owner_of(file),
            show_counts=show_counts,
            mitigate=mitigate,
        )
        return self._record(draft, file, name, comment)

    def custom(self, file: str | Path, *, comment: str = "", name: str | None = None) -> Output:
        """Add a file that something else made: a human looks at it. Kinds that the policy blocks are refused."""
        from discreet.outputs.finished_files import check, figures_of

        path = Path(file)
        if not path.is_file():
            raise InputError(f"There is no file '{path.name}' there.")
        blocked = self.policy.blocks(path)
        if blocked:
            raise InputError(f"'{path.name}' is refused: {blocked}.")
        found = check(path, self.policy)
        human = Finding(
            "custom file", found.barns[0] if found.barns else "a", "review", "A file made elsewhere."
        )
        draft = Draft(
            "custom",
            {},
            CheckResult([*found.findings, human], found.questions),
            entries=entered_people(figures_of({path.name: path.read_bytes()})[0].people),
            files=(path,),
        )
        return self._record(draft, None, name, comment)

    def _question(self, data: Microdata, by: tuple[str, ...], **given: Any) -> Question:
        missing = given.pop("missing", "category")
        if missing not in ("category", "drop"):
            raise ParameterError("missing must be 'category' (a level of its own) or 'drop'.")
        where, levels = given.pop("where", None) or {}, given.pop("levels", None) or {}
        owner = given.pop("subject", None) or owner_of(data)
        question = Question(
            by, where=where, levels=levels, subject=owner, keep_missing=missing == "category", **given
        )
        question.check(data)
        return question

    def _grouped(
        self, values: str, by: Columns, data: Any, options: dict[str, Any], **given: Any
    ) -> tuple[Microdata, Question, str | None, str]:
        known = ("where", "subject", "name", "comment")
        for option in options:
            if option not in known:
                raise ParameterError(unknown_name(option, known, what="option"))
        file = self._file(data)
        question = self._question(
            file,
            _names(by),
            value=values,
            where=options.get("where"),
            subject=options.get("subject"),
            **given,
        )
        return file, question, options.get("name"), options.get("comment", "")


def _names(columns: Columns) -> tuple[str, ...]:
    return () if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
