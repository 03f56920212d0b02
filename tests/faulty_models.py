"""Federated models that keep their contract, in both forms, and some that break one rule of it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import Floats
from dprec.completion import Profiles
from dprec.federated import FederatedModel, Parameters, Profile, State, Update
from dprec.predictions import Predict
from dprec.ratings import RatingScale
from tests.models import Means


@dataclass(frozen=True, kw_only=True)
class Personal(FederatedModel):
    """Item biases, learned against items that are drawn, beside a level that stays on its device."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return (scale.low + random.random(n_items),)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        return (0.1 * random.standard_normal(1),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        (biases,), (level,) = parameters, state
        errors = profile.values - biases[profile.items] - level
        change = np.zeros_like(biases)
        change[random.integers(profile.n_items, size=3)] -= 0.1
        change[profile.items] += errors
        mean = errors.sum(keepdims=True) / (1 + errors.size)
        return Update((change,), (level + 0.5 * mean,), float(mean[0] ** 2))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        predicted: Floats = parameters[0] + state[0]
        return predicted


@dataclass(frozen=True, kw_only=True)
class Twofold(Means):
    """The same in both forms."""

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        change = np.zeros(profile.n_items)
        change[profile.items] = profile.values - parameters[0][profile.items]
        return Update((change,))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        return parameters[0]


@dataclass(frozen=True, kw_only=True)
class InSingle(Twofold):
    """Rounds what a partition computes to single precision."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        return tuple(each.astype(np.float32) for each in super().updates(parameters, profiles))


@dataclass(frozen=True, kw_only=True)
class OfRaters(Personal):
    """Learns from users who hold something, in single precision that it asks nobody to keep."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return tuple(each.astype(np.float32) for each in super().start(n_items, scale, random))

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        assert profile.items.size
        assert parameters[0].dtype == np.float64
        return super().update(parameters, profile, random, state)


@dataclass(frozen=True, kw_only=True)
class HoldsFunction(Personal):
    """Has a setting that no file can hold."""

    length: Any = np.abs


@dataclass(frozen=True, kw_only=True)
class OneArray(Personal):
    """Begins with an array that is in no tuple."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Any:
        return super().start(n_items, scale, random)[0]


@dataclass(frozen=True, kw_only=True)
class ScalesLists(Personal):
    """Ranks, and begins at the middle of ratings that lists do not have."""

    predicted = "lists"

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return (np.full(n_items, (scale.low + scale.high) / 2),)


class Tensor:
    """What a tensor of a framework can do that models give back."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.array, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class InTensors(Personal):
    """Gives back tensors."""

    wrapped: ClassVar[Any] = Tensor

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Any:
        return tuple(map(self.wrapped, super().start(n_items, scale, random)))

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Any:
        return tuple(map(self.wrapped, super().begin(n_items, scale, random)))

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        made = super().update(parameters, profile, random, state)
        return Update(*(tuple(map(self.wrapped, each)) for each in made[:2]), made.loss)  # type: ignore[arg-type]

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Any:
        return tuple(map(self.wrapped, super().step(parameters, update, round_index)))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Any:
        return self.wrapped(super().predict(parameters, profile, state))


@dataclass(frozen=True, kw_only=True)
class Changed(Personal):
    """Changes what one user computes."""

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        (change,), kept, loss = super().update(parameters, profile, random, state)
        return self.changed(change, kept, loss, profile, random)

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ChangedRows(Means):
    """Changes what a partition computes."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        return (self.changed(*super().updates(parameters, profiles), profiles),)

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        raise NotImplementedError


class ArrayOfChanges(Changed):
    """Returns a change that is in no tuple."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Any:
        return Update(change, kept, loss)  # type: ignore[arg-type]


class LossOfEach(Changed):
    """Returns a loss of each rating."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Any:
        return Update((change,), kept, profile.values)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Writes(Changed):
    """Writes into itself."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        self.seen = profile.n_items  # type: ignore[misc]
        return Update((change,), kept, loss)


class DrawsOfItsOwn(Changed):
    """Noise that nobody can draw again."""

    def changed(self, change: Floats, kept: State, loss: float, *_: Any) -> Update:
        return Update((change + np.random.default_rng().standard_normal(change.size),), kept, loss)


class DrawsOfAll(Changed):
    """Noise of the generator that all code of a process shares."""

    def changed(self, change: Floats, kept: State, loss: float, *_: Any) -> Update:
        return Update((change + np.random.standard_normal(change.size),), kept, loss)  # noqa: NPY002


