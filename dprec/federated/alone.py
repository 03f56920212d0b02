"""Whether what a model computes of a user follows from that user's ratings alone.

Clipping bounds what a user adds to a sum, and so what it moves, only if no other row moves with it. A model
is given whole partitions, so its code could mix them, remember an earlier one, or draw at random. What is
checked is a sample: rows of a partition beside those of its users alone, of two of them together, and once
more. Sums of other lengths are rounded otherwise, so rows may differ by half the digits of their precision:
of a clip, 1.5e-8 in double and 3.5e-4 in single precision. What is sent is rounded to steps, 2^-14 of a clip:
numbers that differ by less are sent alike unless they lie on either side of a step's edge.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from dprec.arrays import Floats, Ints, offsets
from dprec.completion import Profiles
from dprec.components import reference_of
from dprec.errors import InputError
from dprec.federated.updates import FederatedModel, Parameters, UpdateCode
from dprec.predictions import Predict
from dprec.randomness import generator
from dprec.ratings import RatingScale

FROM_ONE_USER = "what follows from each user's ratings alone, the same however often it is computed"

_LINE = re.compile(rf"(\S+:\S+): ((?:updates|predictions|contributions) of .*); accepted: {FROM_ONE_USER}")


class ContractError(InputError):
    """Code from outside by which rows of users depend on more than their ratings: no device is at fault."""

    @classmethod
    def in_words(cls, reason: str) -> "ContractError | None":
        """Return the error whose line is in a reason; None if there is none."""
        told = _LINE.search(reason)
        return None if told is None else cls(told[1], told[2], FROM_ONE_USER)


def check_updates(
    model: FederatedModel,
    code: UpdateCode,
    parameters: Parameters,
    profiles: Profiles,
    updates: Parameters,
    users: Ints,
) -> None:
    """Raise ContractError unless the updates of up to two users of a partition are those of each alone.

    ``updates``: of the whole partition; ``users``: their places in it.
    """
    precision = _precision(updates)
    for chosen in _groups(users):
        rows = code.scaled(tuple(each[chosen] for each in updates))
        again = code.scaled(model.updates(parameters, profiles.of_users(chosen)))
        apart = float(np.linalg.norm(rows - again, axis=1).max())
        if not apart <= precision:
            _refuse(model, "updates", chosen, f"{apart:.3g} clips")


def check_predictions(
    model: FederatedModel, parameters: Parameters, profiles: Profiles, predict: Predict, users: Ints
) -> None:
    """Raise ContractError unless predictions for up to two users of a partition are those for each alone.

    ``predict``: for the whole partition; ``users``: their places in it.
    """
    items = np.arange(profiles.n_items)
    for chosen in _groups(users):
        own = model.predictor(parameters, profiles.of_users(chosen))
        rows = np.repeat(np.arange(chosen.size), items.size), np.tile(items, chosen.size)
        known, again = predict(chosen[rows[0]], rows[1]), own(*rows)
        differ = (known != again) & ~(np.isnan(known) & np.isnan(again))
        apart = float(np.abs(known - again)[differ].max(initial=0.0))
        if not apart <= _precision((known, again)) * max(1.0, float(np.abs(known[differ]).max(initial=0.0))):
            _refuse(model, "predictions", chosen, f"{apart:.3g}")


def some_people(users: int, n_items: int, scale: RatingScale, seed: int) -> Profiles:
    """Return made-up users, of whom the last has no rating and the others have 1 to a third of the items."""
    random, most = generator(seed, "made-up users"), max(1, n_items // 3)
    counts = (
        np.append(random.integers(1, most, users - 1, endpoint=True), 0) if users > 1 else np.ones(1, int)
    )
    rated = np.argsort(random.random((users, n_items)), axis=1)
    items = [np.sort(row[:count]) for row, count in zip(rated, counts.tolist(), strict=True)]
    cells = int(counts.sum())
    values = np.full(cells, np.nan) if scale.implicit else random.choice(scale.values, cells)
    return Profiles(offsets(counts), np.concatenate(items).astype(np.int32), values, n_items)


def moved_by_others(
    model: FederatedModel, code: UpdateCode, parameters: Parameters, profiles: Profiles, others: Profiles
) -> Floats:
    """Return what moves in the updates of all users but the first if the first holds something else.

    ``others``: the same users, of whom the first holds something else, or without the first. Returns their
    changes in clips, 0 where rounding explains them, shape (users - 1, size).
    """
    updates = [model.updates(parameters, each) for each in (profiles, others)]
    before, after = (code.scaled(each)[1 - profiles.n_users :] for each in updates)
    moved = after - before
    moved[np.linalg.norm(moved, axis=1) <= _precision(updates[0])] = 0.0
    return moved


def _groups(users: Ints) -> Iterator[Ints]:
    """Yield each of some users alone, the first of them twice, and two together."""
    yield from (users[:1], *(users[place : place + 1] for place in range(users.size)))
    if users.size > 1:
        yield users


def _precision(arrays: Sequence[Floats]) -> float:
    """Return half the digits of the least precise of some arrays."""
    widths = [np.finfo(each.dtype).eps for each in arrays if each.dtype.kind == "f"]
    return float(np.sqrt(max(widths, default=np.finfo(np.float64).eps)))


def _refuse(model: FederatedModel, what: str, users: Ints, apart: str) -> None:
    alone = "one user computed alone" if users.size == 1 else "two users computed together"
    found = f"{what} of {alone} are {apart} from those of its partition"
    raise ContractError(reference_of(type(model)), found, FROM_ONE_USER)
