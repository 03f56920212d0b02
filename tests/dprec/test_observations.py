"""What item sets may say to everybody: settings and what they cost."""

from __future__ import annotations

import pytest

from dprec.accounting import gaussian_epsilon
from dprec.accounting.noisy_sums import gaussian_delta
from dprec.errors import SettingError
from dprec.observations import EmbeddingRelease


def test_without_a_budget_there_is_no_noise_and_no_loss_is_stated() -> None:
    assert EmbeddingRelease().distance == 0
    assert EmbeddingRelease().epsilon_between_profiles == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 16.0])
def test_the_distance_costs_what_was_asked_for(epsilon: float) -> None:
    embedding_release = EmbeddingRelease(epsilon=epsilon, delta=1e-5)
    assert gaussian_epsilon(embedding_release.distance, 1e-5) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_delta(embedding_release.distance, epsilon) <= 1e-5
    # Two profiles are sqrt(2) times as far apart as a profile and none.
    assert epsilon < embedding_release.epsilon_between_profiles < 2 * epsilon


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"least_raters": 0}, "least_raters"), ({"epsilon": 0.0}, "epsilon"), ({"delta": 0.0}, "delta")],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, float], key: str) -> None:
    with pytest.raises(SettingError) as error:
        EmbeddingRelease(**settings)
    assert error.value.where == key
