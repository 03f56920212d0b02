"""What a privacy officer asks of protocols, answered from what runs promise and send: it prints on a page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dprec.accounting import Assumptions, Status, Trust
from dprec.errors import plural
from simulation.analysis.answer import guess, guessed, guesser
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import DASH, loss
from simulation.pages.page import Section, bullets, table
from simulation.storage.column import Column
from simulation.storage.summary import REPETITIONS, Devices, Summary, Terms

MOST_ASKED = 6
"""Protocols whose answers fit on a printed page."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A protocol at a budget, of which an officer asks."""

    result: ProtocolResult
    summary: Summary | None
    """Of one of its runs; None where none is in the directory, so that what it assumes is unknown."""

    @property
    def silent(self) -> bool:
        """Whether nothing is sent."""
        return self.result.server_sees == "nothing"

    @property
    def terms(self) -> Terms | None:
        """What its promise assumes; None where that is unknown."""
        return None if self.summary is None else self.summary.terms

    @property
    def stated(self) -> Terms | Assumptions:
        """The same, as if nothing were assumed where that is unknown."""
        return self.terms or Assumptions()

    @property
    def scheduled(self) -> bool:
        """Whether its collections are those of a schedule."""
        return self.terms is not None and self.terms.repetitions is None

    @property
    def devices(self) -> Devices:
        """Whose devices took part; simulated ones where that is unknown."""
        return "simulated" if self.summary is None else self.summary.devices

    @property
    def busiest(self) -> str:
        """The user who loses most, in words."""
        all_take_part = self.scheduled or self.devices == "deployed"
        return "the busiest user" if all_take_part else "the busiest user of the train part"

    @property
    def least(self) -> str:
        """The least that is protected, in words."""
        return "One item, in the set or not" if self.result.lists else "One rating"

    @property
    def between(self) -> tuple[float, float] | None:
        """The loss between any two profiles, and the delta with which it holds; None where none is proved."""
        result, epsilon = self.result, self.result.any_two
        if epsilon is None or not result.hides:
            return None
        # What the sum keeps as well holds without a delta.
        summed = loss(epsilon) == loss(result.epsilon("user"))
        return epsilon, 0.0 if summed else result.delta or 0.0

    @property
    def loss(self) -> tuple[float, float] | None:
        """The loss of the busiest user, and the delta with which it holds; None where none is proved."""
        result, basic = self.result, self.result.epsilon("user")
        composed = result.composed
        if basic is None:
            return None if composed is None else (composed, result.delta or 0.0)
        # What the sum keeps as well, as it is written, holds without a delta.
        smaller = composed is not None and composed < basic and loss(composed) != loss(basic)
        return (composed, result.delta or 0.0) if composed is not None and smaller else (basic, 0.0)


NO_PERSONAL_DATA = (
    "This page names no user and shows nobody's data; files of the runs beside it do, such as "
    "predictions.csv.gz."
)
"""What a page holds that shows figures over users alone."""


def officer_section(
    subjects: Sequence[Subject], suffix: str = "", words: str = "", *, page: str = NO_PERSONAL_DATA
) -> Section:
    """Return the section that answers an officer's questions; empty without a protocol.

    ``suffix``: of its anchor; ``words``: what distinguishes it from others of the page; ``page``: which
    personal data the page itself holds.
    """

    def answered(subject: Subject) -> Column[_Question]:
        return Column(subject.result.title, holds=str, text=lambda question: _lines(question.answer(subject)))

    questions: Column[_Question] = Column("question", holds=str, text=lambda question: question.words)
    caption = "Answers follow from what the runs promised, sent and lost"
    markup = table(
        caption, [questions, *map(answered, subjects)], _QUESTIONS, sortable=False, style="officer"
    )
    content = (markup, bullets([*_scale_read_off(subjects), *_FOR_ALL, page])) if subjects else ()
    return Section(f"officer{suffix}", f"For the privacy officer{words}", content)


def _scale_read_off(subjects: Sequence[Subject]) -> list[str]:
    """Say once where private ratings have decided the scale, which all protocols are told."""
    per_run = (subject.summary.dataset.scale_read_off for subject in subjects if subject.summary)
    read_off = next(filter(None, per_run), ())
    words = f"Scale ({', '.join(read_off)}): read off private ratings and told everybody; no ε covers that."
    return [words] if read_off else []


