"""Which part does each column play? Proposed with the reason; searched and changed one by one or many at once."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from discreet.app import widgets
from discreet.app.desk import Desk
from discreet.app.frame import Held, Watch, opened, refusals
from discreet.app.journey import MANY, Journey
from discreet.core.wording import percent

ROLE_WORDS = {
    "": "no role",
    "keys": "key: others may know it",
    "sensitive": "sensitive: must not be learned",
    "identifiers": "identifier: names a person",
    "weight": "survey weight",
    "household": "household number",
    "person": "person number",
    "strata": "stratum",
    "location": "coordinate",
    "contributor": "contributing unit",
    "employer": "employer number",
    "time": "time",
    "psu": "sampling unit",
}
_TYPES = {
    "Int": "whole number",
    "UInt": "whole number",
    "Float": "number",
    "Decimal": "number",
    "String": "text",
    "Categorical": "category",
    "Enum": "category",
    "Boolean": "yes or no",
    "Datetime": "date and time",
    "Date": "date",
    "Time": "time of day",
}
# The templates below are fixed; names and values reach them as properties, never as part of the template.
_ROLE_CELL = """
<q-td :props="props"><q-select dense outlined options-dense emit-value map-options v-model="props.row.role"
  :options="props.row.choices" :aria-label="'Role of ' + props.row.column"
  @update:model-value="(role) => $parent.$emit('role', {column: props.row.column, role: role})" /></q-td>
