"""Private alternating least squares: items are learned from sums over users with noise, round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant, PrivacyBudget
from dprec.completion import check_rank
from dprec.components import option
from dprec.errors import RunError, SettingError, within
from dprec.exchange import PrivateAlsSetup
from dprec.private_als import FactorizationOptions, ItemModel, TrustedAggregation, with_level
from dprec.ratings import Ratings
from simulation.protocols.base import Auditor, Example, Finding, NoisySums, Protocol, Sent
from simulation.protocols.components import AnyAggregation
from simulation.protocols.iterative import OwnFactors
from simulation.protocols.sharing import budget_at, check_unit, notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task

if TYPE_CHECKING:
    from strategies.iterative import PrivateAls

LARGEST_MULTIPLIER = 1e6
"""Largest noise of a release: with it, the sums of 50 million users stay within 64 bits."""

Evaluate = Callable[[ItemModel], dict[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class PrivateAlsProtocol(Protocol):
    """Users contribute to sums with Gaussian noise, from which the server solves for the items."""

    kind: Literal["dp-als"] = "dp-als"
    not_deployed: ClassVar[str] = ""
    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    privacy: PrivacyBudget | None = option(
        "What is promised for all rounds together, per user and by composition.", None
    )
    adjacency: Literal["add-or-remove-one", "replace-one"] = option(
        "What epsilon compares: a user's profile with none, or with any other, which takes twice the noise.",
        "add-or-remove-one",
        published="add-or-remove-one",
        source="chien2021, section 2",
    )
    factorization: FactorizationOptions = option("What is learned, and from what.", FactorizationOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", TrustedAggregation())

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        return replace(self, privacy=replace(budget_at(self.privacy, budget, "user"), composition="pld"))

    @property
    def mechanism_name(self) -> str:
        """Who adds up."""
        return f"{self.aggregation.kind}-sums"

    @property
    def completion_name(self) -> str:
        """What is learned."""
        return "private-als" if self.factorization.rank else "private-item-effects"

    @property
    def sensitivity(self) -> float:
        """Largest change of a release that a user can cause."""
        return 1.0 if self.adjacency == "add-or-remove-one" else 2.0

    @property
    def multipliers(self) -> tuple[float, ...]:
        """Noise of each round, a standard deviation for contributions of a norm of 1; 0 without a budget."""
        if self.privacy is None:
            return (0.0,) * self.factorization.rounds
        whole = self.sensitivity * self.aggregation.multiplier(self.privacy.epsilon, self.privacy.delta)
        return tuple(whole / float(np.sqrt(share)) for share in self.factorization.shares)

    def check(self, train: Sizes) -> None:
        """Refuse a budget and a rank that cannot be kept to."""
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the rounds protect whole profiles")
            if self.privacy.composition == "sum":
                accepted = "'pld': Gaussian noise keeps to an epsilon with a delta only"
                raise SettingError("privacy.composition", "'sum'", accepted)
            largest = max(self.multipliers)
            if largest > LARGEST_MULTIPLIER:
                raise SettingError(
                    "privacy.epsilon",
                    f"{self.privacy.epsilon:g} at delta {self.privacy.delta:g}, for which each of "
                    f"{self.factorization.rounds} rounds needs noise of {largest:.3g} times what a user "
                    "contributes",
                    f"a larger epsilon or delta, or fewer rounds: at most {LARGEST_MULTIPLIER:g} times",
                )
        self._check_aggregation(train)
        with within("factorization"):
            if self.factorization.rank:
                check_rank(self.factorization.rank, (train.n_users, train.n_items))

    def _check_aggregation(self, train: Sizes) -> None:
        """Refuse an aggregation that is not for so many users, or for sums as large as they can be."""
        span = train.scale.high - train.scale.low
        model = ItemModel.begin(train.n_items, self.factorization.rank, 0.0)
        model = replace(model, weights=np.ones(train.n_items, dtype=np.int64))
        with within("aggregation"):
            aggregation = self.aggregation.among(train.n_users)
            for done, multiplier in enumerate(self.multipliers):
                aggregation.check(model.layout(self.factorization, done + 1, span), multiplier)

    def audited(self) -> Protocol:
        """Return the protocol itself if anybody adds noise; see `Protocol.audited`."""
        return self if self.private else super().audited()

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Compare sums with noise: devices protect nothing by themselves."""
        sums = self.factorization, self.aggregation, self.multipliers, self.sensitivity
        return auditor.of_sums(NoisySums(*sums, self.accountant))

    def check_deployed(self) -> None:
        """Refuse an aggregation for which devices would have to exchange keys."""
        if not self.aggregation.deploys:
            found = f"{self.aggregation.kind!r}, for which devices exchange keys and shares"
            raise SettingError("aggregation.kind", found, "'trusted' on a deployment")

    def setup(self) -> PrivateAlsSetup:
        """Return what a device needs to know about the rounds."""
        return PrivateAlsSetup(
            factorization=self.factorization, aggregation=self.aggregation, multipliers=self.multipliers
        )

    def serve(self, grid: Grid, task: ServerTask, evaluate: Evaluate | None = None) -> PrivateAls:
        """Run the rounds and deliver the result; ``evaluate`` knows the accuracy in a simulation."""
        from dprec.private_als import ItemLearner
        from strategies.iterative import PrivateAls

        strategy = PrivateAls(
            learner=ItemLearner(self.factorization, task.scale, task.n_items, task.server_seed),
            aggregation=self.aggregation.among(task.n_users),
            multipliers=self.multipliers,
            seed=task.server_seed,
            public_seed=task.public_seed,
            group=task.group,
            roster=task.roster,
        )
        rounds = self.factorization.rounds
        strategy.run_rounds(
            grid,
            rounds,
            ended=task.ended,
            progress=task.progress,
            evaluate=None if evaluate is None else lambda: evaluate(strategy.learner.learned),
        )
        if strategy.failed == rounds:
            raise RunError(f"too many devices dropped out in every round (rounds: {rounds})")
        strategy.deliver(grid)
        return strategy

    def served(self, task: ServerTask, held: PrivateAls) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._facts(held, task))

    def simulated(self, task: Task, held: PrivateAls) -> Outcome:
        """Add what the devices predict, and how many contribute everything."""
        facts = self._facts(held, task)
        limit = self.factorization.ratings_per_user
        whole = int((task.train.counts <= limit).sum())
        note = f"{whole} of {task.n_users} users have at most {limit} ratings and contribute all in a round."
        facts["notes"] = (note, *facts["notes"])
        return Outcome(predict=self._predictor(task.train, held.learner.learned), **facts)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds, and evaluate each of them."""

        def evaluate(learned: ItemModel) -> dict[str, float | None]:
            return task.metric(self._predictor(task.train, learned))

        return self.simulated(task, self.serve(grid, task.for_server(), evaluate))

    def _predictor(self, train: Ratings, learned: ItemModel) -> OwnFactors:
        """Return the predictions of devices that have received what was learned."""
        options, span = self.factorization, train.scale.high - train.scale.low
        received = ItemModel.decode(learned.encode(), train.n_items, options.rank)
        ridge = options.predict_ridge * span**2
        factors = with_level(received.all_factors, ridge, options.level_ridge)
        return OwnFactors(train, factors, ridge, received.mean + received.biases)

    def _facts(self, held: PrivateAls, task: ServerTask) -> dict[str, Any]:
        popular = int(held.learner.learned.popular.sum())
        return {
            "traffic": held.traffic,
            "accountant": replace(held.accountant, adjacency=self.adjacency),
            "guarantee": self.guarantee((task.n_users, task.n_items)),
            "rounds": tuple(held.records),
            "notes": (*notes_on_failures(held.records), *_notes_on_releases(held.failed, len(held.records))),
            "diagnostics": {"items_with_factors": popular, "noise": list(self.multipliers)},
        }

    def accountant(self, longest: float = 1.0) -> PrivacyAccountant:
        """Return the accountant of one user who takes part in all rounds, with contributions up to a norm."""
        alone = np.ones(1, dtype=np.bool_)
        accountant = PrivacyAccountant(rated=alone, adjacency=self.adjacency)
        for done, multiplier in enumerate(self.multipliers, start=1):
            accountant.step(done, alone, np.inf, np.inf, self.aggregation.noisy_sum(multiplier / longest))
        return accountant

    def sent(self, example: Example) -> Sent:
        """Return the contributions, one in each round."""
        chosen = min(example.ratings, self.factorization.ratings_per_user)
        span = example.scale.high - example.scale.low
        model = replace(
            ItemModel.begin(example.items, 0, 0.0), weights=np.ones(example.items, dtype=np.int64)
        )
        rounds = range(1, self.factorization.rounds + 1)
        layouts = [model.layout(self.factorization, round_index, span) for round_index in rounds]
        aggregation = self.aggregation.among(example.users)
        bits = [
            aggregation.report_bits(layout, chosen, multiplier)
            for layout, multiplier in zip(layouts, self.multipliers, strict=True)
        ]
        return Sent(
            reports=len(layouts),
            symbols=None,
            answers=chosen,
            bits=float(np.mean(bits)),
            epsilon=None,
            per="user",
        )

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the composed loss of all releases, if there is a budget."""
        aggregation = self.aggregation
        if self.privacy is None:
            return Guarantee("none", aggregation.trust, False, "the sums are released without noise.")
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        twice = float(self.accountant().get_epsilon(delta, adjacency="replace-one")[0])
        between = f"it is {twice:.4g}" if np.isfinite(twice) else "none is proved"
        compared = (
            f"Epsilon compares a user's profile with none; between any two profiles {between}."
            if self.adjacency == "add-or-remove-one"
            else "Epsilon compares any two profiles of a user."
        )
        promised = (
            f"Epsilon = {epsilon:g} holds with delta = {delta:g} for everything that all others see of a "
            f"user in {self.factorization.rounds} rounds, which items it rated included. {compared}"
        )
        notes = (promised, *aggregation.notes())
        return Guarantee("proved", aggregation.trust, True, f"{aggregation.reason}.", notes)


def _notes_on_releases(failed: int, rounds: int) -> tuple[str, ...]:
    if not failed:
        return ()
    return (f"Of {rounds} releases {failed} failed, as too many devices dropped out; they taught nothing.",)
