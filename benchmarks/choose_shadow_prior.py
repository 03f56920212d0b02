"""Holds the shrinkage of shadow models' covariances against others, by the users whom the attack finds.

    python benchmarks/choose_shadow_prior.py [--path ../shared/data/ml-100k]

The attack is on what `one-bit-on-device` and `gram-central` send everybody about the train ratings of
MovieLens 100K. Each is run once in so many pairs, and the same statistics are judged with every shrinkage.
Prints true positives at 1 % false positives; fails if another shrinkage finds more than 0.02 more of the
users in the mean.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dprec.arrays import Bools, Floats
from dprec.attacks import Attacked, Figure, Game, ShadowModels, shadow
from dprec.attacks.bounds import Roc
from dprec.attacks.traces import Targets
from simulation import load, run

PRIORS = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0)
PAIRS = (6, 10, 20)
PRESETS = ("one-bit-on-device", "gram-central")
TOLERANCE = 0.02


@dataclass(frozen=True, kw_only=True)
class Observing(ShadowModels):
    """Keeps the statistics."""

    kept: ClassVar[list[tuple[Floats, Bools]]] = []

    def perform(self, game: Game) -> Attacked:
        """Run the protocol again, and judge nothing."""
        targets = Targets.drawn(game.truth, self.users, game.seed)
        present = shadow.halves(game.truth.n_users, self.pairs, game.seed)
        self.kept.append((shadow.observed(game, targets, present), present[:, targets.users]))
        return Attacked({name: Figure(None) for name in self.figures()})


def found(statistics: Floats, present: Bools, prior: float) -> float:
    """Return the true positives at 1 % false positives."""
    shadow.PRIOR_RUNS = prior
    evidence = shadow.log_likelihood_ratios(statistics, present).ravel()
    return float(Roc.of_scores(evidence, present.ravel(), ~present.ravel()).at(0.01))


def main() -> int:
    """Print the table; return 1 if another shrinkage is better."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--path", default="../shared/data/ml-100k")
    path, own = parser.parse_args().path, shadow.PRIOR_RUNS
    table = []
    for preset in PRESETS:
        positive = ", positive: '>= 4'" if preset == "gram-central" else ""
        data = f"dataset={{kind: movielens-100k, path: {path}{positive}}}"
        config = load(preset, [data, "simulation.backend=local"])
        run(config.model_copy(update={"attacks": (Observing(pairs=max(PAIRS)),)}))
        statistics, present = Observing.kept[-1]
        for pairs in PAIRS:
            runs = slice(2 * pairs)
            table.append([found(statistics[:, runs], present[runs], prior) for prior in PRIORS])
            print(
                preset,
                pairs,
                *(f"{prior:g}: {each:.4f}" for prior, each in zip(PRIORS, table[-1], strict=True)),
            )
    means = np.mean(table, axis=0)
    print("mean", *(f"{prior:g}: {each:.4f}" for prior, each in zip(PRIORS, means, strict=True)))
    return int(means.max() > means[PRIORS.index(own)] + TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
