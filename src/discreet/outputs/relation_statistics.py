"""How variables go together: correlations, tests, and ratios of counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, need_known, unknown_name
from discreet.engine import collect
from discreet.microdata import Microdata
from discreet.outputs.check_results import Finding
from discreet.outputs.checks.frequencies import as_counts, check_ratio, odds_ratio_of, risk_ratio_of
from discreet.outputs.checks.models_and_tests import check_correlation, check_test
from discreet.outputs.checks.total_checks import has_few_values
from discreet.outputs.output import Draft, flags_of, wide
from discreet.outputs.output_cells import count_cells, entered
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question
from discreet.outputs.register import Registered


@dataclass(frozen=True)
class Procedure:
    """A test: what it takes, and what it leaves as degrees of freedom."""

    takes: str
    run: Callable[..., Any]
    title: str


def correlate(
    data: Microdata,
    columns: Sequence[str],
    policy: OutputPolicy,
    *,
    method: str = "pearson",
    subject: str | None = None,
) -> Draft:
    """Correlate variables pair by pair, on the records that have both."""
    if method not in ("pearson", "spearman", "kendall"):
        raise ParameterError("method must be 'pearson', 'spearman' or 'kendall'.")
    if len(columns) < 2:
        raise ParameterError("A correlation needs two columns or more.")
    frame = _numbers(data, columns)
    owner = collect(data, [subject])[subject] if subject is not None else None
    size = len(columns)
    matrix, people = np.eye(size), np.zeros((size, size))
    from scipy import stats

    compute = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}[method]
    for i in range(size):
        people[i, i] = _distinct(frame[columns[i]].is_not_null(), owner)
        for j in range(i):
            known = frame[columns[i]].is_not_null() & frame[columns[j]].is_not_null()
            both = frame.select(columns[i], columns[j]).filter(known)
            people[i, j] = people[j, i] = _distinct(known, owner)
            spread = both.height > 2 and both[:, 0].n_unique() > 1 and both[:, 1].n_unique() > 1
            matrix[i, j] = matrix[j, i] = (
                compute(both[:, 0].to_numpy(), both[:, 1].to_numpy())[0] if spread else np.nan
            )
    checked = check_correlation(matrix, people, policy).with_more(_rare(frame, owner, policy))
    table = pl.DataFrame({"": list(columns), **{name: matrix[:, i] for i, name in enumerate(columns)}})
    entries = [
        entered(f"{method} correlation", data, Question((), subject=subject, known=(one, other)))
        for place, one in enumerate(columns)
        for other in columns[:place]
        if one != other
    ]
    # One entry for each number of people: the first of those with as many.
    once = tuple({entry.people: entry for entry in reversed(entries)}.values())
    return Draft("correlation", {"correlation": table}, checked, entries=once, variables=tuple(columns))


def _rare(frame: pl.DataFrame, owner: pl.Series | None, policy: OutputPolicy) -> list[Finding]:
    """Show a human the variables in which nearly everybody has the same value: a correlation is about the others."""
    names = []
    for name in frame.columns:
        known = frame[name].drop_nulls()
        common = known.mode()
        off = (frame[name] != common[0]).fill_null(False) if len(common) else None
        if off is not None and has_few_values(known.n_unique(), len(known)):
            names += [name] if 0 < _distinct(off, owner) < policy.threshold else []
    if not names:
        return []
    reason = (
        f"In {', '.join(names)} fewer than {policy.threshold} people differ from all the others; a human looks whether "
        "a correlation says something about those few."
    )
    return [Finding("identified by few", "g", "review", reason)]


def _distinct(known: pl.Series, owner: pl.Series | None) -> int:
    return int(known.sum()) if owner is None else owner.filter(known).n_unique()


def ratio_table(
    data: Microdata | None,
    policy: OutputPolicy,
    *,
    rows: str | None = None,
    columns: str | None = None,
    counts: Any = None,
    where: Mapping[str, Any] | None = None,
    subject: str | None = None,
    risk: bool = False,
    show_counts: bool = False,
) -> Draft:
    """Compute an odds or risk ratio from counts; what is checked is the table."""
    kind = "risk ratio" if risk else "odds ratio"
    entries: tuple[Registered, ...] = ()
    levels: tuple[tuple[Any, ...], ...] = (("row 1", "row 2"), ("column 1", "column 2"))
    names = (rows or "rows", columns or "columns")
    if counts is None:
        if data is None or rows is None or columns is None:
            raise ParameterError("Name the two columns (and data), or give counts=[[a, b], [c, d]].")
        question = Question((rows, columns), where=where or {}, subject=subject, keep_missing=False)
        cells = count_cells(data, question)
        table, levels = cells.people.astype(np.float64), cells.levels
        entries = (entered(kind, data, question, additive=True),)
    else:
        table = as_counts(counts)
    if table.shape != (2, 2):
        raise ParameterError(
            f"A ratio of counts needs two rows and two columns, not {table.shape[0]} and more."
        )
    checked = check_ratio(table, policy)
    number = risk_ratio_of(table) if risk else odds_ratio_of(table)
    tables = {kind: pl.DataFrame({kind: [number]})}
    flags: dict[str, pl.DataFrame] = {}
    if show_counts:
        tables["counts"] = wide(names, levels, table.astype(np.int64), columns=1)
        flags["counts"] = wide(names, levels, flags_of(table.shape, checked), columns=1)
    return Draft(kind, tables, checked, flags, entries, variables=tuple(n for n in (rows, columns) if n))


def significance_table(
    kind: str,
    data: Microdata,
    columns: Sequence[str],
    policy: OutputPolicy,
    *,
    show_counts: bool = False,
    subject: str | None = None,
) -> Draft:
    """Run a test by name and check the degrees of freedom that the data leave it; people count, not records."""
    known = procedures()
    if kind not in known:
        raise ParameterError(unknown_name(kind, known, what="test"))
    test = known[kind]
    need_known(columns, data.columns)
    read = [*columns, *([subject] if subject is not None and subject not in columns else [])]
    frame = collect(data, read).drop_nulls(list(columns))
    samples, counts = _samples(test, frame, list(columns))
    if subject is not None:
        counts = _owners(test, frame, list(columns), subject)
    if not samples or min(len(sample) for sample in samples) == 0:
        raise ParameterError("A group of the test has no records. Check the columns.")
    found = test.run(*samples)
    statistic = float(found.statistic if hasattr(found, "statistic") else found[0])
    p_value = float(found.pvalue if hasattr(found, "pvalue") else found[1])
    lost = sum(counts.shape) - 1 if test.takes == "table" else counts.size
    # Somebody in two groups is one person still.
    behind = float(counts.sum()) if subject is None else float(frame[subject].n_unique())
    dof = behind - lost
    groups = counts if test.takes in ("two", "many") else None
    checked = check_test(dof, policy, counts=counts if show_counts else None, groups=groups)
    tables = {"test": pl.DataFrame({"test": [test.title], "statistic": [statistic], "p-value": [p_value]})}
    if show_counts:
        tables["group counts"] = pl.DataFrame({"count": counts.ravel().astype(int).tolist()})
    question = Question((), subject=subject, known=tuple(dict.fromkeys(columns)))
    if show_counts and test.takes in ("two", "many", "table"):
        by = tuple(columns) if test.takes == "table" else (columns[1],)
        question = Question(by, subject=subject, known=tuple(dict.fromkeys(columns)), keep_missing=False)
    entry = entered(test.title, data, question, additive=show_counts)
    return Draft(test.title, tables, checked, entries=(entry,), variables=tuple(columns))


def procedures() -> dict[str, Procedure]:
    """Return the tests by name; a group column comes last."""
    from scipy import stats

    def welch(x: Floats, y: Floats) -> Any:
        return stats.ttest_ind(x, y, equal_var=False)

    return {
        "t": Procedure("two", stats.ttest_ind, "t test"),
        "welch": Procedure("two", welch, "Welch test"),
        "paired-t": Procedure("pair", stats.ttest_rel, "paired t-test"),
        "mann-whitney": Procedure("two", stats.mannwhitneyu, "Mann-Whitney test"),
        "wilcoxon": Procedure("pair", stats.wilcoxon, "Wilcoxon signed-rank test"),
        "ks": Procedure("two", stats.ks_2samp, "Kolmogorov-Smirnov test"),
        "anova": Procedure("many", stats.f_oneway, "analysis of variance"),
        "kruskal": Procedure("many", stats.kruskal, "Kruskal-Wallis test"),
        "levene": Procedure("many", stats.levene, "Levene's test"),
        "shapiro": Procedure("one", stats.shapiro, "Shapiro-Wilk test"),
        "chi2": Procedure("table", stats.chi2_contingency, "chi-square test"),
        "fisher": Procedure("table", stats.fisher_exact, "Fisher's exact test"),
    }


def _samples(test: Procedure, frame: pl.DataFrame, columns: list[str]) -> tuple[list[Floats], Floats]:
    """Cut the records into what the test takes, and count the people in each piece."""
    needed = 1 if test.takes == "one" else 2
    if len(columns) != needed:
        raise ParameterError(
            f"The {test.title} takes {needed} column{'s' * (needed > 1)}, not {len(columns)}."
        )
    if test.takes == "one":
        sample = frame[columns[0]].cast(pl.Float64).to_numpy()
        return [sample], np.array([float(len(sample))])
    if test.takes == "pair":
        pair = [frame[name].cast(pl.Float64).to_numpy() for name in columns]
        return pair, np.array([float(frame.height)])
    if test.takes == "table":
        data = Microdata(frame)
        table = count_cells(data, Question(tuple(columns))).people.astype(np.float64)
        return [table], table
    groups = [
        part[columns[0]].cast(pl.Float64).to_numpy()
        for _, part in sorted(frame.group_by(columns[1]), key=lambda item: str(item[0][0]))
    ]
    if test.takes == "two" and len(groups) != 2:
        raise ParameterError(
            f"The {test.title} compares two groups; column '{columns[1]}' has {len(groups)}."
        )
    return groups, np.array([float(len(group)) for group in groups])


def _owners(test: Procedure, frame: pl.DataFrame, columns: list[str], subject: str) -> Floats:
    """Count the distinct people in each piece that a test takes."""
    if test.takes in ("one", "pair"):
        return np.array([float(frame[subject].n_unique())])
    by = tuple(columns) if test.takes == "table" else (columns[1],)
    return count_cells(Microdata(frame), Question(by, subject=subject)).people.astype(np.float64)


def _numbers(data: Microdata, columns: Sequence[str]) -> pl.DataFrame:
    need_known(columns, data.columns)
    frame = collect(data, list(dict.fromkeys(columns)))
    for name in columns:
        if not (frame.schema[name].is_numeric() or frame.schema[name] == pl.Boolean):
            raise ColumnError(f"Column '{name}' is not a number and cannot be correlated.")
    return frame.select(pl.col(name).cast(pl.Float64) for name in dict.fromkeys(columns))
