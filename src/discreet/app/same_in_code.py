"""The same in Python and on the command line: what the page does, as text to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.app.journey import MANY, Journey

PLAN = "plan.toml"


def python_text(journey: Journey, page: str) -> str:
    """Return the journey up to a page as a Python script."""
    lines = ["import discreet", ""]
    if page == "outputs":
        folder = journey.folder or "packages"
        return f"from discreet import outputs\n\nprint(outputs.Package.load({folder!r}))\n"
    lines += _python_reading(journey, with_roles=page != "file")
    if page == "file":
        lines += ["print(discreet.inspect(data))"]
    elif page == "columns":
        lines += ["print(data)"]
    elif page == "risk":
        scenarios = f", scenarios={journey.scenarios!r}" if journey.scenarios else ""
        lines += [
            f"found = discreet.assess(data, {journey.policy!r}{scenarios})",
            "print(found.line)",
            'found.to_html("report.html")',
        ]
    elif page in ("protect", "compare", "release"):
        lines += _python_protecting(journey, page)
    elif page == "synthesize":
        lines += [
            "look = discreet.synth.preflight(data)",
            "model = look.synthesizer().fit(data)",
            "copies = model.sample(copies=2)",
            "print(discreet.compare(data, copies))",
        ]
    elif page == "tables":
        lines += _python_tables(journey)
    elif page == "budget":
        lines += [
            "from discreet.dp import Ledger",
            "",
            f"print(Ledger.load(Ledger.place_beside({_place(journey)!r})))",
        ]
    return "\n".join(lines) + "\n"


def command_text(journey: Journey, page: str) -> str:
    """Return the step of a page as a command."""
    file = shlex.quote(_place(journey))
    roles = _role_options(journey)
    policy = f"--policy {shlex.quote(journey.policy)}"
    reading = _reading_options(journey)
    if page == "file":
        return f"discreet inspect {file}{reading}\n"
    if page == "columns":
        return f"discreet assess {file}{reading}{roles}\n"
    if page == "risk":
        told = "".join(
            f" --scenario {shlex.quote(f'{name}={chr(44).join(keys)}')}"
            for name, keys in journey.scenarios.items()
        )
        return f"discreet assess {file}{reading}{roles}{told} {policy} --html report.html\n"
    if page == "protect":
        if not journey.steps:
            return f"discreet suggest {file}{reading}{roles} {policy} --out {PLAN}\n"
        return f"discreet protect {file}{reading}{roles} --plan {PLAN} {policy} --dry-run\n"
    if page == "compare":
        return (
            f"discreet compare {file} {_released(journey)}{reading}{roles} {policy} --html comparison.html\n"
        )
    if page == "release":
        return (
            f"discreet protect {file}{reading}{roles} --plan {PLAN} {policy} --out {_released(journey)} "
            "--html release.html --log log.json\n"
        )
    if page == "synthesize":
        asked = f"{file}{reading}{roles}"
        return f"discreet preflight {asked}\ndiscreet synthesize {asked} --out synthetic.csv\n"
    if page == "tables":
        wanted = journey.tabulated
        table = shlex.quote(str(wanted.get("table") or "row*column"))
        measure = f" --measure {shlex.quote(wanted['measure'])}" if wanted.get("measure") else ""
        rule = shlex.quote(str(wanted.get("rule") or "threshold=3"))
        levels = "".join(
            f" --hierarchy {shlex.quote(f'{column}={held if isinstance(held, str) else chr(44).join(held)}')}"
            for column, held in (wanted.get("hierarchies") or {}).items()
        )
        return (
            f"discreet table protect {file}{reading}{roles} --table {table}{measure}{levels} --rule {rule} "
            "--out table.csv\n"
        )
    if page == "budget":
        return f"discreet budget show {file}\n"
    return f"discreet outputs check {shlex.quote(journey.folder or 'packages')}\n"


def script_text(journey: Journey) -> str:
    """Return the script that goes with a release: the whole job, to be run again."""
    opening = (
        '"""Made with the page of discreet. The plan lies beside this script; seeds are not kept, so steps that draw '
        'at random draw anew."""\n\n'
    )
    return opening + python_text(journey, "release")


