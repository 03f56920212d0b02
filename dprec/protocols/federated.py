"""Federated models: over rounds, devices send clipped updates, and Gaussian noise hides each of them.

The model is one of ours or a class from outside (`dprec.federated.FederatedModel`); all else that is asked of
a protocol is answered here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Floats, Ints, Pieces
from dprec.attacks.transcript import Answered, ReleasedSum, Upload, of_normal_noise
from dprec.completion import Profiles
from dprec.components import Options, naming, option
from dprec.errors import SettingError, within
from dprec.exchange import UPDATE
from dprec.federated import (
    STEPS,
    Parameters,
    UpdateCode,
    check_predictions,
    check_updates,
    code_of,
    moved_by_others,
    of_holders,
    some_people,
)
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.base import Facts, Protocol, Public, Sent
from dprec.protocols.components import AnyModel
from dprec.protocols.findings import Auditor, Finding
from dprec.protocols.predicting import held_profiles
from dprec.protocols.rounds import AnsweringDevice, BroadcastProtocol, Charge, LearningServer, Reading
from dprec.protocols.sharing import budget_at, check_unit, compared_in_words
from dprec.randomness import ReleaseDraws, generator, uniform_below
from dprec.ratings import Ratings, RatingScale
from dprec.sent_symbols import SentSymbols

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

_NUMBERS_AT_ONCE = 1 << 22
"""Bounds the memory of a worker, whatever the size of its partitions and of the model."""

_CHECKED_OF = 128
"""Users for whom one or two of them are checked in a round: a twentieth of the work."""


@dataclass(frozen=True, kw_only=True)
class FederatedProtocol(BroadcastProtocol):
    """Devices send clipped updates of a model; the sums have Gaussian noise."""

    kind: Literal["federated"] = "federated"
    folds_in: ClassVar[bool] = True
    undeployable: ClassVar[str] = "whose model is code that devices which stand by themselves do not have"
    message_type: ClassVar[str] = UPDATE
    purpose: ClassVar[str] = "model update"
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
    def code(self) -> Options:
        """The model."""
        return self.model

    @property
    def compares(self) -> accounting.Adjacency:  # type: ignore[override]
        """What epsilon compares: who takes part is known of everybody, if devices add the noise."""
        return "replace-one" if self.trust == "local" else self.adjacency

    @property
    def sensitivity(self) -> float:
        """Largest change of a sum that a user can cause, in clips."""
        return 2.0 if self.compares == "replace-one" else 1.0

    @property
    def deviation(self) -> float:
        """Noise of each round, in clips; 0 without a budget. The rounds have even shares of the budget."""
        if self.privacy is None:
            return 0.0
        mu = accounting.largest_mu(self.privacy.epsilon, self.privacy.delta)
        return _MARGIN * self.sensitivity * float(np.sqrt(self.rounds)) / mu

    @property
    def deviation_on_devices(self) -> float:
        """The same of what a device adds by itself; 0 if others add it."""
        return self.deviation if self.trust == "local" else 0.0

    @property
    def noise_of_rounds(self) -> tuple[float, ...]:  # type: ignore[override]
        """Of each round, in clips."""
        return (self.deviation,) * self.rounds if self.privacy is not None else ()

    def charge(self, round_index: int, counts: Ints | None = None) -> Charge:
        """Return what an update costs, whoever adds the noise: without a delta, nothing is protected."""
        noisy = self.privacy is not None
        return Charge(mechanism=accounting.NoisySum(_MARGIN / self.deviation) if noisy else None)

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        return replace(self, privacy=replace(budget_at(self.privacy, budget, "user"), composition="pld"))

    def check(self, train: Any) -> None:
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
            self._check_model(train.n_items, train.scale)

    def _check_model(self, n_items: int, scale: RatingScale) -> None:
        """Have the model compute updates, take a step and predict, for each of a few made-up users alone."""
        parameters, model = self._start(n_items, scale, 0), self.model
        people, code = some_people(_FEW, n_items, scale, 0), self._code(n_items, scale)
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
        return code_of(self.model, n_items, scale, self.clip, self.deviation_on_devices)

    def audited(self) -> Protocol:
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
            others = Profiles.joined([some_people(1, _ITEMS, scale, seed + 1), others])
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

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the updates, one in each round, all of one size."""
        with within("model"):
            code = self._code(public.n_items, public.scale)
        bits = 8.0 * code.report_bytes
        return Sent(reports=self.rounds, symbols=None, answers=code.size, bits=bits, epsilon=None, per="user")

    @property
    def hides_rated_items(self) -> bool:
        """Whether the device adds the noise itself."""
        return self.deviation_on_devices > 0

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return noisy numbers, in classes of half a deviation; None if reports have no noise."""
        if not self.deviation_on_devices:
            return None
        code = self._code(people.n_items, people.scale)
        return SentSymbols(lambda number, reports: code.classes(reports))

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
            f"{self.rounds} rounds, which items it rated included. {compared_in_words(self.compares, twice)}"
        )
        reason = (
            "an update is clipped to a norm, whatever a model computes from a user's ratings, and it or its "
            "sum has Gaussian noise; rounds compose exactly. The noise is drawn in double precision and "
            "rounded to the steps of an update."
        )
        return accounting.Guarantee("proved", self.trust, True, reason, (promised,))

    def device(self, received: bytes, n_items: int, scale: RatingScale, before: Any = None) -> ModelDevice:
        """Read the parameters, which are always sent whole."""
        code = self._code(n_items, scale)
        return ModelDevice(self, code, code.unpack(received), n_items)

    def server(self, public: Public, seed: int, public_seed: int) -> ModelServer:
        """Return a server with the model's first parameters."""
        code = self._code(public.n_items, public.scale)
        return ModelServer(self, code, public, seed, self._start(public.n_items, public.scale, seed))


