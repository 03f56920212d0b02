"""Judges how finely devices are sent what they rank by.

NAME is a step in dprec/lists/model.py or dprec/protocols/public_start.py. Each is held against one a hundred
times as short, and shown beside others with the bytes of the message, on the validation items of the dense
data sets of list_settings.py, at three levels of noise and with sets that are randomised at two budgets.
Figures are NDCG@10 of six draws. Fails if a step costs more than 1 %, and more than chance explains. Takes
about five minutes of processor time. The steps of tables for ratings are judged by on_device.py.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from unittest import mock

import numpy as np
from list_settings import Draw, dense_draws, ndcg, pairs_at, tastes_at, taught, with_sent
from randomized_sets import reported
from validation import asked, chance, decide, stands

from dprec.lists import model
from dprec.lists.randomized_sets import list_model
from dprec.protocols import public_start
from dprec.protocols.gram import TableProtocol

TAUS, BUDGETS = (4.8e-3, 1.3e-3, 3e-4), (1.0, 3.0)
FACTORS = (0.01, 0.5, 1.0, 2.0, 4.0)
LEAST = 0.01
"""Share of NDCG@10 that a step may cost."""
OF_TASTES = "TASTES_STEP"
MODULES = dict.fromkeys(("POPULARITY_STEP", "ROOTS_STEP", "INVERSE_STEP"), model) | {OF_TASTES: public_start}
Measured = Callable[[], tuple[float, int]]
"""Returns NDCG@10, and the bytes that devices are sent."""


def of_sums(at: Callable[[float, Draw], TableProtocol], tau: float, draw: Draw) -> Measured:
    """Return what measures the lists of devices that are sent what sums taught."""
    protocol = at(tau, draw)
    return partial(with_sent, protocol, taught(protocol, draw, tau), draw)


def of_randomized_sets(epsilon: float, draw: Draw) -> Measured:
    """Return what measures the lists of devices that are sent what randomised sets taught."""
    learned = list_model(reported(draw, epsilon), draw.catalogue, None)

    def measured() -> tuple[float, int]:
        sent = learned.encode()
        return ndcg(draw, model.ListModel.decode(sent, draw.sets.shape[1]).scores), len(sent)

    return measured


def good_step(about: str, name: str, every: Sequence[Measured]) -> bool:
    """Print what steps of a few lengths cost; return whether the present one costs no more than it may."""
    found, module = {}, MODULES[name]
    present = getattr(module, name)
    for factor in FACTORS:
        with mock.patch.object(module, name, factor * present):
            found[factor] = np.array([measured() for measured in every])
        accurate, size = found[factor].mean(axis=0)
        print(f"{about} {name} {factor * present:g}: {accurate:.4f}, {size:.0f} bytes", flush=True)
    shortest = found[FACTORS[0]][:, 0]
    lost = (shortest - found[1.0][:, 0]) / shortest.mean()
    return stands(f"{about} {name} {present:g}", lost.mean(), max(LEAST, chance(lost)))


def judged(given: argparse.Namespace) -> Iterator[bool]:
    of_lists = [name for name in given.names if name != OF_TASTES]
    for title, drawn in dense_draws(given.path).items():
        every = drawn()
        learned = [(f"tau {tau:g}", of_lists, partial(of_sums, pairs_at, tau)) for tau in TAUS]
        if OF_TASTES in given.names and every[0].catalogue is not None:
            learned += [(f"tau {tau:g}", [OF_TASTES], partial(of_sums, tastes_at, tau)) for tau in TAUS]
        learned += [(f"epsilon {each:g}", of_lists, partial(of_randomized_sets, each)) for each in BUDGETS]
        for about, names, learn in learned:
            known = [learn(draw) for draw in every] if names else []
            for name in names:
                yield good_step(f"{title}, {about},", name, known)


if __name__ == "__main__":
    decide(judged(asked(__doc__, list(MODULES))))
