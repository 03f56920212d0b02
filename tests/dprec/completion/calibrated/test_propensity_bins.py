import numpy as np

from dprec.completion.calibrated.regressions import JointBiases, PropensityBins


def test_bins_hold_neighbours_and_their_sizes_differ_by_little() -> None:
    side = JointBiases.at_centre(np.zeros((720, 0)), (0.0, 0.0), (1.0, 0.25))
    means = np.random.default_rng(6).normal(size=(720, 2))
    bins = PropensityBins.by_rank(side.moved_to(means), np.arange(720) % 2 == 0)
    assert np.bincount(bins.of).tolist() == [20] * 36
    assert bins.sizes.sum() == 360
    outer = bins.of // 3
    assert all(means[outer == b, 0].max() < means[outer == b + 1, 0].min() for b in range(11))
    first = [means[bins.of == b, 1].max() for b in (0, 1)], [means[bins.of == b, 1].min() for b in (1, 2)]
    assert np.all(np.less(*first))
    chosen = (bins.of == 7) & (np.arange(720) % 2 == 0)
    np.testing.assert_allclose(bins.means[7] - means[chosen].mean(axis=0), [0.5, 0], atol=1e-12)
    assert bins.bias_variance == 0.25


def test_fewer_users_than_bins_leave_bins_empty() -> None:
    side = JointBiases.at_centre(np.zeros((2, 0)), (0.0, 0.0), (1.0, 0.25))
    bins = PropensityBins.by_rank(side, np.ones(2, dtype=np.bool_))
    assert bins.sizes.sum() == 2
    assert np.isfinite(bins.means).all()
