"""Who may talk to the page? One browser, by an address that works once, from no other page.

Before anything else sees a request, it is asked four things: was it sent to this server by its own name (a page
elsewhere may have had its name point here)? Does it hold the cookie that the one-time address set? Does it come from
a page of this server? Is it of a size that was allowed? What goes back says what a browser may run: the scripts of the
page itself, marked one by one, and none that a file name, a column name or a value could turn into.
"""

from __future__ import annotations

import hmac
import html
import re
import secrets
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

ENTER, LOCKED, ENDED = "/enter/", "/locked", "/ended"
_MOST_TRIES = 5
_LARGEST_FORM = 16 * 1024
_SCRIPT = re.compile(rb"<script(?=[ >])")
# What a proxy would say of the request it passed on. There is none before this page: whoever says it made it up, and
# what draws the page believes it and writes it into the addresses of its own scripts.
_FORWARDED = re.compile(
    rb"(?:x-)?forwarded|x-script-name|x-original-|x-rewrite-|x-real-ip|x-(?:url-)?scheme|x-host|front-end-https|"
    rb"x-http-method|x-method-override|x-proxy-"
)
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;"
    "color:#1b2733;background:#fff}"
    "input,button{font:inherit;padding:.5rem .8rem}label{display:block;margin:1rem 0 .3rem}"
    "@media (prefers-color-scheme:dark){body{background:#12181e;color:#e6ebef}}"
)
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
Scope = MutableMapping[str, Any]


@dataclass
class Door:
    """What opens the page: names, tokens, limits, and when it was last used."""

    hosts: tuple[str, ...]
    scheme: str = "http"
    password: str | None = None
    largest_upload: int = 2 * 1024**3
    announce: Callable[[str], Any] = lambda _: None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str | None = None
    used: float = field(default_factory=time.monotonic)
    tries: int = 0

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers do not tell ports apart: two pages need two names."""
        return f"discreet_page_{self.hosts[0].rpartition(':')[2]}"

    @property
    def address(self) -> str:
        """The address to open, good for one browser once."""
        return f"{self.scheme}://{self.hosts[0]}{ENTER}{self.token}"

    def enter(self, token: str, password: str | None) -> str | None:
        """Spend the token; return the new session, or None where it does not fit."""
        fits = hmac.compare_digest(token.encode(), self.token.encode())
        if self.password is not None:
            fits &= hmac.compare_digest((password or "").encode(), self.password.encode())
        if not fits:
            self.tries += 1
            if self.tries >= _MOST_TRIES:
                self._renew("Somebody tried to open the page with a wrong password. The new address is")
            return None
        self.session = secrets.token_urlsafe(32)
        self._renew("To open the page in another browser (this one is then closed):")
        self.touch()
        return self.session

    def lock(self) -> None:
        """Close the page to whoever has it open; what was done on it stays."""
        self.session = None
        self._renew("The page was locked because nobody used it. Open it again at")

    def _renew(self, words: str) -> None:
        self.tries = 0
        self.token = secrets.token_urlsafe(32)
        self.announce(f"{words} {self.address}")

    def touch(self) -> None:
        """Note that somebody is there."""
        self.used = time.monotonic()

    def knows(self, cookie: str) -> bool:
        """Whether a cookie is that of the browser that entered."""
        return self.session is not None and hmac.compare_digest(cookie.encode(), self.session.encode())

    def is_own(self, origin: str) -> bool:
        """Whether an origin is this server: the same scheme, name and port."""
        scheme, _, host = origin.partition("://")
        return scheme == self.scheme and host in self.hosts


class Guard:
    """The middleware that asks."""

    def __init__(self, app: Any, door: Door) -> None:
        self.app = app
        self.door = door

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        scope = _direct(scope)
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refused(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
        elif scope["type"] == "http" and scope["path"].startswith(ENTER):
            await self._enter(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == LOCKED:
            await _answer(send, 200, _paper("The page is locked", _LOCKED_WORDS))
        elif scope["type"] == "http" and scope["path"] == ENDED:
            await _answer(send, 200, _paper("The page has ended", _ENDED_WORDS))
        elif not self.door.knows(_cookie(headers, self.door.cookie)):
            await _refuse(
                scope, send, 403, "This page opens by the address in the terminal where it was started."
            )
        elif scope["type"] == "websocket":
            await self._talk(scope, receive, send)
        else:
            await self._pass(scope, receive, send, headers)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if headers.get("host", "") not in self.door.hosts:
            return 403, "Open the page by the address that was printed."
        origin = headers.get("origin")
        if origin is not None and not self.door.is_own(origin):
            return 403, "The request comes from another page."
        changes = scope["type"] == "websocket" or scope.get("method") not in ("GET", "HEAD")
        if changes and origin is None:
            return 403, "The request does not say which page it comes from."
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not (
            headers.get("sec-fetch-mode") == "navigate" and scope["path"].startswith(ENTER)
        ):
            return 403, "The request comes from another page."
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdecimal() and len(length) < 16):
            return 400, "The request cannot be read."
        if length is not None and int(length) > self.door.largest_upload:
            return 413, self._too_large()
        return None

    def _too_large(self) -> str:
        return f"The file is larger than this page takes ({self.door.largest_upload // 1024**2:,} MB)."

    async def _enter(self, scope: Scope, receive: Any, send: Any) -> None:
        token = scope["path"][len(ENTER) :].strip("/")
        if self.door.password is not None and scope["method"] == "GET":
            form = (
                "<form method='post'><label for='p'>Password</label><input id='p' name='password' type='password' "
                "autocomplete='current-password' required> <button>Open</button></form>"
            )
            await _answer(send, 200, _paper("Open the page", form, is_html=True))
            return
        password = None
        if scope["method"] == "POST":
            from urllib.parse import parse_qs

            body = await _body(receive, _LARGEST_FORM)
            password = parse_qs((body or b"").decode("utf-8", "replace")).get("password", [""])[0]
        session = self.door.enter(token, password)
        if session is None:
            await _refuse(scope, send, 403, "This address was used before, or is not one of this page. The terminal "
                          "where the page was started shows the one that works.")  # fmt: skip
            return
        secure = "; Secure" if self.door.scheme == "https" else ""
        cookie = f"{self.door.cookie}={session}; Path=/; HttpOnly; SameSite=Strict{secure}"
        await _answer(send, 303, "", more=((b"location", b"/"), (b"set-cookie", cookie.encode("ascii"))))

    async def _talk(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass on what a page and its server say, until the page is locked or opened elsewhere."""
        session = self.door.session

        async def heard() -> Any:
            message = await receive()
            if self.door.session != session:
                return {"type": "websocket.disconnect", "code": 4001}
            text = message.get("text") or ""
            # Pings and receipts go on while nobody is there; anything else is somebody at the page.
            if text.startswith("42") and not text.startswith('42["ack"'):
                self.door.touch()
            return message

        await self.app(scope, heard, send)

    async def _pass(self, scope: Scope, receive: Any, send: Any, headers: dict[str, str]) -> None:
        if "/socket.io" not in scope["path"]:
            self.door.touch()
        taken = 0
        marked = _Marked(send, scope["path"])

        async def counted() -> Any:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.door.largest_upload:  # a body that does not say its length, or lies about it
                return {"type": "http.disconnect"}
            return message

        async def answered(message: dict[str, Any]) -> None:
            if taken <= self.door.largest_upload:
                await marked(message)

        try:
            await self.app(scope, counted, answered)
        except OSError:  # no room for what was on its way: what is spooled goes with the request
            if marked.has_begun:
                raise
            await _refuse(scope, send, 507, "There is not enough room on the disk for a copy.")
        except Exception:
            if taken <= self.door.largest_upload:
                raise
        if taken > self.door.largest_upload and not marked.has_begun:
            await _refuse(scope, send, 413, self._too_large())


