"""What every completion of a rating matrix and every kind of gradient report must do."""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.binarization import binary_scale
from dprec.completion import Completion, Profiles, solve_user_factors
from dprec.datasets import Synthetic
from dprec.errors import InputError, RunError
from dprec.gradients import Aggregate, FittedProfiles, GradientReport, RoundDraws
from dprec.observations import Observations
from dprec.randomness import DeviceDraws, generator
from dprec.ratings import RatingScale
from dprec.testing.rules import Contract

_USERS, _ITEMS = 30, 24
_COLD_USER, _COLD_ITEM = _USERS - 1, _ITEMS - 1
_CELLS = np.divmod(np.arange(_USERS * _ITEMS), _ITEMS)


class CompletionContract(Contract):
    """Tests of a completion, given by the fixture `completion`.

    Ratings are stars, or signs if the completion refuses stars.

    Attributes
    ----------
    prior : {"mean", "middle"}
        What is predicted where nothing is known: the mean of the observed ratings, or the middle of the
        scale whatever they are.
    shrinks_the_mean : bool
        Whether the mean of few ratings is pulled towards the middle of the scale.
    repeats_one_rating : bool
        Whether the only observed rating is predicted at its own cell; a fixed ridge pulls it towards 0
        instead.
    """

    prior: ClassVar[Literal["mean", "middle"]] = "mean"
    shrinks_the_mean: ClassVar[bool] = False
    repeats_one_rating: ClassVar[bool] = True

    @pytest.fixture
    def completion(self) -> Completion:
        """Return the completion that is tested."""
        raise NotImplementedError("a subclass gives the completion")

    @pytest.fixture
    def scale(self, completion: Completion) -> RatingScale:
        """Return a scale that the completion accepts."""
        stars = RatingScale.evenly(1, 5, 1)
        try:
            completion.check_scale(stars)
        except InputError:
            return binary_scale()
        return stars

    def observations(self, scale: RatingScale, factor: float = 1.0, *, empty: bool = False) -> Observations:
        """Return ratings of a small catalogue, whose last user and last item have none."""
        random = generator(0, "contract")
        user_factors = random.normal(size=(_USERS, 1)) + random.normal(size=(1, _ITEMS))
        rated = random.random(user_factors.shape) < 0.4
        rated[_COLD_USER] = rated[:, _COLD_ITEM] = False
        rated &= not empty
        users, items = np.nonzero(rated)
        middle = (scale.low + scale.high) / 2
        opinions = middle + (scale.high - scale.low) / 4 * (0.5 + user_factors[users, items])
        values = scale.values[scale.level_of(opinions) - 1] * factor
        return Observations.of(
            users.astype(np.int32), items.astype(np.int32), values, user_factors.shape, scale
        )

    def expected(self, observations: Observations) -> float:
        """Return the prediction where nothing is known."""
        scale = observations.scale
        return observations.mean if self.prior == "mean" else (scale.low + scale.high) / 2

    def test_predictions_are_finite_numbers_for_every_cell(
        self, completion: Completion, scale: RatingScale
    ) -> None:
        """Whichever cells are asked for, even none."""
        completed = completion.fit(self.observations(scale), seed=3)
        predictions = completed.predict(*_CELLS)
        assert predictions.shape == (_USERS * _ITEMS,)
        assert predictions.dtype == np.float64
        assert np.all(np.isfinite(predictions))
        assert completed.predict(_CELLS[0][:0], _CELLS[1][:0]).shape == (0,)
        rows = completed.predict_rows(np.arange(_USERS), _ITEMS)
        np.testing.assert_allclose(rows.ravel(), predictions, rtol=0, atol=1e-9)

    def test_it_learns(self, completion: Completion, scale: RatingScale) -> None:
        """Observed ratings are predicted better than by their mean."""
        observations = self.observations(scale)
        completed = completion.fit(observations, seed=3)
        errors = completed.predict(observations.users, observations.items) - observations.values
        assert np.sqrt(np.mean(errors**2)) < 0.9 * observations.values.std()

    def test_the_unseen_are_predicted_from_the_prior(
        self, completion: Completion, scale: RatingScale
    ) -> None:
        """A user and an item without ratings, with each other and with all others."""
        observations, width = self.observations(scale), scale.high - scale.low
        completed = completion.fit(observations, seed=3)
        cold = completed.predict(np.array([_COLD_USER]), np.array([_COLD_ITEM]))
        assert cold[0] == pytest.approx(self.expected(observations), abs=width / 40)
        for users, items in (
            (np.full(_ITEMS, _COLD_USER), np.arange(_ITEMS)),
            (np.arange(_USERS), np.full(_USERS, _COLD_ITEM)),
        ):
            assert np.all(np.abs(completed.predict(users, items) - self.expected(observations)) < width)

    def test_the_same_seed_gives_the_same_bits(self, completion: Completion, scale: RatingScale) -> None:
        """A completion keeps no state between two fits."""
        runs = [completion.fit(self.observations(scale), seed=5).predict(*_CELLS) for _ in range(2)]
        np.testing.assert_array_equal(runs[0], runs[1])

    def test_nothing_observed_predicts_mid_scale(self, completion: Completion, scale: RatingScale) -> None:
        """And the diagnostics can still be written."""
        completed = completion.fit(self.observations(scale, empty=True), seed=3)
        middle = (scale.low + scale.high) / 2
        np.testing.assert_allclose(completed.predict(*_CELLS), middle, atol=1e-9)
        json.dumps(completed.diagnostics, allow_nan=False)

    def test_one_rating_is_enough(self, completion: Completion, scale: RatingScale) -> None:
        """It is predicted everywhere, or moves its own cell if the prior does not follow the ratings."""
        single = Observations.of(
            np.array([2], np.int32), np.array([1], np.int32), scale.values[-2:-1], (_USERS, _ITEMS), scale
        )
        completed = completion.fit(single, seed=3)
        if self.shrinks_the_mean:
            predictions = np.sort(completed.predict(*_CELLS))
            assert (scale.low + scale.high) / 2 < predictions[0]
            assert predictions[-1] < scale.values[-2]
            assert completed.predict(single.users, single.items)[0] == predictions[-1]
        elif self.prior == "mean":
            elsewhere = (_CELLS[0] != 2) | (_CELLS[1] != 1)
            predictions, value = completed.predict(*_CELLS), scale.values[-2]
            np.testing.assert_allclose(predictions[elsewhere], value, atol=1e-6)
            prediction = float(predictions[~elsewhere][0])
            assert (
                prediction == pytest.approx(value, abs=1e-6)
                if self.repeats_one_rating
                else abs(prediction) <= abs(value)
            )
        else:
            prediction, middle = (
                completed.predict(single.users, single.items)[0],
                (scale.low + scale.high) / 2,
            )
            assert (prediction - middle) * (scale.values[-2] - middle) > 0

    def test_diagnostics_and_notes_can_be_written(self, completion: Completion, scale: RatingScale) -> None:
        """As JSON, and as sentences."""
        completed = completion.fit(self.observations(scale), seed=3)
        json.dumps(completed.diagnostics, allow_nan=False)
        assert all(note and note == note.strip() for note in completed.notes)

    def test_progress_moves_forward(self, completion: Completion, scale: RatingScale) -> None:
        """Step by step, never beyond what is planned."""
        steps: list[tuple[str, int, int]] = []
        completion.fit(self.observations(scale), seed=3, progress=lambda *step: steps.append(step))
        assert steps
        assert {stage for stage, _, _ in steps} == {"completing"}
        assert [done for _, done, _ in steps] == sorted({done for _, done, _ in steps})
        assert all(0 < done <= planned for _, done, planned in steps)

    def test_a_rank_beyond_the_catalogue_is_refused(self, completion: Completion) -> None:
        """If the setting `rank` is a number of factors."""
        if not isinstance(getattr(completion, "rank", None), int):
            pytest.skip("has no number of factors")
        dataclasses.replace(completion, rank=_ITEMS - 1).check((_USERS, _ITEMS))  # type: ignore[call-arg]
        for rank in (_ITEMS, _USERS):
            with pytest.raises(InputError, match="rank"):
                dataclasses.replace(completion, rank=rank).check((_USERS, _ITEMS))  # type: ignore[call-arg]
        with pytest.raises(InputError, match="rank"):
            dataclasses.replace(completion, rank=0)  # type: ignore[call-arg]

    @pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
    def test_values_that_overflow_end_in_an_error_or_in_numbers(
        self, completion: Completion, scale: RatingScale
    ) -> None:
        """Never in predictions that are not numbers."""
        try:
            predictions = completion.fit(self.observations(scale, 1e160), seed=3).predict(*_CELLS)
        except RunError as error:
            assert "iteration 1" in str(error) or "cannot start" in str(error)  # noqa: PT017 - may not raise
        else:
            assert np.all(np.isfinite(predictions))


