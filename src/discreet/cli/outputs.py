"""``discreet outputs``: classify statistics, check finished files, and review a package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options

if TYPE_CHECKING:
    from discreet.outputs import CheckResult

FAILS = 3

outputs = typer.Typer(
    name="outputs",
    help="May this table, model or graph leave the safe setting?",
    no_args_is_help=True,
)

Policy = Annotated[
    str | None,
    typer.Option("--policy", "-p", help="A policy file (TOML, table \\[outputs]) or the name of a template."),
]


@outputs.command("check")
def check_file(
    file: Annotated[
        Path,
        typer.Argument(help="A finished table (CSV, Excel) or model summary (text, JSON), or a package."),
    ],
    policy: Policy = None,
    json: options.AsJson = False,
) -> None:
    """Check a finished file, or say how the outputs of a package stand. Exit code 3 where something fails."""
    from discreet.outputs import Package, check

    if file.is_dir() or file.suffix.lower() == ".zip":
        package = Package.load(file)
        if json:
            document = {
                "about": dict(package.about),
                "status": package.status,
                "outputs": list(package.outputs),
            }
            options.print_json(document)
        else:
            typer.echo(str(package))
        status = package.status
    else:
        found = check(file, policy)
        if json:
            options.print_json({"file": file.name, **found.to_dict()})
        else:
            _show(file, found)
        status = found.status
    if status == "fail":
        raise typer.Exit(FAILS)


@outputs.command("review")
def review_package(
    package: Annotated[
        Path, typer.Argument(help="A package that a session wrote, or a result folder of ACRO.")
    ],
    port: Annotated[int, typer.Option("--port", help="Port on this machine; a free one unless given.")] = 0,
    checker: Annotated[str, typer.Option("--checker", help="Your name, for the register.")] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Only verify the register of decisions.")] = False,
) -> None:
    """Serve the page where a checker accepts, rejects or asks. It listens on this machine only."""
    from discreet.outputs import review, verify_register
    from discreet.outputs.reviewing import register_of

    if verify:
        number = verify_register(register_of(package))
        typer.echo(
            f"The register holds {number} decision{'' if number == 1 else 's'}, and its chain is whole."
        )
        return
    review(package, port, checker=checker, announce=typer.echo)


@outputs.command("classify")
def classify_name(
    name: Annotated[list[str], typer.Argument(help="The statistic or graph, such as: kaplan meier")],
    json: options.AsJson = False,
) -> None:
    """Say which statbarn a statistic belongs to, its risks, rules and mitigations."""
    from discreet.outputs import classify

    info = classify(" ".join(name))
    if json:
        options.print_json(info.to_dict())
    else:
        typer.echo(str(info))


@outputs.command("registry")
def list_registry(
    search: Annotated[list[str] | None, typer.Argument(help="Words to look for.")] = None,
    barn: Annotated[str | None, typer.Option("--barn", help="Only this statbarn, a to n.")] = None,
    json: options.AsJson = False,
) -> None:
    """List the statistics and graphs that are known."""
    from discreet.outputs import registry

    found = registry(" ".join(search) if search else None, barn=barn)
    if json:
        options.print_json([info.to_dict() for info in found])
        return
    if not found:
        typer.echo("Nothing of that name is known; a human decides.")
        return
    width = max(len(info.name) for info in found)
    for info in found:
        typer.echo(f"{info.barn or '?'}  {info.name:<{width}}  {info.verdict:<6}  {info.barn_name}")


def _show(file: Path, found: CheckResult) -> None:
    typer.echo(f"{file.name}: {found.status}")
    for finding in found.findings:
        typer.echo(f"  {finding.status:<6}  {finding.check}: {finding.reason}")
    if found.status == "fail" and found.mitigations:
        typer.echo(f"Could help: {', '.join(found.mitigations)}")
    if found.status != "pass":
        for question in found.questions:
            typer.echo(f"Ask: {question}")
