"""Federated models: over rounds, devices send clipped updates, and Gaussian noise hides each of them.

The model is one of ours or a class from outside (`dprec.federated.FederatedModel`); all else that is asked of
a protocol is answered here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import AnyArray, Floats, Ints, Pieces
from dprec.attacks.transcript import Answered, ReleasedSum, Upload, of_normal_noise
from dprec.completion import Profiles
from dprec.components import Options, is_ours, kind_of, naming, option, reference_of
from dprec.errors import RunError, SettingError, plural, within
from dprec.exchange import UPDATE
from dprec.federated import (
    BEFORE_A_RUN,
    LARGEST_CLIP,
    LEAST_CLIP,
    STEPS,
    AdaptiveClip,
    Computed,
    Devices,
    Parameters,
    State,
    Trial,
    UpdateCode,
    arrays_of,
    begun,
    check_predictions,
    check_updates,
    code_of,
    moved_by_others,
    shapes_of,
    some_devices,
)
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.base import TOLD, Facts, Protocol, Public
from dprec.protocols.client_sampling import SampledClients
from dprec.protocols.components import AnyModel
from dprec.protocols.findings import AuditTests, Finding
from dprec.protocols.predicting import held_profiles
from dprec.protocols.rounds import AnswerDecoder, AnsweringDevice, BroadcastProtocol, Charge, LearningServer
from dprec.protocols.sharing import budget_at, check_unit, compared_in_words
from dprec.randomness import ReleaseDraws, generator, uniform_below, words
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportSize
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

_DRAWN_OF = 10
"""Users of an audit for each who is asked in a round, where no data says how many there are."""

_NUMBERS_AT_ONCE = 1 << 22
"""Bounds the memory of a worker, whatever the size of its partitions and of the model."""

_LARGEST_LOSS = 1e300
"""A loss of a user counts as no larger, so that a mean of many is finite."""

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
    tells: ClassVar[bool] = True
    privacy: accounting.PrivacyBudget | None = option(
        "What is promised for all rounds together, per user and by composition.", None
    )
    model: AnyModel = option("What devices compute, how the server learns, how predictions follow.")
    rounds: int = option("Number of rounds.", 10, ge=1)
    sampling: SampledClients = option("Who is asked in a round; everybody by default.", SampledClients())
    clip: float = option(
        "Largest norm of an update; a longer one is scaled down to it.", 1.0, ge=LEAST_CLIP, le=LARGEST_CLIP
    )
    adaptive_clip: AdaptiveClip | None = option(
        "How the clip follows the updates; null for not at all.", None
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
    evaluate_every: int = option(
        "Rounds between evaluations; the last is always evaluated.", 1, reader="server", ge=1
    )

    @property
    def facts(self) -> Facts:
        """What a model predicts, learned from clipped updates."""
        return self.facts_of(
            protects="clipped-updates",
            learns="federated-model" if is_ours(type(self.model)) else kind_of(type(self.model)),
            predicts=self.model.predicted,
            starts_at_random=True,
            baseline=TOLD if self.model.told_tested else None,
        )

    @property
    def code(self) -> Options:
        """The model."""
        return self.model

    def suited(self, public: Public) -> Self:
        """Return the protocol with the number of users among whom clients are drawn."""
        with within("sampling"):
            return replace(self, sampling=self.sampling.among(public.n_users))

    @property
    def compares(self) -> accounting.Adjacency:  # type: ignore[override]
        """What epsilon compares: who takes part is known of everybody, if devices add the noise."""
        return "replace-one" if self.trust == "local" else self.adjacency

    @property
    def amplified(self) -> accounting.ClientSampling | None:
        """How clients are drawn, where who is asked is hidden from whoever sees what is released.

        A server that devices do not trust knows whom it asks, so nothing is amplified against it.
        """
        return self.sampling.drawn if self.trust == "central" else None

    @property
    def learns_of_nobody(self) -> bool:  # type: ignore[override]
        """Whether noise is released also of rounds in which nobody was drawn, as these must not be told."""
        return self.amplified is not None

    @property
    def sensitivity(self) -> float:
        """Largest change of a sum that a user can cause, in clips of a report's reach."""
        return 2.0 if self.compares == "replace-one" else 1.0

    @property
    def multiplier(self) -> float:
        """Noise of each round, in lengths of the longest report; 0 without a budget.

        The rounds have even shares of the budget.
        """
        if self.privacy is None:
            return 0.0
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        if self.amplified is not None:
            return _MARGIN / accounting.largest_sampled_distance(epsilon, delta, self.amplified, self.rounds)
        return (
            _MARGIN * self.sensitivity * float(np.sqrt(self.rounds)) / accounting.largest_mu(epsilon, delta)
        )

    @property
    def bit(self) -> float:
        """Size of the number that says whether an update was short; 0 where the clip stays."""
        return 0.0 if self.adaptive_clip is None else self.adaptive_clip.bit

    @property
    def deviation(self) -> float:
        """Noise of each round on every number, in clips; 0 without a budget."""
        return self.multiplier * math.hypot(1.0, self.bit)

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
        if self.privacy is None:
            return Charge()
        distance = _MARGIN / self.multiplier
        if self.amplified is None:
            return Charge(mechanism=accounting.NoisySum(distance))
        return Charge(mechanism=accounting.SubsampledGaussian(distance, self.amplified), everybody=True)

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
            if self.amplified is not None and self.sampling.clients is not None and self.model.keeps:
                # What others keep tells that they were asked, and so who was not.
                found = f"{self.sampling.clients}, with a model that keeps something on devices"
                raise SettingError(
                    "sampling.clients", found, "rate, by which nobody is asked in another's place"
                )
            if self.amplified is not None:
                self.amplified.check(self.adjacency)
            if self.deviation > LARGEST_DEVIATION:
                rounds = plural(self.rounds, "round")
                found = f"{self.privacy.epsilon:g} in {rounds}: noise of {self.deviation:.3g} clips"
                raise SettingError("privacy.epsilon", found, f"noise of at most {LARGEST_DEVIATION:g} clips")
        with within("sampling"):
            self.sampling.among(train.n_users)
        with within("model"), naming(self.model, "a class that computes updates"):
            trial = Trial(self.model, train.scale, train.n_items, groups=(_FEW,), pairs=2, rounds=2)
            for rule in BEFORE_A_RUN:
                if (broken := rule.check(trial)) is not None:
                    raise SettingError("", *broken)

    def _start(self, n_items: int, scale: RatingScale, seed: int) -> Parameters:
        parameters = self.model.start(n_items, scale, generator(seed, "parameters of a model"))
        return arrays_of(self.model, "start returned", parameters)

    def _code(self, n_items: int, scale: RatingScale) -> UpdateCode:
        return code_of(self.model, n_items, scale, self.clip, self.deviation_on_devices, self.bit)

    def audited(self) -> Protocol:
        """Return the protocol itself if anybody adds noise; see `Protocol.audited`."""
        if self.privacy is None:
            return super().audited()
        if self.trust == "local":
            # The noise is made for who is asked in every round, which tells most.
            return replace(self, sampling=SampledClients())
        clients = self.sampling.clients
        if clients is None or self.sampling.users is not None:
            return self
        return replace(self, sampling=self.sampling.among(_DRAWN_OF * clients))

    def audit(self, auditor: AuditTests) -> Iterator[Finding]:
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
        own_distance, delta = 1 / self.multiplier, self.privacy.delta
        if self.amplified is not None:
            distance = own_distance + moved / (self.sensitivity * self.deviation)
            return accounting.sampled_gaussian_epsilon(distance, self.amplified, self.rounds, delta)
        distance = (self.sensitivity * own_distance + moved / self.deviation) * float(np.sqrt(self.rounds))
        return accounting.gaussian_epsilon(distance, delta)

    def _moved(self, users: int, scale: RatingScale, seed: int) -> float | None:
        """Return by how many clips the first of made-up users moves others' updates; None for too many.

        What is moved is their sum; where each adds its own noise, all of their updates side by side.
        """
        parameters, code = self._start(_ITEMS, scale, seed), self._code(_ITEMS, scale)
        if users * code.size > _MOST_NUMBERS:
            return None
        people = some_devices(self.model, users, _ITEMS, scale, seed)
        if seed % 2:
            updates = self.model.computed(parameters, people).updates
            parameters = arrays_of(
                self.model, "step returned", self.model.step(parameters, code.mean(updates), 1)
            )
        others = people.of_users(np.arange(1, users))
        if self.sensitivity > 1:
            others = Devices.joined([some_devices(self.model, 1, _ITEMS, scale, seed + 1), others])
        moved = moved_by_others(self.model, code, parameters, people, others)
        return float(np.linalg.norm(moved if self.trust == "local" else moved.sum(axis=0)))

    def _sampled(self, present: bool, trials: int, seed: int) -> Ints:
        """Return sums of numbers, each a trial, of which a user changes each by as much as can be."""
        if self.amplified is not None:
            return self._sampled_rounds(present, trials, seed)
        code, moved = UpdateCode(((trials,),), self.clip, 0.0), int(present * self.sensitivity * STEPS)
        composed = self.multiplier / np.sqrt(self.rounds)
        (released,), _ = code.released(np.full(trials, moved), 1, composed, ReleaseDraws(seed, 1))
        return _classes(released / self.clip, max(composed, 0.1) / _PER_DEVIATION)

    def _sampled_rounds(self, present: bool, trials: int, seed: int) -> Ints:
        """Return by what sums of all rounds differ that a user changes where it is drawn, each a trial.

        Of sums x with noise of s deviations, sum log((1 - q) + q exp((x d - d^2 / 2) / s^2)) tells best
        whether a user took part that is drawn with probability q and moves a sum by d.
        """
        assert self.amplified is not None
        assert self.privacy is not None
        code, share, shift = UpdateCode(((trials,),), self.clip, 0.0), self.amplified.rate, self.sensitivity
        users = self.sampling.users or trials
        log_ratios = np.zeros(trials)
        for number in range(1, self.rounds + 1):
            runs = [self.sampling.draw(users, seed + run, number) for run in range(-(-trials // users))]
            total = np.concatenate(runs)[:trials] * int(present * shift * STEPS)
            (released,), _ = code.released(total, 1, self.multiplier, ReleaseDraws(seed, number))
            exponent = (released / self.clip * shift - shift**2 / 2) / self.multiplier**2
            log_ratios += np.logaddexp(np.log1p(-share), np.log(share) + exponent)
        return _classes(log_ratios, self.privacy.epsilon / 8)

    def model_bytes(self, public: Public) -> float:
        """Return what nodes hold of what devices keep: before a round, after it, and as it is told."""
        state = some_devices(self.model, 1, public.n_items, public.scale, 0).state
        return 3.0 * public.n_users * sum(array.nbytes for array in state)

    def asked_at_once(self, users: int) -> float:
        """Return how many are drawn."""
        return self.sampling.expected(users)

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the updates, one in each round, all of one size."""
        with within("model"):
            code = self._code(public.n_items, public.scale)
        return ReportSize(None, code.width, 8.0 * code.report_bytes, None, "user", reports=self.rounds)

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
        charge = self.charge(1).mechanism
        assert charge is not None
        everybody = np.ones(1, dtype=np.bool_)
        between = float(charge.composed([(charge, everybody)] * self.rounds, delta, "replace-one")[0])
        rounds = plural(self.rounds, "round")
        promise = (
            f"Epsilon = {epsilon:g} holds with delta = {delta:g} for all that is seen of a user in "
            f"{rounds}, which items it rated included. {compared_in_words(self.compares, between)}"
        )
        reason = (
            "an update is clipped to a norm, whatever a model computes from a user's ratings, and it or its "
            "sum has Gaussian noise; rounds compose exactly. The noise is drawn in double precision and "
            "rounded to the steps of an update."
        )
        return accounting.Guarantee("proved", self.trust, True, reason, (promise, *self._told_of_sampling))

    @property
    def _told_of_sampling(self) -> tuple[str, ...]:
        """What a reader must know of clients who are drawn, in sentences."""
        if self.sampling.drawn is None:
            return ()
        if self.amplified is None:
            return (
                "The server knows whom it asks, so that drawing clients amplifies nothing: the noise is made "
                "for a user who is asked in every round, and who is asked in fewer loses less.",
            )
        # Given how many were drawn, the draws of a rate are no longer independent.
        number = "" if self.sampling.rate is None else ", or how many"
        return (
            "Epsilon counts on its staying hidden who is drawn in a round: it holds against whoever sees "
            f"what is released, and not against the trusted server, or whoever sees "
            f"which devices it asks{number}.",
        )

    def device(self, received: bytes, n_items: int, scale: RatingScale, before: Any = None) -> ModelDevice:
        """Read the parameters, which are always sent whole."""
        return ModelDevice(self, *self._code(n_items, scale).unpack(received), n_items, scale)

    def server(self, public: Public, seed: int, public_seed: int) -> ModelServer:
        """Return a server with the model's first parameters."""
        code = self._code(public.n_items, public.scale)
        return ModelServer(self, code, public, seed, self._start(public.n_items, public.scale, seed))


def _classes(values: Floats, width: float) -> Ints:
    """Return values in classes of some width, a third of them below 0."""
    classes: Ints = np.clip(np.floor(values / width) + _CLASSES // 3, 0, _CLASSES).astype(np.int64)
    return classes


@dataclass(frozen=True, eq=False)
class ModelDevice(AnsweringDevice):
    """Parameters of a model, to which a device computes its update."""

    protocol: FederatedProtocol
    coding: UpdateCode
    parameters: Parameters
    """As they are sent."""
    n_items: int
    scale: RatingScale
    state: State | None = None
    """What devices keep, where a simulation tells it; None for what they begin with."""

    def encode(self) -> bytes:
        """Return the parameters."""
        return self.coding.pack(self.parameters)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return what the model predicts."""
        predict = self.protocol.model.predicting(self.parameters, self._devices(profiles))["predict"]
        users, items = np.indices((profiles.n_users, profiles.n_items))
        return np.asarray(predict(users.ravel(), items.ravel()), dtype=np.float64).reshape(users.shape)

    def predicting(self, ratings: Ratings) -> Mapping[str, Any]:
        """Return what devices predict, once it was seen that two devices alone predict the same."""
        devices = self._devices(held_profiles(ratings, np.arange(ratings.n_users)))
        model = self.protocol.model
        predicting = model.predicting(self.parameters, devices)
        if model.defines("predictor"):
            pair = np.unique(np.linspace(0, ratings.n_users - 1, 2).astype(np.int64))
            check_predictions(model, self.parameters, devices, predicting, pair)
        return predicting

    def _devices(self, profiles: Profiles) -> Devices:
        """Return devices that draw nothing, with what they keep."""
        keys = words(0, "devices that draw nothing", 0, 2 * profiles.n_users).reshape(-1, 2)
        state = self.state
        if state is None:
            state = begun(self.protocol.model, self.n_items, self.scale, keys)
        return Devices(profiles, state, keys)

    def keeping(self, state: State) -> ModelDevice:
        """Return the device where a simulation knows what each user's keeps."""
        return replace(self, state=state)

    @property
    def users_at_once(self) -> int:
        """As many as memory is there for."""
        return max(1, _NUMBERS_AT_ONCE // self.coding.size)

    def observed(self, norms: Floats, losses: Floats, round_index: int) -> dict[str, float]:
        """Return the clip, the median norm before clipping, the mean loss, and how many are not finite.

        A loss that is not finite counts for nothing.

        Raises RunError where no update is finite.
        """
        has_norm, finite, has_loss = ~np.isnan(norms), np.isfinite(norms), np.isfinite(losses)
        if has_norm.any() and not finite.any():
            name = reference_of(type(self.protocol.model))
            raise RunError(f"{name}: none of {int(has_norm.sum())} updates of round {round_index} is finite")
        figures = {"clip": self.coding.clip}
        if finite.any():
            figures["norm"] = float(np.median(norms[finite]))
        if has_loss.any():
            figures["loss"] = float(np.clip(losses[has_loss], -_LARGEST_LOSS, _LARGEST_LOSS).mean())
        if lost := int((has_norm & ~finite).sum()):
            figures["not_finite"] = lost
        return figures

    def computed(self, devices: Devices, checked: Ints) -> Computed:
        """Return what devices compute; raises ContractError where some compute something else alone."""
        model = self.protocol.model
        computed = model.computed(self.parameters, devices)
        if checked.size:
            check_updates(model, self.coding, self.parameters, devices, computed, checked)
        return computed

    @property
    def reading(self) -> AnswerDecoder:
        """How updates are read."""
        return AnswerDecoder(self.coding.decode, self.coding.possible, (self.coding.width,))

    def upload(self, n_users: int, parts: Sequence[tuple[Ints, Pieces]], public_seed: int) -> Upload:
        """Return clipped updates, with the noise of each device, less the number of a clip that adapts."""
        coding = self.coding
        by_item = len(coding.shapes) == 1 and coding.shapes[0][:1] == (self.n_items,)

        def read() -> Iterator[Answered]:
            numbers = np.arange(coding.size)
            for users, reports in parts:
                valid, rows = coding.numbers(reports)
                yield Answered(
                    np.repeat(users[valid], numbers.size),
                    np.tile(numbers, len(rows)),
                    rows[:, : coding.size].ravel(),
                )

        def compute(profiles: Profiles) -> Floats:
            updates = self.protocol.model.computed(self.parameters, self._devices(profiles)).updates
            return coding.clipped(updates, np.diff(profiles.indptr) > 0)[:, : coding.size]

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


def checked_of(users: int, draws: RoundDraws) -> Ints:
    """Return up to two of some users who are also computed alone; of few users, most often nobody."""
    device_draws = draws.devices.asked(b"whose updates are checked")
    words = np.array([device_draws.per_user(index, draws.round_index)[0] for index in range(3)])
    if uniform_below(_CHECKED_OF, words[:1])[0] >= users:
        return np.zeros(0, dtype=np.int64)
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
    def arrays(self) -> Mapping[str, AnyArray] | None:  # type: ignore[override]
        """The parameters, the clip, and what the steps remember, if that can be told."""
        step_arrays = getattr(self.step, "arrays", {} if self.step == self.protocol.model.step else None)
        if step_arrays is None:
            return None
        places = {f"parameter {index}": array for index, array in enumerate(self.parameters)}
        remembered = {f"step {name}": np.asarray(array) for name, array in step_arrays.items()}
        return {**places, "clip": np.array(self.coding.clip), **remembered}

    def resume(self, arrays: Mapping[str, AnyArray]) -> None:
        """Go on from what `arrays` was after a round."""
        self.parameters = tuple(arrays[f"parameter {index}"] for index in range(len(self.parameters)))
        self.coding = replace(self.coding, clip=float(arrays["clip"]))
        if shapes_of(self.parameters) != self.coding.received:
            raise ValueError("parameters of another model")
        steps = {name: array for name, array in arrays.items() if name.startswith("step ")}
        if steps:
            remembered = {name.removeprefix("step "): array for name, array in steps.items()}
            self.step.arrays = remembered  # type: ignore[attr-defined]
        self.coding.unpack(self.coding.pack(self.parameters))  # raises ValueError for what no server sends

    @property
    def held(self) -> ModelDevice:
        """The parameters in the precision in which they are sent; raises ValueError for infinite ones."""
        sent = self.coding.pack(self.parameters)
        coding, parameters = self.coding.unpack(sent)
        return ModelDevice(self.protocol, coding, parameters, self.public.n_items, self.public.scale)

    def learn(self, round_index: int, total: Aggregate) -> ReleasedSum:
        """Add the noise, unless devices did, take a step, and move the clip if it adapts."""
        coding, central, model = self.coding, self.protocol.trust == "central", self.protocol.model
        deviation = self.protocol.deviation if central else 0.0
        expected = self.protocol.sampling.expected(self.public.n_users)
        draws = ReleaseDraws(self.seed, round_index)
        update, share = coding.released(total.total, expected, deviation, draws)
        with naming(model, "a class that learns from updates"):
            parameters = self.step(self.held.parameters, update, round_index)
            self.parameters = arrays_of(model, "step returned", parameters)
        if not all((np.abs(array) <= np.finfo(np.float32).max).all() for array in self.parameters):
            name = reference_of(type(model))
            raise RunError(f"{name}: parameters that are not finite after round {round_index}")
        numbers = np.concatenate([array.ravel() for array in update]) * (expected / coding.clip)
        if (adaptive := self.protocol.adaptive_clip) is not None:
            self.coding = replace(coding, clip=adaptive.moved(coding.clip, share))
        return ReleasedSum(numbers, math.hypot(deviation, coding.deviation * math.sqrt(total.users)))
