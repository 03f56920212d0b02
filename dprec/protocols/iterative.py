"""Iterative factorisation: the item factors are learned over rounds from gradient reports.

A device fits its user's factors to the item factors that it is sent, and reports on the gradient of its loss;
the server takes a step. In a run a device sends at most one report per round, in no more rounds than its
budget was divided by, each within one round's share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import AnyArray, Floats, Ints, Pieces
from dprec.attacks.transcript import Answered, Broadcast, Upload, of_normal_noise, of_signs
from dprec.channel import Channel
from dprec.completion import (
    Profiles,
    StepOptions,
    check_rank,
    initial_item_factors,
    products_of_rows,
    step_item_factors,
)
from dprec.components import option
from dprec.errors import RunError, SettingError, within
from dprec.exchange import TRAIN
from dprec.gradients import Aggregate, FittedProfiles, RoundDraws
from dprec.protocols.base import Facts, Public
from dprec.protocols.components import AnyGradient
from dprec.protocols.predicting import OwnFactors
from dprec.protocols.rounds import (
    AnswerDecoder,
    AnsweringDevice,
    BroadcastProtocol,
    Charge,
    EarlyStopping,
    LearningServer,
    SamplingOptions,
)
from dprec.protocols.sharing import budget_at, check_unit
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportSize
from dprec.wire import BroadcastOptions, Factors, decode_broadcast, encode_broadcast


@dataclass(frozen=True, kw_only=True)
class IterativeProtocol(BroadcastProtocol):
    """Devices report gradients over rounds; the server learns item factors, users keep their own."""

    kind: Literal["iterative"] = "iterative"
    undeployable: ClassVar[str] = ""
    papers: ClassVar[tuple[str, ...]] = ("shin2018", "minto2021")
    folds_in: ClassVar[bool] = True
    message_type: ClassVar[str] = TRAIN
    purpose: ClassVar[str] = "gradient report"
    privacy: accounting.PrivacyBudget | None = option(
        "What is promised for all rounds together, per user.", None
    )
    gradient: AnyGradient = option("What a device reports about its gradient.")
    rounds: int = option("Largest number of rounds.", ge=1)
    rank: int = option("Number of factors.", 5, ge=1)
    ridge: float = option("Ridge penalty on the factors that each device fits to its user.", 1.0, gt=0)
    step: StepOptions = option("How the item factors are updated.", StepOptions(), reader="server")
    sampling: SamplingOptions = option("Who is asked in a round.", SamplingOptions(), reader="server")
    downlink: BroadcastOptions = option("How item factors are sent to the devices.", BroadcastOptions())
    evaluate_every: int = option(
        "Rounds between evaluations; the last is always evaluated.", 1, reader="server", ge=1
    )
    early_stopping: EarlyStopping | None = option(
        "When to stop before the last round.",
        None,
        published=None,
        source="shin2018, Algorithm 1",
        reader="server",
    )
    max_empty_rounds: int = option(
        "Rounds in a row without a usable report that end the run.", 3, reader="server", ge=1
    )

    @property
    def facts(self) -> Facts:
        """A factorization, learned from reports on its gradient."""
        return self.facts_of(
            protects=self.gradient.kind,
            learns="federated-factorization",
            predicts=self.gradient.predicted,
            private=self.gradient.private,
            starts_at_random=True,
        )

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; a promise per user holds per rating as well."""
        return replace(self, privacy=budget_at(self.privacy, budget, "user"))

    @cached_property
    def epsilon_per_round(self) -> float:
        """Budget of one report: an even share of the user's; infinite if nothing is protected."""
        return self.privacy.share(self._channel_at, self.rounds) if self.privacy else math.inf

    def _channel_at(self, epsilon: float) -> Channel:
        """Return a channel that is no more private than a report at a budget."""
        return accounting.dominating_channel(self.gradient.exact_epsilon(epsilon))

    def charge(self, round_index: int, counts: Ints | None = None) -> Charge:
        """Return one round's share, per rating and per user alike."""
        loss, channel = self.gradient.exact_epsilon(self.epsilon_per_round), self._channel_at
        return Charge(loss, loss, accounting.ChannelDraws((channel(self.epsilon_per_round),)))

    def check(self, train: Any) -> None:
        """Refuse a budget, gradient, sampling and catalogue that do not fit together."""
        name = self.gradient.kind
        if self.gradient.private and self.privacy is None:
            raise SettingError("privacy", f"none, with {name} gradients", "an epsilon")
        if not self.gradient.private and self.privacy is not None:
            raise SettingError("privacy", f"an epsilon, with {name} gradients", "null")
        if self.privacy is not None:
            check_unit(self.privacy, "user", "the rounds protect whole profiles")
        check_rank(self.rank, (train.n_users, train.n_items))
        with within("gradient"):
            self.gradient.check((train.n_items, self.rank))
        with within("sampling"):
            self.sampling.size(train.n_users)

    def check_deployed(self) -> None:
        """Refuse early stopping, for which the server would have to know errors on devices, and a proxy."""
        if self.early_stopping is not None:
            found = "early stopping, which costs privacy that is not charged"
            raise SettingError("early_stopping", found, "null, in a deployment")
        if not self.gradient.linked:
            accepted = "false: devices answer the server itself"
            raise SettingError("gradient.proxy", "true, in a deployment", accepted)

    def audited(self) -> Self:
        """Return the protocol with everybody in every round, measured at the end; see `Protocol.audited`."""
        if not self.gradient.private:
            promise = f"{self.gradient.kind!r}, which promises nothing"
            raise SettingError("gradient.kind", promise, "a private gradient")
        return replace(self, sampling=SamplingOptions(), early_stopping=None, evaluate_every=self.rounds)

    def audited_on(self, items: int, *, separating: bool = False) -> Self:
        """Return the protocol with fewer factors than items, which start at one level if they separate."""
        step = replace(self.step, start="level") if separating else self.step
        return replace(self, rank=min(self.rank, items - 1), step=step)

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a report, which is the same in every round."""
        return self.gradient.influence_of_one((train.n_items, self.rank), self.epsilon_per_round)

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the reports, one in each round that a device is asked in."""
        return ReportSize(
            reports=self.rounds,
            symbols=2 if self.gradient.private else None,
            answers=1 if self.gradient.hides_rated_items else ratings * self.rank,
            bits=self.gradient.report_bits((public.n_items, self.rank), ratings),
            epsilon=self.gradient.exact_epsilon(self.epsilon_per_round) if self.gradient.private else None,
            per="user",
        )

    @property
    def hides_rated_items(self) -> bool:
        """Whether the gradient report does."""
        return self.gradient.hides_rated_items

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield the loss of the probabilities with which a device answers in all rounds."""
        if self.gradient.private:
            loss = self.gradient.exact_epsilon(self.epsilon_per_round) * self.rounds
            yield "answers of all rounds, as probabilities", 1, loss

    def guarantee(self, shape: tuple[int, int]) -> accounting.Guarantee:
        """Promise the loss of a bit, once for each round, if there is a budget."""
        if self.privacy is None:
            why = "gradients at the rated items let the server compute the ratings."
            return accounting.Guarantee("none", "central", False, why)
        composed = self.privacy.composition == "pld"
        together = f"compose, beyond a probability of {self.privacy.delta:g}" if composed else "add up"
        return accounting.Guarantee(
            status="proved",
            trust="local",
            hides_rated_items=self.gradient.hides_rated_items,
            reason="an answer is one bit, drawn in integer weights whose ratio bounds its loss whatever the "
            f"ratings, and the rounds {together}.",
            notes=(
                f"Epsilon holds for everything a user sends in all rounds, {self.epsilon_per_round:.4g} "
                "in each; which items were rated is hidden.",
                *self.gradient.notes,
            ),
            assumes=accounting.Assumptions(proxy=not self.gradient.linked),
        )

    def notes(self, public: Public) -> tuple[str, ...]:
        """Say how much noise the gradient has."""
        if not self.gradient.private:
            return ()
        noise = self.gradient.noise_deviation((public.n_items, self.rank), self.epsilon_per_round)
        return (
            f"Privacy noise on each coordinate of the mean gradient: standard deviation "
            f"{noise / math.sqrt(public.n_users):.3g} with {public.n_users} users reporting.",
        )

    @property
    def keeps_last(self) -> bool:
        """Whether later questions may hold only changes."""
        return self.downlink.delta

    def device(
        self, received: bytes, n_items: int, scale: RatingScale, before: FactorsDevice | None = None
    ) -> FactorsDevice:
        """Read item factors, of which there may be only what has changed."""
        previous = None if before is None else before.factors
        return FactorsDevice(self, decode_broadcast(received, self.downlink, (n_items, self.rank), previous))

    def server(self, public: Public, seed: int, public_seed: int) -> FactorsServer:
        """Return a server that begins with factors at random, or at one level."""
        factors = initial_item_factors(public.n_items, self.rank, seed, self.step.start)
        return FactorsServer(self, public_seed, factors)


@dataclass(frozen=True, eq=False)
class FactorsDevice(AnsweringDevice):
    """Item factors, to which a device fits those of its user."""

    protocol: IterativeProtocol
    factors: Factors
    """As they are sent; shape (items, rank)."""

    @cached_property
    def item_factors(self) -> Floats:
        """The same in double precision."""
        return self.factors.astype(np.float64)

    def encode(self) -> bytes:
        """Return the factors, all of them."""
        return encode_broadcast(self.factors)

    def changes(self, before: FactorsDevice) -> bytes:
        """Return what has changed, if that is shorter."""
        return encode_broadcast(self.factors, before.factors)

    @property
    def question(self) -> bytes:
        """The factors, however they were sent."""
        return self.factors.tobytes()

    def predictions(self, profiles: Profiles) -> Floats:
        """Return products of the factors with those that are fitted to each user."""
        user_factors = self.protocol.gradient.user_factors(profiles, self.item_factors, self.protocol.ridge)
        return products_of_rows(user_factors, self.item_factors)

    def predicting(self, ratings: Ratings) -> dict[str, Any]:
        """Return the same cell by cell, which takes less memory."""
        solve = self.protocol.gradient.user_factors
        return {"predict": OwnFactors(ratings, self.item_factors, self.protocol.ridge, solve=solve)}

    def answer(self, profiles: Profiles, draws: RoundDraws) -> Sequence[bytes]:
        """Return every user's report on the gradient of its loss."""
        gradient, epsilon = self.protocol.gradient, self.protocol.epsilon_per_round
        return gradient.encode(self._fitted(profiles), epsilon, draws)

    def crafted(self, profiles: Profiles, draws: RoundDraws, targets: Ints) -> Sequence[bytes]:
        """Return the reports that say most about some items that malicious users have rated."""
        return self.protocol.gradient.crafted(self._fitted(profiles), draws, targets)

    def _fitted(self, profiles: Profiles) -> FittedProfiles:
        user_factors = self.protocol.gradient.user_factors(profiles, self.item_factors, self.protocol.ridge)
        return FittedProfiles(profiles, user_factors, self.item_factors)

    @property
    def reading(self) -> AnswerDecoder:
        """How gradient reports are read."""
        gradient, shape = self.protocol.gradient, (len(self.factors), self.protocol.rank)
        return AnswerDecoder(
            partial(gradient.decode, shape=shape),
            partial(gradient.possible, shape=shape),
            gradient.sum_shape(shape),
            None if gradient.hides_rated_items else shape[0],
        )

    def upload(self, n_users: int, parts: Sequence[tuple[Ints, Pieces]], public_seed: int) -> Upload | None:
        """Return what reports say about gradients; what comes through a proxy can be linked with nobody."""
        gradient, epsilon = self.protocol.gradient, self.protocol.epsilon_per_round
        shape = len(self.factors), self.protocol.rank
        first = gradient.answers(parts[0][1], shape, epsilon) if parts and gradient.linked else None
        if first is None:
            return None
        signs = first.scale is not None
        numbers = math.prod(gradient.sum_shape(shape))

        def read() -> Iterator[Answered]:
            for users, reports in parts:
                answers = gradient.answers(reports, shape, epsilon)
                if answers is not None:
                    yield Answered(users[answers.reports], answers.coordinates, answers.answers)

        def compute(profiles: Profiles) -> Floats:
            largest = 1.0 if signs else np.inf
            return np.clip(gradient.numbers(self._fitted(profiles), public_seed), -largest, largest)

        return Upload(
            n_users=n_users,
            n_numbers=numbers,
            per_item=shape[1] if numbers == math.prod(shape) else None,
            read=read,
            compute=compute,
            likelihood=of_normal_noise(0.0) if first.scale is None else of_signs(first.scale),
            shows_items=not gradient.hides_rated_items,
        )

    def shown(self, nobody: Ratings) -> dict[str, Any]:
        """Return factors, of which inner products alone are the same in every run."""
        return {"broadcast": Broadcast.of_products(self.item_factors)}


