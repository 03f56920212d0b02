"""What the mathematics refuses: the setting, or the place, that each refusal names, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.accounting import OwnBudgets, PrivacyBudget
from dprec.binarization import FixedThreshold, MeanThreshold, check_binary
from dprec.completion import COMPLETIONS, Calibrated, MatrixFactorization, OneBit, StepOptions
from dprec.crossdomain import ReplacementOptions, joined
from dprec.datasets import Synthetic
from dprec.fitting import fit
from dprec.gradients import ReducedOneBitGradient, SampledSigns
from dprec.mechanisms import (
    MECHANISMS,
    BinaryFlip,
    BitsAndCounts,
    BoundedLaplace,
    BucketBits,
    FisherOptimal,
    HiddenThreshold,
    Laplace,
    Mechanism,
    RandomizedResponse,
    Raw,
    ResidualBits,
    ThresholdBit,
    TwoLayers,
    ZhengLaplace,
    ZhengRandomizedResponse,
)
from dprec.metrics import RankedHits, ranking_figures
from dprec.observations import EmbeddingRelease
from dprec.personalization import TableOptions
from dprec.protocols.private_als import FactorizationOptions
from dprec.ratings import RatingScale
from dprec.reports import PartlyAnsweredFamily, ReportFamily
from dprec.reports.profiles import ProfileCode
from dprec.schedules import DBitFlip, Increments, Loloha, RepeatedAnswers, TwoLayered
from dprec.splits import ColdStart, ColdUsers, Holdout, KFold, LeaveOneOut, Predefined
from dprec.sums import LocalAggregation, SecureAggregation, ShuffledAggregation
from dprec.wire import ReportCodec
from tests import make
from tests.dprec.private_als.partitions import LAYOUTS
from tests.make import STARS
from tests.refusals import refused_at
from tests.summing import pairs, popularity

Row = tuple[str, Callable[[], object]]
"""What is named, and what is refused."""

NAN = float("nan")
SHARES = {0: 0.2, 0.5: 0.3, 1: 0.4, 2: 0.1}
RATED = make.random_ratings(30, 12)
TWO_LEVELS = RatingScale.evenly(-1, 1, 2)
SHAPE = 24, 2
"""Items and factors."""


def family(mechanism: Mechanism, epsilon: float | None, per: Any = "rating") -> ReportFamily:
    budget = None if epsilon is None else PrivacyBudget(epsilon=epsilon, per=per)
    made = mechanism.family(budget, STARS, 50)
    made.check()
    return made


BUDGETS: list[Row] = [
    ("per", lambda: OwnBudgets.of(SHARES, per="user")),
    ("sampled_at", lambda: OwnBudgets.of(SHARES, sampled_at=1.9)),
    ("sampled_at", lambda: OwnBudgets.of(SHARES, sampled_at=21.0)),
    ("composition", lambda: PrivacyBudget(epsilon=1.0, composition="pld")),
    *(("delta", lambda delta=delta: make.user_budget(delta=delta)) for delta in (0.0, 1e-10, 0.2)),
    *(
        ("epsilon", lambda shares=shares: OwnBudgets.of(shares))
        for shares in (
            *({}, {0: 1.0}, {-1: 0.5, 1: 0.5}, {1: 0.5}, {1: 1.5, 2: -0.5}, {"much": 1.0}, {30: 1.0}),
            *(dict.fromkeys(range(1, 12), 1 / 11), {1: 0.5, "1.0": 0.5}, {NAN: 1.0}, {1: 0.0, 2: 1.0}),
        )
    ),
    *((key, lambda key=key: EmbeddingRelease(**{key: 0})) for key in ("least_raters", "epsilon", "delta")),
]
MECHANISMS_AND_SCALES: list[Row] = [
    ("threshold", lambda: BitsAndCounts(threshold=6).channel(STARS, 5.0)),
    ("threshold", lambda: ThresholdBit(threshold=1).channel(STARS, 5.0)),
    ("threshold", lambda: HiddenThreshold(threshold=1).channel(STARS, 5.0)),
    ("other_thresholds", lambda: ThresholdBit(other_thresholds=0.1).channel(TWO_LEVELS, 5.0)),
    ("other_thresholds", lambda: ThresholdBit(threshold="drawn", other_thresholds=0.1).channel(STARS, 5.0)),
    ("histogram", lambda: FisherOptimal(histogram=(0.5, 0.5)).channel(STARS, 5.0)),
    ("histogram[4]", lambda: FisherOptimal(histogram=(1.0, 1.0, 1.0, 1.0, 0.0))),
    ("binarization", lambda: BinaryFlip(p1=0.3, p2=0.3).channel(STARS, 5.0)),
    ("p1", lambda: BinaryFlip(p1=0.0, p2=0.5)),
    ("symbols", lambda: MECHANISMS["zheng-laplace"](symbols=2)),
    ("ratings", lambda: Laplace().perturb([1.0, 0.5], 1.0)),
    *(
        ("ratings", lambda given=given: Laplace().perturb(given, 1.0, 7))
        for given in (None, ["a"], [[1.0], [1.0, 2.0]])
    ),
    *(("rng", lambda rng=rng: Laplace().perturb([1.0], 1.0, rng)) for rng in ("x", -1, 1.5)),
    ("epsilon", lambda: Laplace().perturb([1.0], "1", 7)),  # type: ignore[arg-type]
    ("perturb", lambda: ResidualBits().perturb([1.0], 1.0)),
    ("epsilon", lambda: Laplace().perturb([1.0])),
    ("epsilon", lambda: Laplace().perturb([1.0], np.inf)),
    ("epsilon", lambda: Raw().perturb([1.0], 1.0)),
    ("cutoffs", lambda: ranking_figures(RankedHits.of(np.array([[0]]), np.array([0]), RATED), [0], 12)),
    *(("scale", lambda given=given: RatingScale.evenly(*given)) for given in ((1, 5, 0.3), (5, 1, 1))),
    *(
        ("scale", lambda levels=levels: RatingScale(np.array(levels, dtype=float)))
        for levels in ([1], [2, 1], [1, 1], [1, NAN], list(range(256)))
    ),
    *(
        ("binarization", lambda levels=levels: check_binary(RatingScale(np.array(levels))))
        for levels in ([0.0, 1.0], [1.0, 2.0])
    ),
    *(("above", lambda above=above: FixedThreshold(above=above).apply(RATED, RATED)) for above in (0.5, 5.0)),
    ("settings", lambda: MeanThreshold().cut(make.ratings((1, 1, 4), (2, 1, 4)))),
]
REPORTS: list[Row] = [
    ("privacy", lambda: family(BoundedLaplace(), None)),
    ("privacy", lambda: family(Raw(), 1.0)),
    ("privacy.per", lambda: family(BoundedLaplace(), 1.0, "cell")),
    ("privacy.epsilon", lambda: family(BoundedLaplace(), 20.5)),
    ("privacy.epsilon", lambda: family(ZhengRandomizedResponse(), 1e300, "cell")),
    ("privacy.epsilon", lambda: family(BitsAndCounts(), 1e-7)),
    ("privacy.epsilon", lambda: family(BitsAndCounts(), 1e-4, "user")),
    ("privacy.composition", lambda: BitsAndCounts().family(make.user_budget(), STARS, 40).check()),
    ("mechanism.buckets", lambda: family(BucketBits(buckets=6), 1.0)),
    ("mechanism.bits", lambda: family(BucketBits(buckets=2, bits=3), 1.0)),
    ("privacy.per", lambda: family(TwoLayers(), 1.0, "user")),
    ("first", lambda: TwoLayers(first=1.0)),
    ("privacy.epsilon", lambda: HiddenThreshold().family(OwnBudgets.of(SHARES), STARS, 6)),
    ("privacy.per", lambda: PartlyAnsweredFamily(ThresholdBit(), OF_USERS.privacy, STARS, 6)),
    ("profile", lambda: ProfileCode.at(1.0, 9_000_000, 1)),
    *(
        ("catalogue", lambda items=items: ReportCodec(Raw().channel(STARS, 9), items))
        for items in (0, 1 << 25)
    ),
    *(
        (
            key,
            lambda own=own, per=per: make.one_shot(
                own, PrivacyBudget(epsilon=1, per=per), answers=RepeatedAnswers()
            ),
        )
        for own, per, key in (
            (BoundedLaplace(), "user", "privacy.per"),
            (ZhengRandomizedResponse(), "cell", "mechanism"),
            (ResidualBits(), "user", "mechanism"),
            (BitsAndCounts(), "rating", "mechanism"),
        )
    ),
]
OWN = make.one_shot(ThresholdBit(), PrivacyBudget(epsilon=1.0))
OF_USERS = replace(OWN, privacy=PrivacyBudget(epsilon=1.0, per="user"))
SCHEDULES: list[Row] = [
    ("privacy", lambda: replace(OF_USERS, answers=TwoLayered().answers)),
    ("privacy", lambda: make.one_shot(Raw(), answers=TwoLayered().answers)),
    ("first", lambda: TwoLayered(first=0.0)),
    ("hashed_to", lambda: Loloha(hashed_to=4)),
    ("bits", lambda: DBitFlip(bits=0)),
    ("privacy.per", lambda: replace(OF_USERS, answers=Increments().answers)),
    ("mechanism", lambda: replace(OWN, mechanism=HiddenThreshold(), answers=Increments().answers)),
]
SECURE = SecureAggregation(norm=256, colluders=2).among(40)
SHUFFLE = ShuffledAggregation(messages=4, norm=0.8, colluders=2)
SUMS: list[Row] = [
    ("users", lambda: SecureAggregation(users=12).among(40)),
    ("modulus_bits", lambda: replace(SECURE, modulus_bits=9).check(LAYOUTS[2], 1.0)),
    ("norm", lambda: replace(SECURE, norm=2).check(LAYOUTS[2], 1.0)),
    ("norm", lambda: SECURE.check(LAYOUTS[2], 1e6)),
    ("privacy.delta", lambda: SECURE.multiplier(1.0, 1e-16)),
    ("colluders", lambda: SHUFFLE.among(2)),
    ("users", lambda: SHUFFLE.among(30).among(40)),
    ("messages", lambda: SHUFFLE.among(30).check(popularity(50_000 * 25_000), 2.0)),
    ("messages", lambda: SHUFFLE.among(30).check(pairs(1000), 1e4)),
    ("kind", lambda: LocalAggregation().divided(None, (0.3, 0.7))),
    ("bias_rounds", lambda: FactorizationOptions(bias_rounds=10**8)),
    ("noise", lambda: FactorizationOptions(noise=1e300)),
]
AVERAGE: Any = COMPLETIONS["item-average"]()
MODELS: list[Row] = [
    *(
        (key, lambda kind=kind, key=key, value=value: COMPLETIONS[kind](**{key: value}))
        for kind, settings in {
            "sgd-mf": {"rank": 0, "step": 0.0, "regularization": -0.1, "epochs": 0},
            "mog-mf": {"components": 0, "ridge": -1.0, "tolerance": -1.0, "iterations": 0, "rank": 0},
            "mog-mf-variational": {"components": 0, "ridge": 0, "tolerance": -1.0, "iterations": 0},
            "one-bit": {"alpha": 0.0, "tau": -1.0, "sigma": 0.0},
            "nuclear-norm": {"rho": -1.0},
        }.items()
        for key, value in settings.items()
    ),
    *(
        (key, lambda key=key, value=value: StepOptions(**{key: value}))
        for key, value in {"size": NAN, "decay": -1.0, "momentum": 1.0, "regularization": -0.1}.items()
    ),
    ("bounded", lambda: OneBit(bounded=True, biases=True)),
    ("bounded", lambda: OneBit(bounded=True).check((10_000, 10_000))),
    ("binarization", lambda: OneBit().fit(make.observed(RATED), 0)),
    ("histogram[1]", lambda: Calibrated(histogram=(0.2, 0.0, 0.3, 0.3, 0.2))),
    ("histogram", lambda: Calibrated(histogram=(1.0, 2.0)).check_scale(STARS)),
    ("histogram", lambda: TableOptions(histogram=(0.5, 0.5)).cuts(STARS)),
    ("rank", lambda: MatrixFactorization(rank=4).check((400, 4))),
    ("dimensions", lambda: ReducedOneBitGradient(dimensions=25).check(SHAPE)),
    ("coordinates", lambda: SampledSigns(coordinates=49).check(SHAPE)),
    *(
        ("mechanism", lambda own=own: fit(COMPLETIONS["item-average"](), RATED, mechanism=own, epsilon=1.0))
        for own in (ZhengLaplace(), ResidualBits())
    ),
    ("epsilon", lambda: fit(COMPLETIONS["item-average"](), RATED, mechanism=BoundedLaplace(), epsilon=-1.0)),
    ("epsilon", lambda: fit(COMPLETIONS["item-average"](), RATED, mechanism=RandomizedResponse())),
    ("rank", lambda: fit(MatrixFactorization(rank=12), RATED)),
    *(
        ("completion", lambda given=given: fit(given, RATED))
        for given in (None, "mf", MatrixFactorization, BoundedLaplace())
    ),
    *(
        ("mechanism", lambda given=given: fit(AVERAGE, RATED, mechanism=given, epsilon=1.0))
        for given in ("laplace", BoundedLaplace)
    ),
    *(
        ("epsilon", lambda given=given: fit(AVERAGE, RATED, mechanism=BoundedLaplace(), epsilon=given))
        for given in ("1", True, NAN, [1.0])
    ),
    *(
        ("seed", lambda seed=seed: fit(AVERAGE, RATED, seed=seed))
        for seed in (None, -1, 1.5, "a", NAN, True, np.float64(2))
    ),
    ("users", lambda: fit(COMPLETIONS["item-average"](), RATED).predict(99, 1)),
    ("items", lambda: fit(COMPLETIONS["item-average"](), RATED).predict(1, 99)),
]
BOOKS, NOTHING = make.ratings((1, 10, 5), (2, 10, 1)), make.ratings()
DATA = Synthetic(users=20, items=10, ratings=60)
SPLITS_AND_DOMAINS: list[Row] = [
    ("target", lambda: joined(BOOKS, BOOKS, ("book", "book"))),
    ("domain music", lambda: joined(BOOKS, NOTHING, ("book", "music"))),
    ("epsilon", lambda: ReplacementOptions(selection="private")),
    ("epsilon", lambda: ReplacementOptions(selection="best", epsilon=1.0)),
    ("epsilon", lambda: ReplacementOptions(selection="private", epsilon=NAN)),
    (
        "global_sensitivity",
        lambda: ReplacementOptions(selection="private", epsilon=0.6, global_sensitivity=1.0).sensitivity(
            "adjusted-cosine"
        ),
    ),
    ("split", lambda: ColdStart().split(DATA, 0)),
    ("split", lambda: KFold(folds=9, fold=3).split(Synthetic(users=1, items=3, ratings=3), 0)),
    ("split.fold", lambda: Predefined(fold="u1").split(DATA, 0)),
    ("fold", lambda: KFold(folds=5, fold=5)),
    ("test_fraction", lambda: Holdout(test_fraction=NAN)),
    ("count", lambda: LeaveOneOut(count=0)),
    ("test_users", lambda: ColdUsers(test_users=1.0)),
]
EVERY = [*BUDGETS, *MECHANISMS_AND_SCALES, *REPORTS, *SCHEDULES, *SUMS, *MODELS, *SPLITS_AND_DOMAINS]


@pytest.mark.parametrize(("where", "refused"), EVERY)
def test_what_is_refused_names_where(where: str, refused: Callable[[], object]) -> None:
    with refused_at(where):
        refused()
