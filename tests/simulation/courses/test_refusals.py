"""What no protocol can do is refused before anything runs, in one line that names the key."""

from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation import load, run
from tests.refusals import refused_at
from tests.simulation.conftest import presets

LEARNED = "completion={kind: calibrated, learn_histogram: true}"
AVERAGES = "completion={kind: item-average}"
PER_USER, PER_CELL, PER_RATING = (
    f"privacy={{epsilon: 1.0, per: {unit}}}" for unit in ("user", "cell", "rating")
)
NO_LINKS = "shuffler={reports: per-item, item_sets: unsent}"
COMPOSED = "privacy={epsilon: 1.0, per: user, composition: pld}"
GAUSSIAN = "completion={kind: one-bit, link: gaussian, alpha: 1, rank: 1}"
COLD = "split={kind: cold-users, test_users: 0.25, test_fraction: 0.4}"
LOCAL = "mechanism={kind: bounded-laplace} | privacy={epsilon: 1.0}"

REFUSED = [
    ("pg-mf", "sampling={fraction: 0.001}", "sampling.fraction"),
    ("pg-mf", "sampling={count: 41}", "sampling.count"),
    ("pg-mf", "sampling={count: 4, fraction: 0.5}", "sampling"),
    ("pg-mf", PER_RATING, "privacy.per"),
    ("pg-mf", "privacy=null", "privacy"),
    ("pg-mf", "gradient={kind: full}", "privacy"),
    ("pg-mf", "gradient={kind: one-bit-reduced, dimensions: 61}", "gradient.dimensions"),
    ("pg-mf", "rank=60", "rank"),
    *(
        (f"one-bit-{name}", "binarization=null", "binarization")
        for name in ("clear", "input", "gradient", "output")
    ),
    ("one-bit-input", "mechanism={kind: binary-flip, p1: 0.1, p2: 0.1}", "mechanism.p1"),
    ("one-bit-input", "mechanism={kind: binary-flip, p1: 0.1, p2: 1.5}", "mechanism.p2"),
    ("one-bit-input", "binarization={kind: threshold, above: 5}", "binarization.above"),
    ("one-bit-gradient", "privacy.per=user", "privacy.per"),
    ("one-bit-objective", "privacy.per=user", "privacy.per"),
    ("one-bit-objective", f"{GAUSSIAN} | perturbation.calibration=sound", "perturbation.calibration"),
    ("global-mean", f"mechanism={{kind: laplace}} | {PER_RATING}", "privacy.per"),
    ("global-mean", "mechanism={kind: laplace}", "privacy"),
    ("global-mean", PER_USER, "privacy"),
    ("blp-mf", "guard={malicious: 0.05}", "guard"),
    ("user-level-on-device", "guard={malicious: 0.05}", "guard"),
    ("one-bit-on-device", "guard={malicious: 0.5}", "guard.malicious"),
    ("gram-central", "table={items: 20, popularity_share: 0}", "table.popularity_share"),
    ("gram-central", "table={normalised: false}", "table.normalised"),
    ("pairs-in-blanket", "table={normalised: false}", "table.normalised"),
    ("gram-secagg", "table={normalised: false} | privacy=null", "table.normalised"),
    ("gram-central", "table={items: 20, popularity_share: 1}", "table.popularity_share"),
    ("nothing-sent", "prior=0.5", "prior"),
    ("nothing-sent", "prior=5.5", "prior"),
    ("nothing-sent", PER_RATING, "privacy"),
    ("counts-and-bits", COMPOSED, "privacy.composition"),
    ("best", "privacy.per=cell | item_set=revealed", "item_set"),
    ("best", "privacy.per=user | item_set=revealed | predicts=server", "predicts"),
    ("best", "privacy={epsilon: {0: 0.5, 1: 0.5}} | item_set=hidden", "privacy.epsilon"),
    ("user-level-on-device", LEARNED, "completion.learn_histogram"),
    ("user-level-on-device", PER_RATING, "privacy.per"),
    ("user-level-on-device", "completion.slopes=2", "completion.slopes"),
    ("user-level-on-device", "completion.factors=2", "completion.factors"),
    ("cells-on-device", "completion.slopes=2", "completion.slopes"),
    ("cells-on-device", "completion.factors=2", "completion.factors"),
    ("user-level-bit", "completion={kind: mf}", "completion.kind"),
    ("user-level-bit", "privacy.per=rating", "privacy.per"),
    ("user-level-bit", "completion.factors=3", "completion.factors"),
    (
        "one-bit-on-device",
        f"mechanism={{kind: set-only}} | privacy=null | {LEARNED}",
        "completion.learn_histogram",
    ),
    (
        "one-bit-on-device",
        f"mechanism={{kind: zheng-laplace}} | {PER_CELL} | {LEARNED}",
        "completion.learn_histogram",
    ),
    ("one-bit-on-device", "completion={kind: mf} | table={histogram: [1.0, 2.0]}", "table.histogram"),
    ("one-bit-on-device", "privacy.epsilon=1e-10", "privacy.epsilon"),
    ("one-bit-on-device", "personalization=none | item_embeddings={epsilon: 1.0}", "item_embeddings.epsilon"),
    ("cells-on-device", "item_embeddings={epsilon: 1.0}", "item_embeddings.epsilon"),
    (
        "shuffled-on-device",
        "item_embeddings={epsilon: 1.0} | completion={kind: item-biases} | shuffler={}",
        "item_embeddings.epsilon",
    ),
    ("sets-only", "item_embeddings={epsilon: 1.0, delta: 1e-4}", "item_embeddings.delta"),
    ("blp-mf", "answers={kind: repeated}", "answers"),
    ("weekly-increments", "answers={kind: repeated}", "answers"),
    ("shuffled-on-device", "completion={kind: calibrated}", "shuffler.reports"),
    ("shuffled-on-device", "completion={kind: mf} | personalization=none", "shuffler.reports"),
    ("shuffled-on-device", NO_LINKS, "shuffler.item_sets"),
    ("shuffled-on-device", "completion={kind: user-average} | personalization=none", "shuffler.reports"),
    ("shuffled-on-device", AVERAGES, "shuffler.reports"),
    ("shuffled-on-device", PER_USER, "shuffler.reports"),
    ("shuffled-on-device", "mechanism={kind: none} | privacy=null", "shuffler"),
    ("shuffled-on-device", "mechanism={kind: set-only} | privacy=null", "shuffler"),
    (
        "shuffled-on-device",
        f"mechanism={{kind: residual-bits}} | {PER_USER} | {AVERAGES}",
        "shuffler.reports",
    ),
    (
        "shuffled-on-device",
        f"mechanism={{kind: hidden-threshold}} | {PER_CELL} | {AVERAGES}",
        "shuffler.reports",
    ),
    ("shuffled-on-device", f"mechanism={{kind: hidden-threshold}} | {PER_CELL}", "completion.kind"),
    ("shuffled-on-device", "mechanism={kind: bits-and-counts}", "shuffler"),
    ("one-bit-on-device", "privacy.epsilon={0: 1.0}", "privacy.epsilon"),
    ("one-bit-on-device", "privacy.epsilon={0: 0.5, 1: 0.4}", "privacy.epsilon"),
    ("one-bit-on-device", "privacy.epsilon={1: 0.5, 30: 0.5}", "privacy.epsilon"),
    ("one-bit-on-device", "privacy={epsilon: {0: 0.5, 1: 0.5}, per: user}", "privacy.per"),
    ("one-bit-on-device", "privacy={epsilon: {1: 1.0}, choice: {by: age}}", "privacy.choice.by"),
    ("counts-and-bits", "privacy.epsilon={0: 0.5, 1: 0.5}", "privacy.epsilon"),
    ("cells-on-device", "privacy={epsilon: {0: 0.5, 1: 0.5}}", "privacy.epsilon"),
    ("shuffled-on-device", "privacy={epsilon: {0: 0.5, 1: 0.5}}", "shuffler"),
    ("pg-mf", "privacy.epsilon={0: 0.5, 1: 0.5}", "privacy.epsilon"),
    ("x-map", "dataset={kind: synthetic} | split={kind: holdout}", "dataset"),
    ("x-map", "dataset={kind: synthetic}", "split"),
    ("x-map", "replacement.epsilon=20.5", "replacement.epsilon"),
    ("x-map", "recommendation.epsilon=1e+300", "recommendation.epsilon"),
    ("x-map", "replacement={selection: private}", "replacement.epsilon"),
    ("x-map", "replacement.global_sensitivity=1.0", "replacement.global_sensitivity"),
    ("x-map", "replacement.shrinkage=1.0", "replacement.shrinkage"),
    ("x-map", "privacy={epsilon: 1.0}", "privacy"),
    ("x-map", LOCAL, "replacement.selection"),
    ("x-map", f"{LOCAL} | replacement={{selection: best}}", "recommendation.epsilon"),
    ("dp-als", "privacy={epsilon: 1.0}", "privacy.per"),
    ("dp-als", "privacy.composition=sum", "privacy.composition"),
    ("dp-als", "privacy.epsilon=1e-8 | privacy.delta=1e-9", "privacy.epsilon"),
    ("dp-als", "factorization.rank=61", "factorization.rank"),
    ("secagg-als", "aggregation.modulus_bits=12", "aggregation.modulus_bits"),
    ("secagg-als", "aggregation.colluders=55", "aggregation"),
    ("secagg-als", "aggregation.dropouts=0.49", "aggregation"),
    ("secagg-als", "aggregation.norm=2", "aggregation.norm"),
    ("secagg-als", "aggregation.norm=65536 | privacy.epsilon=1e-3", "aggregation.norm"),
    ("secagg-als", "privacy.epsilon=1e-4", "privacy.epsilon"),
    ("pfedrec", "model.negatives=1000000000000000000000000000000", "model.negatives"),
    ("pfedrec", "model.deviation=1e300", "model.deviation"),
    ("fedncf-published", "model.layers=8 | model.factors=256", "model.layers"),
    ("counted-negatives", "rounds=1000000000000", "rounds"),
    ("blp-mf", COLD, "kind"),
    ("item-average", COLD, "kind"),
    ("optimal-on-device", COLD, "kind"),
    ("one-bit-clear", COLD, "binarization"),
    ("nothing-sent", "dataset.positive='>= 4'", "kind"),
    ("best", "dataset.positive='>= 4' | predicts=server", "predicts"),
    ("best", "dataset.positive='>= 4' | item_set=revealed", "item_set"),
    ("ease", "dataset={kind: synthetic}", "kind"),
    ("ease", "evaluation.relevant_from=4.0", "evaluation.relevant_from"),
    ("ease", "evaluation.errors=['dprec.metrics:mean_absolute_error']", "evaluation.errors"),
    ("ease", "binarization={kind: mean}", "binarization"),
    ("ease", PER_USER, "privacy"),
    ("fcf", "privacy={epsilon: 1.0}", "privacy.per"),
    ("fcf", PER_USER, "privacy.composition"),
    ("fcf", "privacy.epsilon=1e-5", "privacy.epsilon"),
    ("fcf", "model={kind: mf}", "model.kind"),
    ("sums-on-device", "sums.split=[1, 0, 0, 0, 0, 0, 0, 0]", "sums.split"),
    ("sums-on-device", "sums.split=[0.5, 0.5]", "sums.split"),
    ("sums-on-device", "sums.split=[0.5, 0.1, 0.4, 1.0e-300, 0, 0, 0, 0]", "sums.split"),
    ("sums-on-device", "sums.histogram=[1, 1, 1]", "histogram"),
    ("sums-on-device", PER_RATING, "privacy.per"),
    ("sums-on-device", "aggregation={kind: secure-aggregation, norm: 2, colluders: 3}", "aggregation.norm"),
    ("own-budgets-on-device", "privacy.epsilon=chosen", "privacy.epsilon"),
]
"""Preset, changes of the protocol or of other parts, and the key that is refused."""

