"""The influence of one malicious user: every preset states it or none; no report exceeds it."""

import numpy as np
import pytest

from dprec.arrays import offsets
from dprec.gradients import OneBitGradient, SampledSigns
from dprec.gradients.base import GradientReport
from dprec.protocols.base import Public
from dprec.protocols.silent import SilentProtocol
from dprec.protocols.sums import SumsProtocol
from dprec.ratings import POSITIVE, Ratings, RatingScale
from simulation.configuration.loading import load
from simulation.configuration.strict_yaml import presets

UNBOUNDED = {
    *("federated-mf", "fcf", "fedavg-mf", "fedncf", "fedrep", "lightgcn-free"),
    *("fedrecon", "colr"),
    *("fedmf", "fedncf-published", "pfedrec"),
}
"""Devices send gradients or changes, of which nothing is derived."""

UNKNOWN = {"pg-mf-reduced", "x-map", "x-map-shrunk", "x-map-local", "nx-map"}
"""Nothing is derived for projections and AlterEgos."""

PRESETS = sorted(
    name for name, path in presets().items() if path.parent.name not in ("comparisons", "experiments")
)
USERS, ITEMS, RATED = 80, 60, 20


def people(scale: RatingScale) -> Ratings:
    random = np.random.default_rng(1)
    items = np.sort(random.random((USERS, ITEMS)).argsort(axis=1)[:, :RATED], axis=1)
    levels = random.integers(1, scale.levels + 1, USERS * RATED).astype(np.uint8)
    counts = np.full(USERS, RATED)
    ids = np.arange(USERS), np.arange(ITEMS)
    return Ratings(offsets(counts), items.ravel().astype(np.int32), levels, scale, *ids)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_states_it(name: str) -> None:
    config = load(name)
    scale = POSITIVE if config.protocol.predicted == "lists" else RatingScale.evenly(1, 5, 1)
    if config.binarization is not None:
        scale = RatingScale(np.array([-1.0, 1.0]))
    train = people(scale)
    protocol = config.protocol.suited(Public.of(train))
    influence = protocol.influence_of_one(train)
    if name in UNBOUNDED | UNKNOWN or isinstance(protocol, SumsProtocol):
        assert influence is None or influence > 0
    elif isinstance(protocol, SilentProtocol):
        assert influence == 0
    else:
        assert influence is not None
        # Nobody is quieter than the honest.
        assert influence >= 1 - 1e-12
        assert np.isfinite(influence)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("gradient", [OneBitGradient(), SampledSigns()], ids=["one", "several"])
def test_no_gradient_report_moves_an_item_further(gradient: GradientReport, epsilon: float) -> None:
    """All that reports can hold: coordinates of one item, or of any; honest ones move theirs by 1 each."""
    shape = 7, 3
    most = gradient.influence_of_one(shape, epsilon)
    assert most is not None
    random, answers = np.random.default_rng(2), getattr(gradient, "coordinates", 1)
    for _ in range(50):
        items = np.full(answers, 4) if random.random() < 0.5 else random.integers(shape[0], size=answers)
        coordinates = items * shape[1] + random.integers(shape[1], size=answers)
        bits = random.random(answers) < 0.5
        moved = _gradient(gradient, coordinates, bits, shape, epsilon)
        assert np.abs(moved).sum(axis=1).max() <= shape[1] * most * (1 + 1e-9)
    loudest = _gradient(gradient, np.full(answers, 5), np.ones(answers, dtype=np.bool_), shape, epsilon)
    assert np.abs(loudest).sum(axis=1).max() == pytest.approx(shape[1] * most)


def _gradient(gradient, coordinates, bits, shape, epsilon):  # type: ignore[no-untyped-def]
    """Return what a report of some answers makes of the gradient, shape (items, rank)."""
    reports = gradient._codec(shape).encode((coordinates << 1 | bits)[None])
    valid, aggregate = gradient.decode(reports, shape)
    assert valid.all()
    return gradient.gradient(aggregate, shape, epsilon, 1)
