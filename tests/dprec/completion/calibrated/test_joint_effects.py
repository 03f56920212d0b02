import numpy as np

from dprec.completion.calibrated.regressions import JointBiases


def test_the_posterior_is_that_of_the_joint_normal_distribution() -> None:
    random = np.random.default_rng(3)
    entities = 6
    features = np.column_stack([np.ones(entities), random.normal(size=entities)])
    side = JointBiases.at_centre(features, (-3.0, 0.0), (1.5, 0.3))
    roots = random.normal(size=(entities, 2, 2))
    precision = roots @ roots.swapaxes(1, 2)
    target = random.normal(size=(entities, 2))
    solved = side.solved(precision, target)
    # Brute force: all pairs have a joint prior whose covariance includes that of the coefficients.
    prior = np.kron(np.eye(entities), np.diag([1.5, 0.3]))
    for own, variances in enumerate([(1.0, 0.5), (0.09, 0.05)]):
        block = (features * np.array(variances)) @ features.T
        prior[own::2, own::2] += block
    mean = np.tile([-3.0, 0.0], entities)
    joint = np.zeros_like(prior)
    for entity in range(entities):
        joint[2 * entity : 2 * entity + 2, 2 * entity : 2 * entity + 2] = precision[entity]
    inverse = np.linalg.inv(prior)
    expected = np.linalg.solve(inverse + joint, inverse @ mean + target.ravel())
    np.testing.assert_allclose(solved.means.ravel(), expected, atol=1e-9)


def test_without_observations_the_prior_stays() -> None:
    side = JointBiases.at_centre(np.zeros((4, 0)), (0.0, 0.0), (1.0, 0.25))
    solved = side.solved(np.zeros((4, 2, 2)), np.zeros((4, 2)))
    np.testing.assert_allclose(solved.means, 0)
    np.testing.assert_allclose(solved.spread, np.diag([1.0, 0.25]))
    assert solved.biases.regressed.shape == (4,)


def test_a_correlation_is_learned_and_used() -> None:
    random = np.random.default_rng(5)
    drawn = random.multivariate_normal([0, 0], [[1, 0.5], [0.5, 0.4]], size=400)
    side = JointBiases.at_centre(np.zeros((400, 0)), (0.0, 0.0), (1.0, 0.25))
    precision = np.tile(np.diag([50.0, 0.5]), (400, 1, 1))
    noisy = drawn + random.normal(size=(400, 2)) / np.sqrt([50.0, 0.5])
    target = noisy * [50.0, 0.5]
    for _ in range(60):
        side = side.solved(precision, target)
    assert 0.3 < side.spread[0, 1] < 0.7
    assert np.corrcoef(side.means[:, 1], drawn[:, 1])[0, 1] > 0.75
