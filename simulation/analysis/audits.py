"""How strong the tests of an audit are, in words."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

STRENGTHS = {"strong": 0.95, "moderate": 0.5, "weak": 0.0}
"""What tests are called that see a leak with at least such a probability."""


def strength_in_words(power: float) -> str:
    """Write how strong a test is, by a lower bound on the probability that it sees a leak."""
    return next(word for word, least in STRENGTHS.items() if power >= least)


def probability(power: float) -> str:
    """Write a lower bound on the probability that a test sees a leak."""
    return "above 0.99" if power >= 0.995 else f"{power:.2f} or more"


def strength_of_tests(findings: Sequence[Mapping[str, Any]]) -> str:
    """Say how strong the strongest test by samples is, and how many are weak; nothing without any.

    ``findings``: as audit.json has them. Those without a promise look for noise that is reused.
    """
    by_samples = [finding for finding in findings if not finding["exact"]]
    of_promises = [finding for finding in by_samples if finding["promised"]]
    if not of_promises:
        return ""
    strongest = max(of_promises, key=itemgetter("power"))
    test, power = strongest["test"], strongest["power"]
    seen = (
        f'The strongest test by samples, "{test}", is {strength_in_words(power)}: it would see '
        f"a leak of twice the promise with probability {probability(power)}."
    )
    weak = sum(strength_in_words(finding["power"]) == "weak" for finding in by_samples)
    if not weak:
        return seen
    are, them = ("is", "it") if weak == 1 else ("are", "them")
    weaker = f"{weak} of the {len(by_samples)} tests by samples {are} weak, below {STRENGTHS['moderate']:g}"
    return f"{seen} {weaker}: more --trials would make {them} stronger."
