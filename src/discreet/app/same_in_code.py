"""The same in Python and on the command line: what the page does, as text to copy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import tomli_w

from discreet.app.journey import MANY, Journey

PLAN = "plan.toml"


def python_text(journey: Journey, page: str) -> str:
    """Return the journey up to a page as a Python script."""
    lines = ["import discreet", ""]
    if page == "outputs":
        folder = repr("packages")
        return "\n".join(["from discreet import outputs", "", f"outputs.check_many([{folder}])"])
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
        asked = journey.table.get("asked", {})
        table = shlex.quote(str(asked.get("table") or "row*column"))
        measure = f" --measure {shlex.quote(asked['measure'])}" if asked.get("measure") else ""
        rule = shlex.quote(str(asked.get("rule") or "threshold=3"))
        return f"discreet table protect {file}{reading}{roles} --table {table}{measure} --rule {rule} --out table.csv\n"
    if page == "budget":
        return f"discreet budget show {file}\n"
    return "discreet outputs check packages\n"


def script_text(journey: Journey) -> str:
    """Return the script that goes with a release: the whole job, to be run again."""
    opening = (
        '"""Made with the page of discreet. The plan lies beside this script; seeds are not kept, so steps that draw '
        'at random draw anew."""\n\n'
    )
    return opening + python_text(journey, "release")


def plan_text(journey: Journey) -> str:
    """Return the steps as a plan file."""
    return tomli_w.dumps({"step": journey.steps})


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
    asked = journey.table.get("asked", {})
    measure = f", value={asked['measure']!r}" if asked.get("measure") else ""
    return [
        "from discreet import tables",
        "",
        f"table = tables.Table.from_microdata(data, {asked.get('table') or 'row*column'!r}{measure})",
        "result = tables.Suppression().apply(tables.primary(table, tables.Threshold(3)))",
        "print(result.audit.line)",
    ]


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
