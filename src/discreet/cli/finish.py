"""``discreet finish SYNTHETIC``: make a synthetic file ready to leave, and say what was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say, say_commands
from discreet.cli.register import Previous, RegisterFile, history_of, say_history
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.microdata import Microdata


@takes_source()
def finish(
    source: Source,
    out: Annotated[str, typer.Option("--out", "-o", help="Where the finished file goes.")],
    original: Annotated[
        str | None,
        typer.Option("--original", help="The file it was made from; the roles are those of its columns."),
    ] = None,
    remove_uniques: Annotated[
        bool,
        typer.Option(
            "--remove-uniques",
            help="Drop records alone with the keys of one person of the original; this proves who is not in it.",
        ),
    ] = False,
    smooth: Annotated[
        list[str] | None,
        typer.Option(
            "--smooth", help="COLUMN or COLUMN=KIND: blur numbers of real people; adaptive unless named."
        ),
    ] = None,
    top: Annotated[
        list[str] | None, typer.Option("--top", help="COLUMN=LIMIT: larger values become the limit.")
    ] = None,
    bottom: Annotated[
        list[str] | None, typer.Option("--bottom", help="COLUMN=LIMIT: smaller values become the limit.")
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option("--code", help="COLUMN=VALUE: a code that is neither blurred nor cut; repeat."),
    ] = None,
    constraint: Annotated[
        list[str] | None, typer.Option("--constraint", help="A rule to check, e.g. 'start <= end'; repeat.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="A text that marks every record.")] = None,
    label_column: Annotated[str, typer.Option("--label-column", help="The column of the label.")] = "source",
    prefix: Annotated[str, typer.Option("--prefix", help="Put before every column name.")] = "",
    suffix: Annotated[str, typer.Option("--suffix", help="Put behind every column name.")] = "",
    policy: Annotated[
        str | None, typer.Option("--policy", help="Judge the finished file by a policy file or template.")
    ] = None,
    register: RegisterFile = None,
    previous: Previous = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same bytes again; keep it secret.")
    ] = None,
    write_as: options.WriteAs = None,
    guard_formulas: options.GuardFormulas = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    accept: options.Accept = None,
    because: options.Because = None,
    by: options.By = None,
    json: options.AsJson = False,
) -> None:
    """Make a synthetic file ready to leave: blurred, top-coded, without lookalikes, checked and labelled."""
    from discreet.io import write
    from discreet.synth import finish as finished

    writing = options.writing(write_as, out, guard=guard_formulas)
    options.check_targets(("--out", out, overwrite))
    if policy is not None and (prefix or suffix or label):
        raise ParameterError(
            "A policy is judged column by column against the original. Judge first, and add names and labels after."
        )
    if original is None and (remove_uniques or policy):
        raise ParameterError(
            "--remove-uniques and --policy compare with the original. Name it with --original FILE."
        )
    made, real = _files(source, original)
    history = history_of(source, real, register, previous, synthetic=True)
    release = finished(
        made,
        real,
        label=label,
        label_column=label_column,
        prefix=prefix,
        suffix=suffix,
        top=_limits(top, "--top"),
        bottom=_limits(bottom, "--bottom"),
        codes=_codes(code),
        smoothing=_smoothing(smooth),
        remove_uniques=remove_uniques,
        constraints=constraint or (),
        seed=seed,
    )
    verdict = None
    if policy is not None:
        from discreet.register import History
        from discreet.workflow.policy_judgment import judge

        accepted = options.acceptances(accept, because, by)
        verdict = judge(release.data, policy, real, accept=accepted, register=History(), seed=seed)
    write(release.data, out, overwrite=overwrite, **writing)
    told = {"steps": [step.treatment for step in release.log]}
    history.enter("synthetic", release.data, out, verdict, parameters=told)
    if json:
        options.print_json(
            {
                "file": Path(out).name,
                "log": [step.to_dict() for step in release.log],
                "verdict": None if verdict is None else verdict.to_dict(),
                **history.document(),
            }
        )
    else:
        _show(release, out)
        if verdict is not None:
            say(verdict.line)
        say_history(history)
        if verdict is not None:
            say_commands([verdict], source, ORIGINAL=original, RELEASE=out, POLICY=policy)
    if verdict is not None:
        end_by([verdict])


def _files(source: Source, original: str | None) -> tuple[Microdata, Microdata | None]:
    """Read the synthetic file and its original; roles and reading options are those of the command line."""
    if original is None:
        return source.read(), None
    real = Source(original, source.roles, source.reading).read()
    return source.read_other(source.file), real


def _smoothing(given: list[str] | None) -> dict[str, str]:
    return {name: kind or "adaptive" for name, kind in _pairs(given, "--smooth", alone=True)}


def _limits(given: list[str] | None, option: str) -> dict[str, float]:
    return {name: _number(value, option) for name, value in _pairs(given, option)}


def _codes(given: list[str] | None) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name, value in _pairs(given, "--code"):
        found.setdefault(name, []).append(_number(value, "--code"))
    return found


def _pairs(given: list[str] | None, option: str, *, alone: bool = False) -> list[tuple[str, str]]:
    found = []
    for item in given or ():
        name, equals, value = item.partition("=") if alone else item.rpartition("=")
        if not name or not (equals or alone):
            raise ParameterError(f"{option} is written COLUMN=VALUE; '{item}' is not.")
        found.append((name, value))
    return found


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise ParameterError(f"{option} takes a number behind the sign of equality.") from error
    return int(value) if value.is_integer() else value


def _show(release: Any, out: str) -> None:
    for step in release.log:
        say(str(step))
        for note in step.notes:
            say(f"  {note}")
    if not release.log:
        say("Nothing was asked for; the file was written as it is.")
    say(f"Wrote {Path(out).name}")
