"""One fit of LensKit's biased ALS, run by benchmarks/fit.py with the interpreter of LensKit's environment.

    python benchmarks/lenskit_als.py RATINGS.npz RANK

Writes predictions.npy beside the ratings, and prints wall and processor seconds as JSON. Settings are
LensKit's defaults, but for the rank. A fit of a few ratings comes first, so that no time of loading or
compiling is counted.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def trained(cells: dict[str, Any], rank: int) -> tuple[Any, float, float]:
    pandas, als, data = (importlib.import_module(name) for name in ("pandas", "lenskit.als", "lenskit.data"))
    named = {"user_id": cells["users"], "item_id": cells["items"], "rating": cells["values"]}
    dataset = data.from_interactions_df(pandas.DataFrame(named))
    scorer = als.BiasedMFScorer(embedding_size=rank)
    start, start_cpu = time.perf_counter(), time.process_time()
    scorer.train(dataset)
    return scorer, time.perf_counter() - start, time.process_time() - start_cpu


def main() -> int:
    path, rank = Path(sys.argv[1]), int(sys.argv[2])
    ratings = dict(np.load(path))
    cells = {name: ratings[name] for name in ("users", "items", "values")}
    trained({name: values[:1000] for name, values in cells.items()}, rank)
    scorer, seconds, processor = trained(cells, rank)
    item_list = importlib.import_module("lenskit.data").ItemList
    users, items = ratings["test_users"], ratings["test_items"]
    first = np.flatnonzero(np.diff(users, prepend=-1))
    predictions = [
        scorer(query=int(users[rows.start]), items=item_list(item_ids=items[rows])).scores()
        for rows in map(slice, first, [*first[1:], users.size])
    ]
    np.save(path.with_name("predictions.npy"), np.concatenate(predictions))
    print(json.dumps({"seconds": seconds, "processor": processor}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
