"""Which address shows which page."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from nicegui import ui
from starlette.requests import Request
from starlette.responses import RedirectResponse

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import BESIDE, JOURNEY, framed

PAGES = tuple(name for name, _ in (*JOURNEY, *BESIDE))


def root_of(desk: Desk) -> Callable[..., Any]:
    """Return the function that draws whatever page an address names."""

    def root(request: Request) -> Any:
        return _routed(desk, request.url.path)

    return root


def _routed(desk: Desk, path: str) -> Any:
    parts = [part for part in path.split("/") if part]
    if not parts:
        if len(desk.journeys) == 1:
            (journey,) = desk.journeys.values()
            return RedirectResponse(f"/{journey.number}/file")
        _show(desk, 0, "file")
        return None
    if (
        len(parts) == 2
        and parts[0].isascii()
        and parts[0].isdecimal()
        and len(parts[0]) < 6
        and parts[1] in PAGES
    ):
        number = int(parts[0])
        if number and number not in desk.journeys:
            return RedirectResponse("/0/file")
        if not number and parts[1] not in ("file", "outputs"):
            return RedirectResponse("/0/file")
        _show(desk, number, parts[1])
        return None
    ui.page_title("Nothing here · discreet")
    ui.add_head_html('<link rel="stylesheet" href="/assets/page.css">')
    widgets.opening("There is nothing here", "The address names no page.")
    widgets.link("To the first page", "/")
    return None


def _show(desk: Desk, number: int, page: str) -> None:
    build = importlib.import_module(f"discreet.app.budget_page.{page}_page").build
    framed(desk, desk.journeys.get(number), page, build)
