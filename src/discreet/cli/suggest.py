"""``discreet suggest FILE``, ``discreet search FILE``: which plan meets the policy at the lowest loss?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say, words_of
from discreet.cli.source import Source, takes_source
from discreet.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from discreet.microdata import Microdata
    from discreet.workflow import Suggestion


Effort = Annotated[
    str, typer.Option("--effort", help="How hard to look: quick, normal, thorough, or a number of seconds.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", help="Columns that must stay as they are, or column=detail; repeat or use commas."
    ),
]
Importance = Annotated[
    list[str] | None,
    typer.Option("--importance", help="How much a column counts in the loss: column=weight."),
]
Workers = Annotated[int, typer.Option("--workers", help="Number of processes.")]


@takes_source()
def suggest(
    source: Source,
    policy: Annotated[str, typer.Option("--policy", "-p", help="A policy file (TOML) or a template's name.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan here (TOML).")] = None,
    effort: Effort = "normal",
    keep: Keep = None,
    importance: Importance = None,
    workers: Workers = 2,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep finished trials here, to go on after a stop.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same plan again; keep it secret.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write the risk-utility map (SVG, PNG, PDF).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    show_values: options.ShowValues = False,
    json: options.AsJson = False,
) -> None:
    """Suggest a plan that makes a file meet a policy at the lowest loss, and say what each step buys and costs."""
    options.check_picture(plot)
    options.check_targets(("--out", out, overwrite))
    found = suggested(
        source.read(),
        policy,
        effort=effort,
        keep=keep,
        importance=importance,
        workers=workers,
        resume=resume,
        progress=not json,
        show_values=show_values,
        seed=seed,
    )
    if plot:
        options.write_picture(found.plot(), plot)
    if out and found.meets and found.plan.steps:
        found.save(out, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))
        if found.meets:
            say(_next(found, source, policy, out, {"effort": effort, "keep": keep, "importance": importance}))
    end_by([found.meets])


def suggested(data: Microdata, policy: str, **settings: Any) -> Suggestion:
    """Read the settings of the command line and look for a plan."""
    from discreet.workflow import suggest as suggest_plan

    effort = settings.pop("effort")
    return suggest_plan(
        data,
        policy,
        effort=effort if effort in ("quick", "normal", "thorough") else _seconds(effort),
        keep=_details(settings.pop("keep")),
        importance=_numbers(settings.pop("importance")),
        **settings,
    )


def _next(found: Suggestion, source: Source, policy: str, out: Path | None, search: dict[str, Any]) -> str:
    """Give the command that makes the release that was judged: with the plan, the roles, the reading and the seed."""
    if not found.plan.steps:
        return "The file meets the policy as it is; there is no plan to write."
    same = {name: value for name, value in search.items() if value and value != "normal"}
    words = [
        *("discreet", "protect", shlex.quote(source.file)),
        *(("--plan", shlex.quote(str(out))) if out else ("--auto", *words_of(same))),
        *("--out", "RELEASE", "--policy", shlex.quote(policy)),
        *words_of({**(found.roles.to_dict() if out else source.roles), **source.reading}),
        *("--seed", str(found.seed)),
    ]
    wrote = f"Wrote {out}. " if out else ""
    return f"{wrote}To make the release that was judged (keep the seed secret): {' '.join(words)}"


def _seconds(effort: str) -> float:
    try:
        return float(effort)
    except ValueError as error:
        raise ParameterError("--effort is quick, normal, thorough or a number of seconds.") from error


def _details(given: list[str] | None) -> dict[str, Any]:
    """Read ``column`` and ``column=detail``.

    Examples
    --------
    >>> _details(["sex", "age=10", "born=year"])
    {'sex': True, 'age': 10, 'born': 'year'}
    """
    found: dict[str, Any] = {}
    for item in options.columns(given) or ():
        name, equals, detail = item.partition("=")
        found[name.strip()] = _number(detail.strip()) if equals else True
    return found


def _numbers(given: list[str] | None) -> dict[str, float]:
    found = {}
    for item in options.columns(given) or ():
        name, equals, text = item.partition("=")
        weight = _number(text.strip())
        if not equals or isinstance(weight, str):
            raise ParameterError(f"--importance is written column=weight; '{item}' is not.")
        found[name.strip()] = float(weight)
    return found


def _number(text: str) -> float | int | str:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


@takes_source()
def search(
    source: Source,
    plans: Annotated[
        list[Path], typer.Option("--plan", help="A plan file (TOML), or a folder of them; repeat.")
    ],
    policy: Annotated[str, typer.Option("--policy", "-p", help="A policy file (TOML) or a template's name.")],
    missing: options.MissingKeys = "category",
    workers: Annotated[int, typer.Option("--workers", help="Number of processes.")] = 1,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Keep finished trials here, to go on after a stop.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="For the same result again.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the recommended plan here.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Write the risk-utility map (SVG, PNG, PDF).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    json: options.AsJson = False,
) -> None:
    """Try plans on a file, mark the frontier of risk and loss, and recommend the cheapest that passes."""
    from discreet.protect import Plan
    from discreet.workflow import search as search_plans

    options.check_picture(plot)
    data = source.read()
    found = search_plans(
        data,
        {path.stem: Plan.load(path) for path in _plan_files(plans)},
        policy,
        missing=missing,  # type: ignore[arg-type]
        workers=workers,
        resume=resume,
        progress=not json,
        seed=seed,
    )
    if plot:
        options.write_picture(found.plot(), plot)
    if out and found.recommended:
        found.plan.save(out, overwrite=overwrite)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))
    end_by([found.recommended.meets if found.recommended else False])


def _plan_files(given: list[Path]) -> list[Path]:
    files = [
        path for place in given for path in (sorted(place.glob("*.toml")) if place.is_dir() else [place])
    ]
    if not files:
        raise InputError("There is no plan file (*.toml) in that folder.")
    return files
