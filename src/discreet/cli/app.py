"""``discreet app [FILE]``: the whole job in a browser, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.printing import say


def open_page(
    file: Annotated[
        str | None,
        typer.Argument(help="A data file, the address of a database, or a project file (.discreet)."),
    ] = None,
    port: Annotated[int, typer.Option("--port", help="Port on this machine; a free one unless given.")] = 0,
    host: Annotated[
        str, typer.Option("--host", help="Where it listens; anything but this machine needs --allow-network.")
    ] = "127.0.0.1",
    allow_network: Annotated[
        bool,
        typer.Option(
            "--allow-network", help="Let other machines in; needs a certificate and DISCREET_APP_PASSWORD."
        ),
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option("--tls-certificate", help="Certificate file (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="Key of the certificate (PEM).")] = None,
    max_upload: Annotated[
        int, typer.Option("--max-upload", help="Largest file that may be dropped on the page, in megabytes.")
    ] = 2048,
    idle: Annotated[
        float, typer.Option("--idle", help="Minutes without use after which the page is locked.")
    ] = 60.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Open the page: from a file to a signed release, in a browser, without writing code."""
    from discreet.app import serve

    serve(
        file,
        host=host,
        port=port,
        allow_network=allow_network,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        largest_upload=max_upload,
        idle=idle,
        show=browser,
        announce=say,
    )
