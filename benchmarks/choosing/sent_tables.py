"""Judges how finely devices are sent what they rank by.

    python benchmarks/choosing/sent_tables.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is a step in dprec/lists/model.py or dprec/protocols/public_start.py. Each is held against one a hundred
times as short, and shown beside others with the bytes of the message, on the validation items of the dense
data sets of list_settings.py, at three levels of noise and with sets that are randomised at two budgets.
Figures are NDCG@10 of six draws. Fails if a step costs more than 1 %, and more than chance explains. Takes
about five minutes of processor time. The steps of tables for ratings are judged by on_device.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from unittest import mock

import numpy as np
from list_settings import Draw, dense_draws, ndcg, pairs_at, profiles_of, tastes_at, taught
from randomized_sets import reported
from scipy.stats import t as student
from validation import arguments

from dprec.lists import model
from dprec.lists.randomized_sets import list_model
from dprec.protocols import public_start
from dprec.protocols.gram import TableProtocol
from dprec.ratings import POSITIVE

TAUS = (4.8e-3, 1.3e-3, 3e-4)
FACTORS = (0.01, 0.5, 1.0, 2.0, 4.0)
BUDGETS = (1.0, 3.0)
LEAST = 0.01
"""Share of NDCG@10 that a step may cost."""

MODULES = {
    "POPULARITY_STEP": model,
    "ROOTS_STEP": model,
    "INVERSE_STEP": model,
    "TASTES_STEP": public_start,
}

Measured = Callable[[], tuple[float, int]]
"""Returns NDCG@10, and the bytes that devices are sent."""


def of_sums(at: Callable[[float, Draw], TableProtocol], tau: float, draw: Draw) -> Measured:
    """Return what measures the lists of devices that are sent what sums taught."""
    protocol, n_items = at(tau, draw), draw.sets.shape[1]
    server = taught(protocol, draw, tau)

    def measured() -> tuple[float, int]:
        sent = server.learned.encode()
        device = protocol.device(sent, n_items, POSITIVE)
        return ndcg(draw, lambda sets: device.predictions(profiles_of(sets))), len(sent)

    return measured


def of_randomized_sets(epsilon: float, draw: Draw) -> Measured:
    """Return what measures the lists of devices that are sent what randomised sets taught."""
    learned = list_model(reported(draw, epsilon), draw.catalogue, None)

    def measured() -> tuple[float, int]:
        sent = learned.encode()
        return ndcg(draw, model.ListModel.decode(sent, draw.sets.shape[1]).scores), len(sent)

    return measured


def learned(folder: str, names: Sequence[str]) -> Iterator[tuple[str, Sequence[str], list[Measured]]]:
    """Yield what was learned on every draw, by what, and the steps of which it is sent in."""
    of_tastes = [name for name in names if name == "TASTES_STEP"]
    of_lists = [name for name in names if name != "TASTES_STEP"]
    for title, drawn in dense_draws(folder).items():
        every = drawn()
        for tau in TAUS:
            if of_lists:
                yield f"{title}, tau {tau:g},", of_lists, [of_sums(pairs_at, tau, each) for each in every]
            if of_tastes and every[0].catalogue is not None:
                yield f"{title}, tau {tau:g},", of_tastes, [of_sums(tastes_at, tau, each) for each in every]
        for epsilon in BUDGETS if of_lists else ():
            about = f"{title}, randomised at epsilon {epsilon:g},"
            yield about, of_lists, [of_randomized_sets(epsilon, each) for each in every]


def stands(about: str, module: ModuleType, name: str, every: Sequence[Measured]) -> bool:
    """Print what steps of a few lengths cost; return whether the present one costs no more than it may."""
    found, present = {}, getattr(module, name)
    for factor in FACTORS:
        with mock.patch.object(module, name, factor * present):
            found[factor] = np.array([measured() for measured in every])
        accurate, size = found[factor].mean(axis=0)
        print(f"{about} {name} {factor * present:g}: {accurate:.4f}, {size:.0f} bytes", flush=True)
    shortest = found[FACTORS[0]][:, 0]
    lost = (shortest - found[1.0][:, 0]) / shortest.mean()
    chance = student.ppf(0.975, lost.size - 1) * lost.std(ddof=1) / np.sqrt(lost.size)
    good = bool(lost.mean() <= max(LEAST, chance))
    print(f"{about} {name} {present:g}: {lost.mean():.2%} lost, {'stands' if good else 'does not stand'}")
    return good


def main() -> int:
    """Print every figure; return 1 if a step does not stand."""
    folder, names = arguments(__doc__, list(MODULES))
    good = [
        stands(about, MODULES[name], name, every)
        for about, own, every in learned(folder, names)
        for name in own
    ]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main())
