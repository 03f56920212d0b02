"""The page of an audit: whether the promise stands in a sentence, and what every test measured in a table."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from simulation.analysis.columns import free_column, text_column, written_column
from simulation.analysis.vocabulary import DASH, listed, loss, plural
from simulation.pages.drawing import render
from simulation.pages.page import Section, page, render_template, table
from simulation.storage.column import Column

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
    overview = table("All presets", _PRESET_COLUMNS, presets)
    sections = [Section("presets", "What every preset promises", (overview,))]
    sections += [_findings(own, folded=True)] if own else []
    words = "What devices send, audited for every preset; presets that send the same are audited once."
    notes = [_NO_PROOF] if audits else []
    return _page("All presets", words, _presets_sentence(audits, len(presets)), notes, sections)


def _page(name: str, words: str, sentence: str, notes: list[str], sections: list[Section]) -> str:
    answer = render_template("answered.html", sentence=sentence, picture="", tiles="")
    return page(name, "dprec audit", words, notes, sections, render, answer)


def _findings(audits: Sequence[_Values], *, folded: bool = False) -> Section:
    tables = [table(f"Tests of {values['name']}", _COLUMNS, values["findings"]) for values in audits]
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
    power = values["power"]
    return (
        f"No evidence against the promise of {_promise(nearest)}: what devices sent proves a loss of at "
        f"least {loss(nearest['at_least'])} ({nearest['test']}). The audit is {_word(power)}: it would see "
        f"a leak of twice the promise with probability {_probability(power)}."
        + "".join(f" {each['test']}: {each['strength']}." for each in _partly_exact(values))
    )


def _partly_exact(values: _Values) -> list[_Values]:
    """Return the findings whose exact loss is not that of all cases."""
    return [each for each in values["findings"] if each["exact"] and each["strength"] != "exact"]


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


def _strength(power: float | None) -> str:
    return DASH if power is None else f"{_word(power)}, {_probability(power)}"


def _preset_verdict(preset: _Values) -> str:
    audit = preset["audit"]
    if audit is None:
        return f"not audited: {preset['reason'].partition('; accepted')[0]}"
    same = f" (sends the same as {preset['same_as']})" if preset["same_as"] else ""
    return (_STANDS if audit["holds"] else audit["verdict"]) + same


def _audited(key: str) -> Callable[[_Values], float | None]:
    return lambda preset: preset["audit"] and preset["audit"][key]


_STRENGTH = "strength", "probability of seeing a twofold leak"

_COLUMNS: tuple[Column[_Values], ...] = (
    text_column("test", itemgetter("test")),
    text_column("promise per", itemgetter("unit")),
    written_column("ε promised", itemgetter("promised"), loss),
    written_column("ε charged", itemgetter("charged"), loss, "by the ledger"),
    written_column("ε at least", itemgetter("at_least"), loss, "measured"),
    text_column("verdict", lambda finding: finding["defect"] or _STANDS),
    free_column(
        *_STRENGTH,
        lambda finding: 1.0 if finding["exact"] else finding["power"],
        lambda finding: finding["strength"] if finding["exact"] else _strength(finding["power"]),
        numeric=False,
    ),
)

_POWER = _audited("power")

_PRESET_COLUMNS: tuple[Column[_Values], ...] = (
    text_column("preset", itemgetter("name")),
    written_column("ε promised", _audited("promised"), loss),
    written_column("ε at least", _audited("lower_bound"), loss, "measured"),
    free_column(*_STRENGTH, _POWER, lambda each: _strength(_POWER(each)), numeric=False),
    text_column("verdict", _preset_verdict),
)
