"""``discreet search FILE``: which plan meets the policy at the lowest cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say
from discreet.cli.source import Source, takes_source
from discreet.core.errors import InputError


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
