"""Models that are learned by federated rounds: what a device computes, what it keeps, how the server learns.

A model is written for one user, as its authors write it (`FederatedModel.update`), in any framework: arrays
go in and come out. Where speed matters it can be written for whole partitions as well
(`FederatedModel.updates`). What is computed of a user may follow from that user's profile, state and draws
alone; clipping bounds what a user moves only then.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Floats, Int32s, Uint64s
from dprec.completion import Profiles
from dprec.components import Options, option, reference_of
from dprec.errors import InputError
from dprec.gradients import RoundDraws
from dprec.predictions import Predict, cells_from_rows
from dprec.randomness import generator_of
from dprec.ratings import RatingScale

Parameters = tuple[Floats, ...]
"""The arrays of a model."""

Shapes = tuple[tuple[int, ...], ...]
"""Of some arrays, one after the other."""

State = tuple[Floats, ...]
"""The arrays that a device keeps; of several devices, with the devices first."""

positive = partial(option, gt=0, le=1e6)
"""Declare a step or a standard deviation: above 0, and no more than single precision bears."""


_NONE = np.zeros(0, dtype=np.int32)


class Profile(NamedTuple):
    """What one user holds."""

    items: Int32s
    """Ascending; shape (ratings,)."""
    values: Floats
    """Ratings; NaN of implicit data; shape (ratings,)."""
    n_items: int
    """Items of the catalogue."""
    spared: Int32s = _NONE
    """Items that the device knows of beside those, and never draws; ascending."""


class Update(NamedTuple):
    """What one device computes in a round."""

    change: Parameters
    """How the parameters should move, such as minus a gradient, or what training on the device changes; it is
    clipped, whole. In their shapes, or those that `FederatedModel.sends` returns.
    """
    state: State = ()
    """What the device keeps for its next round; it is never sent."""
    loss: float = math.nan
    """Of the model on the user's profile, before the change; never sent, but shown by simulations."""


_LINE = re.compile(
    r"(\S+:\S+): "
    r"((?:updates?|changes?|state|scores|predictions|contributions|parameters|start|begin|step|loss) .*); "
    r"accepted: (.*)"
)


class ContractError(InputError):
    """Code from outside that does not do what privacy rests on: no device is at fault."""

    @classmethod
    def of(cls, component: object, found: str, accepted: str) -> Self:
        """Return the error of a component."""
        return cls(reference_of(type(component)), found, accepted)

    @classmethod
    def in_words(cls, reason: str) -> "ContractError | None":
        """Return the error whose line is in a reason; None if there is none."""
        match = _LINE.search(reason)
        return None if match is None else cls(*match.groups())


@dataclass(frozen=True, eq=False)
class Devices:
    """Some devices: what they hold, keep and draw from."""

    profiles: Profiles
    state: State
    """With the devices first."""
    keys: Uint64s
    """Of their generators, shape (users, 2)."""
    spared: Profiles | None = None
    """Items that they never draw, beside those that their users have; None without any."""

    @classmethod
    def in_round(
        cls, profiles: Profiles, state: State, draws: RoundDraws, spared: Profiles | None = None
    ) -> Self:
        """Return devices that draw in a round what nobody else knows."""
        device_draws = draws.devices.asked(b"draws of a model")
        # Other words of a user say whose updates are checked.
        keys = [device_draws.per_user(index, draws.round_index) for index in (3, 4)]
        return cls(profiles, state, np.stack(keys, axis=1), spared)

    def of_users(self, users: AnyInts) -> Self:
        """Return some of the devices, in the order given."""
        state = tuple(array[users] for array in self.state)
        spared = None if self.spared is None else self.spared.of_users(users)
        return type(self)(self.profiles.of_users(users), state, self.keys[users], spared)

    @classmethod
    def joined(cls, parts: "Sequence[Self]") -> Self:
        """Return the devices of several parts, one part after the other; they spare nothing."""
        state = tuple(np.concatenate(arrays) for arrays in zip(*(part.state for part in parts), strict=True))
        profiles = Profiles.joined([part.profiles for part in parts])
        return cls(profiles, state, np.concatenate([part.keys for part in parts]))

    def each(self) -> Iterator[tuple[Profile, np.random.Generator, State]]:
        """Yield what every user holds, draws from and keeps."""
        items, values = read_only((self.profiles.items, self.profiles.values))
        for user, (start, stop) in enumerate(pairwise(self.profiles.indptr.tolist())):
            profile = Profile(items[start:stop], values[start:stop], self.profiles.n_items)
            if self.spared is not None:
                spared = slice(*self.spared.indptr[user : user + 2])
                profile = profile._replace(spared=self.spared.items[spared])
            yield profile, generator_of(self.keys[user]), tuple(array[user, ...] for array in self.state)


