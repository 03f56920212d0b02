"""The page of an audit: whether the promise stands, what was measured, and how strong each test was."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from simulation.analysis.columns import TableColumn, text_column, written_column
from simulation.analysis.vocabulary import DASH, listed, loss, plural
from simulation.pages.page import Section, page, paragraph, render_template, table

_Values = Mapping[str, Any]

_STANDS = "not broken"

_STRONG, _MODERATE = 0.95, 0.5
"""Probabilities of seeing a leak from which on a test is called strong, or moderate."""

_HOW_TO_READ = (
    "Two groups of devices hold profiles that the promise makes hard to tell apart. From all that they send, "
    "the audit learns to tell the groups apart; how often it succeeds bounds ε from below. A test on noise "
    "counts how often reports share noise that should be drawn afresh. What is exact was computed from the "
    "probabilities that devices draw from."
)

_NO_PROOF = (
    "A lower bound far below a promise is no proof of it: the strength of a test is the probability with "
    f"which it would have seen a leak of twice the promise: strong from {_STRONG:g}, moderate from "
    f"{_MODERATE:g}."
)


def audit_page(values: _Values) -> str:
    """Return the page of one audit, from the contents of audit.json."""
    words = f"Protocol {values['protocol']}, mechanism {values['mechanism']}."
    sections = [
        Section("findings", "What every test measured", (_findings_table(values),)),
        _reading(values),
    ]
    answer = render_template(
        "answered.html", sentence=_audit_sentence(values), picture="", tiles=_tiles(values)
    )
    return page(values["name"], "dprec audit", words, [_NO_PROOF], sections, answer)


def _audit_sentence(values: _Values) -> str:
    """Return what an audit found, in a sentence or two."""
    broken = [each for each in values["findings"] if not each["holds"]]
    if broken:
        found = [f"{each['test']}, {_promise(each)}: {each['defect']}" for each in broken]
        return f"The promise is broken. {'; '.join(found)}."
    nearest, power = _nearest(values), values["power"]
    return (
        f"No evidence against the promise of {_promise(nearest)}: what devices sent proves a loss of at "
        f"least {loss(nearest['at_least'])} ({nearest['test']}). The audit is {_word(power)}: it would see "
        f"a leak of twice the promise with probability {_probability(power)}."
    )


def presets_page(presets: Sequence[_Values]) -> str:
    """Return the page of an audit of all presets."""
    audits = [each["audit"] for each in presets if each["audit"]]
    overview = table("All presets", _PRESET_COLUMNS, presets)
    answer = render_template("answered.html", sentence=_presets_sentence(presets), picture="", tiles="")
    sections = [Section("presets", "What every preset promises", (overview,))]
    own = [each["audit"] for each in presets if each["audit"] and not each["same_as"]]
    measured = [_findings_table(audit) for audit in own]
    if measured:
        title = "What every test measured"
        sections += [Section("findings", title, tuple(measured), folded=True), _reading(audits[0])]
    words = "What devices send, audited for every preset; presets that send the same are audited once."
    return page("All presets", "dprec audit", words, [_NO_PROOF] if audits else [], sections, answer)


def _presets_sentence(presets: Sequence[_Values]) -> str:
    """Return what an audit of all presets found, in a sentence or two."""
    audits = [each["audit"] for each in presets if each["audit"]]
    broken = [audit["name"] for audit in audits if not audit["holds"]]
    found = f"The promises of {listed(broken)} are broken" if broken else "No promise was found broken"
    strengths = [_word(audit["power"]) for audit in audits]
    counted = [f"{strengths.count(word)} {word}" for word in _WORDS if word in strengths]
    strong = f" Of the audits, {listed(counted)}." if counted else ""
    others = len(presets) - len(audits)
    verb = "promises" if others == 1 else "promise"
    left_out = f" {plural(others, 'preset')} {verb} nothing that can be tested." if others else ""
    return f"{found}, of {plural(len(audits), 'preset')} that promise something.{strong}{left_out}"


def _tiles(values: _Values) -> str:
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


def _reading(values: _Values) -> Section:
    counted = (
        f"{values['trials']:,} people per profile; all bounds of an audit hold together with probability "
        f"{values['confidence']:g}."
    )
    content = paragraph(_HOW_TO_READ), paragraph(counted)
    return Section("reading", "How an audit tests", content, folded=True)


def _findings_table(values: _Values) -> str:
    return table(f"Tests of {values['name']}", _COLUMNS, values["findings"])


def _audited(key: str) -> Callable[[_Values], float | None]:
    return lambda preset: preset["audit"] and preset["audit"][key]


def _preset_verdict(preset: _Values) -> str:
    audit = preset["audit"]
    if audit is None:
        reason, _, _ = preset["reason"].partition("; accepted")
        return f"not audited: {reason}"
    same = f" (sends the same as {preset['same_as']})" if preset["same_as"] else ""
    return (_STANDS if audit["holds"] else audit["verdict"]) + same


def _nearest(values: _Values) -> Mapping[str, Any]:
    """Return the finding that comes nearest to its promise: the one whose figures the audit reports."""
    figures = values["promised"], values["lower_bound"]
    findings: Sequence[_Values] = values["findings"]
    return next(each for each in findings if (each["promised"], each["at_least"]) == figures)


def _promise(finding: _Values) -> str:
    return f"ε = {loss(finding['promised'])} per {finding['unit']}"


_WORDS = ("strong", "moderate", "weak")


def _word(power: float) -> str:
    """Name the strength of a test."""
    return _WORDS[(power < _STRONG) + (power < _MODERATE)]


def _probability(power: float) -> str:
    """Write a lower bound on a probability."""
    return "above 0.99" if power >= 0.995 else f"{power:.2f} or more"


def _strength(power: float | None) -> str:
    return DASH if power is None else f"{_word(power)}, {_probability(power)}"


_STRENGTH = "strength", "probability of seeing a twofold leak"

_COLUMNS: tuple[TableColumn[_Values], ...] = (
    text_column("test", itemgetter("test")),
    text_column("promise per", itemgetter("unit")),
    written_column("ε promised", itemgetter("promised"), loss),
    written_column("ε charged", itemgetter("charged"), loss, "by the ledger"),
    written_column("ε at least", itemgetter("at_least"), loss, "measured"),
    text_column("verdict", lambda finding: finding["defect"] or _STANDS),
    TableColumn(
        *_STRENGTH,
        lambda finding: 1.0 if finding["exact"] else finding["power"],
        lambda finding: "exact" if finding["exact"] else _strength(finding["power"]),
        numeric=False,
    ),
)

_PRESET_COLUMNS: tuple[TableColumn[_Values], ...] = (
    text_column("preset", itemgetter("name")),
    written_column("ε promised", _audited("promised"), loss),
    written_column("ε at least", _audited("lower_bound"), loss, "measured"),
    TableColumn(*_STRENGTH, _audited("power"), lambda preset: _strength(_audited("power")(preset)), False),
    text_column("verdict", _preset_verdict),
)
