"""What is taken of a data set before it is split: which ratings make a set, and whose; and copies of users.

Ratings that pass a threshold become positive pairs, on the scale `dprec.ratings.POSITIVE`; the others count
as nothing known, as those below it do in most work on implicit feedback.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dprec.arrays import Bools
from dprec.components import option
from dprec.crossdomain import CrossDomainRatings
from dprec.datasets.base import VALIDATION, Dataset, threshold_of
from dprec.errors import SettingError
from dprec.randomness import generator
from dprec.ratings import POSITIVE, ColdRatings, Ratings


@dataclass(frozen=True, kw_only=True)
class Selected(Dataset):
    """What `positive`, `min_items` and `min_users` leave of a data set; splits divide this in place of it.

    The catalogue stays as it is, since which items there are is public.
    """

    of: Dataset = option("The data set.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kind", self.of.kind)

    def load(self) -> Ratings:
        """Return what is selected of all ratings; see `Dataset.load`."""
        (ratings,) = self._of([self.of.load()])
        return ratings

    def load_timed(self) -> Ratings:
        """Return the same with times; see `Dataset.load_timed`."""
        (ratings,) = self._of([self.of.load_timed()])
        return ratings

    def fold_names(self) -> tuple[str, ...]:
        """Return the names of the splits that come with the data."""
        return self.of.fold_names()

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return what is selected of both parts; what is in any part that comes with the data counts.

        Raises SettingError where nothing is left of one of them.
        """
        parts = list(self.of.load_fold(fold))
        names = self.of.fold_names()
        if VALIDATION in names and (self.of.min_items or self.of.min_users):
            # A run and a tuning keep the same users and items.
            parts += [self.of.load_fold(name)[1] for name in names if name != fold]
        train, test, *_ = self._of(parts)
        for name, part in (("train", train), ("test", test)):
            if not part.count:
                key = "min_users" if self.of.min_items is None else "min_items"
                found = f"{getattr(self.of, key)}, which leaves no {name} ratings"
                raise SettingError(key, found, "numbers that some have in both parts")
        return train, test

    def _of(self, parts: Sequence[Ratings]) -> list[Ratings]:
        if self.of.positive is not None:
            parts = [positives(part, self.of.positive) for part in parts]
        if self.of.min_items is None and self.of.min_users is None:
            return list(parts)
        return core(parts, self.of.min_items or 0, self.of.min_users or 0)


def selected(dataset: Dataset) -> Dataset:
    """Return a data set with its selection applied to all that it loads."""
    return Selected(of=dataset) if dataset.selects else dataset


def core(parts: Sequence[Ratings], min_items: int, min_users: int) -> list[Ratings]:
    """Return the largest part of some ratings in which all users and all items have enough of each other.

    With one number for both, this is the k-core. Where no number of users is asked for, all items stay, even
    those that nobody has. Raises SettingError where nothing is left, and for fewer items of two domains.
    """
    if min_users and isinstance(parts[0], CrossDomainRatings):
        raise SettingError("min_users", "ratings of two domains", "ratings of one")
    users, items = (np.concatenate([getattr(part, name) for part in parts]) for name in ("users", "items"))
    kept_users, kept_items = (np.ones(size, dtype=np.bool_) for size in (parts[0].n_users, parts[0].n_items))
    before = users.size + 1
    while users.size < before:
        before = users.size
        kept_users &= np.bincount(users, minlength=kept_users.size) >= max(min_items, 1)
        kept_items &= np.bincount(items, minlength=kept_items.size) >= min_users
        inside = kept_users[users] & kept_items[items]
        users, items = users[inside], items[inside]
    limits = {name: least for name, least in (("min_items", min_items), ("min_users", min_users)) if least}
    reason = " and ".join(f"{name} {least}" for name, least in limits.items())
    if not users.size:
        raise SettingError(next(iter(limits)), f"{reason}, which leaves nobody", "numbers that some have")
    cores = [_within_core(part, kept_users, kept_items) for part in parts]
    return [inner.without(reason, part.count - inner.count) for inner, part in zip(cores, parts, strict=True)]


