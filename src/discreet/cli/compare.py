"""``discreet compare``: what did the protection cost, and what is left of the risk?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import end_by, say, say_commands
from discreet.cli.register import Previous, RegisterFile, history_of
from discreet.cli.source import Source, takes_source
from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.microdata import Microdata


@takes_source()
def compare(
    source: Source,
    released: Annotated[
        list[str], typer.Argument(help="What was made of it; several files are put side by side.")
    ],
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help="A policy file (TOML) or the name of a template.")
    ] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="A file of people who were not used to make the release.")
    ] = None,
    copies: Annotated[
        bool, typer.Option("--copies", help="The released files are copies of one synthesis.")
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="Columns to compare, separated by commas; all unless named."),
    ] = None,
    categorical: Annotated[
        list[str] | None, typer.Option("--categorical", help="Columns of numbers that are codes.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="A model that users would fit, such as 'pay ~ age + sex'."),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="Only these measures, separated by commas.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", help="A column that links the records of both files.")
    ] = None,
    missing: Annotated[
        str, typer.Option("--missing", help="How missing key values count: category or drop.")
    ] = "category",
    precision: Annotated[
        list[str] | None,
        typer.Option(
            "--precision",
            help="How precisely numbers are compared: exact, a number of decimals, or column=decimals; "
            "as both files have them unless named.",
        ),
    ] = None,
    attacks: Annotated[
        bool,
        typer.Option(
            "--attacks",
            help="Also try what attackers could do: single out, link, infer, recognize (give --holdout for fairness).",
        ),
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            help="Count files of more records where they are, and measure the rest on a sample of about so many; "
            "files of more than 100 million cells in any case.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print only the verdict line (policy 'public-use-file' unless named)."),
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="For samples and permutations.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the risk-utility map to this file (.svg, .png, .pdf).")
    ] = None,
    register: RegisterFile = None,
    previous: Previous = None,
    accept: options.Accept = None,
    because: options.Because = None,
    by: options.By = None,
    json: options.AsJson = False,
    show_values: options.ShowValues = False,
) -> None:
    """Hold a release against its original: what it costs, what it gives away, what went wrong first."""
    from discreet.policy import Policy
    from discreet.workflow.comparison import compare as compare_files

    if json and check:
        raise ParameterError("--json and --check exclude each other: one document, or one line.")
    options.check_report(html)
    options.check_picture(plot)
    options.check_targets(("--html", html, True), ("--plot", plot, True))
    original = source.read()
    files = _releases(source, released, copies=copies)
    rules = policy or ("public-use-file" if check else None)
    synthetic = copies or holdout is not None or (rules is not None and Policy.load(rules).is_for_nobodies)
    found = compare_files(
        original,
        files,
        holdout=source.read_other(holdout) if holdout else None,
        policy=rules,
        columns=options.columns(columns),
        categorical=options.columns(categorical) or (),
        models=_models(model),
        measures=options.columns(measure),
        ids=ids,
        missing=missing,  # type: ignore[arg-type]
        precision=options.precision(precision),
        attacks=attacks,
        rows=rows,
        seed=seed,
        progress=not json,
        show_values=show_values,
        accept=options.acceptances(accept, because, by),
        register=history_of(source, original, register, previous, released=released, synthetic=synthetic),
    )
    if plot:
        options.write_picture(found.plot(), plot)
    written = found.to_html(html) if html else None
    if json:
        options.print_json({**found.to_dict(), "register": found.about["before"]}, show_values=show_values)
    elif not options.printed(found, json=False, check=check, show_values=show_values):
        from discreet.cli.terminal import show_comparison

        show_comparison(found)
        for path in (written, plot):
            if path:
                say(f"Written: {path}")
    verdicts = [release.verdict for release in found.releases.values() if release.verdict]
    if not json and not check:
        say_commands(verdicts, source, ORIGINAL=source.file, RELEASE=released[0], POLICY=policy)
    end_by(verdicts)


def _releases(source: Source, files: list[str], *, copies: bool) -> dict[str, Any]:
    """Read the released files and name each by its file, or by what was typed where two names are the same."""
    held: list[Microdata] = [source.read_other(file) for file in files]
    if copies:
        return {Path(files[0]).name: held}
    names = [Path(file).name for file in files]
    if len(set(files)) < len(files):
        raise ParameterError("The same released file is named twice.")
    if len(set(names)) < len(names):
        names = files
    return dict(zip(names, held, strict=True))


def _models(given: list[str] | None) -> Any:
    if not given:
        return None
    return given[0] if len(given) == 1 else {formula: formula for formula in given}
