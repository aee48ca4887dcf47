"""``discreet table``: protect, audit and synthesize aggregated tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.budget import LedgerFile, opened_ledger, refuse_unpaid
from discreet.cli.printing import LEFT_TO_JUDGE, say
from discreet.cli.register import Previous, RegisterFile, history_of, say_history
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError, unknown_name

if TYPE_CHECKING:
    import polars as pl

    from discreet.dp import Ledger
    from discreet.register import History
    from discreet.tables import ProtectedTable, SuppressionResult, Table
    from discreet.tables.earlier_tables import EarlierTable, TableRequest

DISCLOSES = 3
LAWS = {
    "poisson": "poisson-synthesis",
    "negative-binomial": "negative-binomial-synthesis",
    "poisson-inverse-gaussian": "poisson-inverse-gaussian-synthesis",
    "multinomial-dirichlet": "multinomial-dirichlet-synthesis",
}

table = typer.Typer(
    name="table",
    help="Protect tables before they are published: suppress, round, add noise, synthesize; and audit them.",
    no_args_is_help=True,
)

_TABLE = "The table"
Formula = Annotated[
    str,
    typer.Option("--table", "-t", help="Which tables: 'region*age + region*sex'.", rich_help_panel=_TABLE),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", help="Columns to sum; records are counted without.", rich_help_panel=_TABLE),
]
Count = Annotated[
    str | None,
    typer.Option("--count", help="Column that says how many units a row stands for.", rich_help_panel=_TABLE),
]
Hierarchies = Annotated[
    list[str] | None,
    typer.Option(
        "--hierarchy",
        help="COLUMN=FILE (.hrc, CSV with child and parent, or CSV with one column a level) or COLUMN=coarser "
        "columns; repeat.",
        rich_help_panel=_TABLE,
    ),
]
Cells = Annotated[
    bool,
    typer.Option("--cells", help="FILE is a table already: one row a cell.", rich_help_panel=_TABLE),
]
Largest = Annotated[
    list[str] | None,
    typer.Option("--largest", help="With --cells: columns of the largest shares.", rich_help_panel=_TABLE),
]
ZerosToo = Annotated[
    bool,
    typer.Option("--zeros", help="Take in combinations that do not occur.", rich_help_panel=_TABLE),
]
Total = Annotated[str, typer.Option("--total", help="The code of totals.", rich_help_panel=_TABLE)]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        "-r",
        help="Which cells are sensitive: threshold=3, p-percent=10, dominance=1,85, pq=10,50, zeros, ones…; repeat.",
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Another option of the method: name=value; repeat.")
]
Out = Annotated[str | None, typer.Option("--out", "-o", help="Where the table to publish is written.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write the report; it stays in the house.")]
Seed = Annotated[int | None, typer.Option("--seed", help="For the same bytes again; keep it secret.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")]
ShowValues = Annotated[bool, typer.Option("--show-values", help="Show true values in the report.")]


@table.command("protect")
@takes_source()
def protect_table(
    source: Source,
    formula: Formula,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="suppression, cell-key, controlled-rounding, random-rounding, small-count-rounding, noisy-counts.",
        ),
    ] = "suppression",
    rule: Rules = None,
    measure: Measures = None,
    count: Count = None,
    hierarchy: Hierarchies = None,
    cells: Cells = False,
    largest: Largest = None,
    zeros: ZerosToo = False,
    total: Total = "Total",
    setting: Settings = None,
    out: Out = None,
    html: Html = None,
    ledger: LedgerFile = None,
    register: RegisterFile = None,
    previous: Previous = None,
    seed: Seed = None,
    show_values: ShowValues = False,
    guard_formulas: options.GuardFormulas = False,
    overwrite: Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Protect a table, and those that went out before, and say what it cost. Exit code 3 where something is disclosed.

    Exit code 4 where an earlier table could not be held against it.
    """
    from discreet.tables.earlier_tables import earlier_tables

    _check_targets(source, out, html, overwrite=overwrite)
    writing = options.writing(None, out, guard=guard_formulas)
    data = source.read()
    asked = _request(formula, measure, count, hierarchy, cells, largest, zeros, total)
    built = asked.built(data)
    paid = None if ledger is None else opened_ledger(ledger, source.file)
    history = history_of(source, data, register, previous, synthetic=True)
    earlier, left = earlier_tables(history, data, asked, method)
    result = _protected(built, method, rule, options.settings(setting), paid, seed, earlier)
    refuse_unpaid(getattr(result, "guarantee", None), ledger, source.file)
    _finish(
        result, out, html, writing, overwrite=overwrite, json=json, show_values=show_values, history=history, left=left,
        told={**asked.to_dict(), "method": method, "rules": list(rule or ())},
    )  # fmt: skip