def _within_core(ratings: Ratings, users: Bools, items: Bools) -> Ratings:
    """Return the ratings of some users and items, in spaces of these alone."""
    chosen = np.flatnonzero(users)
    chosen_ratings = ratings.of_users(chosen, ratings.user_ids[chosen])
    if items.all():
        return chosen_ratings
    chosen_ratings = chosen_ratings.select(items[chosen_ratings.items])
    places = np.cumsum(items, dtype=np.int32) - 1
    return replace(
        chosen_ratings, items=places[chosen_ratings.items], item_ids=chosen_ratings.item_ids[items]
    )


def positives(ratings: Ratings, rule: str) -> Ratings:
    """Return the pairs whose rating a rule such as ">= 4" accepts, as implicit data.

    Raises SettingError under "positive" for what has no ratings, or two domains, or where no rating passes.
    """
    threshold, included = threshold_of(rule)
    if ratings.scale.implicit or isinstance(ratings, CrossDomainRatings):
        found = "pairs without ratings" if ratings.scale.implicit else "ratings of two domains"
        raise SettingError("positive", f"{rule!r}, of {found}", "nothing, or ratings of one domain")
    values = ratings.values
    passing = values >= threshold if included else values > threshold
    if not passing.any():
        reach = f"from {values.min():g} to {values.max():g}" if values.size else "none"
        accepted = f"a rule for what ratings are: {reach}"
        raise SettingError("positive", f"{rule!r}, which no rating is", accepted)
    pairs = ratings.select(passing).without(f"not {rule}", int((~passing).sum()))
    return replace(pairs, levels=np.ones_like(pairs.levels), scale=POSITIVE, exact=None)


def copied(train: Ratings, test: Ratings, users: int, seed: int) -> tuple[Ratings, Ratings]:
    """Return a population of so many users, made of copies of those that there are.

    Everybody is in it equally often, up to once; who is in it once more is drawn. Only the first of a user's
    copies, the user itself, has test ratings. Of fewer users than there are, a random part remains. Cold
    users are not copied: those who take part are.

    Parameters
    ----------
    users : int
        Size of the population.
    seed : int
        The seed of the run.
    """
    if isinstance(train, CrossDomainRatings):
        raise SettingError("copies", "ratings of two domains", "ratings of one")
    repeats, n_drawn = divmod(users, train.n_users)
    drawn_users = np.sort(generator(seed, "copies").permutation(train.n_users)[:n_drawn])
    cold = isinstance(test, ColdRatings)
    if not repeats:
        fewer = train.of_users(drawn_users, train.user_ids[drawn_users])
        tested = test if cold else test.of_users(drawn_users, test.user_ids[drawn_users])
        if not (fewer.count and tested.count):
            raise SettingError("copies", f"{users}, without a train or a test rating", "more users")
        return fewer, tested
    everybody = np.arange(train.n_users)
    chosen = np.concatenate([*[everybody] * repeats, drawn_users])
    # Copies have identifiers that come after all others.
    count, last = users - train.n_users, np.union1d(train.user_ids, test.user_ids)[-1]
    if train.user_ids.dtype.kind not in "iu":
        further = np.array([f"{last}~{number:010}" for number in range(1, count + 1)], dtype=np.str_)
    elif int(last) + count >= 2**63:
        raise SettingError("copies", f"beside the identifier {last}", "identifiers that leave room")
    else:
        further = last + 1 + np.arange(count)
    user_ids = np.concatenate([train.user_ids, further])
    copies = train.of_users(chosen, user_ids)
    if cold:
        return copies, test
    indptr = np.concatenate([test.indptr, np.full(count, test.count)])
    return copies, replace(test, indptr=indptr, user_ids=user_ids)