class SeedsForAll(Changed):
    """The same noise each time, from a generator that is another's as well."""

    def changed(self, change: Floats, kept: State, loss: float, *_: Any) -> Update:
        np.random.seed(5)  # noqa: NPY002
        return Update((change + np.random.standard_normal(change.size),), kept, loss)  # noqa: NPY002


class Counting(Changed):
    """The class knows how often it was asked."""

    asked: ClassVar[list[int]] = [0]

    def changed(self, change: Floats, kept: State, loss: float, *_: Any) -> Update:
        self.asked[0] += 1
        return Update((change * (1 + 1 / self.asked[0]),), kept, loss)


class FirstSeen(ChangedRows):
    """All are scaled as the first were that a process has seen."""

    seen: ClassVar[list[float]] = []

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        if not self.seen:
            self.seen.append(1 + float(np.abs(rows).mean()))
        return rows / self.seen[0]


class OfFew(Changed):
    """Divides by how many items are left."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        with np.errstate(divide="ignore", invalid="ignore"):
            return Update((change / np.float64(profile.n_items - profile.items.size),), kept, loss)


class DrawsNegatives(Changed):
    """Draws an item that the user does not hold, of which there may be none."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        others = np.setdiff1d(np.arange(profile.n_items), profile.items)
        return Update((change - (np.arange(profile.n_items) == random.choice(others)),), kept, loss)


class RowsOfFew(ChangedRows):
    """Divides by how far ratings are apart."""

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        counts = np.diff(profiles.indptr)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            return rows / np.log(counts)


class Normalised(ChangedRows):
    """Rows are scaled to the longest of a batch."""

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        return rows / (1e-9 + np.abs(rows).max())


class InPlaces(ChangedRows):
    """Who comes first counts twice."""

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        return rows * (1 + (np.arange(len(rows)) == 0))[:, None]


class Training(Personal):
    """Trains the parameters that it is given."""

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        before = parameters[0].copy()
        parameters[0][profile.items] += 0.1
        return Update((parameters[0] - before,), state)


class TrainingState(Personal):
    """Trains the state that it is given, in a view that hides how it was given."""

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        state[0].flags.writeable = True
        state[0][:] += 1.0
        return super().update(parameters, profile, random, state)


class TrainingRows(Means):
    """Trains the parameters that a partition is given."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        parameters[0][:] += 1e-3
        return super().updates(parameters, profiles)


class CentringRows(Means):
    """Centres the ratings that a partition holds."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        profiles.values[:] -= 1.0
        return super().updates(parameters, profiles)


class OfOwnItems(Changed):
    """Sends what moves at its own items alone."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        return Update((change[profile.items],), kept, loss)


class KeepsItems(Changed):
    """Keeps the ratings themselves."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        return Update((change,), (profile.values,), loss)


class KeepsFractions(Personal):
    """Begins with an integer, and goes on with what is none."""

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        return (np.zeros(1, dtype=np.int64),)


class RowsOfItems(ChangedRows):
    """Sends what moves at the items that somebody holds."""

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        return rows[:, np.unique(profiles.items)]


_KEPT: list[np.random.Generator] = []


class KeepsGenerator(Changed):
    """Draws from the generator of who was asked before."""

    def changed(
        self, change: Floats, kept: State, loss: float, profile: Profile, random: np.random.Generator
    ) -> Update:
        drawn = _KEPT[-1].random(change.size) if _KEPT else 0.0
        _KEPT.append(random)
        return Update((change + drawn,), kept, loss)


class KeepsTheFirst(ChangedRows):
    """Draws from the generator that the server has started with."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        _KEPT.append(random)
        return super().start(n_items, scale, random)

    def changed(self, rows: Floats, profiles: Profiles) -> Floats:
        return rows + 0.1 * _KEPT[-1].standard_normal(rows.shape)


class Differing(Twofold):
    """One user moves twice as much as a row of a partition."""

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        return Update((2 * super().update(parameters, profile, random, state).change[0],))


class PredictsTogether(Personal):
    """Predicts for so many users what these rate on average."""

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        mean = float(profiles.values.mean()) if profiles.n_users >= 128 else 1.0

        def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> Floats:
            return np.full(len(users), mean)

        return predict


class Half(Personal):
    """Computes updates of partitions, and predicts for none."""

    predict = FederatedModel.predict


@dataclass(frozen=True, kw_only=True)
class CountsRounds(Personal):
    """Predicts 1, and 1 more for each round in which a device took part."""

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        return (np.zeros(1),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        return Update((np.zeros(profile.n_items),), (state[0] + 1,))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        return np.full(profile.n_items, 1 + state[0])