@table.command("audit")
@takes_source()
def audit_table(
    source: Source,
    formula: Formula,
    rule: Rules = None,
    suppressed: Annotated[
        str | None,
        typer.Option(
            "--suppressed", help="A file of the cells left out, or a published file with a column status."
        ),
    ] = None,
    intervals: Annotated[
        bool | None,
        typer.Option(
            "--intervals/--no-intervals",
            help="Bound every sensitive cell, counts in whole numbers; by default in tables of up to 5,000 cells.",
        ),
    ] = None,
    differences: Annotated[
        int | None,
        typer.Option("--differences", help="Look for published cells that differ by fewer units than this."),
    ] = None,
    max_cells: Annotated[
        int, typer.Option("--max-cells", help="Refuse larger tables before the work.")
    ] = 150_000,
    measure: Measures = None,
    count: Count = None,
    hierarchy: Hierarchies = None,
    cells: Cells = False,
    largest: Largest = None,
    zeros: ZerosToo = False,
    total: Total = "Total",
    json: options.AsJson = False,
) -> None:
    """Try to break a table with suppressed cells. Exit code 3 where a sensitive cell is given away."""
    from discreet.tables import audit, primary

    built = primary(
        _request(formula, measure, count, hierarchy, cells, largest, zeros, total).built(source.read()),
        *_rules(rule),
    )
    left_out = _left_out(built, source, suppressed)
    found = audit(built, left_out, intervals=intervals, differences=differences, max_cells=max_cells)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))
    if not found.safe:
        raise typer.Exit(DISCLOSES)


