"""Protocols with rounds: what every device holds between two messages, and what the server learns.

In a round the server sends what it holds; devices answer; the server learns from what they say together. A
device answers no more rounds than its budget was divided by, and each for one question.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dprec.accounting import Adjacency, EventMechanism
from dprec.arrays import AnyArray, Bools, Floats, Ints, Pieces
from dprec.attacks.transcript import ReleasedSum, Upload
from dprec.completion import Profiles
from dprec.components import Options, is_ours, naming, option, reference_of
from dprec.errors import SettingError
from dprec.gradients import Aggregate
from dprec.predictions import checked_predictions
from dprec.protocols.base import Protocol, Public
from dprec.protocols.predicting import predictions_on_devices
from dprec.randomness import subset, uniforms, words
from dprec.ratings import Ratings, RatingScale


class Device(ABC):
    """What every device of a population holds between two messages; `Protocol.device` reads it."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Have the predictions of a user-defined class checked, and the class named if they are none."""
        super().__init_subclass__(**options)
        if "predictions" not in cls.__dict__ or is_ours(cls):
            return
        predictions = cls.predictions

        @functools.wraps(predictions)
        def checked(self: Device, profiles: Profiles) -> Floats:
            with naming(self, "one finite number for each user and item"):
                predicted = predictions(self, profiles)
            shape = profiles.n_users, profiles.n_items
            return checked_predictions(predicted, shape, reference_of(type(self)))

        cls.predictions = checked  # type: ignore[method-assign]

    @abstractmethod
    def encode(self) -> bytes:
        """Return the bytes by which devices are sent this."""

    @property
    def question(self) -> bytes:
        """What answers are bound to, and the words that they are drawn with; by default, what is sent."""
        return self.encode()

    @abstractmethod
    def predictions(self, profiles: Profiles) -> Floats:
        """Return what devices predict, or by what they rank, of every item, shape (users, items)."""

    def predicting(self, ratings: Ratings) -> Mapping[str, Any]:
        """Return what predicts cell by cell, `predict`, and maybe row by row, `predict_rows`.

        ``ratings``: what the devices hold.
        """
        return predictions_on_devices(ratings, self.predictions)


class Server(ABC):
    """What a server knows: a dataclass of arrays and numbers, from which an interrupted run resumes."""

    diagnostics: Mapping[str, Any] = MappingProxyType({})
    """JSON values about what was learned."""

    @property
    @abstractmethod
    def held(self) -> Device:
        """What devices hold of it, as they decode it; the next question is its bytes."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of what was learned."""
        return ()

    @property
    def learned(self) -> Device:
        """What devices are sent at the end; by default what they hold anyway."""
        return self.held


class AnswerDecoder(NamedTuple):
    """How the answers of a round are read."""

    decode: Callable[[Sequence[bytes]], tuple[Bools, Aggregate]]
    """Returns which reports are valid, and their sum; malformed ones are rejected without an exception."""
    possible: Callable[[Aggregate], bool]
    """Whether valid reports can have a sum, of the right shape, that was added up elsewhere."""
    sum_shape: tuple[int, ...]
    items: int | None = None
    """Items whose raters a sum reveals; None if it reveals nothing about which items were rated."""


class AnsweringDevice(Device):
    """A device whose answers are added up."""

    @property
    @abstractmethod
    def reading(self) -> AnswerDecoder:
        """How answers are read."""

    def changes(self, before: Any) -> bytes:
        """Return the bytes by which devices are sent this that hold what was sent before; as `encode`."""
        return self.encode()

    def upload(self, n_users: int, parts: Sequence[tuple[Ints, Pieces]], public_seed: int) -> Upload | None:
        """Return what a server reads that remembers a round; by default, None: what nobody can link or read.

        ``parts``: users who can be told apart, and their reports.
        """
        return None

    def keeping(self, state: tuple[AnyArray, ...]) -> AnsweringDevice:
        """Return what devices hold where a simulation knows what each user's keeps, users first."""
        return self

    def observed(self, norms: Floats, losses: Floats, round_index: int) -> dict[str, float]:
        """Return figures of what devices computed in a round, as a simulation shows them, by name.

        ``norms``, ``losses``: see `dprec.exchange.Told`; of users who hold anything.
        """
        return {}

    def shown(self, nobody: Ratings) -> Mapping[str, Any]:
        """Return what this says to anybody, as a `Transcript` has it.

        ``nobody``: ratings of which there are none.
        """
        return {}


