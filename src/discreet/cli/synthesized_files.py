"""What ``discreet synthesize`` does beyond one file: copies that are judged and attacked, and several tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli import options
from discreet.cli.printing import say
from discreet.core.errors import InputError, ParameterError, unknown_name

if TYPE_CHECKING:
    from discreet.cli.source import Source
    from discreet.core.verdicts import Verdict
    from discreet.microdata import Microdata
    from discreet.synth import Synthesizer
    from discreet.workflow.synthesis_for_policy import SynthesisForPolicy


def limited(
    chosen: Synthesizer, data: Microdata | None, risk_limit: float | None, *, judged: bool, page: bool
) -> Synthesizer:
    """Set the limit that the user named, or where a policy judges the usual one; 0 takes it away."""
    wanted = _limited(chosen, data, risk_limit, judged=judged)
    if page and getattr(wanted, "risk_limit", None) is None:
        raise ParameterError(
            "--html shows what attackers gained: say how much they may with --risk-limit, e.g. 0.05."
        )
    return wanted


def _limited(
    chosen: Synthesizer, data: Microdata | None, risk_limit: float | None, *, judged: bool
) -> Synthesizer:
    from discreet.synth import Sequential
    from discreet.workflow.synthesis_within_risk import usual_limit

    if not isinstance(chosen, Sequential):
        if risk_limit:
            raise ParameterError(
                "--risk-limit closes a synthesis by columns to attackers step by step; other synthesizers have no such "
                "steps. Leave it out, and attack the file with discreet compare --attacks."
            )
        return chosen
    if risk_limit is not None:
        return replace(chosen, risk_limit=risk_limit or None)
    if chosen.risk_limit is not None or not judged or data is None:
        return chosen
    return replace(chosen, risk_limit=usual_limit(data))


def why_not_attacked(chosen: Synthesizer, risk_limit: float | None, *, judged: bool) -> str | None:
    """Say why no attacker was tried where a policy judges and nobody asked for that."""
    from discreet.synth import Sequential
    from discreet.workflow.synthesis_within_risk import ENOUGH_RECORDS

    if not judged or getattr(chosen, "risk_limit", None) is not None:
        return None
    if risk_limit is not None:
        return "No attacker was tried, as --risk-limit 0 asks: nothing is shown of what they could gain."
    if not isinstance(chosen, Sequential):
        return (
            "No attacker was tried, since only a synthesis by columns can be closed to them: nothing is shown of what "
            "they could gain. discreet compare --attacks tries them on the file."
        )
    return (
        f"No attacker was tried: of fewer than {ENOUGH_RECORDS:,} records too few people can be set aside to show "
        "much, and nothing is shown of what attackers could gain. --risk-limit 0.05 tries them all the same."
    )


def judged_synthesis(
    data: Microdata | None, policy: str | None, chosen: Synthesizer, **drawing: Any
) -> SynthesisForPolicy:
    """Synthesize by a policy, within a limit of what attackers may gain, or both."""
    from discreet.workflow.synthesis_for_policy import synthesize_for_policy

    if data is None:
        raise ParameterError("This synthesizer reads no file, so there is no original to judge it against.")
    return synthesize_for_policy(data, policy, chosen, **drawing)


def summary_of(judged: SynthesisForPolicy, not_attacked: str | None) -> dict[str, Any]:
    """Give what was done and what it came to, for JSON."""
    return {
        "steps": list(judged.steps),
        "would_have_to_give": list(judged.would_have_to_give),
        "verdicts": [verdict.to_dict() for verdict in judged.verdicts],
        "attackers": None if judged.within is None else judged.within.to_dict(),
        "not_attacked": not_attacked,
    }


def write_page(judged: SynthesisForPolicy, html: Path | None) -> None:
    """Write the page of the attackers where it was asked for."""
    if html is not None and judged.within is not None:
        judged.within.to_html(html)


def verdicts_of(judged: SynthesisForPolicy, *, asked: bool) -> Iterator[Verdict | bool | None]:
    """Give the verdicts of the policy, and whether the limit holds where the user named one.

    The limit that comes with a policy is none of its rules; where attackers gained more all the same, a person has to
    look at it before the file is cleared.
    """
    yield from judged.verdicts
    if judged.within is not None:
        if asked:
            yield judged.within.holds
        elif judged.within.gains.worst > judged.within.limit:
            yield None


# Many tables of a file, or linked tables


def refuse_others(given: dict[str, Any], what: str) -> None:
    """Refuse options that would be passed over."""
    for option, value in given.items():
        if value:
            raise ParameterError(f"{option} does not go with {what}; leave it out.")


def release_tables(
    source: Source,
    out: str | None,
    settings: dict[str, Any],
    *,
    seed: int | None,
    overwrite: bool,
    json: bool,
) -> None:
    """Make a release of many tables and write it to a folder."""
    from discreet.synth import MultiTable

    if out is None:
        raise ParameterError("Say which folder the tables go to with --out FOLDER.")
    if Path(out).suffix:
        raise ParameterError("A release of tables is a folder: give --out a name without an ending.")
    _refuse_to_replace(out, overwrite=overwrite)
    wanted = MultiTable.from_dict(settings)
    release = wanted.release(source.read(), seed=seed, progress=not json)
    empty = sum(not table["rows"] for table in release.manifest)
    if empty == len(release.tables):
        raise InputError(
            f"All {empty:,} tables are empty, because too few people have anything in common to be shown; nothing was "
            "written. Take columns with fewer values, or more records."
        )
    place = release.save(out, overwrite=overwrite)
    summary = {
        "folder": place.name,
        "tables": [{"columns": table["columns"], "rows": table["rows"]} for table in release.manifest],
        "empty": empty,
        "guarantee": None,
        "why_none": release.why_none,
    }
    if json:
        options.print_json(summary)
        return
    say(f"{len(release.tables):,} tables in {place.name}, with a manifest.")
    if empty:
        say(f"{empty:,} of them are empty: every range held too few people to be shown.")
    say(f"No guarantee: {release.why_none}")


def _refuse_to_replace(out: str, *, overwrite: bool) -> None:
    """Refuse a folder that is there, or that holds what is read, before any work is done."""
    from discreet.core.files.atomic import check_folder

    check_folder(Path(out))
    if Path(out).exists() and not overwrite:
        raise ParameterError(f"'{Path(out).name}' is there already; use --overwrite or another name.")


def synthesize_linked(
    schema: Path, out: str | None, settings: dict[str, Any], *, seed: int | None, overwrite: bool, json: bool
) -> None:
    """Read the tables of a schema, synthesize them together and write them to a folder."""
    import time

    from discreet import engine
    from discreet.core.files.atomic import check_only, replacing_folder
    from discreet.microdata import Microdata
    from discreet.synth import LinkedTables, Relational, Schema

    if out is None:
        raise ParameterError("Say which folder the tables go to with --out FOLDER.")
    if Path(out).suffix:
        raise ParameterError("Linked tables go to a folder: give --out a name without an ending.")
    _refuse_to_replace(out, overwrite=overwrite)
    check_only(Path(out), ".csv")
    links = Schema.load(schema)
    scale = settings.pop("scale", 1.0)
    unknown = [name for name in settings if name not in ("strategy", "by", "max_rounds")]
    if unknown:
        known = ("strategy", "by", "max_rounds", "scale")
        raise ParameterError(unknown_name(unknown[0], known, what="setting"))
    wanted = Relational(links, **settings)
    began = time.perf_counter()
    tables = LinkedTables.read(schema).tables
    fitted = wanted.fit(tables, seed=seed, progress=not json)
    made = fitted.sample(scale, seed=seed)
    files = {name: Microdata(frame) for name, frame in made.items()}
    with replacing_folder(out, overwrite=overwrite) as draft:
        _write_all(files, {name: draft / f"{name}.csv" for name in files})
    seconds = round(time.perf_counter() - began, 1)
    summary = {
        "folder": Path(out).name,
        "tables": {
            name: {"rows": engine.collect(file).height, "columns": list(file.columns)}
            for name, file in files.items()
        },
        "left_out": fitted.left_out,
        "unplaced": fitted.unplaced,
        "seconds": seconds,
        "guarantee": None,
        "why_none": fitted.why_none,
    }
    if json:
        options.print_json(summary)
        return
    for name, table in summary["tables"].items():  # type: ignore[attr-defined]
        say(f"{name}: {table['rows']:,} records, {len(table['columns'])} columns")
    for name, columns in fitted.left_out.items():
        for column, why in columns.items():
            say(f"Left out: '{column}' of {name} ({why})")
    for name, number in fitted.unplaced.items():
        say(f"{number:,} records of {name} could not meet the rules with their parent and are not there.")
    say(
        f"Wrote {Path(out).name} in {seconds} s. Every child has a parent; synthetic is not the same as safe."
    )
    say(f"No guarantee: {fitted.why_none}")


def plan_of_tables(plan: Path | None) -> dict[str, Any]:
    """Read how the tables of a schema are to be synthesized, as ``discreet preflight --schema`` writes it."""
    from discreet.core.files.untrusted import read_toml

    if plan is None:
        return {}
    document = read_toml(plan, "plan file")
    if document.pop("synthesizer", None) != "relational":
        raise ParameterError(
            f"'{plan.name}' is no plan for linked tables: synthesizer = \"relational\" is missing."
        )
    return dict(document)


def _write_all(files: dict[str, Any], places: dict[str, Path]) -> None:
    from discreet.io import write

    for name, file in files.items():
        write(file, places[name])