class GradientContract(Contract):
    """Tests of a kind of gradient report, given by the fixture `gradient`.

    The other attributes and methods make partitions and reports, and are available to further tests.

    Attributes
    ----------
    items, rank, users : int
        Size of the catalogue, number of factors, and users of the partition in most tests.
    """

    items, rank, users = 24, 2, 40

    @pytest.fixture
    def gradient(self) -> GradientReport:
        """Return the kind of report that is tested."""
        raise NotImplementedError("a subclass gives the kind of report")

    @property
    def shape(self) -> tuple[int, int]:
        """Items and rank."""
        return self.items, self.rank

    def profiles(self, users: int) -> Profiles:
        """Return the ratings of a number of users, of whom every eleventh has none."""
        ratings = Synthetic(users=users, items=self.items, ratings=users * 8, seed=3).load()
        ratings = ratings.select(ratings.users % 11 != 5)
        return Profiles(ratings.indptr, ratings.items, ratings.values, self.items)

    def item_factors(self) -> Floats:
        """Return factors as a server might broadcast them, shape (items, rank)."""
        factors = generator(1, "test").normal(0.0, 0.3, self.shape)
        factors[:, 0] += 1.0
        return factors

    def encoded(
        self,
        gradient: GradientReport,
        profiles: Profiles,
        *,
        epsilon: float = 2.0,
        first: int = 0,
        round_index: int = 1,
    ) -> list[bytes]:
        """Return the reports of a partition; ``first`` is the global index of its first user."""
        factors = self.item_factors()
        user_factors = gradient.user_factors(profiles, factors, 1.0)
        draws = self.draws(profiles, first, round_index)
        return list(gradient.encode(FittedProfiles(profiles, user_factors, factors), epsilon, draws))

    def draws(self, profiles: Profiles, first: int = 0, round_index: int = 1) -> RoundDraws:
        """Return the draws of a partition in a round."""
        devices = DeviceDraws.of(bytes(16), first, profiles.indptr, profiles.items, profiles.values, "test")
        return RoundDraws(devices, round_index, public_seed=9)

    def hostile(self, gradient: GradientReport, good: bytes) -> list[bytes]:
        """Return reports that no device would send; subclasses may add others that must be refused."""
        reports = [good + b"\0", good[:-1], good * 300, b"\xff" * len(good), bytes(100_000)]
        # If reports reveal what was rated, an empty one is valid and means "nothing".
        return [*reports, b""] if gradient.hides_rated_items else reports

    @pytest.mark.parametrize("size", [1, 7, 39])
    def test_reports_and_their_sum_do_not_depend_on_the_partition(
        self, gradient: GradientReport, size: int
    ) -> None:
        """Whoever computes a report, and in whatever batches the server adds them up."""
        profiles = self.profiles(self.users)
        together = self.encoded(gradient, profiles)
        assert len(together) == self.users
        separate: list[bytes] = []
        sums = []
        for start in range(0, self.users, size):
            partition = profiles.of_users(np.arange(start, min(start + size, self.users)))
            reports = self.encoded(gradient, partition, first=start)
            sums.append(gradient.decode(reports, self.shape)[1])
            separate += reports
        assert separate == together
        valid, aggregate = gradient.decode(together, self.shape)
        assert valid.all()
        assert aggregate.users == self.users
        total = sums[0]
        for part in sums[1:]:
            total = total + part
        assert _facts(total) == _facts(aggregate)

    def test_other_rounds_have_other_noise(self, gradient: GradientReport) -> None:
        """And the same round has the same."""
        profiles = self.profiles(self.users)
        first = self.encoded(gradient, profiles)
        assert (first != self.encoded(gradient, profiles, round_index=2)) == gradient.private
        assert first == self.encoded(gradient, profiles)

    def test_private_reports_are_alike_whatever_is_rated(self, gradient: GradientReport) -> None:
        """Their length reveals nothing."""
        assert gradient.hides_rated_items == gradient.private
        if gradient.private:
            assert len({len(report) for report in self.encoded(gradient, self.profiles(self.users))}) == 1

    def test_the_size_of_a_report_is_known_beforehand(self, gradient: GradientReport) -> None:
        """From the catalogue, the rank and the number of ratings, up to the padding to bytes."""
        items = np.linspace(0, self.items - 1, 6).astype(np.int32)
        profile = Profiles(np.array([0, 6]), items, np.full(6, 3.0), self.items)
        (report,) = self.encoded(gradient, profile)
        assert len(report) == -(-gradient.report_bits(self.shape, 6) // 8)

    def test_the_loss_of_a_report_is_the_budget(self, gradient: GradientReport) -> None:
        """Never more, and infinite if nothing is protected."""
        if gradient.private:
            assert 0.5 - 1e-9 <= gradient.exact_epsilon(0.5) <= 0.5
        else:
            assert gradient.exact_epsilon(math.inf) == math.inf

    @pytest.mark.parametrize("magnitude", [1e4, 1e20, 3.4e38])
    def test_every_finite_broadcast_is_answered_whatever_is_rated(
        self, gradient: GradientReport, magnitude: float
    ) -> None:
        """A server may broadcast anything; whether a device fails must not depend on its ratings."""
        profiles, item_factors = self.profiles(self.users), self.item_factors()
        for factors in (
            np.full(self.shape, magnitude),
            magnitude * np.sign(item_factors),
            np.where(np.arange(self.items)[:, None] == 3, magnitude, item_factors),
        ):
            user_factors = solve_user_factors(profiles, factors, 1.0)
            fitted = FittedProfiles(profiles, user_factors, factors)
            reports = gradient.encode(fitted, 2.0, self.draws(profiles))
            assert len(reports) == self.users
            if gradient.private:
                assert gradient.decode(reports, self.shape)[0].all()

    def test_hostile_reports_enter_nothing(self, gradient: GradientReport) -> None:
        """One at a time or together, among honest ones."""
        good = next(report for report in self.encoded(gradient, self.profiles(self.users)) if report)
        for report in self.hostile(gradient, good):
            self._check_rejected(gradient, [report])
        self._check_rejected(gradient, self.hostile(gradient, good))

    def _check_rejected(self, gradient: GradientReport, reports: Sequence[bytes]) -> None:
        honest = self.encoded(gradient, self.profiles(self.users))
        valid, aggregate = gradient.decode([*honest[:20], *reports, *honest[20:]], self.shape)
        accepted = [True] * 20 + [False] * len(reports) + [True] * (self.users - 20)
        assert valid.tolist() == accepted
        assert _facts(aggregate) == _facts(gradient.decode(honest, self.shape)[1])

    def test_random_bytes_never_raise_and_move_nothing_far(self, gradient: GradientReport) -> None:
        """And it is not an error if nobody reports."""
        draws = generator(5, "bytes")
        reports = [draws.bytes(int(length)) for length in draws.integers(0, 120, 3000)]
        valid, aggregate = gradient.decode(reports, self.shape)
        assert aggregate.users == int(valid.sum())
        if aggregate.users:
            mean = gradient.gradient(aggregate, self.shape, 1.0, 9)
            assert mean.shape == self.shape
            assert np.isfinite(mean).all()
        valid, aggregate = gradient.decode([], self.shape)
        assert valid.size == aggregate.users == 0


def _facts(aggregate: Aggregate) -> tuple[int, object, object]:
    """Return what two aggregates have in common that are the same."""
    raters = None if aggregate.raters is None else aggregate.raters.tolist()
    return aggregate.users, aggregate.total.tolist(), raters
