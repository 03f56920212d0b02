"""The page of an audit: whether the promise stands, what was measured, and how strong each test was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulation.analysis.vocabulary import DASH, listed, loss, plural
from simulation.pages.page import Cell, Column, Section, page, paragraph, render_template, table, text_cell

_STRENGTH = Column("strength", "probability of seeing a twofold leak", numeric=False)

_COLUMNS = (
    Column("test", numeric=False),
    Column("promise per", numeric=False),
    Column("ε promised"),
    Column("ε charged", "by the ledger"),
    Column("ε at least", "measured"),
    Column("verdict", numeric=False),
    _STRENGTH,
)

_PRESET_COLUMNS = (
    Column("preset", numeric=False),
    Column("ε promised"),
    Column("ε at least", "measured"),
    _STRENGTH,
    Column("verdict", numeric=False),
)

_STANDS = "not broken"

_STRONG, _MODERATE = 0.95, 0.5
"""Probabilities of seeing a leak from which on a test is called strong, or moderate."""

_HOW_TO_READ = (
    "Two groups of devices hold profiles that the promise makes hard to tell apart. From everything they "
    "send, the audit learns to tell the groups apart, and how often it succeeds bounds ε from below. A test "
    "on noise counts how often reports share noise that should be drawn afresh. What is exact was computed "
    "from the probabilities that devices draw from, without samples."
)

_NO_PROOF = (
    "A lower bound far below a promise is no proof of it: the strength of a test is the probability with "
    f"which it would have seen a leak of twice the promise. It is called strong from {_STRONG:g} and "
    f"moderate from {_MODERATE:g}."
)


def audit_page(values: Mapping[str, Any]) -> str:
    """Return the page of one audit.

    Parameters
    ----------
    values : mapping
        The contents of audit.json.
    """
    words = f"Protocol {values['protocol']}, mechanism {values['mechanism']}."
    sections = [
        Section("findings", "What every test measured", (_findings_table(values["name"], values),)),
        _reading(values),
    ]
    answer = render_template(
        "answered.html", sentence=audit_sentence(values), picture="", tiles=_tiles(values)
    )
    return page(values["name"], "dprec audit", words, [_NO_PROOF], sections, answer)


def audit_sentence(values: Mapping[str, Any]) -> str:
    """Return what an audit found, in a sentence or two."""
    broken = [each for each in values["findings"] if not each["holds"]]
    if broken:
        found = [f"{each['test']}, {_promise(each)}: {each['defect']}" for each in broken]
        return f"The promise is broken. {'; '.join(found)}."
    nearest = _nearest(values)
    exact = [each for each in values["findings"] if each["exact"] and each["unit"] == nearest["unit"]]
    power, least = values["power"], loss(nearest["at_least"])
    computed = ""
    if exact:
        computed = f" Computed from the probabilities of the draws, it is {loss(exact[0]['at_least'])}."
    return (
        f"No evidence against the promise of {_promise(nearest)}: what devices sent proves a loss of at "
        f"least {least} ({nearest['test']}).{computed} The audit is {_word(power)}: a leak of twice the "
        f"promise would be seen with probability {_probability(power)}."
    )


def presets_page(presets: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of an audit of all presets.

    Parameters
    ----------
    presets : sequence of mapping
        For each, its name, the contents of its audit.json or None, and the reason why there is none.
    """
    audits = [each["audit"] for each in presets if each["audit"]]
    overview = table("All presets", _PRESET_COLUMNS, [_preset_row(each) for each in presets])
    answer = render_template("answered.html", sentence=presets_sentence(presets), picture="", tiles="")
    sections = [Section("presets", "What every preset promises", (overview,))]
    measured = [
        _findings_table(each["name"], each["audit"])
        for each in presets
        if each["audit"] and not each["same_as"]
    ]
    if measured:
        title = "What every test measured"
        sections += [Section("findings", title, tuple(measured), folded=True), _reading(audits[0])]
    words = "What devices send, audited for every preset; presets that send the same are audited once."
    return page("All presets", "dprec audit", words, [_NO_PROOF] if audits else [], sections, answer)