NOT_DEPLOYED = [
    ("own-budgets-on-device", [], "privacy.epsilon"),
    ("pg-mf", ["early_stopping={patience: 2}"], "early_stopping"),
    ("fcf", [], "kind"),
    ("shuffled-on-device", [], "shuffler"),
    ("secagg-item-effects", ["aggregation.proofs=norm"], "aggregation.proofs"),
    ("secagg-item-effects", ["aggregation={kind: shuffle}"], "aggregation.kind"),
]


@pytest.mark.parametrize(("name", "changes", "key"), REFUSED)
def test_what_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, name: str, changes: str, key: str
) -> None:
    other = ("dataset", "split=", "binarization=", "evaluation.")
    overrides = [each if each.startswith(other) else f"protocol.{each}" for each in changes.split(" | ")]
    with pytest.raises(InputError) as caught:
        run(load(presets()[name], overrides), tmp_path / "run", page=False)
    where = caught.value.where.removeprefix("configuration: ").removeprefix("overrides ")
    assert where.removeprefix("protocol.") == key
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "changes", "key"), NOT_DEPLOYED)
def test_what_cannot_be_deployed_names_the_key(name: str, changes: list[str], key: str) -> None:
    with refused_at(key):
        load(name, [f"protocol.{change}" for change in changes]).protocol.check_deployed()
