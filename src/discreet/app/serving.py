"""Start the page on this machine: one server, one browser, closed by itself when nobody is there."""

from __future__ import annotations

import asyncio
import os
import socket
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.app.desk import Desk, PrivateFolder
from discreet.app.guard import ENDED, LOCKED, Direct, Door, Guard
from discreet.core.errors import ParameterError, load_extra

LOOPBACK = "127.0.0.1"
PASSWORD = "DISCREET_APP_PASSWORD"
_SHORTEST_PASSWORD = 12
_FAREWELL = 1.0  # seconds in which windows go to their last page


def serve(
    file: str | None = None,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    allow_network: bool = False,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    largest_upload: int = 2048,
    idle: float = 60.0,
    show: bool = True,
    announce: Callable[[str], Any] = print,
) -> None:
    """Serve the page until it is ended with Ctrl+C.

    Parameters
    ----------
    file
        A data file, the address of a database, or a project file to begin with.
    host, port
        Where it listens: this machine only, on a free port. Another host is refused unless ``allow_network``, a
        certificate with its key, and a password in the environment variable ``DISCREET_APP_PASSWORD`` are given.
    largest_upload
        Size of the largest file that may be dropped on the page, in megabytes. A file that lies on this machine is
        opened in its place and has no limit.
    idle
        Minutes without use after which the page is locked; what was done on it stays.
    show
        Whether to open the browser.
    announce
        What is told the address.
    """
    _report_to_nobody()
    load_extra("nicegui", extra="app", purpose="The page")
    password = _checked(
        host,
        port,
        allow_network=allow_network,
        certificate=tls_certificate,
        key=tls_key,
        largest_upload=largest_upload,
        idle=idle,
    )
    port = port or _free_port(host)
    with PrivateFolder() as folder:
        _keep_inside(folder.path)
        door = Door(
            hosts=_names(host, port),
            scheme="https" if tls_certificate else "http",
            password=password,
            largest_upload=largest_upload * 1024**2,
            announce=announce,
        )
        desk = Desk(folder, door)
        if file:
            desk.begin(file)
        certificate = (
            {"ssl_certfile": str(tls_certificate), "ssl_keyfile": str(tls_key)} if tls_certificate else {}
        )
        run(desk, host, port, idle=idle * 60, show=show, **certificate)
    announce("Ended. Uploads are removed.")


def run(desk: Desk, host: str, port: int, *, idle: float, show: bool, **certificate: str) -> None:
    """Run the server for a desk until it is interrupted."""
    from nicegui import app, background_tasks, core, ui

    from discreet.app.frame import root_of

    app.add_static_files("/assets", Path(__file__).parent / "assets")
    app.add_middleware(Guard, door=desk.door)
    app.on_startup(lambda: background_tasks.create(_opened(desk, host, port, show=show)))
    app.on_startup(lambda: _outermost(app))
    app.on_shutdown(desk.close)
    app.timer(5.0, lambda: _lock_when_idle(desk, idle))
    core.sio.eio.cors_allowed_origins = []  # the guard compares origins before a socket is reached
    ui.run(
        root_of(desk),
        host=host,
        port=port,
        title="discreet",
        favicon=Path(__file__).parent / "assets" / "mark.svg",
        dark=None,
        language="en-US",
        reload=False,
        show=False,
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        reconnect_timeout=30.0,
        uvicorn_logging_level="error",
        access_log=False,
        proxy_headers=False,
        **certificate,
    )


def _outermost(app: Any) -> None:
    """Put what must come first before the middlewares that the library adds behind our back when it starts."""
    app.middleware_stack = None
    app.add_middleware(Direct)


async def end(desk: Desk) -> None:
    """End the page for good: all work, what was uploaded, and the server, once every window has been told."""
    from nicegui import Client, app

    for client in list(Client.instances.values()):
        client.open(ENDED)
    desk.door.session = None
    desk.close()
    await asyncio.sleep(_FAREWELL)
    app.shutdown()


