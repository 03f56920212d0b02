"""What is installed on devices before a run starts: one frozen class per protocol.

A device takes its budget, its mechanism and the number of rounds from here and never from a request,
so its guarantee holds against any server. A setup is stored as JSON and checked when it is read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar

import numpy as np
from pydantic import StringConstraints

from dprec.accounting import AnyBudget, PrivacyBudget
from dprec.arrays import Bools, Uint8s
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
from dprec.reports import CellFamily, PartlyAnsweredFamily, ReportFamily
from dprec.reports.layers import PERMANENT
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
    def of_one_device(self) -> Self:
        """What each device knows of the setup, to which its draws are bound: nothing of other users."""
        return self

    @property
    def drawn_by(self) -> str:
        """What random words are keyed by, as text."""
        return json.dumps(first_names(as_values(self.of_one_device)))

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
    def answers_per_rating(self) -> int:
        """Levels of one rating about which a device answers, at most, at the budget each."""
        return 1

    @property
    def composed(self) -> tuple[float, float] | None:
        """What devices count for a whole run, as epsilon and delta, where rounds compose; else None."""
        return None

    def memory(self, scale: RatingScale) -> str | None:
        """Return what those answers are bound to that are repeated in every run; None if none are."""
        return None

    def memory_of(self, purpose: str, scale: RatingScale) -> str | None:
        """Return the same of the words for one purpose; None if every run has others."""
        return self.memory(scale)

    def represented(self) -> Self:
        """Return the setup of devices that represent others besides."""
        return self

    def chosen_by(self, people: Ratings, seed: int, liars: int = 0) -> Self:
        """Return the setup of devices whose users may choose, for what only a simulation knows of them.

        ``liars``: so many of the people, the last ones, choose what serves them best.
        """
        return self

    def numbers(self, start: int, stop: int) -> Uint8s | None:
        """Return the numbers of consecutive users' own budgets; None if they have none of their own."""
        return None

    def refuses(self, start: int, stop: int) -> Bools:
        """Return which of some consecutive users send nothing."""
        return np.zeros(stop - start, dtype=np.bool_)

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
class ReportSetup(Setup):
    """Base of the setups of devices that send their perturbed profile once."""

    mechanism: _AnyMechanism = option("What the device applies to each rating.")
    privacy: PrivacyBudget | None = option("What is guaranteed; none if nothing is.")

    @property
    def hides_rated_items(self) -> bool:
        """Whether the mechanism hides them, or is about whole profiles."""
        return self.mechanism.report_family.hides_items

    @property
    def sends_values(self) -> bool:
        """Whether the mechanism does."""
        return self.mechanism.sends_values

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return the family of the mechanism at the budget."""
        return self.mechanism.family(self.privacy, scale, n_items)

    def sent_symbols(self, people: Ratings) -> SentSymbols:
        """Return what can be read in the reports of the mechanism."""
        family, rated = self.family(people.scale, people.n_items), np.unique(people.items)
        return SentSymbols(
            lambda number, reports: family.audited_symbols(number, reports, rated.astype(np.int64)),
            family.channel,
            family.exact_losses,
            fewest_items=family.fewest_items,
            drawn=not family.by_cell,
            linked=family.asks_further,
        )


@dataclass(frozen=True, kw_only=True)
class OneShotSetup(ReportSetup):
    """Devices send only their profile; to a trusted server, without perturbing it."""

    kind: Literal["one-shot"] = "one-shot"
    predicts: bool = option("Whether the device is sent a table of items and predicts from it.", False)


@dataclass(frozen=True, kw_only=True)
class OwnBudgetsSetup(OneShotSetup):
    """Devices send their profile at the epsilon that their user has chosen; who refuses sends nothing."""

    kind: Literal["own-budgets"] = "own-budgets"  # type: ignore[assignment]
    privacy: AnyBudget = option("The epsilons that are chosen from.")
    chosen: Annotated[str, StringConstraints(pattern="^[0-9]*$")] = option(
        "The number of each user's epsilon, a digit each; a device knows its own.", ""
    )

    @property
    def of_one_device(self) -> Self:
        """The setup without the choices; draws are bound to the device's own beside it."""
        return replace(self, chosen="")

    def chosen_by(self, people: Ratings, seed: int, liars: int = 0) -> Self:
        """Return the setup of devices whose users have chosen; liars choose the largest epsilon."""
        honest = np.arange(people.n_users - liars)
        numbers = self.privacy.chosen(people.counts[honest], people.user_means(honest), seed)
        numbers = np.append(numbers, np.full(liars, len(self.privacy.epsilons) - 1, dtype=np.uint8))
        return replace(self, privacy=self.privacy.installed, chosen=(numbers + ord("0")).tobytes().decode())

    def numbers(self, start: int, stop: int) -> Uint8s:
        """Return the numbers of the budgets of consecutive users."""
        return np.frombuffer(self.chosen[start:stop].encode(), dtype=np.uint8) - ord("0")

    def refuses(self, start: int, stop: int) -> Bools:
        """Return which of some consecutive users have chosen 0."""
        return np.array(self.privacy.epsilons)[self.numbers(start, stop)] == 0