class Computed(NamedTuple):
    """What some devices computed in a round, users first."""

    updates: Parameters
    state: State
    losses: Floats
    """NaN where a model reports none; shape (users,)."""


@dataclass(frozen=True, kw_only=True)
class FederatedModel(Options):
    """Base of the models.

    A class defines `start`, and either `update` and `predict` of one user, or `updates` and `predictor` of a
    whole partition, or both, which then agree.
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = None
    predicted: ClassVar[Literal["ratings", "lists"]] = "ratings"
    """What predictions are: of ratings, or scores that order lists, from sets of items."""

    @abstractmethod
    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return the parameters before the first round."""

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return what a device keeps before its first round, in shapes that all have; by default nothing."""
        return ()

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return what one device computes in a round.

        ``random``: the device's own, another in each round; no other is the same wherever a run computes.
        ``state``: what its last round left. Who holds nothing is not computed: zeros are sent.
        """
        raise NotImplementedError

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return what one device predicts of every item, shape (items,)."""
        raise NotImplementedError

    def sends(self, shapes: Shapes) -> Shapes:
        """Return the shapes of an update, given those of the parameters: by default the same.

        Where they differ, `step` is given the mean update in these shapes.
        """
        return shapes

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        """Return the changes that a whole partition computes: in the shapes of an update, users first.

        For models that keep nothing on devices and draw nothing there.
        """
        raise NotImplementedError

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        """Return what predicts for the users of a partition, from arrays of users and items."""
        raise NotImplementedError

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Return the parameters after a round, given the noisy mean of updates: by default, their sum."""
        return tuple(old + change for old, change in zip(parameters, update, strict=True))

    def steps(self) -> Callable[[Parameters, Parameters, int], Parameters]:
        """Return what takes the steps of one run: by default `step`, which remembers nothing.

        A run resumes after an interruption if it is `step` or has a mapping `arrays` of all it remembers,
        which can be set.
        """
        return self.step

    def defines(self, *methods: str) -> bool:
        """Return whether a class defines methods, all of them."""
        return all(getattr(type(self), name) is not getattr(FederatedModel, name) for name in methods)

    @property
    def told_tested(self) -> bool:
        """Whether devices know what they are tested on; see `dprec.protocols.base.Facts.told_tested`."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether devices keep anything."""
        return self.defines("begin")

    def computed(self, parameters: Parameters, devices: Devices) -> Computed:
        """Return what devices compute; raises ContractError for anything but updates of the right shapes."""
        if self.defines("updates"):
            updates = arrays_of(self, "updates returned", self.updates(parameters, devices.profiles))
            return Computed(updates, devices.state, np.full(devices.profiles.n_users, np.nan))
        return one_by_one(self, parameters, devices)

    def predicting(self, parameters: Parameters, devices: Devices) -> Mapping[str, Any]:
        """Return what devices predict: cell by cell, `predict`, and maybe row by row, `predict_rows`."""
        if self.defines("predictor"):
            return {"predict": self.predictor(parameters, devices.profiles)}

        def rows(users: AnyInts, n_items: int) -> Floats:
            chosen = devices.of_users(users)
            predicted = np.empty((users.size, n_items))
            for row, (profile, _, state) in zip(predicted, chosen.each(), strict=True):
                row[:] = _shaped(self, "scores", self.predict(parameters, profile, state), row)
            return predicted

        return {"predict": cells_from_rows(rows, devices.profiles.n_items), "predict_rows": rows}


