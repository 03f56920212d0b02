"""What devices of one-shot protocols are given, and what their words are bound to."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import OwnBudgets, PrivacyBudget
from dprec.completion import Calibrated, Guard, ItemAverage
from dprec.components import as_values
from dprec.mechanisms import BitsAndCounts, ThresholdBit, TwoLayers
from dprec.observations import EmbeddingRelease
from dprec.personalization import TableOptions
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.sharing import TopN, chosen_epsilons, refusing
from dprec.protocols.shuffler import Shuffler
from dprec.schedules import PermanentAnswers, RepeatedAnswers
from tests.make import STARS, synthetic

BUDGET = PrivacyBudget(epsilon=1.0)
PLAIN = OneShotProtocol(mechanism=ThresholdBit(), privacy=BUDGET, completion=Calibrated())
LATE = [
    replace(PLAIN, delivery=None),
    replace(PLAIN, delivery=TopN(items=3)),
    replace(PLAIN, guard=Guard(malicious=0.1)),
    replace(PLAIN, shuffler=Shuffler()),
]
"""What differs in what becomes of the result alone."""

OTHERS = [
    *LATE,
    replace(PLAIN, completion=Calibrated(factors=3)),
    replace(PLAIN, table=TableOptions(dimensions=2)),
    replace(PLAIN, item_embeddings=EmbeddingRelease(epsilon=1.0)),
    replace(PLAIN, max_symbols=7),
]


@pytest.mark.parametrize("other", OTHERS)
def test_devices_are_given_nothing_that_the_server_alone_reads(other: OneShotProtocol) -> None:
    assert other.installed == PLAIN.installed
    assert (other.drawn_by == PLAIN.drawn_by) == (other in LATE)
    assert other.installed.completion == ItemAverage()


@pytest.mark.parametrize(
    "other",
    [
        replace(PLAIN, mechanism=BitsAndCounts()),
        replace(PLAIN, privacy=PrivacyBudget(epsilon=2.0)),
        replace(PLAIN, personalization="on-device"),
        replace(PLAIN, answers=RepeatedAnswers()),
        replace(PLAIN, answers=PermanentAnswers(mechanism=TwoLayers())),
        replace(PLAIN, privacy=OwnBudgets.of({"1": 0.5, "2": 0.5})),
    ],
)
def test_words_differ_with_all_that_devices_do(other: OneShotProtocol) -> None:
    assert other.installed != PLAIN.installed
    assert other.drawn_by != PLAIN.drawn_by


def test_permanent_answers_are_by_a_mechanism_of_their_own() -> None:
    layered = replace(PLAIN, answers=PermanentAnswers(mechanism=TwoLayers()))
    own, plain = layered.family(STARS, 9), PLAIN.family(STARS, 9)
    assert own.mechanism == layered.applied == TwoLayers()
    assert plain.mechanism == PLAIN.applied == PLAIN.mechanism
    assert own.channel(1).epsilon == pytest.approx(BUDGET.epsilon)
    assert as_values(layered.installed)["answers"]["mechanism"]["kind"] == "two-layers"


def test_malicious_users_choose_the_largest_epsilon_and_move_nobody_elses() -> None:
    people = synthetic(20, 30, 300)
    privacy = OwnBudgets.of({"0": 0.25, "1": 0.5, "2": 0.25})
    honest = chosen_epsilons(privacy, people.of_users(np.arange(16), people.user_ids[:16]), seed=3)
    chosen = chosen_epsilons(privacy, people, seed=3, malicious=4)
    assert chosen is not None
    assert honest is not None
    assert chosen.tolist() == [*honest.tolist(), 2, 2, 2, 2]
    assert np.bincount(honest).tolist() == [4, 8, 4]
    refuses = refusing(privacy, chosen)
    assert refuses is not None
    assert (refuses == (chosen == 0)).all()
    assert chosen_epsilons(BUDGET, people, seed=3) is None
    assert refusing(BUDGET, None) is None