@table.command("synthesize")
@takes_source()
def synthesize_table(
    source: Source,
    formula: Formula,
    law: Annotated[str, typer.Option("--law", help=f"The law of the counts: {', '.join(LAWS)}.")] = "poisson",
    alpha: Annotated[float | None, typer.Option("--alpha", help="The pseudocount of every cell.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The wanted epsilon.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="The wanted delta.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Margins of a log-linear model: 'age*sex + region'.")
    ] = None,
    public: Annotated[
        bool,
        typer.Option("--public-domain", help="Codes and possible cells are public knowledge."),
    ] = False,
    count: Count = None,
    hierarchy: Hierarchies = None,
    cells: Cells = False,
    zeros: ZerosToo = True,
    total: Total = "Total",
    setting: Settings = None,
    out: Out = None,
    html: Html = None,
    ledger: LedgerFile = None,
    register: RegisterFile = None,
    previous: Previous = None,
    seed: Seed = None,
    show_values: ShowValues = False,
    guard_formulas: options.GuardFormulas = False,
    overwrite: Overwrite = False,
    json: options.AsJson = False,
) -> None:
    """Draw a synthetic table of counts, and say what it guarantees."""
    from discreet.tables import TableProtection
    from discreet.tables.earlier_tables import earlier_tables

    if law not in LAWS:
        raise ParameterError(unknown_name(law, LAWS, what="law"))
    _check_targets(source, out, html, overwrite=overwrite)
    writing = options.writing(None, out, guard=guard_formulas)
    data = source.read()
    asked = _request(formula, None, count, hierarchy, cells, None, zeros, total)
    built = asked.built(data)
    given = {"alpha": alpha, "epsilon": epsilon, "delta": delta, "model": model}
    chosen = {name: value for name, value in given.items() if value is not None}
    if public:
        chosen["domain"] = "public"
    synthesis = TableProtection.named(LAWS[law], {**chosen, **options.settings(setting)})
    paid = None if ledger is None else opened_ledger(ledger, source.file)
    history = history_of(source, data, register, previous, synthetic=True)
    _, left = earlier_tables(history, data, asked, LAWS[law])
    result = synthesis.apply(built, ledger=paid, seed=seed)
    refuse_unpaid(result.guarantee, ledger, source.file)
    _finish(
        result, out, html, writing, overwrite=overwrite, json=json, show_values=show_values, history=history,
        # What is differentially private stays so, whatever else is known.
        left=[] if result.guarantee else left, told={**asked.to_dict(), "method": LAWS[law], "rules": []},
    )  # fmt: skip


def _request(
    formula: str,
    measure: list[str] | None,
    count: str | None,
    hierarchy: list[str] | None,
    cells: bool,
    largest: list[str] | None,
    zeros: bool,
    total: str,
) -> TableRequest:
    from discreet.tables.earlier_tables import TableRequest

    if largest and not cells:
        raise ParameterError("--largest goes with --cells: from records the largest shares are found.")
    return TableRequest(
        formula,
        measure=options.columns(measure),
        count=count,
        hierarchies=_hierarchies(hierarchy),
        cells=cells,
        largest=options.columns(largest),
        zeros=zeros,
        total=total,
    )


def _hierarchies(given: list[str] | None) -> dict[str, list[Any]]:
    """Read ``column=file`` and ``column=coarser,coarsest``; several of one column are overlapping hierarchies."""
    found: dict[str, list[Any]] = {}
    for item in given or ():
        column, equals, rest = item.partition("=")
        if not (equals and column.strip() and rest.strip()):
            raise ParameterError(f"--hierarchy is written COLUMN=FILE or COLUMN=columns; '{item}' is not.")
        place = Path(rest.strip())
        is_file = place.suffix.lower() in (".hrc", ".csv", ".txt")
        source: Any = str(place) if is_file else options.columns([rest]) or []
        found.setdefault(column.strip(), []).append(source)
    return found


def _rules(given: list[str] | None) -> list[Any]:
    """Read rules such as ``dominance=1,85``."""
    from discreet import tables

    makers: dict[str, Callable[..., Any]] = {
        "threshold": tables.Threshold,
        "up-to": tables.Threshold.up_to,
        "zeros": tables.Zeros,
        "ones": tables.Ones,
        "minimum-contributors": tables.MinimumContributors,
        "group-disclosure": tables.GroupDisclosure,
        "k-disclosure": tables.KDisclosure,
        "p-percent": tables.PPercent,
        "pq": lambda p, q: tables.PQ(p=p, q=q),
        "dominance": lambda n, k: tables.Dominance(n=n, k=k),
    }
    if not given:
        raise ParameterError("Say which cells are sensitive with --rule, for example --rule threshold=3.")
    found = []
    for item in given:
        name, _, rest = item.partition("=")
        if name not in makers:
            raise ParameterError(unknown_name(name, makers, what="rule"))
        try:
            numbers = [float(part) if "." in part else int(part) for part in rest.split(",") if part.strip()]
            found.append(makers[name](p=numbers[0]) if name == "p-percent" else makers[name](*numbers))
        except (TypeError, ValueError, IndexError) as error:
            raise ParameterError(
                f"--rule {name} needs its numbers, such as threshold=3, p-percent=10, dominance=1,85 or pq=10,50."
            ) from error
    return found


def _protected(
    built: Table,
    method: str,
    rule: list[str] | None,
    settings: dict[str, Any],
    ledger: Ledger | None,
    seed: int | None,
    earlier: Sequence[EarlierTable] = (),
) -> ProtectedTable | SuppressionResult:
    from discreet.core.method_cards import made_from
    from discreet.tables import Suppression, TableProtection, primary
    from discreet.tables.earlier_tables import suppressed_beside

    if method == "suppression":
        if ledger is not None:
            raise ParameterError("--ledger takes protections with a guarantee, and suppression has none.")
        plan, flagged = made_from(Suppression, method, settings), primary(built, *_rules(rule))
        return suppressed_beside(plan, flagged, earlier)
    if method not in TableProtection.known:
        raise ParameterError(
            unknown_name(method, ["suppression", *TableProtection.known], what="protection of tables")
        )
    if rule:
        raise ParameterError(f"{method} protects every cell alike; leave out --rule.")
    return TableProtection.named(method, settings).apply(built, ledger=ledger, seed=seed)


def _left_out(built: Table, source: Source, suppressed: str | None) -> Any:
    if suppressed is None:
        return None
    import polars as pl

    from discreet import engine
    from discreet.tables.primary_rules import flags_of

    frame = engine.collect(source.read_other(suppressed))
    if not set(built.dimensions) & set(frame.columns):
        dimensions = ", ".join(f"'{name}'" for name in built.dimensions)
        raise ParameterError(
            f"--suppressed '{Path(suppressed).name}' has none of the columns of the table ({dimensions}), so that it "
            "names no cell."
        )
    if "status" in frame.columns:
        frame = frame.filter(pl.col("status") == "suppressed")
    return flags_of(
        built, frame.select(name for name in built.dimensions if name in frame.columns), "suppressed"
    )


def _finish(
    result: ProtectedTable | SuppressionResult,
    out: str | None,
    html: Path | None,
    writing: dict[str, Any],
    *,
    overwrite: bool,
    json: bool,
    show_values: bool,
    history: History | None = None,
    left: Sequence[str] = (),
    told: Mapping[str, Any] | None = None,
) -> None:
    """Write the table and the report, say what was done, and end with 3 where the audit found something."""
    from discreet.tables.earlier_tables import enter_table, not_held

    audit = getattr(result, "audit", None)
    if out is not None:
        _write(result.published, out, overwrite=overwrite, **writing)
        if history is not None and (audit is None or audit.safe):
            enter_table(history, result, out, told or {})
    left_lines = [not_held(name) for name in left]
    if html is not None:
        from discreet.report.table_report import write_table_report

        write_table_report(result, html, show_values=show_values)
    if json:
        options.print_json(
            {
                "file": None if out is None else Path(out).name,
                **result.to_dict(),
                **({} if history is None else history.document()),
                "not_held_against": list(left),
            },
            show_values=show_values,
        )
    else:
        say(str(result))
        say(f"Wrote {out}" if out else "The table was not written; use --out FILE.")
        if html:
            say(f"Report: {html}")
        if history is not None:
            say_history(history)
        for line in left_lines:
            say(line)
    if audit is not None and not audit.safe:
        raise typer.Exit(DISCLOSES)
    if left:
        raise typer.Exit(LEFT_TO_JUDGE)


def _check_targets(source: Source, out: str | None, html: Path | None, *, overwrite: bool) -> None:
    options.check_report(html)
    options.check_targets(("--out", out, overwrite), ("--html", html, True))


def _write(published: pl.DataFrame, out: str, *, overwrite: bool, **writing: Any) -> None:
    from discreet.io import write
    from discreet.microdata import Microdata

    write(Microdata(published), out, overwrite=overwrite, **writing)