def _lines(sentences: Iterator[str]) -> Markup:
    """Return sentences below each other, in which no figure goes on in the next line."""
    lines = (re.sub(r"(?<=[εδ]) = | (?=%)", _unbroken, sentence) for sentence in sentences)
    return Markup("").join(Markup("<div>{}</div>").format(sentence) for sentence in lines) or Markup(DASH)


def _unbroken(match: re.Match[str]) -> str:
    return match[0].replace(" ", "\N{NO-BREAK SPACE}")


_FOR_ALL = (
    "Proved: the reason is among the notes of this page. Audited: dprec audit measures a lower bound on ε, "
    "which can refute a promise but not prove it.",
    "Assumed: the app on the device, which its operator writes and updates, does what is stated here and "
    "draws its noise in secret; a simulation draws it from a seed.",
    "A device that leaves sends nothing more; what it has sent still counts in full.",
    "Out of scope: traffic analysis, the operating system of a device, and settings chosen on private data.",
    "Repetitions above draw anew.",
)
"""What holds of all protocols."""


def _seen(subject: Subject) -> Iterator[str]:
    if subject.silent:
        yield "Nobody sees anything."
        return
    yield f"The server: {subject.result.server_sees}, and which devices take part."
    if subject.stated.named_sets:
        yield "Rated items go to it under the user's name, reports of ratings without one."
    if subject.scheduled and (not subject.result.hides or subject.result.needed_trust == "central"):
        yield "It sees in which period each item was rated."
    if subject.stated.budgets_seen:
        yield "It sees each user's ε too, which nothing protects."
    if subject.stated.proxy:
        yield "A proxy: who sends and when, which it strips."
    if subject.result.needed_trust == "shuffle":
        yield "Shufflers: which devices take part, and how many messages each sends."


_DEVIATING: dict[Trust, str] = {
    "local": "No server is trusted, but the app is: it protects its own report and answers only what it was "
    "installed for. A server that deviates learns no more.",
    "shuffle": "Shufflers mix the messages; one honest one is enough. If all collude with the server, "
    "{alone}.",
    "secure-aggregation": "The server adds up masked numbers and must follow the protocol. If it deviates, "
    "it can unmask single devices, whose own share of the noise is too small.",
    "central": "The server adds up and adds the noise. It holds the data in clear: nothing protects them "
    "from the server, or from whoever breaks into it.",
}
"""Who adds up, and what if it deviates."""


def _deviating(subject: Subject) -> Iterator[str]:
    if subject.silent:
        yield "Nobody: nothing is added up."
        return
    if subject.result.status == "none":
        yield "The server, to which nothing is promised."
        return
    epsilon, trust = subject.result.epsilon("user"), subject.result.needed_trust
    bounded = "nothing is proved" if epsilon is None else f"a user loses up to ε = {loss(epsilon)}"
    yield f"Trust: {trust}."
    yield _DEVIATING[trust].format(alone=bounded)


def _assumed(subject: Subject) -> Iterator[str]:
    terms = subject.terms
    if subject.silent:
        yield "None."
    elif terms is not None and terms.colluders is not None:
        colluders = plural(terms.colluders, "device")
        yield f"At most {colluders} collude with the server, which is a choice; with more, ε does not hold."
        yield "Whoever runs the server can enrol such devices."
        lost = "with more, nothing is released and the budget is spent"
        yield f"At most {terms.dropouts:.0%} drop out; {lost}."
    elif terms is not None and terms.shufflers:
        yield "None, but the other reports are drawn as the protocol says."
        yield "Whoever runs the server can enrol devices whose reports hide nobody."
    elif terms is not None:
        yield "None: any number of devices may collude or drop out."
    if terms is not None and terms.shufflers:
        yield f"At least 1 of {terms.shufflers} shufflers is honest."


def _sure(epsilon: float) -> str:
    return guess(epsilon, beyond="no useful bound (above 99.9 %)")


def _by_whom(subject: Subject) -> Iterator[str]:
    """Yield whose guesses the figures that follow bound, where not everybody's."""
    if by := guesser(subject.result):
        yield f"{by.capitalize()}:"