class LearningServer(Server):
    """A server that learns from sums of answers."""

    arrays: Mapping[str, AnyArray] | None = None
    """What an interrupted run resumes from; None if it begins anew."""

    def resume(self, arrays: Mapping[str, AnyArray]) -> None:
        """Go on from what `arrays` was after a round; by default they are written over."""
        for name, array in (self.arrays or {}).items():
            array[...] = arrays[name]

    @property
    @abstractmethod
    def held(self) -> AnsweringDevice:
        """What devices hold of it; see `Server`."""

    @property
    def learned(self) -> AnsweringDevice:
        """What devices are sent at the end: what they hold anyway."""
        return self.held

    @abstractmethod
    def learn(self, round_index: int, total: Aggregate) -> ReleasedSum | None:
        """Learn from at least one answer; return the sum as everybody may see it, if anybody may."""


@dataclass(frozen=True, eq=False)
class Charge:
    """What a round costs a user who sends a report."""

    per_rating: float = math.inf
    per_user: float | Floats = math.inf
    """By itself and without a delta; the second of each user, or of all alike."""
    mechanism: EventMechanism | None = None
    """By which the losses of several rounds compose."""
    everybody: bool = False
    """Whether all users lose it, since it stays hidden who was asked."""


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(Options):
    """Which users are asked in a round; everybody by default.

    Who is asked depends on the seed and the user's number, never on the nodes.
    """

    fraction: float | None = option(
        "Share of the users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        gt=0,
        le=1,
    )
    count: int | None = option(
        "Number of users, drawn again each round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        ge=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and self.count is not None:
            raise SettingError("", "a fraction and a count", "one of the two")

    def size(self, n_users: int) -> int:
        """Return how many of the users are asked; raises SettingError for nobody, or more than there are."""
        n_asked = n_users if self.count is None else self.count
        if self.fraction is not None:
            n_asked = round(self.fraction * n_users)
        if not 1 <= n_asked <= n_users:
            key = "count" if self.count is not None else "fraction"
            selection = f"{getattr(self, key)} selects {n_asked} of {n_users} users"
            raise SettingError(key, selection, "a value that selects at least one user and at most all")
        return n_asked

    def draw(self, n_users: int, seed: int, round_index: int) -> Bools:
        """Return whether each user is asked in a round, shape (users,)."""
        size = self.size(n_users)
        if size == n_users:
            return np.ones(n_users, dtype=np.bool_)
        return subset(size, words(seed, "sampling", 0, n_users, round_index=round_index))


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Options):
    """Stop once the error on ratings that the devices hold back stops falling."""

    patience: int = option("Rounds without a lower error after which the run stops.", 5, ge=1)
    validation_fraction: float = option("Share of each device's ratings that is held back.", 0.1, gt=0, lt=1)

    def held_back(self, train: Ratings, seed: int) -> Bools:
        """Return which ratings the devices do not learn from, shape (ratings,)."""
        return uniforms(words(seed, "validation", 0, train.count)) < self.validation_fraction


class RoundsProtocol(Protocol):
    """Base of the protocols in which devices are asked round by round."""

    message_type: ClassVar[str]
    """Of the questions."""
    rounds: int
    """Devices answer no later round, and each round once."""
    sampling: Any = SamplingOptions()
    """Who is asked in a round: `draw` returns it."""
    evaluate_every: int = 1
    """Rounds between evaluations, which only a simulation can make; the last is always evaluated."""
    early_stopping: EarlyStopping | None = None
    max_empty_rounds: int | None = None
    """Rounds in a row without a usable report that end the run; None for any number."""
    compares: Adjacency = "add-or-remove-one"
    """What epsilon compares where losses compose."""
    tells: ClassVar[bool] = False
    """Whether devices of a simulation tell what they keep and compute, which is no part of the protocol."""
    learns_of_nobody: bool = False
    """Whether the server learns, from noise, even in a round from which nothing arrives."""
    noise_of_rounds: tuple[float, ...] = ()
    """Noise of each sum, for contributions of a norm of 1; empty without any."""

    @abstractmethod
    def charge(self, round_index: int, counts: Ints | None = None) -> Charge:
        """Return what a round costs.

        ``counts``: ratings of each user, where a simulation knows them.
        """

    def notes(self, public: Public) -> tuple[str, ...]:
        """Return what a reader of the figures must know besides."""
        return ()

    @property
    def code(self) -> Options:
        """Whose code learns and predicts: it is named where it fails, if it is from outside."""
        return self


class BroadcastProtocol(RoundsProtocol):
    """Base of the protocols in which everybody is sent the same, and answers are added up."""

    purpose: ClassVar[str]
    """Of the words that answers are drawn with."""

    @abstractmethod
    def device(
        self, received: bytes, n_items: int, scale: RatingScale, before: Any = None
    ) -> AnsweringDevice:
        """Read what `Device.encode` or, where devices hold ``before``, `AnsweringDevice.changes` wrote.

        Raises ValueError for what no server sends.
        """

    @abstractmethod
    def server(self, public: Public, seed: int, public_seed: int) -> LearningServer:
        """Return the server before the first question.

        ``seed``: of what it draws; ``public_seed``: of what devices and server draw alike.
        """
