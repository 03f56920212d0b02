"""Ratings of items from two domains by overlapping users, in one matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from dprec.arrays import AnyArray, Bools, Int32s
from dprec.errors import InputError
from dprec.rating_rows import Identifiers, RatingRows
from dprec.ratings import Ratings

SEPARATOR = ":"
"""Separates a domain's name from an item's own identifier."""


@dataclass(frozen=True, eq=False)
class CrossDomainRatings(Ratings):
    """Ratings of a source and a target domain; an item's identifier is DOMAIN:ITEM."""

    source: str = field(kw_only=True)
    target: str = field(kw_only=True)
    """Names of the domains; recommendations are made in the target domain."""
    target_start: int = field(kw_only=True)
    target_stop: int = field(kw_only=True)
    """Range of the items of the target domain; all others belong to the source domain."""

    @property
    def in_target(self) -> Bools:
        """Which items belong to the target domain, shape (items,)."""
        items = np.arange(self.n_items)
        return (items >= self.target_start) & (items < self.target_stop)

    @property
    def n_targets(self) -> int:
        """Number of items of the target domain."""
        return self.target_stop - self.target_start

    def straddlers(self) -> Bools:
        """Return which users rated in both domains, shape (users,)."""
        in_target = self.in_target[self.items]
        targets = np.bincount(self.users, weights=in_target, minlength=self.n_users)
        return (targets > 0) & (targets < self.counts)


def joined(source: Ratings, target: Ratings, names: tuple[str, str]) -> CrossDomainRatings:
    """Put two domains of one scale side by side, over the union of their users.

    Their names become part of the items' identifiers. Raises InputError when the names are the same, a domain
    has no rating, or the scales differ.
    """
    if names[0] == names[1]:
        raise InputError("target", f"{names[1]!r}, the source domain itself", "another domain")
    for name, domain in zip(names, (source, target), strict=True):
        if not domain.count:
            raise InputError(f"domain {name}", "no ratings", "two domains with ratings")
    same_values = np.array_equal(source.scale.values, target.scale.values)
    if source.scale.continuous != target.scale.continuous or not same_values:
        found = f"{names[0]}: {source.scale.describe()}; {names[1]}: {target.scale.describe()}"
        raise InputError("scale", found, "the same scale in both domains")
    users = [source.user_ids, target.user_ids]
    if users[0].dtype.kind != users[1].dtype.kind:
        users = [identifiers.astype(np.str_) for identifiers in users]
    items = [
        np.char.add(name + SEPARATOR, domain.item_ids.astype(np.str_))
        for name, domain in zip(names, (source, target), strict=True)
    ]
    columns = _column(users, source.users, target.users), _column(items, source.items, target.items)
    values = np.concatenate([source.values, target.values])
    ratings = Ratings.from_rows(RatingRows.of(*columns, values, "ratings"), source.scale)
    # Identifiers ascend and begin with their domain's name, so each domain is a contiguous range.
    in_target = np.char.startswith(ratings.item_ids, names[1] + SEPARATOR)
    start = int(np.argmax(in_target))
    return CrossDomainRatings(
        **{column.name: getattr(ratings, column.name) for column in fields(Ratings)},
        source=names[0],
        target=names[1],
        target_start=start,
        target_stop=start + int(in_target.sum()),
    )


def _column(identifiers: Sequence[AnyArray], source_places: Int32s, target_places: Int32s) -> Identifiers:
    """Return those of the rows of two domains, given places among each one's identifiers."""
    occurring = Identifiers.of(np.concatenate([source_places, target_places + np.int64(identifiers[0].size)]))
    return Identifiers.of_codes(np.concatenate(identifiers)[occurring.distinct], occurring.places)
