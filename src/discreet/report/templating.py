"""The templates of the pages: what they may use, and the one script that may run on them."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.report.plots import chart_svg

if TYPE_CHECKING:
    from jinja2 import Environment

    from discreet.core.charts import Chart


def rendered(template: str, **parts: Any) -> str:
    """Fill a template; its script, style and pictures come along."""
    script = environment().get_template("script.js").render()
    return (
        environment()
        .get_template(template)
        .render(
            script=_safe(script),
            # Only this very script may run, so that a column name can never become one.
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **parts,
        )
    )


def written_page(path: str | Path, page: str) -> Path:
    """Write a page whole or not at all and return its path; an older one there is replaced."""
    from discreet.core.files.atomic import replacing
    from discreet.io.naming import check_no_data

    check_no_data(Path(path), "a report")
    with replacing(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    return Path(path)


@cache
def environment() -> Environment:
    """Return the templates; whatever is put into them is escaped, and a slip in a name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("discreet.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["picture"] = _picture
    templates.filters["unbroken"] = _unbroken
    return templates


def _picture(chart: Chart, name: str) -> Any:
    return _safe(chart_svg(chart, name=name))


def _unbroken(text: str) -> str:
    """Keep a percent sign on the line of its number."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
