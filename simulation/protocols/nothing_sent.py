"""The baseline of every comparison: devices predict alone, from their own ratings."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant
from dprec.completion import Averages, own_averages
from dprec.components import option
from dprec.errors import SettingError
from dprec.exchange import SilentSetup
from dprec.ratings import Ratings
from dprec.wire import TrafficLedger
from simulation.protocols.base import Protocol
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example
from simulation.protocols.task import Grid, Task


@dataclass(frozen=True, kw_only=True)
class NothingSentProtocol(Protocol):
    """Every device predicts for its user the mean of the user's own ratings; nothing is sent."""

    kind: Literal["nothing-sent"] = "nothing-sent"
    private: ClassVar[bool] = False
    completion_name: ClassVar[str] = "own-average"
    prior: float | None = option(
        "Publicly known rating that each mean is pulled towards; by default the middle of the scale.",
        None,
    )
    prior_ratings: float = option(
        "Number of own ratings that the prior weighs as much as; the default is the best of eleven values on "
        "tenths of the train ratings of MovieLens 100K (u1), RMSE 1.0386 (benchmarks/nothing_sent_prior.py).",
        2.0,
        ge=0,
    )

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol as it is: nothing is sent at any budget."""
        return self

    @property
    def mechanism_name(self) -> str:
        """Name of the protocol, as nothing is sent."""
        return self.kind

    @property
    def baseline(self) -> str:
        """Devices that predict alone."""
        return "nothing-sent"

    def check(self, train: Ratings) -> None:
        """Refuse a budget, and a prior outside the rating scale."""
        if self.privacy is not None:
            budget = f"epsilon {self.privacy.epsilon:g}"
            raise SettingError("privacy", budget, "none: nothing is sent, so nothing is spent")
        low, high = train.scale.low, train.scale.high
        if self.prior is not None and not low <= self.prior <= high:
            raise SettingError("prior", f"{self.prior:g}", f"a rating from {low:g} to {high:g}")

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise that nothing is learned about anybody."""
        why = "nothing is sent; every device predicts for its user from the user's own ratings alone."
        return Guarantee("proved", "local", True, why)

    def sent(self, example: Example) -> None:
        """Return None: nothing is sent."""

    def setup(self) -> SilentSetup:
        """Return the setup with which devices refuse every request."""
        return SilentSetup()

    def averages(self, train: Ratings) -> Averages:
        """Return what every device predicts from its user's own ratings."""
        middle = (train.scale.low + train.scale.high) / 2
        return own_averages(train, middle if self.prior is None else self.prior, self.prior_ratings)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Predict on every device; the grid is not used, and there is no round."""
        train = task.train
        averages = self.averages(train)
        everybody = train.counts >= 0
        accountant = PrivacyAccountant(rated=train.counts > 0)
        accountant.step(0, everybody, 0.0, 0.0)
        return Outcome(
            predict=averages.predict,
            predict_rows=averages.predict_rows,
            traffic=TrafficLedger(train.n_users),
            accountant=accountant,
            guarantee=self.guarantee((train.n_users, train.n_items)),
            rounds=(),
            diagnostics=averages.diagnostics,
        )