@dataclass(eq=False)
class FactorsServer(LearningServer):
    """Item factors that move along noisy gradients."""

    protocol: IterativeProtocol
    public_seed: int
    factors: Floats
    velocity: Floats = field(init=False)
    """Shape (items, rank)."""

    def __post_init__(self) -> None:
        self.velocity = np.zeros_like(self.factors)

    @property
    def held(self) -> FactorsDevice:
        """The factors in the precision in which they are sent."""
        return FactorsDevice(self.protocol, self.protocol.downlink.rounded(self.factors))

    @property
    def arrays(self) -> Mapping[str, AnyArray]:  # type: ignore[override]
        """Factors and velocity."""
        return {"factors": self.factors, "velocity": self.velocity}

    def learn(self, round_index: int, total: Aggregate) -> None:
        """Take a step against the mean gradient; raises RunError where factors diverge."""
        protocol, shape = self.protocol, (len(self.factors), self.protocol.rank)
        gradient = protocol.gradient.gradient(total, shape, protocol.epsilon_per_round, self.public_seed)
        share = None if total.raters is None else total.raters / total.users
        with np.errstate(all="ignore"):
            factors, velocity = step_item_factors(
                self.factors, self.velocity, gradient, share, round_index, protocol.step
            )
        if not (np.isfinite(factors).all() and np.isfinite(velocity).all()):
            raise RunError(f"the item factors diverged in round {round_index}; try a smaller step.size")
        self.factors, self.velocity = factors, velocity