async def _opened(desk: Desk, host: str, port: int, *, show: bool) -> None:
    """Tell the address, and open the browser, as soon as somebody would be let in there."""
    here = LOOPBACK if host in ("0.0.0.0", "localhost") else host
    while True:
        try:
            _, writer = await asyncio.open_connection(here, port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        break
    desk.door.announce(f"Open {desk.door.address}")
    desk.door.announce("The address works once. Uploads are removed when this ends. Press Ctrl+C to end.")
    if show:
        webbrowser.open(desk.door.address)


def _lock_when_idle(desk: Desk, idle: float) -> None:
    if desk.door.session is None or desk.busy or time.monotonic() - desk.door.used < idle:
        return
    from nicegui import Client

    for client in Client.instances.values():
        client.open(LOCKED)
    desk.mask()
    desk.door.lock()


def _checked(
    host: str,
    port: int,
    *,
    allow_network: bool,
    certificate: Path | None,
    key: Path | None,
    largest_upload: int,
    idle: float,
) -> str | None:
    """Refuse what would open the page to others, unless all that protects it is there; return the password."""
    if not 0 <= port <= 65535:
        raise ParameterError("--port must lie between 0 (any free one) and 65535.")
    if not 1 <= largest_upload <= 1_000_000:
        raise ParameterError("--max-upload is a number of megabytes between 1 and 1,000,000.")
    if not 1 <= idle <= 1440:
        raise ParameterError("--idle is a number of minutes between 1 and 1440.")
    if (certificate is None) != (key is None):
        raise ParameterError("--tls-certificate and --tls-key belong together: give both.")
    for option, path in (("--tls-certificate", certificate), ("--tls-key", key)):
        if path is not None and not path.is_file():
            raise ParameterError(f"{option}: there is no file '{path.name}'.")
    if is_loopback(host):
        return os.environ.get(PASSWORD) or None
    if not allow_network:
        raise ParameterError(
            f"--host {host} would open the page to other machines. Leave it out, or add --allow-network with a "
            f"certificate (--tls-certificate, --tls-key) and a password in {PASSWORD}."
        )
    if certificate is None:
        raise ParameterError(
            "--allow-network needs --tls-certificate and --tls-key: data would travel unprotected."
        )
    password = os.environ.get(PASSWORD, "")
    if len(password) < _SHORTEST_PASSWORD:
        raise ParameterError(
            f"--allow-network needs a password of at least {_SHORTEST_PASSWORD} characters in the environment variable "
            f"{PASSWORD}."
        )
    return password


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("10.1.2.3")
    (True, True, False, False)
    """
    return host in (LOOPBACK, "localhost", "::1")


def _names(host: str, port: int) -> tuple[str, ...]:
    if is_loopback(host):
        return (f"{LOOPBACK}:{port}", f"localhost:{port}")
    told = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return tuple(dict.fromkeys((f"{told}:{port}", f"{host}:{port}")))


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            raise ParameterError(f"--host {host} cannot be used: {error.strerror}.") from error
        return int(probe.getsockname()[1])


def _report_to_nobody() -> None:
    """Keep the server below from reporting requests, whatever the environment asks of other programs.

    It can export traces to a collector that the environment names, and an address with its one-time token is part of
    them. It looks when it is imported, so this comes before.
    """
    os.environ["OTEL_SDK_DISABLED"] = "true"
    os.environ["FASTAPI_OTEL_AUTO_CONFIGURE"] = "false"


def _keep_inside(folder: Path) -> None:
    """Let everything that is spooled on its way in lie in the private folder, and nothing of it elsewhere."""
    import tempfile

    incoming = folder / "incoming"
    incoming.mkdir(mode=0o700)
    tempfile.tempdir = str(incoming)
    for name in ("TMPDIR", "TEMP", "TMP"):  # what workers leave when they are killed goes with it, too
        os.environ[name] = str(incoming)
    os.environ["NICEGUI_STORAGE_PATH"] = str(folder / "storage")