def presets_sentence(presets: Sequence[Mapping[str, Any]]) -> str:
    """Return what an audit of all presets found, in a sentence or two."""
    audits = [each["audit"] for each in presets if each["audit"]]
    broken = [audit["name"] for audit in audits if not audit["holds"]]
    others = len(presets) - len(audits)
    found = f"The promises of {listed(broken)} are broken" if broken else "No promise was found broken"
    strengths = [_word(audit["power"]) for audit in audits]
    counted = [f"{strengths.count(word)} {word}" for word in _WORDS if word in strengths]
    strong = f" Of the audits, {listed(counted)}." if counted else ""
    promise = "promises" if others == 1 else "promise"
    left_out = f" {plural(others, 'preset')} {promise} nothing that can be tested." if others else ""
    return f"{found}, of {plural(len(audits), 'preset')} that promise something.{strong}{left_out}"


def _tiles(values: Mapping[str, Any]) -> str:
    shown = next((each for each in values["findings"] if not each["holds"]), None) or _nearest(values)
    seen = f"sees a leak of twice the promise with probability {_probability(values['power'])}"
    confidence = f"{values['trials']:,} people per profile, confidence {values['confidence']:g}"
    verdict = _STANDS if values["holds"] else "broken"
    tiles = [
        ("promise", verdict, shown["test"]),
        ("ε promised", loss(shown["promised"]), f"per {shown['unit']}"),
        ("ε measured, at least", loss(shown["at_least"]), confidence),
        ("strength", _word(values["power"]), seen),
    ]
    return render_template("tiles.html", tiles=tiles)


def _reading(values: Mapping[str, Any]) -> Section:
    counted = (
        f"{values['trials']:,} people per profile; all bounds of an audit hold together with probability "
        f"{values['confidence']:g}."
    )
    content = paragraph(_HOW_TO_READ), paragraph(counted)
    return Section("reading", "How an audit tests", content, folded=True)


def _findings_table(name: str, values: Mapping[str, Any]) -> str:
    rows = [
        (
            text_cell(each["test"]),
            text_cell(each["unit"]),
            *(Cell(loss(each[key]), each[key]) for key in ("promised", "charged", "at_least")),
            text_cell(each["defect"] or _STANDS),
            Cell("exact", 1.0) if each["exact"] else _strength_cell(each["power"]),
        )
        for each in values["findings"]
    ]
    return table(f"Tests of {name}", _COLUMNS, rows)


def _preset_row(preset: Mapping[str, Any]) -> tuple[Cell, ...]:
    audit, name = preset["audit"], text_cell(preset["name"])
    if audit is None:
        reason, _, _ = preset["reason"].partition("; accepted")
        return name, Cell(DASH), Cell(DASH), Cell(DASH), text_cell(f"not audited: {reason}")
    same = f" (sends the same as {preset['same_as']})" if preset["same_as"] else ""
    verdict = _STANDS if audit["holds"] else audit["verdict"]
    figures = (Cell(loss(audit[key]), audit[key]) for key in ("promised", "lower_bound"))
    return name, *figures, _strength_cell(audit["power"]), text_cell(verdict + same)


def _nearest(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the finding that comes nearest to its promise: the one whose figures the audit reports."""
    figures = values["promised"], values["lower_bound"]
    findings: Sequence[Mapping[str, Any]] = values["findings"]
    return next(each for each in findings if (each["promised"], each["at_least"]) == figures)


def _promise(finding: Mapping[str, Any]) -> str:
    return f"ε = {loss(finding['promised'])} per {finding['unit']}"


_WORDS = ("strong", "moderate", "weak")


def _word(power: float) -> str:
    """Name the strength of a test."""
    return _WORDS[(power < _STRONG) + (power < _MODERATE)]


def _probability(power: float) -> str:
    """Write a lower bound on a probability."""
    return "above 0.99" if power >= 0.995 else f"{power:.2f} or more"


def _strength_cell(power: float) -> Cell:
    return Cell(f"{_word(power)}, {_probability(power)}", power)
