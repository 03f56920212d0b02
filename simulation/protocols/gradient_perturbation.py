"""Gradient perturbation for one-bit completion: noisy slopes over rounds, sent to an untrusted server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Floats, Ints
from dprec.attacks import Transcript
from dprec.channel import Channel
from dprec.completion import OneBit, cold_notes
from dprec.completion.one_bit.solver import SignLikelihood, levels_of
from dprec.components import option
from dprec.errors import RunError, SettingError, within
from dprec.exchange import GradientPerturbationSetup
from dprec.observations import Observations, SymbolReports
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public, Sent
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.randomness import even_share
from dprec.ratings import Ratings
from dprec.wire import ReportCodec
from simulation.protocols.base import Protocol
from simulation.protocols.course import notes_on_failures
from simulation.protocols.delivering import attacked_lists, deliver
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import transcript_of

if TYPE_CHECKING:
    from strategies.iterative import GradientPerturbation, ReceivedSlopes


@dataclass(frozen=True, kw_only=True)
class GradientPerturbationProtocol(Protocol):
    """Devices send noisy gradients of their rows over rounds; the server takes projected steps."""

    kind: Literal["gradient-perturbation"] = "gradient-perturbation"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    privacy: accounting.PrivacyBudget = option("What is promised for all rounds together, per rating.")
    completion: OneBit = option("The model; the rounds do not use the settings of its solver.", OneBit())
    rounds: int = option(
        "Number of rounds K; each spends 1/K of the budget. The paper leaves K open, but takes spectral step "
        "lengths from the second round on; here every step has the same length.",
        1,
        published=1,
        source="li2021, Algorithm 3, with a spectral step in every further round",
        ge=1,
    )
    clamp: float = option(
        "Bound C on the entries of a gradient that is sent.",
        0.5,
        published=0.5,
        source="li2021, section 4.3",
        gt=0,
        le=1e9,
    )
    symbols: int = option("Cells of the grid to which a noisy entry is rounded.", 256, ge=3, le=4096)
    step: float = option(
        "Step length, as a multiple of 1 / curvature at 0; not published, chosen by "
        "benchmarks/choosing/settings.py.",
        4.0,
        gt=0,
        le=1e9,
    )
    delivery: TopN | None = option(DELIVERY, TopN())

    @property
    def facts(self) -> Facts:
        """Noisy slopes, by which a completion moves."""
        return self.facts_of()

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, budget.unit))

    @property
    def epsilon_per_round(self) -> float:
        """An even share of the budget."""
        return even_share(self.privacy.epsilon, self.rounds)

    @property
    def _noise(self) -> float:
        return 2 * self.clamp / self.epsilon_per_round

    def check(self, train: Ratings) -> None:
        """Refuse a budget, rounds, completion and ratings that do not fit together."""
        with within("completion"):
            self.completion.check_scale(train.scale)
            self.completion.check((train.n_users, train.n_items))
        sharing.check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
        shares = f"{self.privacy.epsilon:g} in {self.rounds} rounds"
        if self.epsilon_per_round > accounting.LARGEST_CELL_EPSILON:
            raise SettingError(
                "privacy.epsilon", shares, f"at most {accounting.LARGEST_CELL_EPSILON:g} per round"
            )
        try:
            channel = self._channel()
        except ValueError:
            raise SettingError(
                "privacy.epsilon", shares, "a larger epsilon, or fewer rounds or symbols"
            ) from None
        ReportCodec(channel, train.n_items)

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def influence_of_one(self, train: Ratings) -> float:
        """Return the largest entry that can be sent, in units of the largest one that is not clipped."""
        return float(np.abs(self._channel().values).max()) / self.clamp

    def setup(self) -> GradientPerturbationSetup:
        """Return what a device needs to know about the rounds."""
        return GradientPerturbationSetup(
            link=self.completion.link,
            sigma=self.completion.sigma,
            clamp=self.clamp,
            symbols=self.symbols,
            epsilon_per_round=self.epsilon_per_round,
            rounds=self.rounds,
        )

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the rounds."""
        from strategies.iterative import GradientPerturbation

        strategy = GradientPerturbation(
            completion=self.completion,
            channel=self._channel(),
            step=self.step,
            counts=task.train.counts,
            n_items=task.train.n_items,
            seed=task.server_seed,
            group=task.group,
            roster=task.roster,
            received=[] if task.attacked else None,
        )
        for done in range(self.rounds):
            strategy.run_round(grid)
            matrix = strategy.matrix
            if done + 1 < self.rounds:
                measured = task.metric(matrix.predict, matrix.hidden)
                strategy.records[-1] = replace(strategy.records[-1], accuracy=measured)
                task.ended(strategy.records[-1])
            task.progress("rounds", done + 1, self.rounds)
        if not any(record.replies for record in strategy.records):
            raise RunError(f"no usable report arrived in any round (rounds: {self.rounds})")
        if self.delivery is not None:
            spent = deliver(
                self.delivery,
                grid,
                task,
                strategy.matrix,
                strategy.observed,
                strategy.traffic,
                self.facts.learns,
            )
            strategy.records[-1] = strategy.records[-1].with_traffic(spent)
        return Outcome(
            predict=strategy.matrix.predict,
            traffic=strategy.traffic,
            accountant=strategy.accountant,
            guarantee=self.guarantee(strategy.shape),
            rounds=tuple(strategy.records),
            notes=cold_notes(*strategy.observed, strategy.shape) + notes_on_failures(strategy.records),
            diagnostics={"radius": self.completion.radius(strategy.shape), "rounds": self.rounds},
            hidden=strategy.matrix.hidden,
            transcript=self._transcript(task, strategy, strategy.received or ()) if task.attacked else None,
        )

    def _transcript(
        self, task: Task, strategy: GradientPerturbation, received: Sequence[ReceivedSlopes]
    ) -> Transcript:
        """Return what was said; a sign follows from a slope as the entry is known that was sent down."""
        link, channel = self.completion.link_function, self._channel()

        def inputs(entries: Floats, sign: float) -> Ints:
            likelihood = SignLikelihood.of_signs(link, np.full(entries.size, sign))
            levels = levels_of(likelihood.value_and_slopes(entries)[1], self.clamp)
            return levels.astype(np.int64) - 1

        reports = []
        for one in received:
            pairs = np.stack([inputs(one.entries, sign) for sign in (-1.0, 1.0)], axis=1)
            different, channel_of = np.unique(pairs, axis=0, return_inverse=True)
            channels = tuple(channel.probabilities[pair] for pair in different)
            read = SymbolReports(channels, one.symbols, channel_of.ravel())
            shape, values = (task.n_users, task.n_items), channel.values[one.symbols]
            reports.append(Observations.of(one.users, one.items, values, shape, task.scale, evidence=read))
        name = self.facts.learns
        lists = attacked_lists(self.delivery, task, strategy.matrix, strategy.observed, name)
        return transcript_of(task, reports=tuple(reports), lists=lists)

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the reports of noisy slopes, one in each round."""
        channel = self._channel()
        bits = ReportCodec(channel, public.n_items).expected_bits(ratings)
        return Sent(self.rounds, channel.symbols, ratings, bits, channel.epsilon, "rating")

    def _channel(self) -> Channel:
        return self.setup().channel

    def guarantee(self, shape: tuple[int, int]) -> accounting.Guarantee:
        """Promise the loss of the channel, once for each round."""
        return accounting.Guarantee(
            status="proved",
            trust="local",
            hides_rated_items=False,
            reason=f"{sharing.EXACT_CHANNEL}, and the rounds add up.",
            notes=(
                f"Epsilon holds per rating over all rounds, {self.epsilon_per_round:.4g} in each, against "
                "any server; which items a user rated is not hidden.",
                f"Noise on each entry of a gradient, in each round: scale {self._noise:.3g}; an entry is at "
                f"most {self.clamp:g}.",
            ),
        )
