"""What every attack is: a game in which somebody infers what was not said, or moves what others are shown.

An attack is a class derived from `Attack`: one file, and one line in the registry. It is given a `Game`: what
its adversary has seen, what the adversary knows besides, ways to run the protocol again, and the truth, which
is for judging alone. It returns figures, each beside what the same attack reaches with nothing sent, and
beside what epsilon allows where that is proved (`dprec.attacks.bounds`).
"""

import typing
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools
from dprec.attacks.malicious import MaliciousUsers
from dprec.attacks.transcript import Transcript
from dprec.catalogue import UsersTable
from dprec.components import Options
from dprec.predictions import Predict, PredictRows
from dprec.ratings import Ratings


@dataclass(frozen=True)
class Figure:
    """What an attack reached."""

    value: float | None
    """None where the protocol leaves the attack nothing to look at."""
    baseline: float | None = None
    """What the same attack reaches with nothing sent."""
    bound: float | None = None
    """What an attack on these data exceeds with probability 1e-6 at most, under the proved losses and
    whatever the data are: what is allowed in the mean over the noise, and what chance adds to as many
    decisions. None where no theorem says so; see `dprec.attacks.bounds`.
    """


@dataclass(frozen=True)
class Attacked:
    """What came of an attack."""

    figures: Mapping[str, Figure]
    """By name; those of `Attack.figures`."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the honest users of a run are shown."""

    predict: Predict
    """From arrays of users and items to predictions."""
    predict_rows: PredictRows | None
    """The same of all items of some users, where that is cheaper."""
    judged: Callable[[], Mapping[str, typing.Any]]
    """Returns `accuracy`, which takes long and few ask for."""
    scores: Predict | None = None
    """From arrays of users and items to what lists are ranked by, if not by predictions."""

    @cached_property
    def accuracy(self) -> Mapping[str, typing.Any]:
        """On their test ratings; see `summary.accuracy`."""
        return self.judged()


class PlayedOnceError(Exception):
    """A run cannot be run again in another way: it is of several collections."""


class Game(typing.Protocol):
    """What an attack works on."""

    @property
    def transcript(self) -> Transcript:
        """What the adversary has seen."""

    @property
    def truth(self) -> Ratings:
        """What devices hold: for judging, and for what the adversary is supposed to know of it."""

    @property
    def users(self) -> UsersTable | None:
        """What is public of users, such as their age, if the data set has it."""

    @property
    def accountant(self) -> PrivacyAccountant:
        """The losses that are proved."""

    @property
    def hides_item_sets(self) -> bool:
        """Whether the losses hold for which items a user rated, too, and so for a profile or none."""

    @property
    def delta(self) -> float:
        """Delta at which losses are composed."""

    @property
    def seed(self) -> int:
        """Of what the attack draws."""

    @property
    def shown(self) -> Shown:
        """What honest users are shown, who are all users of the run."""

    def with_malicious_users(self, malicious: MaliciousUsers) -> Shown:
        """Return what they are shown if malicious users take part, after all others, with the same draws."""

    def again(self, present: Bools, number: int) -> Transcript:
        """Return the transcript of another run, with other noise, in which some users alone take part.

        Parameters
        ----------
        present : ndarray of bool, shape (users,)
        number : int
            Of the run, from 1; the noise follows from it.
        """


@dataclass(frozen=True, kw_only=True)
class Attack(Options):
    """Base of the attacks."""

    kind: str = ""
    named: ClassVar[tuple[str, ...]] = ()
    """The names of its figures, where these do not depend on settings."""

    def figures(self) -> tuple[str, ...]:
        """Return the names of its figures, which are columns of tables; by default, `named`."""
        return self.named

    def check(self, users: UsersTable | None) -> None:
        """Refuse settings that do not suit what is public of the users, before anything runs.

        Raises SettingError naming the attack's key.
        """
        return None

    @abstractmethod
    def perform(self, game: Game) -> Attacked:
        """Perform the attack; a figure is None where there is nothing to look at.

        Raises SettingError naming the attack's key where the settings do not suit the data.
        """