class Direct:
    """The middleware before all others, also those of the library: it takes off what only a proxy may say."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass a request on as one that came straight from a browser."""
        await self.app(scope if scope["type"] == "lifespan" else _direct(scope), receive, send)


def _direct(scope: Scope) -> Scope:
    kept = [
        (name, value)
        for name, value in scope["headers"]
        if not _FORWARDED.match(name.lower().replace(b"_", b"-"))
    ]
    return {**scope, "headers": kept, "root_path": ""}


class _Marked:
    """What goes back: headers that bind the browser, and a mark on each script of the page."""

    def __init__(self, send: Any, path: str) -> None:
        self._send = send
        self._is_asset = path.startswith(("/_nicegui/", "/assets/")) and "/client/" not in path
        self._nonce = secrets.token_urlsafe(18)
        self._start: dict[str, Any] | None = None
        self._body = b""
        self.has_begun = False

    async def __call__(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            kept = [
                (name, value)
                for name, value in message["headers"]
                if name.lower() not in (b"content-security-policy", b"server")
            ]
            kind = next((value for name, value in kept if name.lower() == b"content-type"), b"")
            kept += [*_HEADERS, (b"content-security-policy", policy(self._nonce).encode("ascii"))]
            if not self._is_asset:
                kept = [(name, value) for name, value in kept if name.lower() != b"cache-control"]
                kept.append((b"cache-control", b"no-store"))
            message = {**message, "headers": kept}
            if kind.startswith(b"text/html"):
                self._start = message
                return
            await self._send(message)
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            body = _SCRIPT.sub(b'<script nonce="' + self._nonce.encode("ascii") + b'"', self._body)
            headers = [(n, v) for n, v in self._start["headers"] if n.lower() != b"content-length"]
            headers.append((b"content-length", str(len(body)).encode("ascii")))
            await self._send({**self._start, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})


def policy(nonce: str) -> str:
    """Return what a browser may load and run: only what this server sends, and only scripts that bear the mark.

    The library that draws the page turns its own templates into functions in the browser, which needs
    ``unsafe-eval``; texts that come from data reach it as texts and are never such templates.
    """
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    )


_LOCKED_WORDS = (
    "Nobody used the page for a while, so it was locked. Nothing is lost: open the new address in the terminal where "
    "the page was started."
)


_ENDED_WORDS = (
    "All work has stopped, and uploads are removed. What was written to folders of your own stays there. You can close "
    "this window; start the page again with: discreet app"
)


def _cookie(headers: dict[str, str], wanted: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return ""


async def _body(receive: Any, most: int) -> bytes | None:
    body = b""
    while True:
        message: dict[str, Any] = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > most or message["type"] == "http.disconnect":
            return None
        if not message.get("more_body"):
            return body


async def _refuse(scope: Scope, send: Any, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 4003})
        return
    await _answer(send, status, _paper("This page stays closed", sentence))


def _paper(heading: str, words: str, *, is_html: bool = False) -> str:
    body = words if is_html else f"<p>{html.escape(words)}</p>"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        f"content='width=device-width, initial-scale=1'><title>discreet</title><style nonce='paper'>{_STYLE}</style>"
        f"</head><body><main><h1>{html.escape(heading)}</h1>{body}</main></body></html>"
    )


async def _answer(send: Any, status: int, text: str, *, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    content = text.encode("utf-8")
    rule = b"default-src 'none'; style-src 'nonce-paper'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(content)).encode("ascii")),
        (b"content-security-policy", rule),
        (b"cache-control", b"no-store"),
        *_HEADERS,
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