"""
_SELECT_CELL = """<q-checkbox v-model="props.selected" dense :aria-label="'Choose ' + props.row.column" />"""
_SELECT_ALL = """<q-checkbox v-model="props.selected" dense aria-label="Choose all columns shown" />"""


def build(desk: Desk, journey: Journey, watch: Watch) -> None:
    """Draw the page."""
    if not opened(
        journey,
        "Which part does each column play?",
        "Roles are proposed from names, types and counts. Nothing is decided: check them, above all the keys, which "
        "are what somebody else may know about a person.",
    ):
        return
    if journey.found.get("saved_roles"):
        widgets.said("Roles were saved beside the file before; they were taken over.")
    watch.part(lambda: _sums(journey), lambda: tuple(sorted(journey.roles.items())))
    watch.part(lambda: live_figures(journey), lambda: Held(journey.live), watch.of_task("live_figures"))
    _codes(journey)
    table = _table(journey)
    _bulk(journey, table)
    widgets.act("Next: the risk", lambda: ui.navigate.to(f"/{journey.number}/risk")).mark("next")
    if not journey.live and journey.holding("keys"):
        ask_live(journey)


def _codes(journey: Journey) -> None:
    """What looks like a code for missing is read so by a click, where the file can be read another way."""
    coded = journey.found.get("codes") or {}
    if not coded or "missing" not in (journey.found.get("options") or ()):
        return
    with ui.element("div").classes("said part"):
        for column, codes in coded.items():
            widgets.words(f"In {column}, {' and '.join(codes)} may stand for missing.")
        tokens = sorted({code for codes in coded.values() for code in codes})
        widgets.plain(
            f"Read {' and '.join(tokens)} as missing, in every column", lambda: _read_missing(journey, tokens)
        ).mark("read-missing")


def _read_missing(journey: Journey, tokens: list[str]) -> None:
    from discreet.app.file_page import read

    told = [*(journey.reading.get("missing") or journey.found["reading"].get("missing") or ()), *tokens]
    journey.reading = {**journey.reading, "missing": list(dict.fromkeys(told))}
    read(journey)
    ui.navigate.to(f"/{journey.number}/file")


def ask_live(journey: Journey) -> None:
    """Ask for the few figures that keys decide; the newest question counts."""

    def then(found: dict[str, Any]) -> None:
        journey.live = found

    journey.start(
        "live_figures",
        "Counting groups",
        then,
        lane="quick",
        source=journey.source,
        roles={"keys": journey.holding("keys")},
    )


def set_role(journey: Journey, columns: list[str], role: str) -> str:
    """Put columns into a role; return what is to be said about it, empty where there is nothing."""
    if role and role not in MANY and len(columns) > 1:
        return f"Only one column can be the {ROLE_WORDS[role]}. Choose one."
    keys = journey.holding("keys")
    for column in columns:
        journey.roles.pop(column, None)
    if role and role not in MANY:
        journey.roles = {column: held for column, held in journey.roles.items() if held != role}
    if role:
        journey.roles |= dict.fromkeys(columns, role)
    journey.assessment, journey.effects, journey.comparison, journey.release = {}, [], {}, {}
    journey.log(f"Set the role of {', '.join(columns[:5])}{' …' * (len(columns) > 5)}: {ROLE_WORDS[role]}.")
    if journey.holding("keys") != keys:
        ask_live(journey)
    journey.changed()
    return ""


def _sums(journey: Journey) -> None:
    rows = []
    for role, words in ROLE_WORDS.items():
        held = (
            journey.holding(role)
            if role
            else [row["column"] for row in journey.columns if row["column"] not in journey.roles]
        )
        if held:
            shown = ", ".join(held[:12]) + (f" and {len(held) - 12} more" if len(held) > 12 else "")
            rows.append((words[:1].upper() + words[1:], shown))
    widgets.facts(rows)
    if not journey.holding("keys"):
        widgets.said("No column is a key yet. Without keys nobody can say who could be found.")


def live_figures(journey: Journey) -> None:
    """The few figures that keys decide, as they are now."""
    refusals(journey, "live_figures", "roles", "", "file")
    if journey.running("live_figures"):
        widgets.waiting("Counting the groups that the keys make.")
    elif journey.live.get("numbers"):
        widgets.cards(journey.live["numbers"])


def _table(journey: Journey) -> Any:
    columns = [
        {"name": "column", "label": "Column", "field": "column", "align": "left", "sortable": True},
        {"name": "role", "label": "Role", "field": "role", "align": "left", "sortable": True},
        {"name": "reasons", "label": "Why", "field": "reasons", "align": "left"},
        {"name": "sure", "label": "How sure", "field": "sure", "align": "left", "sortable": True},
        {"name": "kind", "label": "Type", "field": "kind", "align": "left", "sortable": True},
        {"name": "distinct", "label": "Values", "field": "distinct", "sortable": True},
        {"name": "missing", "label": "Missing", "field": "missing", "sortable": True},
    ]
    find = widgets.field("Find a column").props("clearable").mark("find")
    table = ui.table(
        columns=columns, rows=_rows(journey), row_key="column", selection="multiple", pagination=25
    ).classes("w-full")
    table.props('flat aria-label="Columns and their roles" rows-per-page-label="Columns on a page"')
    table.mark("columns")
    table.add_slot("body-cell-role", _ROLE_CELL)
    table.add_slot("body-selection", _SELECT_CELL)
    table.add_slot("header-selection", _SELECT_ALL)
    table.bind_filter_from(find, "value")

    def changed(event: Any) -> None:
        said = event.args if isinstance(event.args, dict) else {}
        known = {row["column"] for row in journey.columns}
        if said.get("column") in known and said.get("role") in ROLE_WORDS:
            set_role(journey, [said["column"]], said["role"])

    table.on("role", changed)
    return table


def _rows(journey: Journey) -> list[dict[str, Any]]:
    choices = [{"label": words, "value": role} for role, words in ROLE_WORDS.items()]
    labels = journey.found.get("labels", {})
    return [
        {
            "column": row["column"],
            "role": journey.roles.get(row["column"], ""),
            "choices": choices,
            "reasons": " ".join(filter(None, (labels.get(row["column"]), _reasons(journey, row)))),
            "sure": row["confidence"],
            "kind": type_in_words(row["dtype"]),
            "distinct": f"{row['distinct']:,}" if isinstance(row["distinct"], int) else "",
            "missing": percent(row["missing_share"]) if row["missing_share"] else "",
        }
        for row in journey.columns
    ]


def _reasons(journey: Journey, row: dict[str, Any]) -> str:
    """Leave out what comes last and says how to read a column on the command line: the page offers it by a click."""
    doubtful = journey.found.get("reading", {}).get("ambiguous_dates") or ()
    notes = sum(row["column"] in held for held in (journey.found.get("codes") or {}, doubtful))
    parts = str(row["reasons"]).split("; ")
    return "; ".join(parts[: len(parts) - notes])


def type_in_words(dtype: str) -> str:
    """Say what a column holds, for whoever does not program.

    Examples
    --------
    >>> type_in_words("Int64"), type_in_words("Float64"), type_in_words("String"), type_in_words("Datetime('us')")
    ('whole number', 'number', 'text', 'date and time')
    """
    for start, words in _TYPES.items():
        if dtype.startswith(start):
            return words
    return dtype


def _bulk(journey: Journey, table: Any) -> None:
    said = ui.element("div")
    with ui.element("div").classes("fields items-center"):
        role = widgets.choice(ROLE_WORDS, "Role of all chosen columns", "keys").mark("bulk-role")

        def apply() -> None:
            said.clear()
            chosen = [row["column"] for row in table.selected]
            with said:
                if not chosen:
                    widgets.refusal("Choose columns in the table first.")
                    return
                sentence = set_role(journey, chosen, role.value)
                if sentence:
                    widgets.refusal(sentence)
                    return
            table.selected = []
            table.rows = _rows(journey)

        widgets.plain("Set", apply).mark("bulk-set")
