"""A small page on this machine where a checker accepts, rejects or asks, and the register of these decisions.

It listens on the loopback address only. The address holds a random token, so that other users of the machine and pages
in other tabs cannot find it; a decision also needs the token of the form, and a request whose Host or Origin is not
this server is refused. Nothing is loaded from elsewhere. Decisions go to a hash-chained register beside the package.
"""

from __future__ import annotations

import datetime
import hmac
import secrets
import threading
import urllib.parse
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.files.journals import add_link, alone_with, check_chain, read_chain
from discreet.outputs.package import Package

_HOST = "127.0.0.1"
_LARGEST_FORM = 64 * 1024


def register_of(package: str | Path) -> Path:
    """Return where the decisions on a package are kept: beside it, so that the package stays as it is."""
    path = Path(package).absolute()
    return path.with_name(f"{path.name}{REGISTER_ENDING}")


def review(
    package: str | Path,
    port: int = 0,
    *,
    checker: str = "",
    wait: bool = True,
    announce: Any = print,
) -> Reviewer:
    """Serve the page of a checker for a package.

    Parameters
    ----------
    package
        A folder or zip that a session wrote, or a result folder of ACRO.
    port
        Port on this machine; a free one unless given.
    checker
        Name to put into the forms.
    wait
        Whether to serve until interrupted (Ctrl+C); else return at once, and ``close()`` ends it.
    announce
        The function that is called with the address.
    """
    if not 0 <= port <= 65535:
        raise ParameterError("port must lie between 0 (any free one) and 65535.")
    reviewer = Reviewer(Path(package), port, checker=checker)
    announce(f"Open {reviewer.url}")
    if wait:
        announce(f"Decisions go to {reviewer.register}. Press Ctrl+C to end.")
        try:
            reviewer.wait()
        except KeyboardInterrupt:
            announce("Ended.")
        finally:
            reviewer.close()
    return reviewer


class Reviewer:
    """The running page: ``url``, ``register``, ``close()``."""

    def __init__(self, path: Path, port: int = 0, *, checker: str = "") -> None:
        self.package = Package.load(path)
        self.register = register_of(path)
        verify_register(self.register)
        self.checker = checker
        self._token = secrets.token_urlsafe(24)
        self.form_token = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        try:
            self._server = _Server((_HOST, port), _handler(self))
        except OSError as error:
            raise ParameterError(
                f"Port {port} cannot be used: {error.strerror}. Leave it out for a free one."
            ) from error
        # Closing waits until the server looks up from its work: at the latest after this many seconds.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address, with its token."""
        return f"http://{_HOST}:{self.port}/{self._token}/"

    def __enter__(self) -> Reviewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self) -> None:
        """Serve until interrupted."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.5)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def knows(self, path: str) -> bool:
        """Whether an address holds the token."""
        return hmac.compare_digest(path.strip("/").split("/")[0].encode(), self._token.encode())

    def is_here(self, host: str) -> bool:
        """Whether a request was sent to this server and not through another name."""
        return host in (f"{_HOST}:{self.port}", f"localhost:{self.port}")

    def is_own(self, origin: str) -> bool:
        """Whether a form comes from a page of this server: the same scheme, name and port, and nothing else."""
        scheme, _, host = origin.partition("://")
        return scheme == "http" and self.is_here(host)

    def decide(self, form: dict[str, str]) -> str:
        """Enter a decision; return what to tell the checker."""
        output = self.package[form.get("output", "")]
        with self._lock:
            entry = append_decision(
                self.register,
                output=str(output["name"]),
                decision=form.get("decision", ""),
                checker=form.get("checker", ""),
                note=form.get("note", ""),
                about={"status": output["status"], "package": self.package.checksum},
            )
        self.checker = entry["checker"]
        return f"{entry['output']}: {entry['decision']}. Last hash of the register: {entry['hash']}"

    def page(self, nonce: str, message: str = "") -> str:
        """Write the page as it is now."""
        from discreet.report.short_reports import review_page

        return review_page(
            self.package,
            latest(self.register),
            form_token=self.form_token,
            nonce=nonce,
            checker=self.checker,
            message=message,
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # the default of 5 makes a caller wait for seconds behind a few that say nothing

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a caller that hangs up is no news, and a trace would show what the package holds."""


