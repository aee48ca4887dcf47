"""``discreet dp``: statistics of a file under a privacy budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.budget import LedgerFile, opened_ledger
from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.core.results import Measure

dp = typer.Typer(
    name="dp",
    help="Publish counts, means, quantiles, tables and regressions with differential privacy.",
    no_args_is_help=True,
)

Epsilon = Annotated[float, typer.Option("--epsilon", help="The budget of this answer.")]
Lower = Annotated[float, typer.Option("--lower", help="No value counts as less. Public, not from the data.")]
Upper = Annotated[float, typer.Option("--upper", help="No value counts as more. Public, not from the data.")]
MaxRecords = Annotated[
    int, typer.Option("--max-records", help="With --person: how many records of a person count.")
]
Purpose = Annotated[str, typer.Option("--purpose", help="What for; it stands in the ledger.")]
Column = Annotated[str, typer.Option("--column", help="The column of numbers.")]


@dp.command("count")
@takes_source()
def private_count(
    source: Source,
    epsilon: Epsilon,
    max_records: MaxRecords = 1,
    ledger: LedgerFile = None,
    purpose: Purpose = "",
    json: options.AsJson = False,
) -> None:
    """How many records are there, about?"""
    from discreet.dp import count

    found = count(
        source.read(),
        epsilon=epsilon,
        max_records=max_records,
        ledger=opened_ledger(ledger, source.file),
        purpose=purpose,
    )
    _show(found, json=json)


def _about_a_column(query: str) -> Callable[..., None]:
    """Make the command that asks this query of a column."""

    @takes_source()
    def asked(
        source: Source,
        column: Column,
        lower: Lower,
        upper: Upper,
        epsilon: Epsilon,
        max_records: MaxRecords = 1,
        ledger: LedgerFile = None,
        purpose: Purpose = "",
        json: options.AsJson = False,
    ) -> None:
        from discreet import dp as room

        bounds = {"lower": lower, "upper": upper, "max_records": max_records}
        paid = {"epsilon": epsilon, "ledger": opened_ledger(ledger, source.file), "purpose": purpose}
        _show(getattr(room, query)(source.read(), column, **bounds, **paid), json=json)

    return asked


for _query, _question in (
    ("total", "What does a column add up to, about?"),
    ("mean", "What is the mean of a column, about?"),
    ("variance", "How far do the values of a column scatter, about?"),
):
    dp.command(_query, help=_question)(_about_a_column(_query))


@dp.command("quantiles")
@takes_source()
def private_quantiles(
    source: Source,
    column: Column,
    lower: Lower,
    upper: Upper,
    epsilon: Epsilon,
    at: Annotated[
        list[float] | None,
        typer.Option("--at", help="A share below, e.g. 0.9; repeat. Quartiles unless given."),
    ] = None,
    ledger: LedgerFile = None,
    purpose: Purpose = "",
    json: options.AsJson = False,
) -> None:
    """Below which values lie a quarter, half and three quarters of a column, about?"""
    from discreet.dp import quantiles

    found = quantiles(
        source.read(),
        column,
        tuple(at or (0.25, 0.5, 0.75)),
        lower=lower,
        upper=upper,
        epsilon=epsilon,
        ledger=opened_ledger(ledger, source.file),
        purpose=purpose,
    )
    _show(found, json=json, table="quantiles")


@dp.command("table")
@takes_source()
def private_table(
    source: Source,
    by: Annotated[list[str], typer.Option("--by", help="Columns that make the cells, separated by commas.")],
    epsilon: Epsilon,
    levels: Annotated[
        list[str] | None,
        typer.Option("--levels", help="Public levels of a column: sex=f,m; repeat for each column."),
    ] = None,
    delta: Annotated[
        float, typer.Option("--delta", help="The failure accepted where levels are not public, e.g. 1e-6.")
    ] = 0.0,
    column: Annotated[
        str | None, typer.Option("--column", help="A column to add up, with its bounds.")
    ] = None,
    lower: Annotated[float | None, typer.Option("--lower", help="No value counts as less. Public.")] = None,
    upper: Annotated[float | None, typer.Option("--upper", help="No value counts as more. Public.")] = None,
    max_records: MaxRecords = 1,
    max_groups: Annotated[
        int, typer.Option("--max-groups", help="With --person: in how many cells a person counts.")
    ] = 1,
    ledger: LedgerFile = None,
    purpose: Purpose = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the noisy table.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    json: options.AsJson = False,
) -> None:
    """How many records has each cell of a table, about?"""
    from discreet.dp import table

    # The budget is spent before anything is written: what cannot be written must be known before.
    options.check_targets(("--out", out, overwrite))
    data = source.read()
    found = table(
        data,
        options.columns(by) or [],
        epsilon=epsilon,
        levels=_levels(options.named_columns(levels, "--levels"), data.schema) or None,
        delta=delta,
        column=column,
        lower=lower,
        upper=upper,
        max_records=max_records,
        max_groups=max_groups,
        ledger=opened_ledger(ledger, source.file),
        purpose=purpose,
    )
    if out:
        from discreet.io import write

        write(found.detail["table"], out, overwrite=overwrite)
    _show(found, json=json, table="" if out else "table")


@dp.command("regression")
@takes_source()
def private_regression(
    source: Source,
    y: Annotated[str, typer.Option("--y", help="The column to explain.")],
    x: Annotated[list[str], typer.Option("--x", help="The columns that explain it, separated by commas.")],
    epsilon: Epsilon,
    bounds: Annotated[
        list[str],
        typer.Option("--bounds", help="Public bounds of a column: age=0,120; repeat for each column."),
    ],
    tau: Annotated[
        list[float] | None,
        typer.Option("--tau", help="A quantile, e.g. 0.9; repeat. The median unless given."),
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism", help="opm, kng, sgd or agd for quantiles; k-norm or functional for the mean."
        ),
    ] = "opm",
    delta: Annotated[float | None, typer.Option("--delta", help="The failure accepted, e.g. 1e-6.")] = None,
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="add-remove or replace: which files are neighbors.")
    ] = "add-remove",
    kernel: Annotated[str, typer.Option("--kernel", help="How the loss is rounded off.")] = "logistic",
    h: Annotated[float, typer.Option("--h", help="How widely; public, not from the data.")] = 0.5,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Bring the columns of x to -1…1 by their bounds.")
    ] = False,
    theta_bound: Annotated[
        float, typer.Option("--theta-bound", help="kng, sgd: bound on coefficients.")
    ] = 10.0,
    residual_bound: Annotated[
        float | None, typer.Option("--residual-bound", help="agd: how far a value may lie from the line.")
    ] = None,
    records: Annotated[
        int | None,
        typer.Option("--records", help="sgd: about how many records there are, where that is public."),
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="kng, sgd, agd: how many steps.")] = None,
    max_weight: Annotated[
        float | None,
        typer.Option("--max-weight", help="With --weight: a public number that no weight passes."),
    ] = None,
    missing: Annotated[str, typer.Option("--missing", help="error or drop: records with gaps.")] = "error",
    ledger: LedgerFile = None,
    purpose: Purpose = "",
    json: options.AsJson = False,
) -> None:
    """Which line has half of the records (or another share) below it, or lies nearest to them, about?"""
    from discreet.dp import linear_regression, quantile_regression

    limits = {name: _pair(pair, name) for name, pair in options.named_columns(bounds, "--bounds").items()}
    columns = options.columns(x) or []
    data = source.read()
    # Weights count in full or not at all: without their public maximum they are refused.
    weighted = {"weight": data.roles.weight, "max_weight": max_weight}
    common: dict[str, Any] = {"adjacency": adjacency, "missing": missing, "purpose": purpose, **weighted}
    if mechanism in ("k-norm", "functional"):
        if y not in limits:
            raise ParameterError(
                f"--mechanism {mechanism} needs public bounds of '{y}' too: --bounds {y}=LOW,HIGH."
            )
        common |= {"y_bounds": limits.pop(y), "epsilon": epsilon, "mechanism": mechanism}
        fit: Callable[..., Measure] = linear_regression
    else:
        common |= {
            "tau": tau or [0.5],
            "mechanism": mechanism,
            "epsilon": epsilon,
            "delta": delta,
            "kernel": kernel,
            "h": h,
            "standardize": standardize,
            "theta_bound": theta_bound,
            "residual_bound": residual_bound,
            "records": records,
            "steps": steps,
        }
        fit = quantile_regression
    found = fit(data, y=y, x=columns, x_bounds=limits, ledger=opened_ledger(ledger, source.file), **common)
    _show(found, json=json, table="coefficients")


def _pair(bounds: list[str], column: str) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)
    except ValueError:
        raise ParameterError(f"--bounds of '{column}' must be two numbers: {column}=0,120.") from None
    return low, high


def _levels(given: dict[str, list[str]], schema: Any) -> dict[str, list[Any]]:
    """Read the levels of columns of numbers as numbers."""
    return {
        name: [_number(level, name) for level in levels]
        if name in schema and schema[name].is_numeric()
        else list(levels)
        for name, levels in given.items()
    }


def _number(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(f"--levels of '{column}' must be numbers, as the column is.") from None
    return int(value) if value.is_integer() else value


def _show(found: Measure, *, json: bool, table: str = "") -> None:
    """Print the answer, and the rows of a table whose cells were published under the guarantee."""
    if json:
        rows = {table: found.detail[table].to_dicts()} if table else {}
        options.print_json({**found.to_dict(), **rows})
        return
    say(str(found))
    if found.guarantee:
        say(f"Guarantee: {found.guarantee}")
    if found.private:
        say(found.private.in_plain_words)
    if table:
        say()
        say(str(found.detail[table]))
