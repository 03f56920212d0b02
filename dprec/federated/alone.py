"""Whether what a model computes of a user follows from that user's ratings alone.

Clipping bounds what a user adds to a sum, and so what it moves, only if no other row moves with it. A model
is given whole partitions, so its code could mix them, remember an earlier one, or draw at random. What is
checked is a sample: rows of a partition beside those of its users alone, of two of them together, and once
more. Sums of other lengths are rounded otherwise, so rows may differ by half the digits of their precision:
of a clip, 1.5e-8 in double and 3.5e-4 in single precision. What is sent is rounded to steps, 2^-14 of a clip:
numbers that differ by less are sent alike unless they lie on either side of a step's edge.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dprec.arrays import Floats, Ints, Uint64s, offsets
from dprec.completion import Profiles
from dprec.federated.model import Computed, ContractError, Devices, FederatedModel, Parameters, begun
from dprec.federated.updates import UpdateCode
from dprec.randomness import generator, words
from dprec.ratings import RatingScale

FROM_ONE_USER = "what follows from each user's ratings alone, the same however often it is computed"


def check_updates(
    model: FederatedModel,
    code: UpdateCode,
    parameters: Parameters,
    devices: Devices,
    computed: Computed,
    users: Ints,
) -> None:
    """Raise ContractError unless what up to two users of a partition compute is what each computes alone.

    ``computed``: of the whole partition; ``users``: their places in it.
    """
    precision = precision_of(computed.updates)
    for chosen in _groups(users):
        recomputed = model.computed(parameters, devices.of_users(chosen))
        rows = code.scaled(tuple(update[chosen] for update in computed.updates))
        distance = float(np.linalg.norm(rows - code.scaled(recomputed.updates), axis=1).max())
        if not distance <= precision:
            _refuse(model, "updates", chosen, f"{distance:.3g} clips")
        for state, repeated in zip(computed.state, recomputed.state, strict=True):
            if not np.array_equal(state[chosen], repeated, equal_nan=True):
                _refuse(model, "state", chosen, f"up to {np.abs(state[chosen] - repeated).max():.3g}")


def check_predictions(
    model: FederatedModel,
    parameters: Parameters,
    devices: Devices,
    predicting: Mapping[str, Any],
    users: Ints,
) -> None:
    """Raise ContractError unless predictions for up to two users of a partition are those for each alone.

    ``predicting``: for the whole partition; ``users``: their places in it.
    """
    items = np.arange(devices.profiles.n_items)
    for chosen in _groups(users):
        predict = model.predicting(parameters, devices.of_users(chosen))["predict"]
        rows = np.repeat(np.arange(chosen.size), items.size), np.tile(items, chosen.size)
        predicted, recomputed = predicting["predict"](chosen[rows[0]], rows[1]), predict(*rows)
        differ = (predicted != recomputed) & ~(np.isnan(predicted) & np.isnan(recomputed))
        distance = float(np.abs(predicted - recomputed)[differ].max(initial=0.0))
        largest = float(np.abs(predicted[differ]).max(initial=1.0))
        if not distance <= precision_of((predicted, recomputed)) * largest:
            _refuse(model, "predictions", chosen, f"{distance:.3g}")


def some_devices(model: FederatedModel, users: int, n_items: int, scale: RatingScale, seed: int) -> Devices:
    """Return devices of made-up users before their first round; see `some_people`."""
    keys = some_keys(users, seed)
    # A copy, as a model may change what it is given.
    profiles = some_people(users, n_items, scale, seed).of_users(np.arange(users))
    return Devices(profiles, begun(model, n_items, scale, keys), keys)


@lru_cache(maxsize=64)
def some_keys(users: int, seed: int) -> Uint64s:
    """Return keys of what made-up users draw, shape (users, 2)."""
    return words(seed, "keys of made-up users", 0, 2 * users, round_index=users).reshape(users, 2)


@lru_cache(maxsize=64)
def some_people(users: int, n_items: int, scale: RatingScale, seed: int) -> Profiles:
    """Return made-up users, of whom the last has no rating and the others have 1 to a third of the items."""
    random, largest = generator(seed, "made-up users"), max(1, n_items // 3)
    counts = (
        np.append(random.integers(1, largest, users - 1, endpoint=True), 0) if users > 1 else np.ones(1, int)
    )
    rated = np.argsort(random.random((users, n_items)), axis=1)
    items = [np.sort(row[:count]) for row, count in zip(rated, counts.tolist(), strict=True)]
    cells = int(counts.sum())
    values = np.full(cells, np.nan) if scale.implicit else random.choice(scale.values, cells)
    return Profiles(offsets(counts), np.concatenate(items).astype(np.int32), values, n_items)


def moved_by_others(
    model: FederatedModel, code: UpdateCode, parameters: Parameters, devices: Devices, others: Devices
) -> Floats:
    """Return what moves in the updates of all users but the first if the first holds something else.

    ``others``: the same users, of whom the first holds something else, or without the first. Returns their
    changes in clips, 0 where rounding explains them, shape (users - 1, size).
    """
    updates = [model.computed(parameters, case).updates for case in (devices, others)]
    before, after = (code.scaled(changes)[1 - devices.profiles.n_users :] for changes in updates)
    moved = after - before
    moved[np.linalg.norm(moved, axis=1) <= precision_of(updates[0])] = 0.0
    return moved


def _groups(users: Ints) -> Iterator[Ints]:
    """Yield each of some users alone, the first of them twice, and two together."""
    yield from (users[:1], *users[:, None])
    if users.size > 1:
        yield users


def precision_of(arrays: Sequence[Floats]) -> float:
    """Return half the digits of the least precise of some arrays."""
    widths = [np.finfo(array.dtype).eps for array in arrays if array.dtype.kind == "f"]
    return float(np.sqrt(max(widths, default=np.finfo(np.float64).eps)))


def _refuse(model: FederatedModel, quantity: str, users: Ints, distance: str) -> None:
    subject = "one user computed alone" if users.size == 1 else "two users computed together"
    found = f"{quantity} of {subject} are {distance} from those of its partition"
    mixing = "added up or scaled over users, drawn elsewhere than from `random`, or remembered"
    raise ContractError.of(model, found, f"{FROM_ONE_USER}: nothing {mixing}")
