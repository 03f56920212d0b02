"""The page of an audit: whether the promise stands in a sentence, and what every test measured in a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from simulation.analysis.vocabulary import listed, loss, plural
from simulation.pages.drawing import render
from simulation.pages.page import Cell, Section, cell, page, render_template, rows_table

_Values = Mapping[str, Any]

_STANDS = "not broken"

_STRENGTHS = {"strong": 0.95, "moderate": 0.5, "weak": 0.0}
"""What tests are called that see a leak with at least such a probability."""

_NO_PROOF = (
    "A lower bound far below a promise is no proof of it: the strength of a test is the probability with "
    "which it would have seen a leak of twice the promise: strong from 0.95, moderate from 0.5."
)


def audit_page(values: _Values) -> str:
    """Return the page of one audit, from the contents of audit.json."""
    words = f"Protocol {values['protocol']}, mechanism {values['mechanism']}."
    return _page(values["name"], words, _audit_sentence(values), [_NO_PROOF], [_findings([values])])


def presets_page(presets: Sequence[_Values]) -> str:
    """Return the page of an audit of all presets, from their names, audit.json, or why there is none."""
    audits = [each["audit"] for each in presets if each["audit"]]
    own = [each["audit"] for each in presets if each["audit"] and not each["same_as"]]
    overview = _presets_table(presets)
    sections = [Section("presets", "What every preset promises", (overview,))]
    sections += [_findings(own, folded=True)] if own else []
    words = "What devices send, audited for every preset; presets that send the same are audited once."
    notes = [_NO_PROOF] if audits else []
    return _page("All presets", words, _presets_sentence(audits, len(presets)), notes, sections)


def _page(name: str, words: str, sentence: str, notes: list[str], sections: list[Section]) -> str:
    answer = render_template("answered.html", sentence=sentence, picture="", tiles="")
    return page(name, "dprec audit", words, notes, sections, render, answer)


def _findings(audits: Sequence[_Values], *, folded: bool = False) -> Section:
    tables = map(_findings_table, audits)
    reading = (
        "From all that two groups of devices send, whose profiles the promise makes hard to tell apart, the "
        "audit learns to tell them apart, which bounds ε from below; a test on noise counts reports that "
        f"share it. {audits[0]['trials']:,} people per profile; all bounds of an audit hold together with "
        f"probability {audits[0]['confidence']:g}. What is exact was computed."
    )
    return Section("findings", "What every test measured", (*tables, reading), folded)


def _audit_sentence(values: _Values) -> str:
    """Return what an audit found, in a sentence or two."""
    broken = [each for each in values["findings"] if not each["holds"]]
    if broken:
        found = [f"{each['test']}, {_promise(each)}: {each['defect']}" for each in broken]
        return f"The promise is broken. {'; '.join(found)}."
    figures = values["promised"], values["lower_bound"]
    nearest = next(each for each in values["findings"] if (each["promised"], each["at_least"]) == figures)
    # Of these, the exact loss is not that of all cases.
    partly = [each for each in values["findings"] if each["exact"] and each["strength"] != "exact"]
    power = values["power"]
    return (
        f"No evidence against the promise of {_promise(nearest)}: what devices sent proves a loss of at "
        f"least {loss(nearest['at_least'])} ({nearest['test']}). The audit is {_word(power)}: it would see "
        f"a leak of twice the promise with probability {_probability(power)}."
        + "".join(f" {each['test']}: {each['strength']}." for each in partly)
    )


def _presets_sentence(audits: Sequence[_Values], presets: int) -> str:
    """Return what an audit of all presets found, in a sentence or two."""
    broken = [audit["name"] for audit in audits if not audit["holds"]]
    found = f"The promises of {listed(broken)} are broken" if broken else "No promise was found broken"
    strengths = [_word(audit["power"]) for audit in audits]
    counted = [f"{strengths.count(word)} {word}" for word in _STRENGTHS if word in strengths]
    strong = f" Of the audits, {listed(counted)}." if counted else ""
    others = presets - len(audits)
    verb = "promises" if others == 1 else "promise"
    left_out = f" {plural(others, 'preset')} {verb} nothing that can be tested." if others else ""
    return f"{found}, of {plural(len(audits), 'preset')} that promise something.{strong}{left_out}"


def _promise(finding: _Values) -> str:
    return f"ε = {loss(finding['promised'])} per {finding['unit']}"


def _word(power: float) -> str:
    return next(word for word, least in _STRENGTHS.items() if power >= least)


def _probability(power: float) -> str:
    """Write a lower bound on a probability."""
    return "above 0.99" if power >= 0.995 else f"{power:.2f} or more"


def _strength(power: float | None) -> Cell:
    return cell(power, lambda known: f"{_word(known)}, {_probability(known)}")


def _findings_table(values: _Values) -> Markup:
    rows: list[Sequence[Cell]] = [
        (
            each["test"],
            each["unit"],
            *(cell(each[key], loss) for key in ("promised", "charged", "at_least")),
            each["defect"] or _STANDS,
            (1.0, each["strength"]) if each["exact"] else _strength(each["power"]),
        )
        for each in values["findings"]
    ]
    promised = "ε promised", ("ε charged", "by the ledger"), ("ε at least", "measured")
    headings = "test", "promise per", *promised, "verdict", _STRENGTH
    return rows_table(f"Tests of {values['name']}", headings, rows)


def _presets_table(presets: Sequence[_Values]) -> Markup:
    rows: list[Sequence[Cell]] = []
    for each in presets:
        audit = each["audit"] or {}
        verdict = f"not audited: {(each['reason'] or '').partition('; accepted')[0]}"
        if audit:
            same = f" (sends the same as {each['same_as']})" if each["same_as"] else ""
            verdict = (_STANDS if audit["holds"] else audit["verdict"]) + same
        losses = (cell(audit.get(key), loss) for key in ("promised", "lower_bound"))
        rows.append((each["name"], *losses, _strength(audit.get("power")), verdict))
    headings = "preset", "ε promised", ("ε at least", "measured"), _STRENGTH, "verdict"
    return rows_table("All presets", headings, rows)


_STRENGTH = "strength", "probability of seeing a twofold leak"
