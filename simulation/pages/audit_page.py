"""The page of an audit: what was tested, what was measured, and how strong each test was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulation.pages.markup import Cell, Column, number_cell, table, text_cell
from simulation.pages.page import Section, page, paragraph

_COLUMNS = (
    Column("test", numeric=False),
    Column("promised for a", numeric=False),
    Column("ε promised"),
    Column("ε charged"),
    Column("ε at least"),
    Column("verdict", numeric=False),
    Column("strength", numeric=False),
)

_PRESET_COLUMNS = (
    Column("preset", numeric=False),
    Column("ε promised"),
    Column("ε at least"),
    Column("verdict", numeric=False),
)


def audit_page(values: Mapping[str, Any]) -> str:
    """Return the page of one audit.

    Parameters
    ----------
    values : mapping
        The contents of audit.json.
    """
    words = f"{values['protocol']}, {values['mechanism']}: {values['verdict']}."
    return page(values["name"], "Audit", words, _notes(values), [_findings(values, "findings", "Findings")])


def presets_page(presets: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of an audit of all presets.

    Parameters
    ----------
    presets : sequence of mapping
        For each, its name, the contents of its audit.json or None, and the reason why there is none.
    """
    audits = [each["audit"] for each in presets if each["audit"]]
    broken = sum(not audit["holds"] for audit in audits)
    words = f"{len(audits)} presets promise something; {broken} of the promises are broken."
    rows = [_preset_row(each) for each in presets]
    overview = table("All presets", _PRESET_COLUMNS, rows)
    sections = [Section("presets", "All presets", (overview,))]
    sections += [
        _findings(each["audit"], f"findings-{each['name']}", each["name"])
        for each in presets
        if each["audit"] and not each["same_as"]
    ]
    return page("All presets", "Audit", words, _notes(audits[0]) if audits else [], sections)


def _notes(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{values['trials']:,} people per profile; all bounds of an audit hold together with probability "
        f"{values['confidence']:g}.",
        "A lower bound far below a promise is no proof of it: the strength of a test says what it would see.",
    ]


def _findings(values: Mapping[str, Any], name: str, title: str) -> Section:
    rows = [
        (
            text_cell(each["test"]),
            text_cell(each["unit"]),
            number_cell(each["promised"], 4),
            number_cell(each["charged"], 4),
            number_cell(each["at_least"], 4),
            text_cell(each["defect"] or "no evidence against it"),
            text_cell(each["strength"]),
        )
        for each in values["findings"]
    ]
    return Section(name, title, (paragraph(f"{values['verdict']}."), table(title, _COLUMNS, rows)))


def _preset_row(preset: Mapping[str, Any]) -> tuple[Cell, ...]:
    audit = preset["audit"]
    if audit is None:
        return (
            text_cell(preset["name"]),
            number_cell(None, 4),
            number_cell(None, 4),
            text_cell(preset["reason"]),
        )
    verdict = audit["verdict"] + (f" (as {preset['same_as']})" if preset["same_as"] else "")
    figures = (number_cell(audit[key], 4) for key in ("promised", "lower_bound"))
    return (text_cell(preset["name"]), *figures, text_cell(verdict))
