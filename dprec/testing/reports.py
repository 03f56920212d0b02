"""What every mechanism and every family of reports must do, on a tiny catalogue."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import TypeAdapter
from scipy import stats

from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import Floats, Ints, offsets, rows_of
from dprec.binarization import binary_scale
from dprec.channel import Channel, OverspentError
from dprec.components import as_values, one_of, packed, unpacked
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS, Mechanism
from dprec.randomness import DRAWS, DeviceDraws, Draws, generator, words
from dprec.ratings import RatingScale
from dprec.reports import ProfileLevels, ReportFamily, Wanted
from dprec.reports.base import NEARLY_ALL
from dprec.testing.rules import Contract

_SAMPLES = 1_000_000


class MechanismContract(Contract):
    """Tests of a mechanism, given by the fixture `mechanism`.

    Attributes
    ----------
    scales : mapping of str to RatingScale
        Scales to try. A mechanism may refuse some scales and budgets with an `InputError`, but not all.
    epsilons : tuple of float
        Budgets to try, ascending.
    """

    scales: ClassVar[Mapping[str, RatingScale]] = {
        "stars": RatingScale.evenly(1, 5, 1),
        "half stars": RatingScale.evenly(0.5, 5, 0.5),
        "jokes": RatingScale.evenly(-10, 10, 1, continuous=True),
        "signs": binary_scale(),
    }
    epsilons: ClassVar[tuple[float, ...]] = (0.05, 0.1, 0.25, 0.5, 1.0, 1.6, 2.0, 3.0, 5.0, 8.0)

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        """Return the mechanism that is tested."""
        raise NotImplementedError("a subclass gives the mechanism")

    def channels(self, mechanism: Mechanism, scale: RatingScale) -> dict[float, Channel]:
        """Return the channel at each budget that the mechanism accepts on a scale, ascending."""
        accepted = {}
        for epsilon in self.epsilons if mechanism.private else (math.inf,):
            try:
                accepted[epsilon] = mechanism.channel(scale, epsilon)
            except InputError as error:
                # What costs more than its budget is no budget that is refused.
                if isinstance(error.__cause__, OverspentError):
                    raise AssertionError(str(error)) from None
        return accepted

    def usual_channel(self, mechanism: Mechanism) -> tuple[RatingScale, Channel]:
        """Return the first scale that is accepted, and the channel at a budget in the middle."""
        for scale in self.scales.values():
            channels = list(self.channels(mechanism, scale).values())
            if channels:
                return scale, channels[len(channels) // 2]
        raise AssertionError("no scale is accepted at any budget")

    def test_a_configuration_names_it(self, mechanism: Mechanism) -> None:
        """What a file would hold, and what travels to other processes, is the same mechanism."""
        reader: TypeAdapter[Any] = TypeAdapter(one_of(MECHANISMS))
        assert reader.validate_json(json.dumps(as_values(mechanism))) == mechanism
        assert unpacked(packed(mechanism, mechanism.kind), "here") == mechanism

    def test_the_exact_loss_is_the_budget(self, mechanism: Mechanism) -> None:
        """At least 0.98 of epsilon and no more: scale the exponent until the worst ratio is e^epsilon.

        A loss that an option fixes is the same at every epsilon that is not refused.
        """
        tried = 0
        for name, scale in self.scales.items():
            losses = {
                epsilon: channel.epsilon for epsilon, channel in self.channels(mechanism, scale).items()
            }
            tried += len(losses)
            fixed = len(losses) > 1 and len(set(losses.values())) == 1
            for epsilon, loss in losses.items():
                silent = loss == 0 and not mechanism.private
                if loss > epsilon or not (fixed or silent or loss >= NEARLY_ALL * epsilon):
                    kind, cost = type(mechanism).__name__, f"costs {loss:.4g}"
                    raise AssertionError(f"{kind} at epsilon {epsilon:g} on the scale '{name}' {cost}")
        assert tried

    def test_rows_are_distributions_over_the_symbols(self, mechanism: Mechanism) -> None:
        """Every input has a row of integer weights with the right sum, and every level is an input."""
        for name, scale in self.scales.items():
            inputs = mechanism.report_family.channel_inputs(scale)
            hidden = bool(np.isnan(inputs[0]))
            for channel in list(self.channels(mechanism, scale).values())[-4:]:
                assert channel.hides_rated_items == hidden, name
                assert channel.weights.shape == (inputs.size, channel.symbols), name
                assert all(sum(map(int, row)) == DRAWS for row in channel.weights), name
                np.testing.assert_array_equal(channel.inputs, inputs)
                assert np.isnan(channel.values).sum() == int(hidden), name
                assert 0 <= channel.entropy() <= np.log2(channel.symbols) + 1e-12, name

    def test_samples_follow_the_channel(self, mechanism: Mechanism) -> None:
        """Chi-square of a million samples per input: false alarm 1e-7 over all inputs."""
        _, channel = self.usual_channel(mechanism)
        for row, probabilities in enumerate(channel.probabilities):
            level = row + channel.first_level
            levels = np.full(_SAMPLES, level, dtype=np.uint8)
            noise = words(11, f"chi-square {mechanism.kind}", level * _SAMPLES, _SAMPLES)
            counts = np.bincount(channel.sample(levels, noise), minlength=channel.symbols)
            assert _p_value(counts, probabilities * _SAMPLES) > 1e-7 / len(channel.inputs), level

    def test_bias_and_variance_are_those_of_the_samples(self, mechanism: Mechanism) -> None:
        """Means within six standard errors (false alarm 2e-9 each), variances within a twentieth.

        The error of the variance is larger, since the noise has heavy tails.
        """
        _, channel = self.usual_channel(mechanism)
        for row in range(1 - channel.first_level, len(channel.inputs)):
            level = row + channel.first_level
            levels = np.full(200_000, level, dtype=np.uint8)
            noise = words(3, f"moments {mechanism.kind}", level << 20, levels.size)
            values = channel.values[channel.sample(levels, noise)]
            values = values[~np.isnan(values)]
            deviation = np.sqrt(channel.variance()[row])
            error = values.mean() - channel.inputs[row] - channel.bias()[row]
            assert abs(error) <= 6 * deviation / np.sqrt(values.size) + 1e-12, level
            assert values.var() == pytest.approx(channel.variance()[row], rel=0.05, abs=1e-12), level


def _p_value(counts: Ints, expected: Floats) -> float:
    """Return the p-value of a chi-square test of counts; rare symbols are pooled."""
    rare = expected < 10
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10:
        # Too few for the test: more than 60 would have a probability of about 1e-25.
        assert observed[-1] <= 60
        observed, expected = observed[:-1], expected[:-1]
    if observed.size == 1:
        return 1.0
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


_HONEST = 4000
"""Users whose mean evidence is looked at."""


class FamilyContract(Contract):
    """Tests of the family of a mechanism, given by the fixture `mechanism`.

    Attributes
    ----------
    scale : RatingScale
    epsilon : float
        In the strongest unit that is not per user, if the family has one; else per user.
    n_items : int
    """

    scale: ClassVar[RatingScale] = RatingScale.evenly(1, 5, 1)
    epsilon: ClassVar[float] = 2.0
    n_items: ClassVar[int] = 6

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        """Return the mechanism whose reports are tested."""
        raise NotImplementedError("a subclass gives the mechanism")

    @pytest.fixture
    def family(self, mechanism: Mechanism) -> ReportFamily:
        """Return its family."""
        strongest_first: tuple[PrivacyUnit, ...] = ("cell", "rating", "user")
        unit = next(unit for unit in strongest_first if unit in mechanism.report_family.units)
        budget = PrivacyBudget(epsilon=self.epsilon, per=unit) if mechanism.private else None
        family = mechanism.family(budget, self.scale, self.n_items)
        family.check()
        return family

    def people(self, users: int, seed: int = 1) -> ProfileLevels:
        """Return some users, of whom the first has no rating and the second has rated everything."""
        random = generator(seed, "people of a contract")
        rated = random.random((users, self.n_items)) < 0.4
        rated[0], rated[1:2] = False, True
        levels = random.integers(1, self.scale.levels + 1, int(rated.sum())).astype(np.uint8)
        return ProfileLevels(rated.sum(axis=1), np.nonzero(rated)[1].astype(np.int32), levels)

    def draws(self, people: ProfileLevels, first: int = 0) -> Callable[[str], Draws]:
        """Return the random words of users whose first has some number."""
        values, indptr = self.scale.values[people.levels - 1], offsets(people.counts)
        return partial(DeviceDraws.of, bytes(range(16)), first, indptr, people.items, values)

    def part(self, people: ProfileLevels, start: int, stop: int) -> ProfileLevels:
        """Return consecutive users."""
        indptr = offsets(people.counts)
        cells = slice(int(indptr[start]), int(indptr[stop]))
        return ProfileLevels(people.counts[start:stop], people.items[cells], people.levels[cells])

    def test_what_is_encoded_is_read(self, family: ReportFamily) -> None:
        """All reports are valid, and show the rated items if they reveal them and nothing else if not."""
        people = self.people(40)
        reader = family.reader(40, Wanted(likelihood=True, symbols=True))
        assert reader.take(np.arange(40), family.encode(people, self.draws(people))).all()
        observations = reader.observations()
        assert observations.shape == (40, self.n_items)
        assert isinstance(observations.evidence, family.evidence)
        if not family.hides_items:
            assert observations.users.tolist() == rows_of(people.counts).tolist()
            assert observations.items.tolist() == people.items.tolist()
        assert observations.likelihood is None or observations.likelihood.shape == (
            observations.items.size,
            self.scale.levels,
        )

    def test_hostile_reports_are_refused(self, family: ReportFamily) -> None:
        """Whatever the bytes are, nothing is raised; what is refused says nothing."""
        people = self.people(30)
        honest = family.encode(people, self.draws(people))
        random = generator(3, "hostile reports")
        longer = [report + bytes(1 << 12) for report in honest]
        assert not family.reader(30, Wanted()).take(np.arange(30), longer).any()
        garbage = [random.bytes(int(size)) for size in random.integers(0, 40, 300)]
        reader = family.reader(330, Wanted(likelihood=True, symbols=True))
        accepted = reader.take(np.arange(330), [*garbage, *(report[:-1] for report in honest)])
        observations = reader.observations()
        assert accepted[observations.users].all()
        assert ((observations.items >= 0) & (observations.items < self.n_items)).all()

    def test_a_cohort_makes_no_difference(self, family: ReportFamily) -> None:
        """A report depends on its user alone: the same bytes whoever is computed beside it, and again."""
        people = self.people(25)
        together = family.encode(people, self.draws(people))
        cuts = [0, 1, 2, 11, 25]
        separate = [
            report
            for start, stop in pairwise(cuts)
            for partition in [self.part(people, start, stop)]
            for report in family.encode(partition, self.draws(partition, start))
        ]
        assert together == separate == family.encode(people, self.draws(people))

    def test_losses_are_those_of_the_dominating_pair(self, family: ReportFamily) -> None:
        """The loss of a draw is the largest ratio of any two rows, and a user's draws add up."""
        if family.budget is None:
            return
        counts = np.arange(self.n_items + 1)
        released = family.draws_about(counts)
        per_rating, per_user = family.losses(counts)
        # In integers, whatever the accountant does.
        of_draw = [
            max(
                math.log(one / other) if other else math.inf
                for column in channel.weights.T.tolist()
                for one in column
                for other in column
                if one
            )
            for channel in released.channels
        ]
        summed = np.array(of_draw)[released.channel] * released.draws
        np.testing.assert_allclose(per_user, np.where(released.draws > 0, summed, 0.0), rtol=1e-9)
        protected = family.protects(counts)
        unit = np.array(of_draw)[released.channel] if family.by_cell else per_user
        np.testing.assert_allclose(per_rating[protected], unit[protected], rtol=1e-9)
        assert np.isnan(per_rating[~protected]).all()
        most_per_rating, most_per_user = family.most_losses()
        assert np.nanmax(per_rating) <= most_per_rating
        assert per_user.max() <= most_per_user
        promised = per_user if family.budget.per == "user" else per_rating[protected]
        assert promised.max() <= family.budget.epsilon

    def test_reports_have_the_size_that_is_said(self, family: ReportFamily) -> None:
        """The mean over users with the same number of ratings is that before padding, to a byte."""
        users, ratings = 400, 3
        random = generator(5, "items of a contract")
        items = np.sort(random.random((users, self.n_items)).argsort(axis=1)[:, :ratings], axis=1)
        levels = random.integers(1, self.scale.levels + 1, users * ratings).astype(np.uint8)
        people = ProfileLevels(np.full(users, ratings), items.ravel().astype(np.int32), levels)
        sizes = 8 * np.array([len(report) for report in family.encode(people, self.draws(people))])
        padding = 8
        assert abs(sizes.mean() - family.size(ratings).bits) <= padding + 0.1 * family.size(ratings).bits

    def test_the_parts_of_a_report_are_all_of_it(self, family: ReportFamily) -> None:
        """What a page names as the parts of a report fills it, but for padding."""
        people = self.people(40)
        for report in family.encode(people, self.draws(people)):
            assert 0 <= 8 * len(report) - sum(family.parts(report).values()) < 8

    def test_the_length_of_a_report_tells_nothing_more(self, family: ReportFamily) -> None:
        """Whatever the ratings of the same items are, reports of the same `audited_symbols` are as long.

        A code may be longer for some symbols, which are drawn, but not for some ratings. Without columns, all
        reports about the same items are as long.
        """
        users = 1000
        for ratings in (1, min(3, self.n_items)):
            items = np.tile(np.arange(ratings, dtype=np.int32), users)
            random = generator(7, "levels of a contract")
            levels = random.integers(1, self.scale.levels + 1, items.size).astype(np.uint8)
            people = replace(self.people(users), counts=np.full(users, ratings), items=items, levels=levels)
            reports = family.encode(people, self.draws(people))
            symbols = family.audited_symbols(0, reports, np.arange(ratings))
            numbers = np.zeros(users) if people.numbers is None else people.numbers
            lengths: dict[tuple[float, ...], set[int]] = {}
            for number, row, report in zip(numbers.tolist(), symbols.tolist(), reports, strict=True):
                lengths.setdefault((number, *row), set()).add(len(report))
            assert max(map(len, lengths.values())) == 1, "reports of the same symbols in several lengths"

    def test_users_without_ratings_report_and_lose_nothing_more(self, family: ReportFamily) -> None:
        """An empty profile is a profile: its report is valid, and costs no more than any other."""
        nobody = ProfileLevels(
            np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
        )
        reader = family.reader(3, Wanted())
        assert reader.take(np.arange(3), family.encode(nobody, self.draws(nobody))).all()
        per_rating, per_user = family.report_losses(nobody, self.draws(nobody))
        assert (per_user <= family.most_losses()[1]).all()
        assert family.hides_items or (not per_user.any() and np.isnan(per_rating).all())

    def test_what_a_malicious_user_chooses_obeys_the_wire_format(self, family: ReportFamily) -> None:
        """Reports that say most for profiles are accepted as any others, and show the same items."""
        people = self.people(40)
        reader = family.reader(40, Wanted(symbols=True))
        assert reader.take(np.arange(40), family.crafted(people, self.draws(people))).all()
        observations = reader.observations()
        if not family.hides_items:
            assert observations.users.tolist() == rows_of(people.counts).tolist()
            assert observations.items.tolist() == people.items.tolist()

    def test_no_report_is_louder_than_is_said(self, family: ReportFamily) -> None:
        """Values about an item, less the middle, are bounded; their honest mean is within 6 standard errors.

        False alarm 2e-9. Some crafted report reaches the bound, which no honest one exceeds; where users have
        budgets of their own, the mean is that of all, and who claims the largest one is not loudest by value.
        """
        loudness = family.evidence_of_one(np.full(_HONEST, 2), of_values=True)
        reader = family.reader(2, Wanted())
        reader.take(np.arange(2), family.encode(self.people(2), self.draws(self.people(2))))
        if (
            loudness is None
            or not family.evidence.has_values
            or not np.isfinite(reader.observations().values).all()
        ):
            return
        bound, mean = loudness
        ends = np.array([self.scale.levels, 1], dtype=np.uint8)
        # The first item is rated highest, and the second lowest.
        items = np.tile(np.arange(2, dtype=np.int32), _HONEST)
        honest = ProfileLevels(np.full(_HONEST, 2), items, np.tile(ends, _HONEST))
        honest_values = self._about_the_first(family, family.encode(honest, self.draws(honest)), _HONEST)
        loud = []
        for length in range(1, self.n_items + 1):
            # The first is rated highest by one malicious user, lowest by the other, and all others the other
            # way.
            levels = np.repeat(ends[::-1, None], length, axis=1)
            levels[:, 0] = ends
            items = np.tile(np.arange(length, dtype=np.int32), 2)
            lie = ProfileLevels(np.full(2, length), items, levels.ravel())
            loud.append(self._about_the_first(family, family.crafted(lie, self.draws(lie)), 2))
        assert max(np.abs(loud).max(), np.abs(honest_values).max()) <= bound * (1 + 1e-9)
        if family.budget is None or not family.budget.own:
            assert abs(honest_values.mean() - mean) <= 6 * honest_values.std() / np.sqrt(_HONEST) + 1e-9
            assert np.abs(loud).max() == pytest.approx(bound, rel=1e-6)

    def _about_the_first(self, family: ReportFamily, reports: Sequence[bytes], users: int) -> Floats:
        """Return what the values in each user's report say of the first item, shape (users,)."""
        reader = family.reader(users, Wanted(symbols=True))
        assert reader.take(np.arange(users), reports).all()
        observations, middle = reader.observations(), (self.scale.low + self.scale.high) / 2
        first = observations.items == 0
        return np.bincount(observations.users[first], observations.values[first] - middle, users).astype(
            np.float64
        )

    def test_what_follows_is_answered_and_read(self, family: ReportFamily) -> None:
        """A further exchange has a question that devices accept; other bytes are none; answers are read."""
        follow_up = family.follow_up
        assert (follow_up is not None) is family.asks_further
        if follow_up is None:
            return
        people = self.people(40)
        draws = self.draws(people)
        reader = family.reader(40, Wanted())
        reader.take(np.arange(40), family.encode(people, draws))
        asking = follow_up.asking(reader.observations())
        assert follow_up.accepts(asking.question)
        assert not follow_up.accepts(asking.question + b"\0")
        answers = follow_up.encode(people, asking.question, draws)
        assert asking.take(np.arange(40), answers).all()
        assert not asking.take(np.arange(40), [answer + b"\1" for answer in answers]).any()
        on_devices = family.report_losses(people, draws)[1]
        on_devices = on_devices + follow_up.losses(people, asking.question, draws)
        np.testing.assert_allclose(on_devices, family.losses(people.counts, asking.asked)[1], rtol=1e-9)
        assert on_devices.max() <= family.most_losses()[1] * (1 + 1e-9)