def _check_shapes(method: str, found: Sequence[Floats], expected: Sequence[tuple[int, ...]]) -> None:
    """Refuse arrays of other shapes than a method of a model should return."""
    shapes = [np.shape(each) for each in found]
    if shapes != list(expected):
        raise SettingError("", f"{method} of shapes {shapes}", f"{list(expected)}")


@dataclass(frozen=True, eq=False)
class ModelDevice(AnsweringDevice):
    """Parameters of a model, to which a device computes its update."""

    protocol: FederatedProtocol
    coding: UpdateCode
    parameters: Parameters
    """As they are sent."""
    n_items: int

    def encode(self) -> bytes:
        """Return the parameters."""
        return self.coding.pack(self.parameters)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return what the model predicts."""
        predict = self.protocol.model.predictor(self.parameters, profiles)
        users, items = np.indices((profiles.n_users, profiles.n_items))
        return predict(users.ravel(), items.ravel()).reshape(users.shape)

    def predicting(self, held: Ratings) -> dict[str, Any]:
        """Return the same cell by cell, once it was seen that two devices alone predict the same."""
        profiles = held_profiles(held, np.arange(held.n_users))
        predict = self.protocol.model.predictor(self.parameters, profiles)
        pair = np.unique(np.linspace(0, held.n_users - 1, 2).astype(np.int64))
        check_predictions(self.protocol.model, self.parameters, profiles, predict, pair)
        return {"predict": predict}

    @property
    def users_at_once(self) -> int:
        """As many as memory is there for."""
        return max(1, _NUMBERS_AT_ONCE // self.coding.size)

    def answer(self, profiles: Profiles, draws: RoundDraws) -> list[bytes]:
        """Return every user's update; raises ContractError where the model mixes users."""
        model = self.protocol.model
        updates = model.updates(self.parameters, profiles)
        if (checked := _checked(profiles.n_users, draws)) is not None:
            check_updates(model, self.coding, self.parameters, profiles, updates, checked)
        return self.coding.encode(of_holders(updates, profiles), draws)

    @property
    def reading(self) -> Reading:
        """How updates are read."""
        return Reading(self.coding.decode, self.coding.possible, (self.coding.size,))

    def upload(self, n_users: int, parts: Sequence[tuple[Ints, Pieces]], public_seed: int) -> Upload:
        """Return clipped updates, with the noise of each device."""
        coding = self.coding
        by_item = len(coding.shapes) == 1 and coding.shapes[0][:1] == (self.n_items,)

        def read() -> Iterator[Answered]:
            numbers = np.arange(coding.size)
            for users, reports in parts:
                valid, rows = coding.numbers(reports)
                yield Answered(
                    np.repeat(users[valid], numbers.size), np.tile(numbers, len(rows)), rows.ravel()
                )

        def compute(profiles: Profiles) -> Floats:
            updates = self.protocol.model.updates(self.parameters, profiles)
            return coding.clipped(of_holders(updates, profiles))

        return Upload(
            n_users=n_users,
            n_numbers=coding.size,
            per_item=coding.size // self.n_items if by_item else None,
            read=read,
            compute=compute,
            likelihood=of_normal_noise(coding.deviation),
        )

    def shown(self, nobody: Ratings) -> dict[str, Any]:
        """Return what is predicted of items for who holds nothing."""
        predict = self.predicting(nobody)["predict"]
        return {"newcomer": lambda items: predict(np.zeros_like(items), items)}


def _checked(users: int, draws: RoundDraws) -> Ints | None:
    """Return up to two users whose updates are also computed alone; None for most small partitions."""
    drawn = draws.devices.asked(b"whose updates are checked")
    words = np.array([drawn.per_user(index, draws.round_index)[0] for index in range(3)])
    if uniform_below(_CHECKED_OF, words[:1])[0] >= users:
        return None
    first, further = uniform_below(users, words[1:])
    return np.unique([first, further if further != first else (first + 1) % users])


@dataclass(eq=False)
class ModelServer(LearningServer):
    """Parameters that move along noisy means of updates."""

    protocol: FederatedProtocol
    coding: UpdateCode
    public: Public
    seed: int
    parameters: Parameters
    """In full precision."""
    step: Callable[[Parameters, Parameters, int], Parameters] = field(init=False)
    """What takes the steps of this run."""

    def __post_init__(self) -> None:
        self.step = self.protocol.model.steps()
        self.diagnostics = {"numbers": self.coding.size}

    @property
    def held(self) -> ModelDevice:
        """The parameters in the precision in which they are sent; raises ValueError for infinite ones."""
        parameters = self.coding.unpack(self.coding.pack(self.parameters))
        return ModelDevice(self.protocol, self.coding, parameters, self.public.n_items)

    def learn(self, round_index: int, total: Aggregate) -> ReleasedSum:
        """Add the noise, unless devices did, and take a step."""
        coding, central = self.coding, self.protocol.trust == "central"
        deviation = self.protocol.deviation if central else 0.0
        draws = ReleaseDraws(self.seed, round_index)
        update = coding.released(total.total, self.public.n_users, deviation, draws)
        self.parameters = self.step(self.held.parameters, update, round_index)
        numbers = np.concatenate([each.ravel() for each in update]) * (self.public.n_users / coding.clip)
        return ReleasedSum(numbers, math.hypot(deviation, coding.deviation * math.sqrt(total.users)))
