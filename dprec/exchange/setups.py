"""What is installed on devices before a run starts: one frozen class per protocol.

A device takes its budget, its mechanism and the number of rounds from here and never from a request,
so its guarantee holds against any server. A setup is stored as JSON and checked when it is read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from dprec.channel import Channel
from dprec.completion import LinkKind, slope_channel
from dprec.components import Options, as_values, one_of, one_of_classes, option, parse_json
from dprec.errors import InputError, SettingError
from dprec.federated import MODELS, FederatedModel, code_of
from dprec.gradients import GRADIENTS, GradientReport
from dprec.mechanisms import (
    MECHANISMS,
    BucketBits,
    LayeredMechanism,
    LocalHashing,
    Mechanism,
    TwoLayers,
)
from dprec.randomness.first_draws import first_names
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily
from dprec.sent_symbols import SentSymbols, symbols_of_slopes
from dprec.wire import BroadcastOptions

if TYPE_CHECKING:
    _AnyMechanism = Mechanism
    _AnyGradient = GradientReport
    _AnyModel = FederatedModel
    _AnyLayered = LayeredMechanism
else:
    _AnyMechanism = one_of(MECHANISMS)
    _AnyGradient = one_of(GRADIENTS)
    _AnyModel = one_of(MODELS)
    _AnyLayered = one_of_classes((TwoLayers, LocalHashing, BucketBits), LayeredMechanism)


@dataclass(frozen=True, kw_only=True)
class Setup(Options):
    """Base of the setups, identified by kind."""

    kind: str = ""

    @property
    def drawn_by(self) -> str:
        """What random words are keyed by, as text."""
        return json.dumps(first_names(as_values(self)))

    @property
    def hides_rated_items(self) -> bool:
        """Whether what devices send hides which items are rated."""
        return False

    @property
    def masks(self) -> bool:
        """Whether devices mask what they send, so that those of a deployment have to know each other."""
        return False

    @property
    def sends_values(self) -> bool:
        """Whether anything that devices send depends on how an item was rated."""
        return True

    @property
    def composed(self) -> tuple[float, float] | None:
        """What devices count for a whole run, as epsilon and delta, where rounds compose; else None."""
        return None

    def represented(self) -> Self:
        """Return the setup of devices that represent others besides."""
        return self

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily | None:
        """Return the family of the reports that devices send once; None if they send others."""
        return None

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return what can be read in reports about some people's ratings; None if no symbols of items."""
        return None

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield what was compared, in how many entries, and the loss, computed without samples."""
        symbols = self.sent_symbols(people)
        if symbols is None:
            return
        for entries in (1, 3):
            for test, loss in symbols.exact_losses(entries):
                yield test, entries, loss


@dataclass(frozen=True, kw_only=True)
class IterativeSetup(Setup):
    """Devices solve for their users' factors and report on the gradient, in rounds."""

    kind: Literal["iterative"] = "iterative"
    gradient: _AnyGradient = option("What a device reports about its gradient.")
    broadcast: BroadcastOptions = option("How item factors are sent to the device.")
    rank: int = option("Number of factors.", ge=1)
    ridge: float = option("Ridge of the user factors that the device solves for.", gt=0)
    epsilon_per_round: float | None = option("Budget of one report; none if nothing is protected.", gt=0)
    rounds: int = option("Rounds that the budget was divided by: the device answers no other.", ge=1)

    @property
    def hides_rated_items(self) -> bool:
        """Whether the gradient report does."""
        return self.gradient.hides_rated_items

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield the loss of the probabilities with which a device answers in all rounds."""
        if self.epsilon_per_round is not None:
            loss = self.gradient.exact_epsilon(self.epsilon_per_round) * self.rounds
            yield "answers of all rounds, as probabilities", 1, loss


@dataclass(frozen=True, kw_only=True)
class FederatedSetup(Setup):
    """Devices send clipped updates of a model, in rounds."""

    kind: Literal["federated"] = "federated"
    model: _AnyModel = option("What a device computes, and predicts with.")
    clip: float = option("Largest norm of an update.", gt=0)
    deviation: float = option("Noise that a device adds to each number, in clips; 0 if others add it.", ge=0)
    rounds: int = option("Rounds that the budget was divided by: the device answers no other.", ge=1)

    @property
    def hides_rated_items(self) -> bool:
        """Whether the device adds the noise itself."""
        return self.deviation > 0

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return noisy numbers, in classes of half a deviation; None if reports have no noise."""
        if not self.deviation:
            return None
        code = code_of(self.model, people.n_items, people.scale, self.clip, self.deviation)
        return SentSymbols(lambda number, reports: code.classes(reports))


@dataclass(frozen=True, kw_only=True)
class GradientPerturbationSetup(Setup):
    """Devices report noisy slopes of their rows, in rounds (Li et al. [li2021], Algorithm 3)."""

    kind: Literal["gradient-perturbation"] = "gradient-perturbation"
    link: LinkKind = option("From an entry of the hidden matrix to the probability of a +1.")
    sigma: float = option("Standard deviation of the Gaussian link's noise.", gt=0)
    clamp: float = option("Largest entry C of a gradient that is sent.", gt=0)
    symbols: int = option("Cells of the grid on which a noisy entry is sent.", ge=3)
    epsilon_per_round: float = option("Budget of one report.", gt=0)
    rounds: int = option("Rounds that the budget was divided by: the device answers no other.", ge=1)

    @property
    def channel(self) -> Channel:
        """The channel of one entry of a gradient, at the budget of one round."""
        return slope_channel(self.clamp, self.symbols, self.epsilon_per_round)

    def sent_symbols(self, people: Ratings) -> SentSymbols:
        """Return what can be read in the slopes."""
        return symbols_of_slopes(self.channel, self.rounds, people)


SETUPS: tuple[type[Setup], ...] = (
    IterativeSetup,
    FederatedSetup,
    GradientPerturbationSetup,
)

InstalledT = TypeVar("InstalledT", bound=Options)


def to_json(installed: Options) -> str:
    """Return what is installed as JSON."""
    return json.dumps(as_values(installed))


def from_json(kind: type[InstalledT], text: str, where: str) -> InstalledT:
    """Read what `to_json` returned, and check every value of it.

    Raises InputError when it is damaged; the error names the file and the first invalid key.
    """
    try:
        return parse_json(kind, text)
    except SettingError as error:
        raise InputError(f"{where}, {error.key or 'JSON'}", error.found, error.accepted) from None


def is_told_by_its_settings(installed: Options) -> bool:
    """Return whether what is installed is the same after it was written and read as JSON."""
    try:
        return from_json(type(installed), to_json(installed), "setup") == installed
    except (InputError, TypeError):  # a setting that JSON has no form for
        return False
