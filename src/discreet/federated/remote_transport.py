"""Reaching sites that are not here: envelopes go out, envelopes come back, and those between sites stay sealed.

`SitesOnNetwork` speaks HTTPS with certificates on both sides; `SitesInProcesses` starts a process for each site on this
machine. The coordinator is here; it sees the outside of what it relays, and never its contents. A certificate that is
out of date is refused before it is shown to anybody.
"""

from __future__ import annotations

import datetime
import ssl
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, InputError, ParameterError, load_extra
from discreet.federated.envelopes import Envelope, packed, put_in, unpacked
from discreet.federated.messages import MOST_BYTES, Message, ProtocolError, strict_json
from discreet.federated.parties import Transport
from discreet.federated.site_rules import SiteFile
from discreet.federated.sites import Site, opened_site

_LENGTH = struct.Struct(">I")


class RemoteTransport(Transport):
    """Carries messages to sites elsewhere; how is said by those who inherit."""

    max_bytes = MOST_BYTES  # of one answer

    def __init__(self, sites: Sequence[str]) -> None:
        super().__init__()
        self._sites = tuple(sites)
        self._number = 0
        self._ended: dict[str, list[str]] = {site: [] for site in sites}

    @property
    def names(self) -> Sequence[str]:
        """Who can be reached."""
        return (*self._here, *self._sites)

    def note(self, message: Any) -> None:
        """Enter a message, or the outside of one that is sealed."""
        if isinstance(message, Envelope):
            self.transcript.enter(message.passed)
        else:
            super().note(message)

    def deliver(self, batch: Sequence[Any]) -> list[Any]:
        """Hand messages to a party here, or send them to a site and take what it answers."""
        receiver = batch[0].receiver
        if receiver in self._here:
            opened = [one.opened() if isinstance(one, Envelope) else one for one in batch]
            return super().deliver(opened)
        if receiver not in self._sites:
            raise ProtocolError(f"There is no site '{receiver}' to be reached.")
        envelopes = [one if isinstance(one, Envelope) else self._enveloped(one) for one in batch]
        ended, self._ended[receiver] = self._ended[receiver], []
        replies = unpacked(self._post(receiver, packed(envelopes), ended))
        if any(reply.outside["sender"] != receiver for reply in replies):
            raise ProtocolError(f"'{receiver}' answered in the name of somebody else. The run was ended.")
        return replies

    def forget(self, run: str) -> None:
        """Let parties here forget a run at once, and sites with the next message that they get."""
        super().forget(run)
        for ended in self._ended.values():
            ended.append(run)

    def close(self) -> None:
        """End the connections."""

    def __enter__(self) -> RemoteTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enveloped(self, message: Message) -> Envelope:
        self._number += 1
        return put_in(message, self._number)

    def _post(self, site: str, data: bytes, ended: Sequence[str]) -> bytes:
        raise TypeError("A transport says how it posts.")


