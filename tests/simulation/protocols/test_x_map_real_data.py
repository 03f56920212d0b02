"""X-Map on the distributed ratings: what AlterEgos are worth to users who are new to a domain."""

from typing import Any

import pytest

from simulation import load, run
from tests.paths import CONFIGS, DATA

DATASETS = {
    "douban": f"{{kind: douban, path: {DATA / 'douban'}, source: book, target: music}}",
    "ml-100k": f"{{kind: movielens-genres, path: {DATA / 'ml-100k'}}}",
}


def summary(name: str, preset: str, **changes: Any) -> dict[str, Any]:
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name} in {DATA}; set DPREC_DATA to the folder that holds it")
    overrides = [
        f"dataset={DATASETS[name]}",
        "split={kind: cold-start, test_fraction: 0.2}",
        "simulation.backend=local",
        *(f"{key}={value}" for key, value in changes.items()),
    ]
    return run(load(CONFIGS / f"{preset}.yaml", overrides)).summary


@pytest.mark.parametrize("name", DATASETS)
def test_alter_egos_beat_the_items_average(name: str) -> None:
    cold = summary(name, "item-average")["accuracy"]["mae"]
    found = summary(name, "nx-map-shrunk")
    assert found["accuracy"]["mae"] <= cold
    # Nearly every user straddles, so that nearly every item has an edge into the other domain.
    layers = found["completion_diagnostics"]["layers"]
    assert all(counts["BB"] > 10 * (counts["NB"] + counts["NN"]) for counts in layers.values())
