"""``discreet federated``: serve a site, fit a model over sites, make keys and a trial."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import options
from discreet.cli.printing import say

federated = typer.Typer(
    name="federated",
    help="Analyse data together that may not be pooled: every site keeps its records.",
    no_args_is_help=True,
)


@federated.command("serve")
def serve_site(
    file: Annotated[Path, typer.Argument(help="The site file: data, keys, and what its owner allows.")],
) -> None:
    """Answer analysts over HTTPS, by the rules of the site file; everything else is refused and logged."""
    from discreet.federated.remote_transport import serve
    from discreet.federated.site_rules import SiteFile

    site = SiteFile.read(file)
    say(
        f"'{site.name}' listens on {site.host}:{site.port}. Refusals and answers go to {site.log.name}.",
        err=True,
    )
    serve(site)


@federated.command("fit")
def fit_model(
    file: Annotated[Path, typer.Argument(help="The model file: sites, layout and model.")],
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page: the result, what each party learned, what was passed."),
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Fit a model over sites that keep their records, and say what each party learned."""
    from discreet.federated.model_description import ModelFile

    options.check_targets(("--html", html, True))
    found = ModelFile(file).fit(progress=not json)
    if html is not None:
        write = getattr(found, "to_html", None) or found.leakage.to_html
        write(html, title=file.name)
    if json:
        to_dict = getattr(found, "to_dict", None)
        options.print_json(to_dict() if to_dict else {"leakage": found.leakage.to_dict(), "k": found.k})
        return
    say(str(found))
    say()
    say("What each party learned beside that:")
    for line in found.leakage.lines:
        say(f"- {line}")
    if html is not None:
        say(f"Written: {html.name}")


@federated.command("keys")
def make_keys(
    file: Annotated[Path, typer.Argument(help="Where the private key goes; only its owner can read it.")],
) -> None:
    """Make the key of a site for messages between sites; print the public one, for the [peers] of the others."""
    from discreet.core.files.atomic import check_target
    from discreet.federated.envelopes import new_keys, write_key

    check_target(file, overwrite=False)
    private, public = new_keys()
    write_key(file, private)
    say(public)


@federated.command("prepare")
def prepare_trial(
    folder: Annotated[Path, typer.Argument(help="Where certificates, keys and site files go.")],
    site: Annotated[
        list[str], typer.Option("--site", help="NAME=column,column: a site and what it allows; repeat.")
    ],
    data: Annotated[
        list[str],
        typer.Option(
            "--data", help="NAME=FILE: the data of a site, NAME/GROUP=FILE for a group of rows; repeat."
        ),
    ],
    ids: Annotated[str | None, typer.Option("--ids", help="Column by which rows are linked.")] = None,
    port: Annotated[int, typer.Option("--port", help="The first port.")] = 8441,
    protocol: Annotated[
        list[str] | None,
        typer.Option("--protocol", help="What owners allow; vertical-likelihood unless given; repeat."),
    ] = None,
    quantity: Annotated[
        list[str] | None, typer.Option("--quantity", help="Sums that owners allow; repeat.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="Budget of each site for answers with noise.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", help="NAME=NUMBER: a limit of every owner, such as least_sites=2; repeat."),
    ] = None,
) -> None:
    """Make everything for a trial on this machine: an authority, certificates, keys and a file for each site."""
    from discreet.core.errors import ParameterError
    from discreet.core.files.inputs import check_not_read
    from discreet.federated.trial_certificates import prepare

    columns = options.named_columns(site, "--site")
    files: dict[str, Any] = {}
    for named, parts in options.named_columns(data, "--data").items():
        name, _, group = named.partition("/")
        file = str(Path(",".join(parts)).resolve())
        if (name in files) and (not group or not isinstance(files[name], dict)):
            raise ParameterError(
                "--data gives a site one file, or one for each group of rows (NAME/GROUP=FILE)."
            )
        files[name] = {**files.get(name, {}), group: file} if group else file
    if set(columns) != set(files):
        raise ParameterError("--site and --data must name the same sites.")
    made_for = [
        f"{name}{end}" for name in (*columns, "analyst") for end in (".pem", ".key", ".seal", ".toml")
    ]
    for name in ("authority.pem", "model.toml", *made_for):
        check_not_read(folder / name)
    prepare(
        folder, files, columns=columns, ids=ids, port=port, protocols=protocol or ("vertical-likelihood",),
        quantities=quantity or (), epsilon=epsilon, limits=_limits(limit),
    )  # fmt: skip
    if "vertical-likelihood" in (protocol or ("vertical-likelihood",)):
        say(
            "The site files trust the program of the analyst (program_trusted), as vertical-likelihood needs. No site "
            "can check it: for real data each owner decides. Shared-product with three sites needs no such trust.",
            err=True,
        )
    made = [
        *(f"{name}.toml" for name in columns),
        *(["model.toml"] if (folder / "model.toml").exists() else []),
    ]
    say(f"Made for a trial: {', '.join(made)} and their keys, in {folder.name}.")
    say(f"Start each site with 'discreet federated serve {folder.name}/NAME.toml'.")


def _limits(given: list[str] | None) -> dict[str, Any]:
    """Read the limits of owners, numbers or lists of names as a site file has them."""
    from discreet.federated.site_rules import limit_of

    return {
        name: limit_of(name, ",".join(parts))
        for name, parts in options.named_columns(given, "--limit").items()
    }
