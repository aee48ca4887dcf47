"""How the manual is built; the method pages come from the docstrings."""

from pathlib import Path

from discreet import __version__
from discreet.core.cards import card_of
from discreet.core.method_cards import method_card
from discreet.workflow.catalog import catalog

project = "discreet"
author = "the discreet developers"
project_copyright = "the discreet developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = "discreet"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
default_role = "code"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [
    "How to read it",
    "When not to trust it",
    "What it costs",
    "When not to use it",
]
nitpicky = False


def setup(app):
    """Add what the card of a measure, a treatment or a generator says to its page."""
    app.connect("autodoc-process-docstring", with_card, priority=100)
    app.connect("builder-inited", lambda app: write_published_names(Path(app.srcdir)))


def write_published_names(manual):
    """List under which names others publish what is here, and which works it comes from."""
    listed = catalog()
    names = sorted(
        {(name, entry.name, entry.question) for entry in listed for name in entry.also_known_as},
        key=lambda row: (row[0].lower(), row[1]),
    )
    works = {}
    for entry in listed:
        for work in entry.references:
            works.setdefault(work, []).append(f"`discreet.{entry.name}`")
    lines = [
        "# Published names, and works",
        "",
        "`discreet methods NAME` answers the same on the command line.",
        "",
        "## Under which name you may know it",
        "",
        "| published name | here | the question |",
        "|---|---|---|",
        *(
            f"| {name} | `discreet.{home}` | {question.replace('|', '&#124;')} |"
            for name, home, question in names
        ),
        "",
        "## Where it comes from",
        "",
        *(f"- {work}: {', '.join(homes)}" for work, homes in sorted(works.items())),
        "",
    ]
    (manual / "reference" / "published-names.md").write_text("\n".join(lines), encoding="utf-8")


DEPENDS = {
    "row-wise": "A record's new value depends on the record itself.",
    "class-wise": "It rests on the table of classes, which is small where the file is large.",
    "whole-file": "It needs the whole file.",
}


def with_card(app, what, name, thing, options, lines):  # noqa: PLR0917
    """Say at the end of a docstring what the work depends on and where the method comes from."""
    card = method_card(thing) if isinstance(thing, type) else card_of(getattr(thing, "__name__", ""))
    if card is None or what not in ("class", "function") or not hasattr(thing, "__doc__"):
        return
    if card.work:
        lines += ["", "Notes", "-----", DEPENDS[card.work], ""]
    if card.references:
        lines += [
            "",
            "References",
            "----------",
            *(line for text in card.references for line in (f"* {text}", "")),
            "",
        ]
