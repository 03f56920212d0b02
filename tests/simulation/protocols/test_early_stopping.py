"""Early stopping on ratings that are made up."""

from dataclasses import replace

import numpy as np

from dprec.datasets import Synthetic
from dprec.gradients import OneBitGradient
from dprec.ratings import Ratings
from simulation.protocols.early_stopping import EarlyStopping
from simulation.protocols.iterative import IterativeProtocol
from strategies.iterative import State
from strategies.round_record import RoundRecord

SEED = 3
STOPPING = EarlyStopping(patience=2, validation_fraction=0.25)
TRAIN: Ratings = Synthetic(users=20, items=10, ratings=120).load()


def after_rounds(state: State, rounds: int) -> State:
    records = [RoundRecord(number, 1, 0, None, 0, 0, 0, 0, 0.0) for number in range(1, rounds + 1)]
    return replace(state, records=records, factors=np.full_like(state.factors, rounds))


def test_a_share_of_the_ratings_is_held_back_the_same_every_time() -> None:
    held_back = STOPPING.held_back(TRAIN, SEED)
    assert 0 < held_back.sum() < TRAIN.count / 2
    assert held_back.tolist() == STOPPING.held_back(TRAIN, SEED).tolist()
    assert held_back.tolist() != STOPPING.held_back(TRAIN, SEED + 1).tolist()


def test_only_the_ratings_held_back_judge_and_the_best_round_is_remembered() -> None:
    held_back = TRAIN.select(STOPPING.held_back(TRAIN, SEED))
    mean = float(held_back.values.mean())
    state = State.begin(TRAIN.counts > 0, TRAIN.n_items, 2, SEED)
    stopped = []
    for rounds, distance in enumerate((2.0, 0.0, 1.0, 3.0), start=1):
        state = after_rounds(state, rounds)
        STOPPING.remember_best(
            state, lambda users, items, d=distance: np.full(users.size, mean + d), TRAIN, SEED
        )
        stopped.append(STOPPING.exhausted(state))
    assert state.best_round == 2
    assert (state.best_factors == 2).all()
    assert state.best_error == np.sqrt(np.mean((held_back.values - mean) ** 2))
    assert stopped == [False, False, False, True]


def test_devices_hold_no_rating_that_is_held_back() -> None:
    protocol = IterativeProtocol(gradient=OneBitGradient(), rounds=4, early_stopping=STOPPING)
    held_back = STOPPING.held_back(TRAIN, SEED)
    held = protocol.held_ratings(TRAIN, SEED)
    assert held.users.tolist() == TRAIN.users[~held_back].tolist()
    assert held.items.tolist() == TRAIN.items[~held_back].tolist()
