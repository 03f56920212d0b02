"""The page of an audit: whether the promise stands in a sentence, and what every test measured in a table."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from markupsafe import Markup

from dprec.errors import plural
from simulation.analysis.audits import STRENGTHS, probability, strength_in_words, strength_of_tests
from simulation.analysis.columns import figure_column, text_column
from simulation.analysis.vocabulary import listed, loss
from simulation.pages.drawing import render
from simulation.pages.page import Section, page, table
from simulation.storage.column import Column

_Values = Mapping[str, Any]

_STANDS = "not broken"

_NO_PROOF = (
    "A lower bound far below a promise is no proof of it: the strength of a test is the probability with "
    "which it would have seen a leak of twice the promise: strong from 0.95, moderate from 0.5."
)
_READING = (
    "From all that two groups of devices send, whose profiles the promise makes hard to tell apart, the "
    "audit learns to tell them apart, which bounds ε from below; a test on noise counts reports that "
    "share it. {:,} people per profile; all bounds of an audit hold together with probability {:g}. What is "
    "exact was computed."
)


def audit_page(values: _Values) -> str:
    """Return the page of one audit, from the contents of audit.json."""
    words = f"Protocol {values['protocol']}, mechanism {values['mechanism']}."
    return _page(values["name"], words, _audit_sentence(values), [_findings([values], folded=False)])


def presets_page(presets: Sequence[_Values]) -> str:
    """Return the page of an audit of all presets, from their names, audit.json, or why there is none."""
    audits = [preset["audit"] for preset in presets if preset["audit"]]
    distinct = [preset["audit"] for preset in presets if preset["audit"] and not preset["same_as"]]

    def verdict(preset: _Values) -> str:
        if audit := preset["audit"]:
            same = f" (sends the same as {preset['same_as']})" if preset["same_as"] else ""
            return (_STANDS if audit["holds"] else str(audit["verdict"])) + same
        return f"not audited: {(preset['reason'] or '').partition('; accepted')[0]}"

    def of_audit(key: str) -> Any:
        return lambda preset: (preset["audit"] or {}).get(key)

    columns: list[Column[_Values]] = [
        text_column("preset", itemgetter("name")),
        figure_column("ε promised", "", of_audit("promised"), loss),
        figure_column("ε at least", "measured", of_audit("lower_bound"), loss),
        figure_column("strength", f"{_SEEN}, strongest test", of_audit("power"), _strength),
        text_column("verdict", verdict),
    ]
    overview = table("All presets", columns, presets)
    sections = [Section("presets", "What every preset promises", (overview,), folded=False)]
    sections += [_findings(distinct, folded=True)] if distinct else []
    words = "What devices send, audited for every preset; presets that send the same are audited once."
    return _page("All presets", words, _presets_sentence(audits, len(presets)), sections)


def _page(name: str, words: str, sentence: str, sections: list[Section]) -> str:
    notes = [_NO_PROOF] if any(section.name == "findings" for section in sections) else []
    return page(
        name, "dprec audit", words, [Section("answer", "Answer", (sentence,))], notes, sections, render
    )


_SEEN = "probability of seeing a twofold leak"


def _strength(power: float) -> str:
    """Write how strong a test is, with a lower bound on the probability that it sees a leak."""
    return f"{strength_in_words(power)}, {probability(power)}"


def _findings(audits: Sequence[_Values], *, folded: bool) -> Section:
    """Return what every test of some audits measured."""

    def strength(finding: _Values) -> str:
        return finding["strength"] if finding["exact"] else _strength(finding["power"])

    columns: list[Column[_Values]] = [
        text_column("test", itemgetter("test")),
        text_column("promise per", itemgetter("unit")),
        figure_column("ε promised", "", itemgetter("promised"), loss),
        figure_column("ε charged", "by the ledger", itemgetter("charged"), loss),
        figure_column("ε at least", "measured", itemgetter("at_least"), loss),
        text_column("verdict", lambda finding: finding["defect"] or _STANDS),
        Column(
            "strength",
            _SEEN,
            value=lambda finding: 1.0 if finding["exact"] else finding["power"],
            text=strength,
            holds=float,
        ),
    ]
    tables: list[Markup] = [
        table(f"Tests of {audit['name']}", columns, audit["findings"]) for audit in audits
    ]
    reading = _READING.format(audits[0]["trials"], audits[0]["confidence"])
    return Section("findings", "What every test measured", (*tables, reading), folded)


def _audit_sentence(values: _Values) -> str:
    """Return what an audit found, in a sentence or two."""
    broken = [finding for finding in values["findings"] if not finding["holds"]]
    if broken:
        breaches = [f"{finding['test']}, {_promise(finding)}: {finding['defect']}" for finding in broken]
        return f"The promise is broken. {'; '.join(breaches)}."
    figures = values["promised"], values["lower_bound"]
    nearest = next(
        finding for finding in values["findings"] if (finding["promised"], finding["at_least"]) == figures
    )
    # Of these, the exact loss is not that of all cases.
    partly = [
        finding for finding in values["findings"] if finding["exact"] and finding["strength"] != "exact"
    ]
    return (
        f"No evidence against the promise of {_promise(nearest)}: what devices sent proves a loss of at "
        f"least {loss(nearest['at_least'])} ({nearest['test']}). "
        + strength_of_tests(values["findings"])
        + "".join(f" {finding['test']}: {finding['strength']}." for finding in partly)
    )


def _promise(finding: _Values) -> str:
    return f"ε = {loss(finding['promised'])} per {finding['unit']}"


def _presets_sentence(audits: Sequence[_Values], presets: int) -> str:
    """Return what an audit of all presets found, in a sentence or two."""
    broken = [audit["name"] for audit in audits if not audit["holds"]]
    verdict = f"The promises of {listed(broken)} are broken" if broken else "No promise was found broken"
    strengths = [strength_in_words(audit["power"]) for audit in audits]
    counted = [f"{strengths.count(word)} {word}" for word in STRENGTHS if word in strengths]
    strong = f" By the strongest test of each audit, {listed(counted)}." if counted else ""
    untested = presets - len(audits)
    verb = "promises" if untested == 1 else "promise"
    left_out = f" {plural(untested, 'preset')} {verb} nothing that can be tested." if untested else ""
    return f"{verdict}, of {plural(len(audits), 'preset')} that promise something.{strong}{left_out}"
