"""What a device answers again in every run (`dprec.schedules.RepeatedAnswers`), and what of it is new.

The words of an answer follow from the rating (`dprec.randomness.MemoisedDraws`), so nothing has to be
remembered to repeat it. What has to be known is what was answered before: a rating that was changed since is
answered as it was first, or at most once more, and what was answered costs nothing again. The ledger says it,
line by line.

How many answers are new depends on the profile. How many may be given, ever, does not: it follows from the
agreement, the limits, and what any profile could have lost before. Where that leaves no room for anything
new, what was answered is repeated, at no cost; so a refusal tells nothing of the profile here either.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dprec.accounting import Loss
from dprec.arrays import Uint64s
from dprec.schedules import RepeatedAnswers
from dprec_pilot.device.folder import Agreement
from dprec_pilot.device.ledger import Charge, Limits, most_lost
from dprec_pilot.device.profile import Profile


@dataclass(frozen=True, eq=False)
class Answers:
    """What is answered of a profile."""

    profile: Profile
    """The ratings as they are reported: at level 0 those that are shown without an answer."""
    new: Profile
    """Those of them that were not answered so before."""
    levels: tuple[tuple[str, int], ...]
    """The same for the ledger: ids of items, and levels."""


@dataclass(frozen=True, eq=False)
class Repetition:
    """What every run repeats under an agreement, and what may be added to it."""

    agreement: Agreement
    remembered: RepeatedAnswers
    """What its protocol says of them."""
    limits: Limits
    charges: Sequence[Charge]
    """The whole ledger."""

    @cached_property
    def begun(self) -> bool:
        """Whether anything was charged for it, as it was if it was ever asked for."""
        return any(charge.memory == self.agreement.memory for charge in self.charges)

    @cached_property
    def most(self) -> Loss:
        """What any profile could lose by it; what one answer costs even where there is no room for it."""
        ratings = self.agreement.items if self._ratings is None else max(self._ratings, 1)
        per_rating = self.remembered.per_rating * self._per_answer
        return Loss(per_rating, ratings * per_rating)

    def answers(
        self, profile: Profile, item_ids: Sequence[str], drawn: Callable[[Profile], Uint64s], *, room: bool
    ) -> Answers:
        """Return what is answered of a profile.

        ``drawn``: from some ratings to a word of each, which decide where not all can be answered about;
        ``room``: whether anything may be answered that was not before.
        """
        before, most_levels = self._before, self.remembered.per_rating if room else 0
        ids, levels = [item_ids[item] for item in profile.items.tolist()], profile.levels
        first = np.flatnonzero([item not in before for item in ids])
        left = first.size if room else 0
        if room and self._ratings is not None:
            left = min(left, max(0, self._ratings - len(before)))
        if left < first.size:
            first = first[np.argsort(drawn(profile.part(first)), kind="stable")[:left]]
        known = np.flatnonzero([item in before for item in ids])
        for place in known.tolist():
            answered = before[ids[place]]
            if levels[place] not in answered and len(answered) >= most_levels:
                levels[place] = answered[-1]
        told = list(zip(ids, levels.tolist(), strict=True))
        kept = np.union1d(known, first)
        new = [place for place in kept.tolist() if told[place][1] not in before.get(ids[place], ())]
        added = profile.with_levels(levels).part(np.array(new, dtype=np.int64))
        levels[np.delete(np.arange(levels.size), kept)] = 0
        whole = profile.with_levels(levels)
        reported = whole if self.remembered.shows_all else whole.part(kept)
        return Answers(reported, added, tuple(told[place] for place in new))

    @cached_property
    def _before(self) -> Mapping[str, Sequence[int]]:
        """The levels that were answered, first to last, by the ids of their items."""
        levels = dict[str, list[int]]()
        for charge in self.charges:
            for item, level in charge.answered if charge.memory == self.agreement.memory else ():
                levels.setdefault(item, []).append(level)
        return levels

    @cached_property
    def _per_answer(self) -> float:
        """The epsilon of one answer."""
        agreement = self.agreement
        family = agreement.protocol.family(agreement.scale, agreement.items)
        assert family is not None, "an agreement without reports"
        return family.most_losses()[0]

    @cached_property
    def _ratings(self) -> int | None:
        """Ratings that may be answered about, ever; None if no limit depends on their number.

        A limit of all runs for the whole profile is a limit of answers.
        """
        ratings, limit = self.remembered.answers_per_user, self.limits.per_user_lifetime
        cost = self.remembered.per_rating * self._per_answer
        if limit is not None and 0 < cost < math.inf:
            others = most_lost(charge for charge in self.charges if charge.memory != self.agreement.memory)
            left = int((limit - others.per_user) / cost)
            ratings = left if ratings is None else min(ratings, left)
        return None if ratings is None else min(ratings, self.agreement.items)