def _meaning(subject: Subject) -> Iterator[str]:
    result, rating = subject.result, subject.result.epsilon("rating")
    if rating or subject.loss is not None:
        yield from _by_whom(subject)
    if rating:
        rated_or_not = ", given or not" if result.hides and not result.lists else ""
        yield f"{subject.least}{rated_or_not}: ε = {loss(rating)}, {_sure(rating)}."
    if subject.loss is None:
        yield "Everything that a user sends: no ε is proved."
        return
    epsilon, delta = subject.loss
    what = guessed(epsilon, "user", result).replace("a user", subject.busiest)
    yield f"{what[0].upper()}{what[1:]}: ε = {loss(epsilon)}{_with(delta)}, {_sure(epsilon)}."
    between = subject.between
    if between is not None and loss(between[0]) != loss(epsilon):
        apart, with_delta = between
        delta = max(delta, with_delta)
        yield f"Which of two profiles a user has: ε = {loss(apart)}{_with(with_delta)}, {_sure(apart)}."
    yield from _failing(result, delta)


def _failing(result: ProtocolResult, delta: float) -> Iterator[str]:
    """Yield for how many users a loss may not hold: as a chance that it is any, below one."""
    users = result.users
    if not delta or not users:
        return
    failing = delta * users
    means = f"expect ε to fail for at most {failing:,.3g} people"
    if failing < 1:
        # Rounded up; what is more likely than not is no 1 in a number.
        chance = f"{100 * failing:.0f} %" if failing > 0.5 else f"1 in {math.floor(1.000001 / failing):,}"
        means = f"a chance of at most {chance} that ε fails for anybody"
    yield f"δ × {users:,.0f} users = {failing:.2g}: {means}."


def _with(delta: float) -> str:
    return f" with δ = {delta:g}" if delta else ""


def _repeated(subject: Subject) -> Iterator[str]:
    result, terms = subject.result, subject.terms
    if subject.silent:
        yield "Nothing."
    if subject.silent or subject.loss is None or terms is None:
        return
    if terms.repetitions is None:
        collections = plural(terms.collections, "collection") if terms.collections else "collections"
        yield f"The figures above count all {collections} of the schedule."
        return
    yield from _by_whom(subject)
    times, epsilon, delta = terms.repetitions, subject.loss[0], result.delta or 0.0
    if rating := result.epsilon("rating"):
        yield f"{subject.least}: ε = {loss(times * rating)}, {_sure(times * rating)}."
    basic = result.epsilon("user")
    total = times * (epsilon if basic is None else basic)
    added = times * delta if basic is None else 0.0
    yield f"{subject.busiest.capitalize()}, added up: ε = {loss(total)}{_with(added)}, {_sure(total)}."
    yield from _failing(result, added)
    composed = terms.epsilon_repeated
    if composed is None and result.composed is not None:
        yield f"A more exact calculation has no figure at δ = {delta:g}; the sum holds."
    elif composed is not None and loss(composed) != loss(total):
        yield f"By a more exact calculation: ε = {loss(composed)}{_with(delta)}, {_sure(composed)}."
    yield from _any_two_repeated(subject, times, total if composed is None else min(total, composed))
    if terms.increments:
        yield "A schedule (increments) that answers about all once and repeats the answer costs nothing more."


def _any_two_repeated(subject: Subject, times: int, epsilon_of_one: float) -> Iterator[str]:
    """Yield what repetitions tell of two profiles, unless it is what they tell of one: ``epsilon_of_one``."""
    if subject.terms is None or subject.between is None:
        return
    once, delta = subject.between
    epsilon, counted = times * once, subject.terms.any_two_repeated
    delta *= times
    if counted is not None and loss(counted) != loss(epsilon):
        epsilon, delta = counted, subject.result.delta or 0.0
    if loss(epsilon) != loss(epsilon_of_one):
        yield f"Which of two profiles a user has: ε = {loss(epsilon)}{_with(delta)}, {_sure(epsilon)}."