def _python_reading(journey: Journey, *, with_roles: bool) -> list[str]:
    told = [repr(_place(journey))]
    told += [f"{name}={value!r}" for name, value in journey.reading.items() if value]
    if journey.query:
        told.append(f"query={journey.query!r}")
    if with_roles:
        told += [f"{role}={columns!r}" for role, columns in journey.named_roles().items()]
    one = f"data = discreet.read({', '.join(told)})"
    if len(one) <= 100:
        return [one, ""]
    return ["data = discreet.read(", *(f"    {part}," for part in told), ")", ""]


def _python_protecting(journey: Journey, page: str) -> list[str]:
    if not journey.steps:
        return [
            f"found = discreet.suggest(data, {journey.policy!r})",
            "print(found)",
            f'found.save("{PLAN}")',
        ]
    lines = [f'plan = discreet.Plan.load("{PLAN}")']
    if page == "protect":
        return [*lines, "release = plan.apply(data)", "print(release)"]
    if page == "compare":
        return [
            *lines,
            "release = plan.apply(data)",
            f"print(discreet.compare(data, release.data, policy={journey.policy!r}))",
        ]
    return [
        "from discreet.workflow import document_plan",
        "",
        *lines,
        f"report = document_plan(data, plan, {journey.policy!r})",
        f"discreet.write(report.release.data, {_released(journey)!r})",
        f"report.of_file({_released(journey)!r}).to_html('release.html')",
        "print(report.line)",
    ]


def _python_tables(journey: Journey) -> list[str]:
    asked = journey.tabulated
    told = ["data", repr(asked.get("table") or "row*column")]
    if asked.get("measure"):
        told.append(f"measure={asked['measure']!r}")
    levels = asked.get("hierarchies") or {}
    files = [column for column, held in levels.items() if isinstance(held, str)]
    if levels:
        given = [
            f"{column!r}: " + (f"Path({held!r})" if column in files else repr(tuple(held)))
            for column, held in levels.items()
        ]
        told.append(f"hierarchies={{{', '.join(given)}}}")
    return [
        *(["from pathlib import Path"] if files else []),
        "from discreet import tables",
        "",
        f"table = tables.Table.from_microdata({', '.join(told)})",
        f"result = tables.Suppression().apply(tables.primary(table, tables.{_rule_of(asked)}))",
        "print(result.audit.line)",
    ]


def _rule_of(asked: Mapping[str, Any]) -> str:
    numbers = [f"{number:g}" for number in asked.get("numbers") or (3,)]
    if asked.get("kind") == "p-percent":
        return f"PPercent(p={numbers[0]})"
    if asked.get("kind") == "dominance" and len(numbers) > 1:
        return f"Dominance(n={numbers[0]}, k={numbers[1]})"
    return f"Threshold({numbers[0]})"


def _place(journey: Journey) -> str:
    """Return where the file lies; a copy that was dropped on the page will be gone, so only its name is told."""
    return journey.name if journey.kind == "upload" else journey.place or journey.name


def _released(journey: Journey) -> str:
    stem = Path(journey.name or "file").name.split(".")[0]
    return f"{stem}-release{journey.ending or '.csv'}"


def _role_options(journey: Journey) -> str:
    told: list[str] = []
    for role, columns in journey.named_roles().items():
        value: Any = ",".join(columns) if role in MANY else columns
        told.append(f" --{role} {shlex.quote(value)}")
    return "".join(told)


def _reading_options(journey: Journey) -> str:
    told = f" --query {shlex.quote(journey.query)}" if journey.query else ""
    for name, value in journey.reading.items():
        if not value:
            continue
        option = "missing-token" if name == "missing" else name
        for one in value if isinstance(value, list) else [value]:
            told += f" --{option} {shlex.quote(str(one))}"
    return told
