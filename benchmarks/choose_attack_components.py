"""Chooses how an attacker reads what it sees: how many components, and what it expects of users' activity.

    python benchmarks/choose_attack_components.py [--path ../shared/data/ml-100k]

Prints areas under the ROC curve for gender and age, and shares of people found by 10 and by 20 ratings, for
train ratings of MovieLens 100K (u2 to u5), from sets as they are and from sets that are hidden item by item.
Fails if another choice is better than that of dprec by more than 0.01 in the mean.
"""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
from validation import arguments

from dprec.accounting import PrivacyAccountant, PrivacyBudget
from dprec.arrays import offsets
from dprec.attacks import Attack, Attributes, Linkage, Transcript
from dprec.datasets import MovieLens100K
from dprec.mechanisms.thresholds import HiddenThreshold
from dprec.observations import Observations
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from dprec.reports import Profiles, Wanted

FOLDS, EPSILONS = ("u2", "u3", "u4", "u5"), (1.0, 2.0)
OPTIONS = {
    "dprec.attacks.attributes._COMPONENTS": (Attributes(), (25, 50, 100, 200)),
    "dprec.attacks.seen._SPREAD": (Linkage(known=(10, 20), unique=(10,)), (0.5, 0.8, 1.25, 2.0)),
}
"""Constants, what they are judged by, and their alternatives."""

TOLERANCE = 0.01


def hidden(train: Ratings, epsilon: float, seed: int) -> Observations:
    """Return reports that hide sets item by item."""
    family = HiddenThreshold().family(PrivacyBudget(epsilon=epsilon, per="cell"), train.scale, train.n_items)
    profiles, master = Profiles(train.counts, train.items, train.levels), seed.to_bytes(16, "little")
    draws = partial(DeviceDraws.of, master, 0, offsets(train.counts), train.items, train.values)
    reader = family.reader(train.n_users, Wanted(symbols=True))
    reader.take(np.arange(train.n_users), family.encode(profiles, draws))
    return reader.observations()


def games(path: str) -> list[SimpleNamespace]:
    """Return what is seen of every fold: the ratings, and hidden sets at every epsilon."""
    data, played = MovieLens100K(path=path), []
    for seed, fold in enumerate(FOLDS, start=1):
        train, _ = data.load_fold(fold)
        said = partial(Transcript, n_users=train.n_users, n_items=train.n_items, scale=train.scale)
        transcripts = [said(trusted=True)]
        transcripts += [said(reports=(hidden(train, epsilon, seed),)) for epsilon in EPSILONS]
        known = {"truth": train, "users": data.users_table(train.user_ids), "delta": 1e-6, "seed": seed}
        accountant = PrivacyAccountant(np.ones(train.n_users, dtype=np.bool_))
        played += [SimpleNamespace(transcript=each, accountant=accountant, **known) for each in transcripts]
    return played


def reached(attack: Attack, game: SimpleNamespace) -> float:
    """Return the mean of the areas, or of the shares of people found."""
    figures = attack.perform(game).figures.items()
    return float(np.mean([each.value for name, each in figures if "auc_" in name or "_at_" in name]))


def main() -> int:
    """Print all figures; return 1 if a constant does not stand."""
    path, _ = arguments(__doc__, ())
    played, verdict = games(path), 0
    for name, (attack, values) in OPTIONS.items():
        module, constant = name.rsplit(".", 1)
        own, means = getattr(sys.modules[module], constant), {}
        for value in values:
            with patch(name, value):
                found = np.array([reached(attack, game) for game in played]).reshape(len(FOLDS), -1)
            means[value] = float(found.mean())
            print(f"{constant} {value:g}: {found.mean(axis=0).round(4)}, {means[value]:.4f}", flush=True)
        behind = max(means.values()) - means[own]
        print(f"{constant} {own:g}: {-behind:+.4f} against the best")
        verdict |= behind > TOLERANCE
    return int(verdict)


if __name__ == "__main__":
    sys.exit(main())
