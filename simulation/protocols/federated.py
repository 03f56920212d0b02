"""Federated models: over rounds, devices send clipped updates, and Gaussian noise hides each of them.

The model is one of ours or a class from outside (`dprec.federated.FederatedModel`); all else that is asked of
a protocol is answered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Floats, Ints
from dprec.attacks import Transcript
from dprec.attacks.transcript import added_up
from dprec.completion import Profiles
from dprec.components import naming, option
from dprec.errors import SettingError, within
from dprec.exchange.setups import FederatedSetup
from dprec.federated import (
    STEPS,
    Parameters,
    UpdateCode,
    check_predictions,
    check_updates,
    code_of,
    moved_by_others,
    some_people,
)
from dprec.predictions import Predict
from dprec.protocols import base
from dprec.protocols.base import Facts, Public, Sent
from dprec.protocols.components import AnyModel
from dprec.protocols.findings import Auditor, Finding
from dprec.protocols.predicting import held_profiles
from dprec.protocols.sharing import budget_at, check_unit, compared_in_words
from dprec.randomness import ReleaseDraws, generator
from dprec.ratings import Ratings, RatingScale
from dprec.sums import Cost
from simulation.protocols.base import Protocol
from simulation.protocols.course import notes_on_failures
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Sizes, Task
from simulation.protocols.transcripts import UpdateRounds, of_newcomers, transcript_of

if TYPE_CHECKING:
    from strategies.iterative import FederatedRounds
    from strategies.rounds import Received

LARGEST_DEVIATION = 1e4
"""Largest noise, in clips: with it, a noisy number fits into 32 bits, and sums of a billion into 64."""

_MARGIN = 1 + 1e-9
"""What rounding in floating point may add to a loss."""

_PER_DEVIATION, _CLASSES = 4, 120
"""Classes by which an audit tells sums apart: as many in each deviation of the noise, and in all."""

_FEW = 4
"""Made-up users whose updates are computed before anything runs."""

_ITEMS, _MOST_NUMBERS = 40, 1 << 22
"""Items of the made-up users of an audit, and numbers of all of their updates at most."""

Evaluate = Callable[[Parameters], dict[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class FederatedProtocol(Protocol):
    """Devices send clipped updates of a model; the sums have Gaussian noise."""

    kind: Literal["federated"] = "federated"
    folds_in: ClassVar[bool] = True
    undeployable: ClassVar[str] = "whose model is code that devices which stand by themselves do not have"
    privacy: accounting.PrivacyBudget | None = option(
        "What is promised for all rounds together, per user and by composition.", None
    )
    model: AnyModel = option("What devices compute, how the server learns, how predictions follow.")
    rounds: int = option("Number of rounds; everybody is asked in each.", 10, ge=1)
    clip: float = option(
        "Largest norm of an update; a longer one is scaled down to it.", 1.0, ge=1e-9, le=1e9
    )
    trust: Literal["central", "local"] = option(
        "Who adds the noise: a trusted server, to the sum of a round; or every device, to its own update.",
        "central",
    )
    adjacency: Literal["add-or-remove-one", "replace-one"] = option(
        "What epsilon compares where the server is trusted: a user's profile with none, which adds zeros, or "
        "with any other. Where devices add the noise, it is always any other.",
        "add-or-remove-one",
    )

    @property
    def facts(self) -> Facts:
        """What a model predicts, learned from clipped updates."""
        return self.facts_of(
            protects="clipped-updates",
            learns="federated-model",
            predicts=self.model.predicted,
            starts_at_random=True,
        )

    @property
    def sensitivity(self) -> float:
        """Largest change of a sum that a user can cause, in clips."""
        return 2.0 if self._compares == "replace-one" else 1.0

    @property
    def _compares(self) -> accounting.Adjacency:
        """What epsilon compares: who takes part is known of everybody, if devices add the noise."""
        return "replace-one" if self.trust == "local" else self.adjacency

    @property
    def deviation(self) -> float:
        """Noise of each round, in clips; 0 without a budget. The rounds have even shares of the budget."""
        if self.privacy is None:
            return 0.0
        mu = accounting.largest_mu(self.privacy.epsilon, self.privacy.delta)
        return _MARGIN * self.sensitivity * float(np.sqrt(self.rounds)) / mu

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        return replace(self, privacy=replace(budget_at(self.privacy, budget, "user"), composition="pld"))

    def check(self, train: Sizes) -> None:
        """Refuse a budget that cannot be kept to, and a model that does not compute what it should."""
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the noise hides whole updates")
            if self.privacy.composition == "sum":
                accepted = "'pld': Gaussian noise keeps to an epsilon with a delta only"
                raise SettingError("privacy.composition", "'sum'", accepted)
            if self.deviation > LARGEST_DEVIATION:
                found = (
                    f"{self.privacy.epsilon:g} in {self.rounds} rounds: noise of {self.deviation:.3g} clips"
                )
                raise SettingError("privacy.epsilon", found, f"noise of at most {LARGEST_DEVIATION:g} clips")
        with within("model"), naming(self.model, "a class that computes updates"):
            self._check_model(train)

    def _check_model(self, train: Sizes) -> None:
        """Have the model compute updates, take a step and predict, for each of a few made-up users alone."""
        parameters, model = self._start(train.n_items, train.scale, 0), self.model
        people, code = (
            some_people(_FEW, train.n_items, train.scale, 0),
            self._code(train.n_items, train.scale),
        )
        shapes = [each.shape for each in parameters]
        for _ in range(2):
            updates = model.updates(parameters, people)
            _check_shapes("updates", updates, [(_FEW, *shape) for shape in shapes])
            predict = model.predictor(parameters, people)
            _check_shapes("predictor", [predict(*np.zeros((2, 1), dtype=np.int64))], [(1,)])
            for users in np.arange(_FEW).reshape(-1, 2):
                check_updates(model, code, parameters, people, updates, users)
                check_predictions(model, parameters, people, predict, users)
            parameters = model.step(parameters, tuple(each.mean(axis=0) for each in updates), 1)
            _check_shapes("step", parameters, shapes)

    def _start(self, n_items: int, scale: RatingScale, seed: int) -> Parameters:
        return self.model.start(n_items, scale, generator(seed, "parameters of a model"))

    def _code(self, n_items: int, scale: RatingScale) -> UpdateCode:
        setup = self.setup()
        return code_of(self.model, n_items, scale, setup.clip, setup.deviation)

    def audited(self) -> base.Protocol:
        """Return the protocol itself if anybody adds noise; see `Protocol.audited`."""
        return self if self.privacy is not None else super().audited()

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Compare what devices send, or where the server adds the noise, sums with the longest update.

        And measure what a user moves of other users' updates, which is nothing if the model mixes nobody.
        """
        yield from auditor.of_groups(self._moved, self._loss)
        if self.trust == "local":
            yield from auditor.of_devices()
        else:
            yield from auditor.of_samples("the longest update, in the sums of all rounds", self._sampled)

    def _loss(self, moved: float) -> float:
        """Return what all rounds cost where a user moves updates of others by so many clips."""
        assert self.privacy is not None, "a protocol without a budget"
        distance = (self.sensitivity + moved) * float(np.sqrt(self.rounds)) / self.deviation
        return accounting.gaussian_epsilon(distance, self.privacy.delta)

    def _moved(self, users: int, scale: RatingScale, seed: int) -> float | None:
        """Return by how many clips the first of made-up users moves others' updates; None for too many.

        What is moved is their sum; where each adds its own noise, all of their updates side by side.
        """
        parameters, code = self._start(_ITEMS, scale, seed), self._code(_ITEMS, scale)
        if users * code.size > _MOST_NUMBERS:
            return None
        people = some_people(users, _ITEMS, scale, seed)
        if seed % 2:
            updates = self.model.updates(parameters, people)
            parameters = self.model.step(parameters, tuple(each.mean(axis=0) for each in updates), 1)
        others = people.of_users(np.arange(1, users))
        if self.sensitivity > 1:
            instead = some_people(1, _ITEMS, scale, seed + 1)
            others = Profiles.joined([instead, others])
        moved = moved_by_others(self.model, code, parameters, people, others)
        return float(np.linalg.norm(moved if self.trust == "local" else moved.sum(axis=0)))

    def _sampled(self, present: bool, trials: int, seed: int) -> Ints:
        """Return sums of numbers, each a trial, of which a user changes each by as much as can be."""
        code, moved = UpdateCode(((trials,),), self.clip, 0.0), int(present * self.sensitivity * STEPS)
        composed = self.deviation / np.sqrt(self.rounds)
        (released,) = code.released(np.full(trials, moved), 1, composed, ReleaseDraws(seed, 1))
        width = max(composed, 0.1) / _PER_DEVIATION * self.clip
        classes = np.clip(np.floor(released / width) + _CLASSES // 3, 0, _CLASSES)
        seen: Ints = classes.astype(np.int64)
        return seen

    def setup(self) -> FederatedSetup:
        """Return what a device needs to know about the rounds."""
        deviation = self.deviation if self.trust == "local" else 0.0
        return FederatedSetup(model=self.model, clip=self.clip, deviation=deviation, rounds=self.rounds)

    def serve(self, grid: Grid, task: ServerTask, evaluate: Evaluate | None = None) -> FederatedRounds:
        """Run the rounds and deliver the result; ``evaluate`` is what only a simulation can do."""
        from strategies.iterative import FederatedRounds

        strategy = FederatedRounds(
            model=self.model,
            code=self._code(task.n_items, task.scale),
            deviation=self.deviation if self.trust == "central" else 0.0,
            cost=Cost(
                mechanism=accounting.NoisySum(_MARGIN / self.deviation) if self.privacy is not None else None
            ),
            parameters=self._start(task.n_items, task.scale, task.server_seed),
            seed=task.server_seed,
            group=task.group,
            roster=task.roster,
            received=[] if task.attacked else None,
        )
        strategy.run_rounds(
            grid,
            self.rounds,
            ended=task.ended,
            progress=task.progress,
            evaluate=None if evaluate is None else lambda: evaluate(strategy.broadcast),
        )
        strategy.deliver(grid)
        return strategy

    def served(self, task: ServerTask, held: FederatedRounds) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._facts(held, task))

    def simulated(self, task: Task, held: FederatedRounds) -> Outcome:
        """Add what the devices predict."""
        return Outcome(
            predict=self._predictor(task.judged, held.broadcast),
            transcript=None if held.received is None else self._transcript(task, held, held.received),
            **self._facts(held, task),
        )

    def _transcript(self, task: Task, held: FederatedRounds, received: Sequence[Received]) -> Transcript:
        """Return what was said; a server that is trusted sees updates without noise."""
        trusted = self.guarantee((task.n_users, task.n_items)).trusts_server
        uploads = UpdateRounds(self.model, held.code, task.n_items).uploads(task.n_users, received)
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        return transcript_of(
            task,
            trusted=trusted,
            uploads=uploads,
            vectors=added_up(uploads),
            sums=tuple(held.released),
            newcomer=of_newcomers(self._predictor(nobody, held.broadcast)),
        )

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds, and evaluate each of them."""

        def evaluate(parameters: Parameters) -> dict[str, float | None]:
            return task.metric(self._predictor(task.judged, parameters))

        with naming(self.model, "a class that computes updates"):
            return self.simulated(task, self.serve(grid, task.for_server(), evaluate))

    def _predictor(self, held: Ratings, parameters: Parameters) -> Predict:
        """Return what devices predict, once it was seen that two of them alone predict the same."""
        profiles = held_profiles(held, np.arange(held.n_users))
        predict = self.model.predictor(parameters, profiles)
        pair = np.unique(np.linspace(0, held.n_users - 1, 2).astype(np.int64))
        check_predictions(self.model, parameters, profiles, predict, pair)
        return predict

    def _facts(self, held: FederatedRounds, task: ServerTask) -> dict[str, Any]:
        return {
            "traffic": held.traffic,
            "accountant": replace(held.accountant, adjacency=self._compares),
            "guarantee": self.guarantee((task.n_users, task.n_items)),
            "rounds": tuple(held.records),
            "notes": notes_on_failures(held.records),
            "diagnostics": {"numbers": held.code.size},
            "noise": (self.deviation,) * self.rounds if self.privacy is not None else (),
        }

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the updates, one in each round, all of one size."""
        with within("model"):
            code = self._code(public.n_items, public.scale)
        bits = 8.0 * code.report_bytes
        return Sent(reports=self.rounds, symbols=None, answers=code.size, bits=bits, epsilon=None, per="user")

    def guarantee(self, shape: tuple[int, int]) -> accounting.Guarantee:
        """Promise the composed loss of all rounds, if there is a budget."""
        if self.privacy is None:
            return accounting.Guarantee(
                "none", "central", False, "the updates are sent, and added up, without noise."
            )
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        twice = accounting.gaussian_epsilon(2 * _MARGIN * float(np.sqrt(self.rounds)) / self.deviation, delta)
        promised = (
            f"Epsilon = {epsilon:g} holds with delta = {delta:g} for all that is seen of a user in "
            f"{self.rounds} rounds, which items it rated included. {compared_in_words(self._compares, twice)}"
        )
        reason = (
            "an update is clipped to a norm, whatever a model computes from a user's ratings, and it or its "
            "sum has Gaussian noise; rounds compose exactly. The noise is drawn in double precision and "
            "rounded to the steps of an update."
        )
        trust: Literal["local", "central"] = "local" if self.trust == "local" else "central"
        return accounting.Guarantee("proved", trust, True, reason, (promised,))


def _check_shapes(method: str, found: Sequence[Floats], expected: Sequence[tuple[int, ...]]) -> None:
    """Refuse arrays of other shapes than a method of a model should return."""
    shapes = [np.shape(each) for each in found]
    if shapes != list(expected):
        raise SettingError("", f"{method} of shapes {shapes}", f"{list(expected)}")