def one_by_one(model: FederatedModel, parameters: Parameters, devices: Devices) -> Computed:
    """Return what devices compute one after the other; see `FederatedModel.computed`."""
    users, frozen = devices.profiles.n_users, read_only(parameters)
    rows = tuple(np.zeros((users, *shape)) for shape in model.sends(shapes_of(parameters)))
    state, losses = tuple(array.copy() for array in devices.state), np.full(users, np.nan)
    for user, (profile, random, device_state) in enumerate(devices.each()):
        if not profile.items.size:
            continue
        update = model.update(frozen, profile, random, read_only(device_state))
        if not isinstance(update, Update):
            accepted = "dprec.federated.Update(change, state, loss), of which the last two can be left out"
            raise ContractError.of(model, f"update returned {type(update).__name__}", accepted)
        for name, maker, returned, places in (
            ("change", "sends" if model.defines("sends") else "start", update.change, rows),
            ("state", "begin", update.state, state),
        ):
            arrays = arrays_of(model, f"{name} is", returned)
            if len(arrays) != len(places):
                as_many = f"{len(places)}, as {maker} returned"
                raise ContractError.of(model, f"{name} of {len(arrays)} arrays", as_many)
            for array, place in zip(arrays, places, strict=True):
                place[user] = _shaped(model, name, array, place[user])
        loss = as_array(update.loss)
        if loss.size != 1:
            raise ContractError.of(model, f"loss of shape {loss.shape}", "one number")
        losses[user] = loss.item()
    return Computed(rows, state, losses)


def _shaped(model: FederatedModel, name: str, returned: Any, place: Floats) -> Floats:
    array = as_array(returned)
    for found, accepted, fits in (
        (f"shape {array.shape}", place.shape, array.shape == place.shape),
        (array.dtype, place.dtype, np.can_cast(array.dtype, place.dtype, "same_kind")),
    ):
        if not fits:
            expected = f"{accepted}, the same for every user"
            raise ContractError.of(model, f"{name} of a user is an array of {found}", expected)
    return array


def begun(model: FederatedModel, n_items: int, scale: RatingScale, keys: Uint64s) -> State:
    """Return what devices keep before their first round; ``keys``: of their generators, shape (users, 2)."""
    if not model.keeps:
        return ()
    states = [
        arrays_of(model, "begin returned", model.begin(n_items, scale, generator_of(key))) for key in keys
    ]
    shapes = {tuple((array.shape, array.dtype) for array in state) for state in states}
    if non_numeric := [str(dtype) for _, dtype in chain(*shapes) if dtype.kind not in "biufc"]:
        raise ContractError.of(model, f"begin returned an array of {non_numeric[0]}", "numbers")
    if len(shapes) > 1:
        raise ContractError.of(model, "begin returned arrays of several shapes", "the same for every user")
    return tuple(np.stack(arrays) for arrays in zip(*states, strict=True))


def as_array(value: Any) -> Floats:
    """Return a NumPy array of an array of any framework, without a copy where that can be."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value)


def arrays_of(model: FederatedModel, said: str, values: Any) -> Parameters:
    """Return NumPy arrays of the arrays of any framework that a model has returned.

    ``said``: what returned them, for the ContractError that is raised for one array without a tuple.
    """
    if hasattr(values, "shape") or not isinstance(values, Iterable):
        accepted = "a tuple of arrays, also where it is one"
        raise ContractError.of(model, f"{said} {type(values).__name__}", accepted)
    return tuple(map(as_array, values))


def shapes_of(arrays: Sequence[AnyArray]) -> Shapes:
    """Return the shapes of some arrays."""
    return tuple(array.shape for array in arrays)


def read_only(arrays: Sequence[AnyArray]) -> tuple[Any, ...]:
    """Return views of arrays through which nothing can be changed."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views
