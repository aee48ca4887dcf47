"""``discreet outputs``: classify statistics, check finished files, and review a package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say

if TYPE_CHECKING:
    from discreet.outputs import CheckResult
    from discreet.outputs.check_results import Status

outputs = typer.Typer(
    name="outputs",
    help="May this table, model or graph leave the safe setting?",
    no_args_is_help=True,
)

Policy = Annotated[
    str | None,
    typer.Option("--policy", "-p", help="A policy file (TOML, table [outputs]) or the name of a template."),
]


@outputs.command("check")
def check_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Finished tables (CSV, Excel, HTML, LaTeX), model summaries (text, JSON), folders, or packages."
        ),
    ],
    policy: Policy = None,
    register: Annotated[
        Path | None,
        typer.Option("--register", help="The register of what went out; what passes is entered."),
    ] = None,
    previous: Annotated[
        list[Path] | None,
        typer.Option("--previous", help="A package that went out earlier, of the same project; repeat."),
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the numbers that fail beside their places.")
    ] = False,
    json: options.AsJson = False,
) -> None:
    """Check finished files, folders and packages. Exit code 0: all pass, 3: something fails, 4: a human must look."""
    from discreet.outputs import Package, check_many
    from discreet.outputs.check_results import worst
    from discreet.outputs.released_sets import between, entered_files
    from discreet.register import Register
    from discreet.register.releases import NOBODY_KNOWS

    packages = [Package.load(path, policy) for path in files if _is_package(path)]
    plain = [path for path in files if not _is_package(path)]
    found = check_many(plain, policy, show_values=show_values) if plain else {}
    differing = {p.path.name: between(p, previous or ()) for p in packages}
    statuses = [*(p.status for p in packages), *(result.status for result in found.values())]
    said = [f"{name}: {one.reason}" for name, findings in differing.items() for one in findings]
    statuses += [one.status for findings in differing.values() for one in findings]
    if register is not None:
        told, open_ones = entered_files(Register.load(register), packages, found)
        said += told
        statuses += open_ones
    elif not previous:
        said.append(NOBODY_KNOWS)
    status = worst(statuses)
    if json:
        documents = [
            {"about": dict(p.about), "package": p.path.name, "status": p.status, "outputs": list(p.outputs)}
            for p in packages
        ]
        documents += [{"file": path.name, **result.to_dict()} for path, result in found.items()]
        options.print_json(
            {
                **(documents[0] if len(documents) == 1 else {"files": documents}),
                "status": status,
                "register": said,
            },
            show_values=show_values,
        )
    else:
        for package in packages:
            say(str(package))
        for path, result in found.items():
            _show(path, result)
        for line in said:
            say(line)
        if len(packages) + len(found) > 1:
            _show_sum([*(p.status for p in packages), *(result.status for result in found.values())])
    end_by([{"pass": True, "fail": False, "review": None}[status]])


def _is_package(path: Path) -> bool:
    if path.is_dir():
        return (path / "manifest.json").is_file() or (path / "results.json").is_file()
    return path.suffix.lower() == ".zip"


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
        say(f"The register holds {number} decision{'' if number == 1 else 's'}, and its chain is whole.")
        return
    review(package, port, checker=checker, announce=say)


@outputs.command("decide")
def decide_on_output(
    package: Annotated[
        Path, typer.Argument(help="A package that a session wrote, or a result folder of ACRO.")
    ],
    output: Annotated[str, typer.Argument(help="The name of the output.")],
    decision: Annotated[str, typer.Argument(help="accept, reject or ask")],
    checker: Annotated[str, typer.Option("--checker", help="Your name, for the register.")],
    reason: Annotated[
        str, typer.Option("--reason", help="Why, or the question. Only what passes is accepted without one.")
    ] = "",
) -> None:
    """Accept, reject or ask about an output, and write it to the register of decisions."""
    from discreet.outputs import Package, append_decision
    from discreet.outputs.reviewing import register_of

    found = Package.load(package)
    entry = append_decision(
        register_of(package),
        output=str(found[output]["name"]),
        decision=decision,
        checker=checker,
        note=reason,
        about={"status": found[output]["status"], "package": found.checksum},
    )
    say(f"{entry['output']}: {entry['decision']}. Last hash of the register: {entry['hash']}")


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
        say(str(info))


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
        say("Nothing of that name is known; a human decides.")
        return
    width = max(len(info.name) for info in found)
    for info in found:
        say(f"{info.barn or '?'}  {info.name:<{width}}  {info.verdict:<6}  {info.barn_name}")


_MOST_PLACES = 12


def _show(file: Path, found: CheckResult) -> None:
    say(f"{file.name}: {found.status}")
    for finding in found.findings:
        say(f"  {finding.status:<6}  {finding.check}: {finding.reason}")
        for place in finding.places[:_MOST_PLACES]:
            say(f"          at {place}")
        if len(finding.places) > _MOST_PLACES:
            say(f"          and {len(finding.places) - _MOST_PLACES} more (all of them with --json)")
    if found.status == "fail" and found.mitigations:
        say(f"Could help: {', '.join(found.mitigations)}")
    if found.status != "pass":
        for question in found.questions:
            say(f"Ask: {question}")


def _show_sum(statuses: list[Status]) -> None:
    counts = [
        f"{statuses.count(status)} {status}" for status in ("fail", "review", "pass") if status in statuses
    ]
    say(f"{len(statuses)} files: {', '.join(counts)}")