def _memory_of_answers(setup: OneShotSetup, scale: RatingScale) -> str:
    values = as_values(setup)
    answered = {"mechanism": values["mechanism"], "privacy": values["privacy"]}
    return json.dumps([first_names(answered), scale.values.tolist()])


@dataclass(frozen=True, kw_only=True)
class MemoisedSetup(OneShotSetup):
    """Devices answer about each rating once, and repeat that answer in whichever run they are asked.

    The words of an answer are bound to the device's secret, to mechanism, budget and scale, to the item and
    to its value: to no run, and to no other rating. So the same value is answered alike without anything
    being remembered. About another value of the same item the answer is independent, at another epsilon.
    """

    kind: Literal["memoised"] = "memoised"  # type: ignore[assignment]
    on_change: Literal["keep", "update"] = option(
        "Whether a rating that was changed is answered as it was first, or once more, at another epsilon; "
        "then it can be seen that it was changed.",
        "keep",
    )
    answers_per_user: int | None = option(
        "Ratings that a device answers about, ever; the others are reported as rated, without an answer. All "
        "by default.",
        None,
        ge=1,
    )

    def __post_init__(self) -> None:
        """Refuse reports whose answers are not about one rating each, at an epsilon of its own."""
        super().__post_init__()
        family, kind = self.mechanism.report_family, self.mechanism.kind
        if not family.of_single_ratings() or family.asks_further:
            accepted = "a mechanism that answers once about each rated item, by itself"
            raise SettingError("mechanism", f"{kind}, repeated in every run", accepted)
        if self.privacy is not None and self.privacy.own:
            found = "several, where answers are repeated in every run"
            raise SettingError("privacy.epsilon", found, "one number")
        if self.privacy is not None and self.privacy.per != "rating":
            found = f"{self.privacy.per!r}, where answers are repeated in every run"
            raise SettingError("privacy.per", found, "'rating': a share of a profile changes as it grows")
        if self.shows_all and family is not CellFamily:
            accepted = "a mechanism that sends a symbol for each rated item and nothing else"
            raise SettingError("mechanism", f"{kind}, with a cap on answers", accepted)

    @property
    def shows_all(self) -> bool:
        """Whether ratings that are not answered about are reported as rated all the same."""
        return self.answers_per_user is not None

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return the family of the mechanism, or one of reports in which an answer may be missing."""
        if not self.shows_all:
            return super().family(scale, n_items)
        return PartlyAnsweredFamily(self.mechanism, self.privacy, scale, n_items)

    def memory(self, scale: RatingScale) -> str:
        """Return mechanism, budget and scale: with any other, answers are independent, and cost anew."""
        return _memory_of_answers(self, scale)

    @property
    def answers_per_rating(self) -> int:
        """One, ever, or two where a change is answered."""
        return 2 if self.on_change == "update" else 1


@dataclass(frozen=True, kw_only=True)
class LayeredSetup(OneShotSetup):
    """Devices answer about each rating for good, and send another report on that answer in every run.

    The words of an answer are bound as those of `MemoisedSetup` are, and the words of a report to its run.
    """

    kind: Literal["layered"] = "layered"  # type: ignore[assignment]
    mechanism: _AnyLayered = option("What the device applies to each rating.")

    def memory_of(self, purpose: str, scale: RatingScale) -> str | None:
        """Return what an answer is bound to, for its words."""
        return _memory_of_answers(self, scale) if purpose == PERMANENT else None


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


@dataclass(frozen=True, kw_only=True)
class ReplacementSetup(Options):
    """How a device replaces the items that it rated (Guerraoui et al. [guerraoui2017], Algorithm 2)."""

    epsilon: float | None = option("Budget of one replacement; none if the draw is not private.", gt=0)
    sensitivity: float = option("Largest change of an X-Sim value that one user can cause.", gt=0)
    whole_catalogue: bool = option("Whether items without an X-Sim value can be drawn too.")
    transfer: Literal["rating", "deviation"] = option("What a replacement inherits from the rating.")


@dataclass(frozen=True, kw_only=True)
class XMapSetup(ReportSetup):
    """Devices send their profile once, and its AlterEgo when they are sent candidates."""

    kind: Literal["x-map"] = "x-map"
    replacement: ReplacementSetup = option("How replacements are drawn.")


SETUPS: tuple[type[Setup], ...] = (
    OneShotSetup,
    OwnBudgetsSetup,
    MemoisedSetup,
    LayeredSetup,
    IterativeSetup,
    FederatedSetup,
    GradientPerturbationSetup,
    XMapSetup,
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
