"""Protocols of sums: everybody contributes to sums with noise, round by round, and devices predict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dprec.accounting import Adjacency, Guarantee, MatchedBudget, PrivacyAccountant
from dprec.attacks import ReleasedSum, Transcript
from dprec.errors import RunError, SettingError, within
from dprec.exchange import SummedSetup
from dprec.protocols import base
from dprec.protocols.base import Facts, Promise, Public, Sent
from dprec.protocols.findings import Auditor, Finding, NoisySums
from dprec.protocols.predicting import predictions_on_devices
from dprec.protocols.sharing import budget_at, check_unit, compared_in_words
from dprec.ratings import POSITIVE, Ratings
from dprec.sums import (
    Aggregation,
    Cost,
    DeviceHalf,
    Layout,
    Learner,
    Releases,
    RepresentedAggregation,
    SummedMethod,
)
from simulation.protocols.base import Protocol
from simulation.protocols.course import notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task
from simulation.protocols.transcripts import of_newcomers, parts_of, said_alone, transcript_of

if TYPE_CHECKING:
    from strategies.iterative import LearningFromSums
    from strategies.rounds import Received

LARGEST_MULTIPLIER = 1e6
"""Largest noise of a release: with it, the sums of 50 million users stay within 64 bits."""

Evaluate = Callable[[DeviceHalf], dict[str, float | None]]


class SummedProtocol(Protocol):
    """Base of the protocols in which users contribute to sums with Gaussian noise.

    One that derives from it has the settings `adjacency` and `aggregation`, and names its `method`.
    """

    undeployable: ClassVar[str] = ""
    folds_in: ClassVar[bool] = True
    scales: ClassVar[bool] = True
    adjacency: Adjacency
    aggregation: Aggregation

    @property
    @abstractmethod
    def method(self) -> SummedMethod:
        """What is learned from the sums."""

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        composes = not self.aggregation.by_itself
        privacy = budget_at(self.privacy, budget, "user", composes=composes)
        return replace(self, privacy=replace(privacy, composition="pld") if composes else privacy)

    def promise(self) -> Promise:
        """Return the promise, which needs no delta where each report is protected by itself."""
        promised = super().promise()
        return replace(promised, delta=0.0) if self.aggregation.by_itself else promised

    @property
    def adding_up(self) -> Aggregation:
        """Who adds up, as devices and server know it."""
        with within("aggregation"):
            return self.aggregation.divided(self.privacy, self.method.shares)

    def facts_of(self, **own: Any) -> Facts:
        """Return facts, in which the sums protect users."""
        return super().facts_of(**{"protects": f"{self.aggregation.kind}-sums"} | own)

    @property
    def sensitivity(self) -> float:
        """Largest change of a release that a user can cause."""
        return 1.0 if self.adjacency == "add-or-remove-one" else self.farthest

    @property
    def farthest(self) -> float:
        """How far apart the contributions of two profiles can be; of one profile and none, 1."""
        return self.aggregation.farthest(self.method.farthest)

    @property
    def bounded(self) -> bool:
        """Whether contributions must not be longer than 1: for a budget, or for those who add them up."""
        return self.privacy is not None or self.aggregation.devices_add_noise

    @property
    def whole_multiplier(self) -> float:
        """Multiplier of one release that has the whole budget; 0 without one."""
        return self._multipliers((1.0,))[0]

    def tau(self, layout: Layout, users: int) -> float:
        """Return the noise per user of a release that has the whole budget, by public numbers.

        The aggregation knows the users, who all take part.
        """
        return self.aggregation.deviation(layout, self.whole_multiplier, users) / max(users, 1)

    @property
    def multipliers(self) -> tuple[float, ...]:
        """Noise of each round that counts for a loss, of contributions of norm 1; 0 without a budget."""
        return self._multipliers(self.method.shares)

    def _multipliers(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        if self.privacy is None:
            return (0.0,) * len(shares)
        return self.aggregation.multipliers(self.privacy, shares, self.sensitivity)

    def suited(self, public: Public) -> Self:
        """Return the protocol with what follows from public numbers, of what its settings leave out."""
        with within("aggregation"):
            aggregation = self.aggregation.among(public.n_users - public.joined)
            if public.joined:
                aggregation = aggregation.resized(public.n_users)
        suited: dict[str, Any] = {"aggregation": aggregation}
        return replace(self, **suited)

    def check(self, train: Sizes) -> None:
        """Refuse a budget and a rank that cannot be kept to."""
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the rounds protect whole profiles")
            if self.privacy.composition == "sum" and not self.aggregation.by_itself:
                accepted = "'pld': Gaussian noise keeps to an epsilon with a delta only"
                raise SettingError("privacy.composition", "'sum'", accepted)
            largest = max(self.multipliers)
            if largest > LARGEST_MULTIPLIER:
                raise SettingError(
                    "privacy.epsilon",
                    f"{self.privacy.epsilon:g} at delta {self.privacy.delta:g}, for which each of "
                    f"{self.method.rounds} rounds needs noise of {largest:.3g} times what a user "
                    "contributes",
                    f"a larger epsilon or delta, or fewer rounds: at most {LARGEST_MULTIPLIER:g} times",
                )
        aggregation, releases = self.adding_up, self.releases(train)
        with within("aggregation"):
            aggregation = aggregation.among(train.n_users)
            for layout, multiplier in zip(
                self.method.largest_layouts(releases), self.multipliers, strict=True
            ):
                aggregation.check(layout, multiplier)

    def setup(self) -> SummedSetup:
        """Return what a device needs to know about the rounds."""
        return SummedSetup(
            method=self.method,
            aggregation=self.adding_up,
            multipliers=self.multipliers,
            promised=self.privacy,
        )

    def releases(self, sizes: Sizes) -> Releases:
        """Return what is public of the releases among so many users and items."""
        return Releases(sizes.n_users, sizes.n_items, sizes.scale)

    def audited(self) -> base.Protocol:
        """Return the protocol itself if anybody adds noise; see `Protocol.audited`."""
        return self if self.privacy is not None else super().audited()

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Compare sums with noise, unless devices protect what they send by themselves."""
        if self.aggregation.by_itself:
            return super().audit(auditor)
        sums = self.method, self.aggregation, self.multipliers, self.sensitivity
        return auditor.of_sums(NoisySums(*sums, self.accountant))

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return the most that one adds to a number, in what honest users add to that of an item of theirs.

        Of the round in which that is most; see `Protocol.influence_of_one`.
        """
        layouts, aggregation = self.method.largest_layouts(self.releases(train)), self.adding_up
        counts = train.counts[train.counts > 0]
        most = [
            aggregation.most_of_one(layout, multiplier)
            for layout, multiplier in zip(layouts, self.multipliers, strict=True)
        ]
        honest = [np.average(layout.honest(counts), weights=counts) for layout in layouts]
        with np.errstate(divide="ignore"):
            influences = np.array(most) / np.array(honest)
        return float(influences.max()) if np.isfinite(influences).all() else None

    def check_deployed(self) -> None:
        """Refuse an aggregation that devices and server of a deployment cannot do."""
        with within("aggregation"):
            self.aggregation.check_deployed()

    def serve(self, grid: Grid, task: ServerTask, evaluate: Evaluate | None = None) -> LearningFromSums:
        """Run the rounds and deliver the result; ``evaluate`` knows the accuracy in a simulation."""
        from strategies.iterative import LearningFromSums

        aggregation = self.adding_up
        if task.represents is not None:
            aggregation = RepresentedAggregation(
                of=aggregation,
                users=task.n_users,
                population=task.represents,
                rounds=self.method.rounds,
            )
        releases = replace(self.releases(task), n_users=task.population)
        strategy = LearningFromSums(
            learner=self.learner(releases, task),
            aggregation=aggregation,
            multipliers=self.multipliers,
            costs=tuple(map(self._cost, self.multipliers)),
            seed=task.server_seed,
            public_seed=task.public_seed,
            group=task.group,
            roster=task.roster,
            received=[] if task.attacked else None,
            exchange=task.exchange_of and task.exchange_of(aggregation, task.public_seed),
        )
        rounds = self.method.rounds
        strategy.run_rounds(
            grid,
            rounds,
            ended=task.ended,
            progress=task.progress,
            evaluate=None if evaluate is None else lambda: evaluate(self._learned(task, strategy)),
        )
        if strategy.failed == rounds:
            raise RunError(f"too many devices dropped out in every round (rounds: {rounds})")
        strategy.deliver(grid)
        return strategy

    def learner(self, releases: Releases, task: ServerTask) -> Learner:
        """Return the server's half, which learns from the releases."""
        return self.method.learner(releases, task.catalogue, task.server_seed)

    def served(self, task: ServerTask, held: LearningFromSums) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._facts(held, task))

    def simulated(self, task: Task, held: LearningFromSums) -> Outcome:
        """Add what the devices predict."""
        facts = self._facts(held, task)
        facts["notes"] = (*self.notes_on(task), *facts["notes"])
        learned = self._learned(task, held)
        transcript = None if held.received is None else self._transcript(task, held, held.received, learned)
        return Outcome(**self.predictions_of(task.judged, learned), transcript=transcript, **facts)

    def _transcript(
        self, task: Task, held: LearningFromSums, received: Sequence[Received], learned: DeviceHalf
    ) -> Transcript:
        """Return what was said: sums, and what reports say that are protected by themselves."""
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        return transcript_of(
            task,
            trusted=self.aggregation.trust == "central",
            vectors=said_alone(task.n_users, received, held.aggregation, held.asked),
            sums=tuple(self._sums(task, held, received)),
            newcomer=of_newcomers(self.predictions_of(nobody, learned)["predict"]),
        )

    def _sums(
        self, task: ServerTask, held: LearningFromSums, received: Sequence[Received]
    ) -> Iterator[ReleasedSum]:
        """Yield the sums that were released, with what anybody can compute that a profile adds to them."""
        for number, summed in held.released.items():
            device = self.method.device(received[number - 1].model, task.n_items, task.scale)
            layout, _ = held.asked[number - 1]
            yield replace(summed, added=partial(parts_of, device, layout, number, task.public_seed))

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds, and evaluate each of them."""

        def evaluate(learned: DeviceHalf) -> dict[str, float | None]:
            return task.metric(self.predictions_of(task.judged, learned)["predict"])

        return self.simulated(task, self.serve(grid, task.for_server(), evaluate))

    def notes_on(self, task: Task) -> tuple[str, ...]:
        """Return what a reader must know of how these users contribute."""
        return ()

    def predictions_of(self, held: Ratings, learned: DeviceHalf) -> dict[str, Any]:
        """Return the fields of an `Outcome` for devices that have received what was learned."""
        return predictions_on_devices(held, learned.predictions)

    def diagnostics_of(self, learner: Learner) -> dict[str, Any]:
        """Return what is told of what was learned."""
        return {}

    def _learned(self, task: ServerTask, held: LearningFromSums) -> DeviceHalf:
        return self.method.device(held.learner.learned_bytes(), task.n_items, task.scale)

    def _facts(self, held: LearningFromSums, task: ServerTask) -> dict[str, Any]:
        return {
            "traffic": held.traffic,
            "accountant": replace(held.accountant, adjacency=self.adjacency),
            "guarantee": self.guarantee((task.population, task.n_items)),
            "rounds": tuple(held.records),
            "notes": (
                *_notes_on_population(task),
                *notes_on_failures(held.records),
                *_notes_on_releases(held.failed, len(held.records)),
            ),
            "diagnostics": self.diagnostics_of(held.learner),
            "noise": tuple(held.noise.values()) if self.privacy is not None else (),
            "tau": self._tau(held) if self.privacy is not None and held.noise else None,
        }

    def _tau(self, held: LearningFromSums) -> float:
        """Return the noise per user of the last release, as if it had the whole budget."""
        last, deviation = max(held.noise.items())
        return deviation * float(np.sqrt(self.method.shares[last - 1])) / held.learned_of

    def accountant(self, longest: float = 1.0) -> PrivacyAccountant:
        """Return the accountant of one user who takes part in all rounds, with contributions up to a norm.

        In one of them, where a user reports once.
        """
        alone = np.ones(1, dtype=np.bool_)
        accountant = PrivacyAccountant(rated=alone, adjacency=self.adjacency)
        releases = self.multipliers[:1] if self.aggregation.by_itself else self.multipliers
        for done, multiplier in enumerate(releases, start=1):
            cost = self._cost(multiplier / longest)
            accountant.step(done, alone, cost.epsilon, cost.epsilon, cost.mechanism)
        return accountant

    def _cost(self, multiplier: float) -> Cost:
        return self.adding_up.cost(multiplier, self.farthest)

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the contributions, one in each round."""
        suited = self.suited(public)
        method, multipliers = suited.method, suited.multipliers
        layouts = method.largest_layouts(self.releases(public))
        answers = method.most_ratings(ratings)
        bits = [
            suited.adding_up.report_bits(layout, answers, multiplier)
            for layout, multiplier in zip(layouts, multipliers, strict=True)
        ]
        alone = self.aggregation.by_itself
        return Sent(
            reports=1 if alone else len(layouts),
            symbols=None,
            answers=answers,
            bits=float(np.mean(bits)),
            epsilon=suited._cost(multipliers[0]).epsilon if alone else None,
            per="user",
            of="item" if public.scale.implicit else "rating",
        )

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the composed loss of all releases among so many, if there is a budget."""
        return self.suited(Public(*shape, POSITIVE))._guarantee()

    def _guarantee(self) -> Guarantee:
        aggregation = self.aggregation
        if self.privacy is None:
            return Guarantee("none", aggregation.trust, False, "the sums are released without noise.")
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        rounds = "one round" if self.method.rounds == 1 else f"{self.method.rounds} rounds"
        if aggregation.by_itself:
            promised = (
                f"Epsilon = {epsilon:g} holds without a delta, and between any two profiles, for everything "
                f"that all others see of a user in {rounds}, which items it rated included."
            )
            notes = promised, *aggregation.notes()
            return Guarantee("proved", aggregation.trust, True, f"{aggregation.reason}.", notes)
        twice = float(self.accountant().get_epsilon(delta, adjacency="replace-one")[0])
        promised = (
            f"Epsilon = {epsilon:g} holds with delta = {delta:g} for everything that all others see of a "
            f"user in {rounds}, which items it rated included. {compared_in_words(self.adjacency, twice)}"
        )
        notes = (promised, *aggregation.notes())
        return Guarantee("proved", aggregation.trust, True, f"{aggregation.reason}.", notes)


def _notes_on_releases(failed: int, rounds: int) -> tuple[str, ...]:
    if not failed:
        return ()
    return (
        f"Of {rounds} releases {failed} failed, as too many devices dropped out, or sums were spoiled; they "
        "taught nothing.",
    )


def _notes_on_population(task: ServerTask) -> tuple[str, ...]:
    if task.represents is None:
        return ()
    return (
        f"By tau: {task.n_users:,} simulated users represent a population of {task.represents:,} copies. "
        "Sums are theirs, with as much noise per user as sums of all have, drawn by a trusted server; "
        "epsilon and bytes are those of all.",
    )
