"""``discreet federated serve``: a site answers over HTTPS, to analysts whose certificate its authority vouches for.

For trials on one machine a site runs in a process of its own: ``python -m discreet.federated.site_server``.
"""

from __future__ import annotations

import ssl
import sys
from typing import Any

from discreet.core.errors import DiscreetError, InputError, load_extra
from discreet.federated.remote_transport import read_frame, refuse_old, write_frame
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site, opened_site


def application(site: Site) -> Any:
    """Make the web application of a site."""
    responses = load_extra("starlette.responses", extra="federated", purpose="Serving a site")
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def messages(request: Any) -> Any:
        analyst = request.scope.get("peer_name", "")
        try:
            # Who may ask and how much is known from the connection: nothing is read of anybody or anything else.
            site.admit(analyst, _announced(request))
            data = bytearray()
            async for piece in request.stream():
                data += piece
                site.check_size(len(data))
            for run in filter(None, request.headers.get("x-ended", "").split(",")):
                site.forget(run)
            answer = site.answer(bytes(data), analyst)
        except DiscreetError as error:
            return responses.JSONResponse({"error": str(error)}, status_code=403)
        except Exception as error:
            # What went wrong inside may hold data: the analyst is told that it did, and the log which kind it was.
            site.note("failed", analyst, type(error).__name__)
            return responses.JSONResponse(
                {"error": f"Something went wrong inside '{site.name}'."}, status_code=500
            )
        return responses.Response(answer, media_type="application/octet-stream")

    return Starlette(routes=[Route("/messages", messages, methods=["POST"])])


def _announced(request: Any) -> int:
    """How many bytes a request says it has; one that does not say is counted while it is read."""
    told = request.headers.get("content-length", "0")
    return int(told) if told.isdecimal() and len(told) < 20 else 0


def serve(file: SiteFile) -> None:
    """Answer until the process is ended."""
    uvicorn = load_extra("uvicorn", extra="federated", purpose="Serving a site")
    for path, what in ((file.certificate, "certificate"), (file.key, "key"), (file.authority, "authority")):
        if not path.is_file():
            raise InputError(f"The {what} '{path.name}' of the site is not there.")
    refuse_old(file.certificate, f"'{file.name}'")
    with opened_site(file) as site:
        config = uvicorn.Config(
            application(site), host=file.host, port=file.port, http=_with_peer_name(), ws="none", lifespan="off",
            log_level="warning", access_log=False, server_header=False, date_header=False,
            ssl_certfile=str(file.certificate), ssl_keyfile=str(file.key), ssl_ca_certs=str(file.authority),
            ssl_cert_reqs=ssl.CERT_REQUIRED,
        )  # fmt: skip
        site.warm_up()
        site.note("started", file.name, f"listening on {file.host}:{file.port}")
        uvicorn.Server(config).run()


def _with_peer_name() -> Any:
    """Let the application know the name in the certificate of whoever asks, which the server keeps to itself."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            inner: Any = getattr(self, "app")  # noqa: B009
            name = _common_name(transport.get_extra_info("peercert"))

            async def named(scope: Any, receive: Any, send: Any) -> None:
                scope["peer_name"] = name
                await inner(scope, receive, send)

            self.app = named

    return Protocol


def _common_name(certificate: Any) -> str:
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""


# A site in a process of its own on this machine: frames come on stdin, answers go to stdout.


def main() -> None:
    """Answer until nobody asks any more."""
    with opened_site(SiteFile.read(sys.argv[1]), networked=False) as site:
        _answer(site, sys.argv[2])


def _answer(site: Site, analyst: str) -> None:
    asking, answering = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            ended, data = read_frame(asking).decode(), read_frame(asking)
        except EOFError:
            return
        for run in filter(None, ended.split(",")):
            site.forget(run)
        try:
            answer = site.answer(data, analyst)
        except DiscreetError as error:
            write_frame(answering, b"refused")
            write_frame(answering, str(error).encode())
        else:
            write_frame(answering, b"ok")
            write_frame(answering, answer)


if __name__ == "__main__":
    main()
