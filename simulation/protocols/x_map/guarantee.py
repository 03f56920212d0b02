"""What X-Map promises, to whom, and what is missing from a proof."""

from __future__ import annotations

from dprec.accounting import Guarantee
from dprec.crossdomain import RecommendationOptions, ReplacementOptions
from dprec.mechanisms import Mechanism
from simulation.protocols.accounting import EXACT_CHANNEL

_SUMS = (
    "The epsilon per rating that is claimed covers one replacement, if there is any, and one prediction; the "
    "claim per user adds up the replacements of the user's whole AlterEgo and a prediction for every item of "
    "the target domain. Both cover what one recipient sees: recipients who pool what they see add theirs up."
)


def guarantee_of(
    mechanism: Mechanism, replacement: ReplacementOptions, recommendation: RecommendationOptions
) -> Guarantee:
    """Return what the users are promised.

    With a private mechanism on the device, this is the mechanism's promise; otherwise the server is
    trusted, and replacement and recommendation are claimed to protect against those who see their
    results. If only one of the two is private, the other reveals ratings, and nothing is claimed.
    """
    if mechanism.private:
        return _guarantee_of_uploads(mechanism)
    notes = ["Trusted server: it receives the true ratings of both domains."]
    if replacement.private:
        notes.append(_note_on_replacement(replacement))
    if recommendation.epsilon is not None:
        notes.append(_note_on_recommendation(recommendation, recommendation.epsilon))
    if unprotected := unprotected_results(replacement, recommendation):
        reason = f"{' and '.join(unprotected)} reveal other users' ratings."
        return Guarantee("none", "central", False, reason, tuple(notes))
    return Guarantee("claimed", "central", False, _missing(replacement, recommendation), (*notes, _SUMS))


def unprotected_results(
    replacement: ReplacementOptions, recommendation: RecommendationOptions
) -> tuple[str, ...]:
    """Name what others see of a trusted server's work without any noise."""
    replaced = ("AlterEgos",) if replacement.selection not in ("private", "none") else ()
    return replaced if recommendation.epsilon is not None else (*replaced, "predictions")


def _guarantee_of_uploads(mechanism: Mechanism) -> Guarantee:
    hides = mechanism.report_family.hides_items
    which = "Which items a user rated is hidden" if hides else "Which items a user rated is not hidden"
    told = "" if hides else ", and show other users something of which items were rated"
    note = (
        f"{which}; X-Sim, AlterEgos and predictions follow from the reports: they tell no more of the values "
        f"than these do{told}."
    )
    return Guarantee("proved", "local", hides, f"{EXACT_CHANNEL}.", (note,))


def _missing(replacement: ReplacementOptions, recommendation: RecommendationOptions) -> str:
    """Return what a proof of the claimed epsilon would need."""
    missing = ["the items' means enter predictions without noise"]
    if replacement.private and not replacement.whole_catalogue:
        missing.append("which replacements can be drawn depends on the ratings")
    if recommendation.neighbors > 1:
        used = recommendation.neighbors
        adds = "PNCF (private neighbourhood-based collaborative filtering) adds the noise of one similarity"
        missing.append(f"{adds}, and a prediction uses {used}")
    if recommendation.sensitivity == "local":
        missing.append("the sensitivity is that of these ratings, not of any")
    missing.append("recipients who pool what they see are not accounted for")
    return f"{'; '.join(missing)}."


def _note_on_replacement(options: ReplacementOptions) -> str:
    over = (
        "all target items"
        if options.candidates == "catalogue"
        else "the target items with an X-Sim value: which these are, and which items have none and are not "
        "replaced, must be the same for both data sets"
    )
    means = (
        " The mean ratings of the source items are sent to it and enter the AlterEgo without noise."
        if options.deviations
        else ""
    )
    return (
        f"Private replacement: each draw is {options.epsilon:g}-private for two data sets that differ in one "
        f"user, over {over}. It protects the users whose ratings X-Sim was computed from against those who "
        f"see the AlterEgo; the device itself is sent the X-Sim values of its items without noise.{means}"
    )


def _note_on_recommendation(options: RecommendationOptions, epsilon: float) -> str:
    half = epsilon / 2
    metric = (
        "Theorem 2's similarity-based sensitivity is computed from these ratings: it is local, and noise of "
        "that size does not give differential privacy"
        if options.sensitivity == "local"
        else "the sensitivity is the width of the similarity's range"
    )
    return (
        f"Recommendation: PNSA (private neighbour selection) spends {half:g} and PNCF {half:g} on one "
        f"prediction, for two target domains that differ in one user; {metric}. PNCF's noise is calibrated "
        f"to one similarity, but a prediction uses {options.neighbors}; the items' means enter it without "
        "noise."
    )
