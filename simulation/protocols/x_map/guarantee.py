"""What X-Map promises, to whom, and what is missing from a proof."""

from __future__ import annotations

from dprec.crossdomain.alter_ego import ReplacementOptions
from dprec.crossdomain.recommender import RecommendationOptions
from dprec.mechanisms import Mechanism
from dprec.privacy.ledger import Guarantee

_SUMS = (
    "Epsilon per rating is what is claimed, for one replacement and one prediction; epsilon per user adds "
    "up the replacements of the user's whole AlterEgo and a prediction for every item of the target "
    "domain. Both cover what one recipient sees: recipients who pool what they see add theirs up."
)


def guarantee_of(
    mechanism: Mechanism, replacement: ReplacementOptions, recommendation: RecommendationOptions
) -> Guarantee:
    """Return what the users are promised.

    With a private mechanism on the device, this is the mechanism's promise; otherwise the server is
    trusted, and replacement and recommendation protect against those who see their results.
    """
    if mechanism.private:
        return _guarantee_of_uploads(mechanism)
    notes = ["Trusted server: it receives the true ratings of both domains."]
    if not replacement.private and recommendation.epsilon is None:
        notes.append("No privacy: AlterEgos and predictions reveal other users' ratings.")
    if replacement.private:
        notes.append(_note_on_replacement(replacement))
    if recommendation.epsilon is not None:
        notes.append(_note_on_recommendation(recommendation, recommendation.epsilon))
    if replacement.private and recommendation.epsilon is not None:
        notes.append(_SUMS)
    return Guarantee(trusts_server=True, hides_rated_items=False, notes=tuple(notes))


def _guarantee_of_uploads(mechanism: Mechanism) -> Guarantee:
    hides = mechanism.hides_rated_items
    which = "Which items a user rated is hidden" if hides else "Which items a user rated is not hidden"
    note = f"{which}; X-Sim, AlterEgos and predictions follow from the reports and cost no privacy."
    return Guarantee(trusts_server=False, hides_rated_items=hides, notes=(note,))


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
    measure = (
        "Theorem 2's similarity-based sensitivity is computed from these ratings: it is local, and noise of "
        "that size does not give differential privacy"
        if options.sensitivity == "local"
        else "the sensitivity is the width of the similarity's range"
    )
    return (
        f"Recommendation: PNSA spends {half:g} and PNCF {half:g} on one prediction, for two target domains "
        f"that differ in one user; {measure}. PNCF's noise is calibrated to one similarity, but a prediction "
        f"uses {options.neighbors}; the items' means enter it without noise."
    )