def _told(subject: Subject) -> Iterator[str]:
    result, summary = subject.result, subject.summary
    predicted = summary is not None and not summary.traffic.downlink.payload_bytes
    origin = "Recommendations are made" if predicted else "What they are sent is made"
    proved = result.status not in ("none", "declared") and (result.private or result.composed is not None)
    if subject.silent:
        yield "Nothing: nothing is sent."
    elif not proved:
        yield f"{origin} from everybody's data; no ε is proved."
    elif result.hides:
        yield f"{origin} from what ε covers, so the same ε holds against them."
    else:
        yield "Ratings: the same ε holds against them."
        yield from _told_of_sets(subject.stated, result.delta or 0.0, origin)


def _told_of_sets(terms: Terms | Assumptions, delta: float, origin: str) -> Iterator[str]:
    """Yield what holds of item sets that the server sees; ``origin``: how what others receive is made."""
    noise, apart = terms.embeddings_epsilon, terms.embeddings_any_two
    if noise is None:
        yield f"Item sets: not covered. {origin} from them without noise."
        return
    any_two = "" if apart is None else f", {loss(apart)} between any two"
    bound = f"ε = {loss(noise)} for a set or none{any_two}{_with(delta)}"
    yield f"Item sets: {bound}, by noise."
    if terms.uncovered:
        yield f"Not covered: {terms.uncovered}."


_SIMULATED: dict[Trust, str] = {
    "local": "The server can delete a user's reports and learn again without them; what was learned, or sent "
    "to others, stays.",
    "shuffle": "Nothing that was sent: messages carry no sender.",
    "secure-aggregation": "Nothing that was sent: no part can be taken out of a sum.",
    "central": "The server can delete a user's data; what was released stays.",
}

_DELETED = (
    "Reports are deleted when the run is complete. What was learned, or sent to others, stays, and cannot be "
    "computed again without a user."
)
_WITHDRAWN: dict[Devices, dict[Trust, str]] = {
    "simulated": _SIMULATED,
    "deployed": {**_SIMULATED, "local": _DELETED, "central": _DELETED},
}
"""What can be withdrawn, by whose devices sent it and whom they trust."""


def _withdrawn(subject: Subject) -> Iterator[str]:
    if subject.silent:
        yield "Nothing was sent."
        return
    if subject.stated.named_sets:
        yield "The server can delete item sets, sent under users' names; reports of ratings carry no sender."
    elif subject.stated.proxy:
        yield "Nothing that was sent: a proxy strips senders."
    else:
        yield _WITHDRAWN[subject.devices][subject.result.needed_trust]


_UNPROVED: dict[Status, str] = {
    "claimed": "Less than the paper claims: its proof has a gap.",
    "declared": "Nothing: ε is the word of whoever wrote the code.",
    "none": "Nothing, and nothing is promised.",
}

_PROVED: dict[Trust, str] = {
    "local": "whatever is known besides or done later with what was sent.",
    "shuffle": "provided one shuffler is honest and the other reports are drawn as the protocol says.",
    "secure-aggregation": "provided the server follows the protocol{helped} and the masks hold, which is "
    "cryptography.",
    "central": "against everybody except the server.",
}
"""Under which condition a proof holds."""


def _known(subject: Subject) -> Iterator[str]:
    result = subject.result
    if result.status != "proved":
        yield _UNPROVED[result.status]
        return
    colluders = subject.stated.colluders
    helped = "" if colluders is None else f", at most {plural(colluders, 'device')} help it"
    trust: Trust = "local" if subject.silent else result.needed_trust
    yield f"All ε above, by mathematics, {_PROVED[trust].format(helped=helped)}"


@dataclass(frozen=True)
class _Question:
    """What an officer asks."""

    words: str
    answer: Callable[[Subject], Iterator[str]]


_QUESTIONS = (
    _Question("Who sees what?", _seen),
    _Question("Who adds up, and what if it deviates?", _deviating),
    _Question("Which colluders and dropouts are assumed?", _assumed),
    _Question("What does a guess of 50 % become, at most?", _meaning),
    _Question(f"What do {REPETITIONS} repetitions add up to?", _repeated),
    _Question("What do other customers learn from what they are sent?", _told),
    _Question("What can be withdrawn?", _withdrawn),
    _Question("What is proved?", _known),
)
