"""What rounds add to what one of them tells: reports on the same ratings, gradients of the same profile.

Of reports in several collections, the likelihoods multiply, and those that repeat one permanent answer are
read as one. Of what devices upload about gradients, the adversary compares each user's numbers with those of
made-up profiles, with an item and without, on the model that it sent down, as in interaction-level membership
inference (Yuan et al. [yuan2023]): a coordinate that is sent in the clear says at once which items
were rated, and one with noise adds a little in every round.

Of reports on ratings there is no bound, as in `dprec.attacks.reconstruction`. By gradients users are compared
within an item by the same score, so the area has the bound of "pairs" in `dprec.attacks.bounds`: two users
who differ in an item may differ in all. What chance adds is of users, however many items they are compared
about (`pairs_of`).
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints, offsets
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import FAILURE, between_users, on_bounds
from dprec.attacks.reconstruction import guessed
from dprec.attacks.seen import ItemShares
from dprec.attacks.transcript import Upload
from dprec.completion import Profiles
from dprec.components import option
from dprec.errors import InputError
from dprec.observations import Observations
from dprec.randomness import generator
from dprec.ratings import Ratings

_AT_ONCE = 1 << 22
"""Numbers of made-up devices that are held at once."""

_FEW = 5.0
"""Made-up raters of an item, as many as whom those of all items count together."""

_LEAST = 1e-12
"""Variance of a number that does not vary."""


@dataclass(frozen=True, kw_only=True)
class Rounds(Attack):
    """Ratings from the reports of several rounds, and rated items from gradients, after one round and all."""

    kind: Literal["rounds"] = "rounds"
    named: ClassVar[tuple[str, ...]] = (
        *(f"rounds_{what}{when}" for what in ("level", "sign") for when in ("", "_half", "_first")),
        "rounds_membership_auc",
        "rounds_membership_auc_first",
    )
    """What is recovered after all rounds, after half of them, and after the first."""
    made_up: int = option("Profiles that are made up from what is public of the items.", 2000, ge=10)
    users: int = option("Users whose items are inferred from gradients, drawn at random.", 2000, ge=2)

    def perform(self, game: Game) -> Attacked:
        """Attack reports, where they are of several rounds, and uploads, where there are any."""
        figures = {name: Figure(None) for name in self.figures()}
        notes: list[str] = []
        if len(game.transcript.reports) > 1:
            figures |= self._recovered(game, notes)
        if game.transcript.uploads:
            figures |= self._memberships(game, notes)
        return Attacked(figures, tuple(notes))

    def _recovered(self, game: Game, notes: list[str]) -> dict[str, Figure]:
        """Return what all reports about a rating tell, the first half of them, and the first."""
        try:
            joined = Observations.joined(game.transcript.reports)
        except InputError as error:
            notes.append(str(error))
            return {}
        cells = joined.users.astype(np.int64) * joined.shape[1] + joined.items
        begins, times = joined.repeats
        turns = np.arange(cells.size) - np.repeat(begins, times)
        answered = game.truth.select(np.isin(game.truth.cells, cells))
        figures: dict[str, Figure] = {}
        for when, counted in (("", times), ("_half", -(-times // 2)), ("_first", np.ones_like(times))):
            counted_reports = joined.select(turns < np.repeat(counted, times))
            observed, trusted = game.transcript.read_together(counted_reports), game.transcript.trusted
            level, sign = guessed(answered, (observed,), trusted=trusted, of_users=False)
            figures |= {f"rounds_level{when}": level, f"rounds_sign{when}": sign}
        mean_times = times.mean() if times.size else 0.0
        notes.append(f"Of ratings with a report there are {mean_times:.3g} reports each, in all rounds.")
        return figures

    def _memberships(self, game: Game, notes: list[str]) -> dict[str, Figure]:
        """Return how well the uploads of one round, and of all, rank users by whether they rated an item."""
        truth, uploads = game.truth, game.transcript.uploads
        random = generator(game.seed, "profiles that an attack makes up")
        people = np.sort(random.permutation(truth.n_users)[: self.users])
        made_up = profiles_like(truth, self.made_up, random)
        rated = truth.to_sets()[people].toarray() > 0
        curve, pairs = between_users(game), pairs_of(rated)
        bound = None if curve is None else min(1.0, curve.auc + math.sqrt(-math.log(FAILURE) / (2 * pairs)))
        evidence = np.zeros((people.size, truth.n_items))
        figures: dict[str, Figure] = {}
        for upload in uploads:
            evidence += evidence_of(upload, people, made_up)
            figure = Figure(within_items(evidence, rated), 0.5, bound)
            figures.setdefault("rounds_membership_auc_first", figure)
            figures["rounds_membership_auc"] = figure
        share = np.count_nonzero(evidence) / max(evidence.size, 1)
        pairs_told = f"{100 * share:.3g} % of all pairs of a user and an item"
        notes.append(f"Uploads tell something of {pairs_told}; others rank alike.")
        if curve is not None and bound is not None:
            notes += on_bounds({"rounds_membership_auc": (curve.auc, bound)})
        return figures


def profiles_like(ratings: Ratings, count: int, random: np.random.Generator) -> Profiles:
    """Return profiles in which every item is rated as often, and in which way, as by all users."""
    item_shares = ItemShares.of(ratings)
    had = random.random((count, ratings.n_items)) < item_shares.popularity
    _, items = had.nonzero()
    values = np.full(items.size, np.nan)
    if not ratings.scale.implicit:
        passed = random.random(items.size)[:, None] >= item_shares.shares.cumsum(axis=1)[items, :-1]
        values = ratings.scale.values[passed.sum(axis=1)]
    return Profiles(offsets(had.sum(axis=1)), items.astype(np.int32), values, ratings.n_items)


def _moments(upload: Upload, made_up: Profiles) -> tuple[Floats, Floats]:
    """Return mean and variance of the numbers of made-up devices: of those without an item, and with it.

    Few with an item are joined by those of all items. Of numbers that are each about one item, shape (2,
    numbers); else (2, numbers, items).
    """
    devices, n_items, per_item = made_up.n_users, made_up.n_items, upload.per_item
    totals, sums = np.zeros((2, upload.n_numbers)), []
    step = max(1, _AT_ONCE // upload.n_numbers)
    for start in range(0, devices, step):
        block = made_up.of_users(np.arange(start, min(start + step, devices)))
        numbers = upload.compute(block)
        totals += numbers.sum(axis=0), (numbers**2).sum(axis=0)
        # Over devices with an item: shape (2, numbers of an item, items), or of all (2, numbers, items).
        if per_item is None:
            sets = block.to_sets().T
            sums.append(np.stack([(sets @ powers).T for powers in (numbers, numbers**2)]))
        else:
            of_ratings = numbers.reshape(block.n_users, n_items, per_item)[block.users, block.items]
            columns = [*of_ratings.T, *(of_ratings.T**2)]
            summed = [np.bincount(block.items, column, n_items) for column in columns]
            sums.append(np.reshape(summed, (2, per_item, n_items)))
    of_raters = np.sum(sums, axis=0)
    raters = np.bincount(made_up.items, minlength=n_items).astype(np.float64)
    mean_moments = of_raters.sum(axis=2, keepdims=True) / max(raters.sum(), 1)
    with_item = (of_raters + _FEW * mean_moments) / (raters + _FEW)
    of_all = totals.reshape(2, 1 if per_item is None else n_items, -1).swapaxes(1, 2)
    without = (of_all - of_raters) / np.maximum(devices - raters, 1)
    moments = np.stack([without, with_item])
    if per_item is not None:
        moments = moments.swapaxes(2, 3).reshape(2, 2, -1)
    means, squares = moments[:, 0], moments[:, 1]
    return means, np.maximum(squares - means**2, _LEAST)


def evidence_of(upload: Upload, users: Ints, made_up: Profiles) -> Floats:
    """Return the log likelihood ratios of what users sent, of items rated to items not rated.

    Shape (users, items).
    """
    n_items = made_up.n_items
    evidence, place = np.zeros((users.size, n_items)), np.full(upload.n_users, -1)
    place[users] = np.arange(users.size)
    moments = None if upload.shows_items else _moments(upload, made_up)
    for part in upload.read():
        places = place[part.users]
        present = places >= 0
        rows, numbers, answers = places[present], part.numbers[present], part.answers[present]
        if upload.per_item is None:
            np.add.at(evidence, rows, _log_ratios(upload, moments, numbers, answers[:, None]))
        else:
            cells = rows * n_items + numbers // upload.per_item
            log_ratios = _log_ratios(upload, moments, numbers, answers)
            evidence += np.bincount(cells, log_ratios, evidence.size).reshape(evidence.shape)
    return evidence


def _log_ratios(
    upload: Upload, moments: tuple[Floats, Floats] | None, numbers: Ints, answers: Floats
) -> Floats:
    """Return how much likelier answers are with an item than without; 1 if that there are any says it."""
    if moments is None:
        return np.ones_like(answers)
    without, with_item = (
        upload.likelihood(answers, means[numbers], variances[numbers])
        for means, variances in zip(*moments, strict=True)
    )
    return with_item - without


def pairs_of(rated: Bools) -> float:
    """Return how many independent pairs of users tell as much of an area within items as all of them do.

    Two users are compared about the c items that one of them rated. All pairs fall into n - 1 rounds (n, if
    odd) in each of which nobody is in two. So the mean of all comparisons is above its expectation by t with
    probability exp(-2 t^2 (sum of c)^2 / (rounds (sum of c^2))) at most (Janson [janson2004], Theorem 2.1, in
    whose proof "pairs" take the place of independence): as that of (sum of c)^2 / (rounds (sum of c^2))
    decisions, which is n / 2 if all c are alike.

    ``rated``, shape (users, items).
    """
    indicators = rated.astype(np.float64)
    counts, users = indicators.sum(axis=1), len(indicators)
    compared = counts[:, None] + counts - 2 * (indicators @ indicators.T)
    squared, rounds = float((compared**2).sum()) / 2, users - 1 + users % 2
    return (float(compared.sum()) / 2) ** 2 / (rounds * squared) if squared else 1.0


def within_items(scores: Floats, rated: Bools) -> float | None:
    """Return how likely a user who rated an item is to score above one who did not, over all such pairs.

    None where every item was rated by everybody or nobody.

    Parameters
    ----------
    scores, rated : ndarray, shape (users, items)
    """
    from scipy.stats import rankdata  # as in `dprec.auditing`

    raters = rated.sum(axis=0)
    ranks = (rankdata(scores, axis=0) * rated).sum(axis=0)
    pairs = int((raters * (len(rated) - raters)).sum())
    return float((ranks - raters * (raters + 1) / 2).sum() / pairs) if pairs else None