def _handler(reviewer: Reviewer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "discreet"
        sys_version = ""
        timeout = 30

        def do_GET(self) -> None:
            if self._refused():
                return
            tail = urllib.parse.urlsplit(self.path).path.strip("/").split("/")[1:]
            if tail not in ([], [""]):
                self._answer(HTTPStatus.NOT_FOUND, "There is nothing here.")
                return
            self._show()

        def do_POST(self) -> None:
            if self._refused():
                return
            origin = self.headers.get("Origin")
            if origin is not None and not reviewer.is_own(origin):
                self._answer(HTTPStatus.FORBIDDEN, "The form comes from another page.")
                return
            length = self.headers.get("Content-Length", "")
            kind = self.headers.get("Content-Type", "").split(";")[0].strip()
            if (
                not (
                    length.isascii() and length.isdecimal()
                )  # a superscript two is a digit to Python as well
                or len(length) > len(str(_LARGEST_FORM))
                or int(length) > _LARGEST_FORM
                or kind != "application/x-www-form-urlencoded"
            ):
                self._answer(HTTPStatus.BAD_REQUEST, "The form cannot be read.")
                return
            body = self.rfile.read(int(length)).decode("utf-8", "replace")
            form = {name: values[0] for name, values in urllib.parse.parse_qs(body).items()}
            if not hmac.compare_digest(form.get("token", "").encode(), reviewer.form_token.encode()):
                self._answer(HTTPStatus.FORBIDDEN, "The form is not from this page. Open it again.")
                return
            try:
                message = reviewer.decide(form)
            except DiscreetError as error:
                self._show(str(error), HTTPStatus.BAD_REQUEST)
                return
            self._show(message)

        def _refused(self) -> bool:
            if not reviewer.is_here(self.headers.get("Host", "")):
                self._answer(HTTPStatus.FORBIDDEN, "Open the page by the address that was printed.")
                return True
            if not reviewer.knows(urllib.parse.urlsplit(self.path).path):
                self._answer(HTTPStatus.NOT_FOUND, "There is nothing here.")
                return True
            return False

        def _show(self, message: str = "", status: HTTPStatus = HTTPStatus.OK) -> None:
            nonce = secrets.token_urlsafe(16)
            try:
                content = reviewer.page(nonce, message)
            except DiscreetError as error:  # the register was damaged meanwhile
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
                return
            self._answer(status, content, nonce=nonce, kind="text/html")

        def _answer(
            self, status: HTTPStatus, text: str, *, nonce: str = "none", kind: str = "text/plain"
        ) -> None:
            content = text.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header(
                "Content-Security-Policy",
                f"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; form-action 'self'; base-uri 'none'; "
                "frame-ancestors 'none'",
            )
            for name, value in (
                ("X-Content-Type-Options", "nosniff"),
                ("X-Frame-Options", "DENY"),
                ("Referrer-Policy", "no-referrer"),
                ("Cache-Control", "no-store"),
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep addresses, which hold the token, out of any log."""

    return Handler


# Decisions go to a register, one line of JSON each, whose lines follow each other in a chain.


DECISIONS = ("accept", "reject", "ask")
REGISTER_ENDING = ".decisions.jsonl"


def append_decision(
    path: str | Path,
    *,
    output: str,
    decision: str,
    checker: str,
    note: str = "",
    about: Mapping[str, Any] | None = None,
    now: datetime.datetime | None = None,
) -> dict[str, Any]:
    """Write one decision to the register and return it.

    Parameters
    ----------
    path
        The register; made where it is not there.
    output
        Name of the output.
    decision
        ``accept``, ``reject`` or ``ask``.
    checker
        Who decided.
    note
        Why, or the question. Only an output that is known to pass is accepted without one.
    about
        More that belongs to it: status of the output, checksum of the package. Where the package lies beside the
        register, it says what the status is.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> passed = {"status": "pass"}
    >>> _ = append_decision(file, output="output_1", decision="accept", checker="A. Checker", about=passed)
    >>> verify_register(file)
    1
    >>> append_decision(file, output="output_2", decision="accept", checker="A. Checker", about={"status": "fail"})
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: Say why it is accepted although its status is 'fail': note must not be empty.
    """
    if decision not in DECISIONS:
        raise ParameterError(f"decision is one of {', '.join(DECISIONS)}.")
    if not checker.strip():
        raise ParameterError("checker must say who decides.")
    file = Path(path)
    known = dict(about or {})
    stated = _status_beside(file, output)
    if stated is not None:
        known["status"] = stated
    if not note.strip():
        _require_reason(decision, known.get("status"))
    with alone_with(file):
        before = read_decisions(file)
        verify_register(file)
        moment = now or datetime.datetime.now(datetime.UTC)
        told = {
            "time": moment.isoformat(timespec="seconds"),
            "output": output,
            "decision": decision,
            "checker": checker.strip(),
            "note": note.strip(),
        }
        return add_link(file, before, told | known)


def _require_reason(decision: str, status: object) -> None:
    """Refuse a decision without a reason; what passes every check needs none to be accepted."""
    if decision != "accept":
        raise ParameterError("Say why it is rejected, or what the question is: note must not be empty.")
    if status is None:
        raise ParameterError(
            "Nothing says that the output passes: say why it is accepted (note), or give its status (about)."
        )
    if status != "pass":
        raise ParameterError(
            f"Say why it is accepted although its status is '{status}': note must not be empty."
        )


def _status_beside(register: Path, output: str) -> str | None:
    """Read the status of an output from the package that the register belongs to; None where there is none."""
    package = register.with_name(register.name.removesuffix(REGISTER_ENDING))
    if package == register or not package.exists():
        return None
    return str(Package.load(package)[output]["status"])


def read_decisions(path: str | Path) -> list[dict[str, Any]]:
    """Read the register without verifying it; empty where there is none yet."""
    return read_chain(Path(path), what="decision")


def verify_register(path: str | Path, *, last: str | None = None) -> int:
    """Verify the chain and return how many decisions it holds; refuse a register that was tampered with.

    Parameters
    ----------
    path
        The register.
    last
        The hash of the last decision, where somebody noted it: shows that lines were cut off at the end, which a chain
        alone cannot.
    """
    entries = read_decisions(path)
    check_chain(entries, Path(path).name, what="decision")
    if last is not None and (not entries or entries[-1]["hash"] != last):
        raise InputError(f"The register '{Path(path).name}' does not end with the decision that was noted.")
    return len(entries)


def latest(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return the last decision on every output."""
    return {str(entry["output"]): entry for entry in read_decisions(path)}
