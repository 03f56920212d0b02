import numpy as np
import pytest

from dprec.completion.calibrated.embedding import noise_edge


def test_equal_weights_have_the_edge_of_marchenko_and_pastur() -> None:
    assert noise_edge(np.ones(300), np.full(1200, 2.0)) == pytest.approx(2 * (300**0.5 + 1200**0.5), rel=1e-3)


def test_unequal_weights_have_the_edge_of_noise_drawn_with_them() -> None:
    random = np.random.default_rng(1)
    rows, columns = random.lognormal(sigma=0.3, size=500), random.lognormal(sigma=0.3, size=700)
    noise = random.standard_normal((500, 700)) * rows[:, None] * columns
    assert noise_edge(rows, columns) == pytest.approx(np.linalg.norm(noise, 2), rel=0.05)


def test_rows_without_weight_do_not_count() -> None:
    rows = np.concatenate([np.ones(50), np.zeros(50)])
    assert noise_edge(rows, np.ones(80)) == pytest.approx(noise_edge(np.ones(50), np.ones(80)))
    assert noise_edge(np.zeros(5), np.ones(5)) == 0