class SitesOnNetwork(RemoteTransport):
    """Sites that run ``discreet federated serve``, over HTTPS with certificates on both sides.

    Parameters
    ----------
    sites
        ``{site: address}``, addresses with https.
    certificate, key
        Of the analyst.
    authority
        The certificate of whoever vouches for the sites.
    timeout
        Seconds after which a site counts as silent.
    """

    def __init__(
        self, sites: Mapping[str, str], *, certificate: str | Path, key: str | Path, authority: str | Path,
        timeout: float = 60.0,
    ) -> None:  # fmt: skip
        super().__init__(list(sites))
        httpx = load_extra("httpx", extra="federated", purpose="Reaching sites over a network")
        for site, address in sites.items():
            if not address.startswith("https://"):
                raise ParameterError(
                    f"The address of '{site}' must begin with https://: nothing travels unencrypted."
                )
        refuse_old(Path(certificate), "the analyst")
        try:
            context = ssl.create_default_context(cafile=str(authority))
            context.load_cert_chain(str(certificate), str(key))
        except (OSError, ssl.SSLError) as error:
            raise InputError("The certificate, key or authority of the analyst cannot be read.") from error
        self._addresses = {site: address.rstrip("/") for site, address in sites.items()}
        self._errors = httpx
        self._client = httpx.Client(verify=context, timeout=timeout, trust_env=False)

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _post(self, site: str, data: bytes, ended: Sequence[str]) -> bytes:
        headers = {"content-type": "application/octet-stream", "x-ended": ",".join(ended[-100:])}
        try:
            with self._client.stream(
                "POST", f"{self._addresses[site]}/messages", content=data, headers=headers
            ) as answer:
                told = bytearray()
                for piece in answer.iter_raw():
                    told += piece
                    if len(told) > self.max_bytes:
                        raise ProtocolError(
                            f"'{site}' answers with more than {self.max_bytes:,} bytes. The run was ended."
                        )
        except self._errors.TimeoutException as error:
            raise ProtocolError(
                f"'{site}' does not answer in time. Nothing was computed; begin again later."
            ) from error
        except self._errors.HTTPError as error:
            reason = str(error).lower()
            if "certificate" in reason or "ssl" in reason or "tls" in reason:
                raise ProtocolError(
                    f"'{site}' cannot be trusted, or does not trust this analyst: a certificate is missing, out of "
                    "date or from another authority."
                ) from error
            raise ProtocolError(
                f"'{site}' cannot be reached. Nothing was computed; begin again when it is back (evaluations that were "
                "made are kept where a file is named for them)."
            ) from error
        if answer.status_code == 200:
            return bytes(told)
        raise ProtocolError(_refusal(answer.status_code, bytes(told), site))


class SitesInProcesses(RemoteTransport):
    """Sites of this machine, each in a process of its own that reads its own ``site.toml``.

    Parameters
    ----------
    files
        The site files.
    analyst
        The name under which the analyst asks; the files must allow it.
    """

    def __init__(self, files: Sequence[str | Path], *, analyst: str = "analyst") -> None:
        from discreet.federated.site_rules import SiteFile

        named = {SiteFile.read(file).name: Path(file) for file in files}
        super().__init__(list(named))
        self._started = {
            name: subprocess.Popen(
                [sys.executable, "-m", "discreet.federated.remote_transport", str(file), analyst],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for name, file in named.items()
        }  # fmt: skip

    def close(self) -> None:
        """End the processes."""
        for process in self._started.values():
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _post(self, site: str, data: bytes, ended: Sequence[str]) -> bytes:
        process = self._started[site]
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_frame(process.stdin, ",".join(ended).encode())
            write_frame(process.stdin, data)
            status, answer = read_frame(process.stdout), read_frame(process.stdout)
        except (OSError, EOFError) as error:
            raise ProtocolError(f"The process of '{site}' has ended. Nothing was computed.") from error
        if status == b"ok":
            return answer
        raise ProtocolError(answer.decode("utf-8", errors="replace"))


def write_frame(file: Any, data: bytes) -> None:
    """Write bytes with their length before them."""
    file.write(_LENGTH.pack(len(data)))
    file.write(data)
    file.flush()


def read_frame(file: Any) -> bytes:
    """Read bytes with their length before them."""
    head = file.read(4)
    if len(head) < 4:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > MOST_BYTES:
        raise EOFError
    data = bytes(file.read(length))
    if len(data) < length:
        raise EOFError
    return data


def _refusal(status: int, told: bytes, site: str) -> str:
    try:
        reason = str(strict_json(told)["error"])
    except (ValueError, KeyError, TypeError):
        reason = f"'{site}' answered with the status {status}."
    return reason[:500]


def refuse_old(path: Path, whose: str) -> None:
    """Refuse a certificate that is out of date, or not yet good."""
    x509 = load_extra("cryptography.x509", extra="federated", purpose="Reading certificates")

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"The certificate of {whose} cannot be read.") from error
    now = datetime.datetime.now(datetime.UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise InputError(
            f"The certificate of {whose} holds from {certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}, and not today. Get a new one from the authority."
        )


# A site answers
#
# Over HTTPS, to analysts whose certificate its authority vouches for. For trials on one machine a site runs in a
# process of its own: ``python -m discreet.federated.remote_transport``.


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
