"""The field's usual test, one item left out among 99 others, against figures computed apart from dprec."""

from pathlib import Path

import numpy as np
import pytest

from simulation import run
from tests.paths import DATA

ML_100K = DATA / "ml-100k"
NEGATIVES, CUTOFF = 99, 10


@pytest.mark.skipif(not ML_100K.is_dir(), reason=f"{ML_100K} is absent; set DPREC_DATA to its folder")
@pytest.mark.thorough
@pytest.mark.parametrize("ties", ["last", "first"])
def test_popularity_and_ease_on_the_last_items_of_movielens_are_those_computed_apart(
    tmp_path: Path, ties: str
) -> None:
    users, items, _, times = np.loadtxt(ML_100K / "u.data", dtype=np.int64).T
    have = np.zeros((users.max() + 1, items.max() + 1))
    have[users, items] = 1
    # The last rating of a user; of equal times, the one on the last line, or on the first.
    order = np.lexsort((np.arange(users.size) * (1 if ties == "last" else -1), times))
    tested = {int(users[place]): int(items[place]) for place in order}
    train = have.copy()
    train[list(tested), list(tested.values())] = 0
    popularity, random = train.sum(axis=0), np.random.default_rng(1)
    gram = train.T @ train
    inverse = np.linalg.inv(gram + 100.0 * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    lines: list[str] = []
    ranks: dict[str, list[int]] = {"popularity": [], "ease": []}
    for user, item in sorted(tested.items()):
        scores = train[user] @ weights
        # None of nearly the same popularity, which devices are sent in few bits.
        apart = np.abs(popularity - popularity[item]) > 0.25 * popularity[item]
        others = (have[user] == 0) & (popularity > 0) & apart
        drawn = np.sort(random.choice(np.flatnonzero(others), NEGATIVES, replace=False))
        lines.append(f"({user},{item})\t" + "\t".join(map(str, drawn)) + "\n")
        for name, own in (("popularity", popularity), ("ease", scores)):
            ranks[name].append(int((own[drawn] > own[item]).sum()))
    (tmp_path / "test.negative").write_text("".join(lines))
    ranking = {"candidates": "sampled", "negatives": str(tmp_path / "test.negative"), "cutoffs": [CUTOFF]}
    for name, own in ranks.items():
        found = run(
            name,
            dataset={"kind": "movielens-100k", "path": str(ML_100K), "positive": ">= 1"},
            split={"kind": "leave-one-out", "ties": ties},
            evaluation={"ranking": ranking},
            simulation={"backend": "local"},
            overrides=["protocol.ridge=100.0"] if name == "ease" else [],
        ).summary["accuracy"]["sampled_ranking"]
        places = np.array(own)
        hits = places < CUTOFF
        assert found["users"] == places.size == 943
        assert found["hit_rate_at"]["10"] == pytest.approx(hits.mean(), abs=1e-9)
        gains = np.where(hits, 1 / np.log2(places + 2), 0.0)
        assert found["ndcg_at"]["10"] == pytest.approx(gains.mean(), abs=1e-9)
