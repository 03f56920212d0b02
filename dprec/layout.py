"""What ratings must be, and their division into a train and a test part, whoever's code has made them."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dprec.arrays import find
from dprec.components import is_ours, reference_of
from dprec.errors import InputError
from dprec.ratings import ColdRatings, Ratings

LAYOUT = "Ratings by user, items ascending, each pair once, as Ratings.from_triples makes them"
DIVISION = "train and test Ratings in one space of users and items, and no rating in both"
ROWS = "positions of test ratings, from 0 to their number less 1, each once"
_EMPTY = "no rating"


def layout_defect(ratings: Any) -> str | None:
    """Return how a value differs from ratings in the layout of `dprec.ratings.Ratings`; None if it does not.

    An instance without a rating is one of the defects.
    """
    if not isinstance(ratings, Ratings):
        return f"a value of type {type(ratings).__name__}"
    return next(_defects_of(ratings), None)


def _defects_of(ratings: Ratings) -> Iterator[str]:
    """Yield what is wrong, each time on the ground that nothing was wrong before."""
    for name, kinds in (
        ("indptr", "iu"),
        ("items", "iu"),
        ("levels", "iu"),
        ("user_ids", ""),
        ("item_ids", ""),
    ):
        column = getattr(ratings, name)
        if not isinstance(column, np.ndarray) or column.ndim != 1:
            yield f"{name} that are no array of one dimension"
        elif kinds and column.dtype.kind not in kinds:
            yield f"{name} of type {column.dtype}"
    indptr, items, levels = ratings.indptr, ratings.items, ratings.levels
    if indptr.size != ratings.n_users + 1:
        yield f"{ratings.n_users} user_ids, and indptr of {indptr.size}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        yield f"indptr from {indptr[0]}" if indptr[0] else "indptr that falls"
    columns = [items, levels, *(column for column in _optional(ratings) if column is not None)]
    if any(np.shape(column) != (indptr[-1],) for column in columns):
        yield "arrays of other lengths"
    if not items.size:
        yield _EMPTY
    if items.min() < 0 or items.max() >= ratings.n_items:
        yield f"item {min(items.min(), 0) or items.max()} of {ratings.n_items}"
    # Users are contiguous, so that items may fall from one user to the next alone.
    unordered = items[1:] <= items[:-1]
    starts = indptr[1:-1]
    unordered[starts[(starts > 0) & (starts < items.size)] - 1] = False
    if unordered.any():
        yield f"{np.count_nonzero(unordered)} items that do not ascend within their user"
    if levels.min() < 1 or levels.max() > ratings.scale.levels:
        yield f"level {levels.min() if levels.min() < 1 else levels.max()} of {ratings.scale.levels}"
    for name in ("user_ids", "item_ids"):
        if np.unique(getattr(ratings, name)).size != getattr(ratings, name).size:
            yield f"{name} of which some are alike"


def _optional(ratings: Ratings) -> tuple[Any, ...]:
    return ratings.exact, ratings.times, ratings.lines


def division_defect(parts: Any) -> str | None:
    """Return how a value differs from a train and a test part, as `dprec.splits.Split.split` returns them.

    None if it does not.
    """
    if not isinstance(parts, tuple) or len(parts) != 2:
        size = f" of {len(parts)}" if isinstance(parts, tuple) else ""
        return f"a value of type {type(parts).__name__}{size}"
    train, test = parts
    named: dict[str, Any] = {"train": train, "test": test}
    if isinstance(test, ColdRatings):
        named["given"] = test.given
    for name, part in named.items():
        # Cold users may have nothing but what they are tested on.
        if (defect := layout_defect(part)) is not None and (name, defect) != ("given", _EMPTY):
            return f"a {name} part with {defect}"
    if isinstance(test, ColdRatings):
        if np.isin(test.user_ids, train.user_ids).any():
            return "cold users who are among those of the train part"
        return _apart(test.given, test, "given", "user_ids") or _apart(train, test, "train")
    return _apart(train, test, "train", "user_ids")


def _apart(first: Ratings, test: Ratings, name: str, *ids: str) -> str | None:
    """Return why a part and the test part are not in one space, or which rating is in both; None if neither.

    ``ids``: those that are the same in both beside the items; without, no rating can be in both.
    """
    for column in ("item_ids", *ids):
        if not np.array_equal(getattr(first, column), getattr(test, column)):
            return f"other {column} in the test part than in the {name} part"
    scale, other = first.scale, test.scale
    if not np.array_equal(scale.values, other.values) or scale.continuous != other.continuous:
        return f"another scale in the test part than in the {name} part"
    if not ids:
        return None
    _, shared = find(first.cells, test.cells)
    if not shared.any():
        return None
    place = int(np.argmax(shared))
    user, item = test.user_ids[test.users[place]], test.item_ids[test.items[place]]
    n_shared = np.count_nonzero(shared)
    return (
        f"{n_shared} of {test.count} test ratings in the {name} part too, as of user {user} and item {item}"
    )


def rows_defect(rows: Any, count: int) -> str | None:
    """Return how a value differs from distinct positions among so many ratings; None if it does not."""
    if not isinstance(rows, np.ndarray) or rows.ndim != 1 or rows.dtype.kind not in "iu":
        shape = f" of {rows.dtype}, shape {rows.shape}" if isinstance(rows, np.ndarray) else ""
        return f"a value of type {type(rows).__name__}{shape}"
    wrong = rows[(rows < 0) | (rows >= count)]
    if wrong.size:
        return f"position {wrong[0]} of {count} ratings"
    chosen = np.zeros(count, dtype=np.bool_)
    chosen[rows] = True
    repeated = rows.size - np.count_nonzero(chosen)
    return f"{repeated} of {rows.size} positions that are there before" if repeated else None


def check_returned(cls: type[Any], method: str, defect_of: Callable[..., str | None], accepted: str) -> None:
    """Have what a method of a user-defined class returns refused for a defect; ours stay as they are.

    Parameters
    ----------
    cls : type
        Whose own method it is, if it defines one.
    defect_of : callable
        From what is returned, and the method's arguments, to what is wrong with it; None if nothing is.
    accepted : str
        What is to be returned.
    """
    if method not in cls.__dict__ or is_ours(cls):
        return
    function = cls.__dict__[method]

    @functools.wraps(function)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> Any:
        returned = function(self, *arguments, **keywords)
        if (defect := defect_of(returned, *arguments, **keywords)) is not None:
            raise InputError(reference_of(type(self)), f"its {method} returned {defect}", accepted)
        return returned

    setattr(cls, method, checked)
