"""``discreet budget``: the privacy budget of a data source, and how other commands spend from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.dp import Ledger


budget = typer.Typer(
    name="budget",
    help="How much privacy of a data source is left? One budget for all releases with a guarantee.",
    no_args_is_help=True,
)

Source = Annotated[Path, typer.Argument(help="The data file, or its ledger (FILE.privacy.toml).")]


@budget.command("open")
def open_budget(
    source: Annotated[Path, typer.Argument(help="The data file. The ledger is made beside it.")],
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="The budget of all releases together.")
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="The failure accepted in all.")] = 0.0,
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="add-remove or replace: which files are neighbors.")
    ] = "add-remove",
    unit: Annotated[
        str, typer.Option("--unit", help="Whose privacy: record, person, household, contributor.")
    ] = "record",
    policy: Annotated[
        str | None, typer.Option("--policy", help="Take the budget from the table [budget] of a policy.")
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Set the budget of a file, once. The ledger lies beside it, as confidential as the data."""
    from discreet.dp import Ledger

    if (epsilon is None) == (policy is None):
        raise ParameterError("Give --epsilon, or a --policy that sets a budget; one of the two.")
    if policy is not None:
        ledger = Ledger.of_policy(policy, path=Ledger.place_beside(source), source=source)
    else:
        assert epsilon is not None
        ledger = Ledger.beside(source, epsilon, delta, adjacency=adjacency, unit=unit)
    _show(ledger, json=json)


@budget.command("show")
def show_budget(
    source: Source,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page: the promise in plain words, all releases.")
    ] = None,
    json: options.AsJson = False,
) -> None:
    """List the releases entered so far, what they cost together and what is left."""
    options.check_targets(("--html", html, True))
    ledger = _loaded(source)
    if html is not None:
        ledger.to_html(html)
    _show(ledger, json=json)


@budget.command("close")
def close_budget(source: Source, json: options.AsJson = False) -> None:
    """Take no further release from this source."""
    ledger = _loaded(source)
    ledger.close()
    _show(ledger, json=json)


@budget.command("declare")
def declare_source(
    source: Annotated[
        Path, typer.Argument(help="The data file that was changed, or stands for the one that was.")
    ],
    why: Annotated[str, typer.Option("--why", help="Who decided it, and why; it stays in the ledger.")],
    same: Annotated[
        bool, typer.Option("--same", help="The same people: go on spending from the budget there is.")
    ] = False,
    new: Annotated[
        bool, typer.Option("--new", help="Other people: close the budget there is and open one of their own.")
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="The ledger, where it does not lie beside the file.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="With --new: the budget of all releases together.")
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="With --new: the failure accepted in all.")] = 0.0,
    adjacency: Annotated[
        str, typer.Option("--adjacency", help="With --new: add-remove or replace.")
    ] = "add-remove",
    unit: Annotated[str, typer.Option("--unit", help="With --new: whose privacy.")] = "record",
    json: options.AsJson = False,
) -> None:
    """Say whether a changed file is about the people of its budget, or about others."""
    from discreet.dp import Ledger

    if same == new:
        raise ParameterError("Give --same or --new, one of the two: is the file about the same people?")
    if same != (epsilon is None):
        raise ParameterError("--new needs --epsilon, and with --same the budget stays what it is.")
    if epsilon is None:
        found = Ledger.load(ledger or Ledger.place_beside(source))
        found.same_source(source, why=why)
    elif ledger is not None:
        raise ParameterError("The ledger of a new source lies beside its file: leave out --ledger.")
    else:
        found = Ledger.new_source(source, epsilon, delta, why=why, adjacency=adjacency, unit=unit)
    _show(found, json=json)


def _loaded(source: Path) -> Ledger:
    from discreet.dp import Ledger

    if source.name.endswith(".privacy.toml"):
        return Ledger.load(source)
    return Ledger.load(Ledger.place_beside(source), source=source)


def _show(ledger: Ledger, *, json: bool) -> None:
    epsilon, delta = ledger.budget
    spent = ledger.spent
    if json:
        options.print_json(
            {
                "epsilon": epsilon,
                "delta": delta,
                "spent": {"epsilon": spent.epsilon, "delta": spent.delta, "by": spent.by},
                "left": ledger.left,
                "unproved": ledger.unproved,
                "meaning": ledger.meaning,
                "closed": ledger.closed,
                "records": ledger.table().to_dicts(),
            }
        )
        return
    for row in ledger.table().iter_rows(named=True):
        price = f"rho {row['rho']:g}" if row["definition"] == "zcdp" else f"epsilon {row['epsilon']:g}"
        failure = f", delta {row['delta']:g}" if row["delta"] else ""
        mark = "" if row.get("proved", True) is not False else " (not proved)"
        say(
            f"{row['release']:>4}  {row['time'][:10]}  {row['mechanism']}: {price}{failure}{mark}  {row['purpose']}"
        )
    budgeted = f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
    say(f"Budget: {budgeted}. Spent: epsilon {spent.epsilon:.4g}. Left: {ledger.left:.4g}.")
    say(ledger.meaning)
    if ledger.closed:
        say("The ledger is closed: nothing more may be published from this source.")


# Commands that spend: never from the budget of another file, and none beside that of the file


LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The privacy budget to spend from (discreet budget open)."),
]


def opened_ledger(ledger: Path | None, file: str) -> Ledger | None:
    """Read the ledger that an answer from a file is to be paid from.

    A ledger of another file is refused, and so is any other than the one that lies beside the file, where there is one.
    """
    from discreet.dp import Ledger

    if ledger is None:
        _refuse_beside(file, None)
        return None
    found = Ledger.load(ledger, source=file if Path(file).is_file() else None)
    _refuse_beside(file, ledger)
    return found


def refuse_unpaid(guarantee: str | None, ledger: Path | None, file: str) -> None:
    """Refuse a release with a guarantee that no ledger knows of, although one lies beside the file.

    For commands most of whose methods claim nothing: whether one does is known when it is done, before it is written.
    """
    if guarantee is not None and ledger is None:
        _refuse_beside(file, None)


def _refuse_beside(file: str, ledger: Path | None) -> None:
    own = _beside(file)
    if own is not None and (ledger is None or not own.samefile(ledger)):
        raise ParameterError(
            f"A privacy budget lies beside the file, '{own.name}', and would not know of this release. Spend from it: "
            f"--ledger {own}."
        )


def _beside(file: str) -> Path | None:
    """The ledger that lies beside a file; one of other content is refused, for the file may have been changed."""
    from discreet.dp import Ledger

    if not file or not Path(file).is_file():
        return None
    place = Ledger.place_beside(file)
    if not place.exists():
        return None
    Ledger.load(place, source=file)
    return place if Ledger.load(place).source else None
