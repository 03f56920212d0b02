"""What an audit computes without samples: the losses of the matrices that devices apply."""

from __future__ import annotations

from collections.abc import Iterator

from dprec.accounting import worst_pair
from dprec.exchange import GradientPerturbationSetup, IterativeSetup
from dprec.ratings import Ratings, RatingScale
from simulation.auditing.decoding import channel_of, family_of
from simulation.auditing.experiments import of_profiles
from simulation.auditing.promise import Promise
from simulation.auditing.result import Finding
from simulation.protocols.base import Protocol
from simulation.protocols.declared import declaring


def exact_findings(
    protocol: Protocol, promise: Promise, scale: RatingScale, fewest_items: int
) -> Iterator[Finding]:
    """Yield the exact losses of one entry, and of the three entries of a profile.

    A loss that a class from outside declares is computed from nothing, and is not among them.

    Parameters
    ----------
    scale : RatingScale
        Of the ratings.
    fewest_items : int
        Of the catalogue.
    """
    if declaring(protocol):
        return
    setup = protocol.setup()
    if isinstance(setup, IterativeSetup) and setup.epsilon_per_round is not None:
        loss = setup.gradient.exact_epsilon(setup.epsilon_per_round) * setup.rounds
        yield _finding("answers of all rounds, as probabilities", promise, 1, loss)
    for entries in (1, 3):
        held = _held(protocol, scale, fewest_items)
        family, channel = family_of(protocol, held), channel_of(protocol, held, entries)
        losses = [] if family is None else list(family.exact_losses(entries))
        if channel is not None and isinstance(setup, GradientPerturbationSetup):
            text = "all pairs of levels, from the matrix" + (f", {entries} entries" if entries > 1 else "")
            losses.append((text, worst_pair(channel.weights)[0] * entries * setup.rounds))
        yield from (_finding(text, promise, entries, loss) for text, loss in losses)


def worst_levels(protocol: Protocol, scale: RatingScale, entries: int, fewest_items: int) -> tuple[int, int]:
    """Return the two levels of a rating that devices separate most when they report so many entries.

    If the device's matrix has other inputs than the levels of the scale, these are the extremes.
    """
    channel = channel_of(protocol, _held(protocol, scale, fewest_items), entries)
    if channel is None:
        return 1, scale.levels
    rated = channel.weights[1 - channel.first_level :]
    if len(rated) != scale.levels:
        return 1, scale.levels
    low, high = worst_pair(rated)[1]
    return low + 1, high + 1


def _held(protocol: Protocol, scale: RatingScale, fewest_items: int) -> Ratings:
    """Return three ratings as devices would hold them, for their scale and catalogue."""
    return protocol.held_ratings(of_profiles((1, scale.levels)).population(1, scale, fewest_items), 0)


def _finding(test: str, promise: Promise, entries: int, loss: float) -> Finding:
    promised, unit = promise.loss(entries), promise.unit_of(entries)
    return Finding(test, unit, promised, loss, None, exact=True, power=1.0)
