"""Every preset runs, leaves a valid run directory, and has the same bits however its users are divided."""

import csv
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulation.pages.drawing import Plot, Rendered, to_figure
from simulation.pages.run_page import run_page
from simulation.storage.run_files import read_run
from tests.simulation.divisions import bits, compare, divided, written

CLAIMED = {
    *("x-map", "x-map-shrunk", "one-bit-output", "one-bit-output-effects"),
    *("sampled-negatives", "personalised-sampling"),
}
WITHOUT_PRIVACY = {
    "ease",
    "federated-mf",
    "global-mean",
    "ials",
    "item-average",
    "nx-map",
    "nx-map-shrunk",
    "one-bit-clear",
    "one-bit-clear-effects",
    "plain-mf",
    "popularity",
    "popularity-by-content",
    "user-average",
}
SHUFFLED = {"pairs-in-blanket", "shuffled-on-device"}
TRUSTING = (
    (CLAIMED - {"sampled-negatives", "personalised-sampling"})
    | WITHOUT_PRIVACY
    | {"one-bit-objective", "one-bit-objective-effects", "dp-als", "dp-item-effects"}
    | {"dp-ials", "fcf", "gram-central"}
)
SUMMING = {
    *("best-secret-set", "secagg-als", "secagg-item-effects"),
    *("best-list", "gram-secagg", "public-start", "popularity-secagg", "popularity-by-content-secagg"),
}
NOISY_SUMS = SUMMING | {
    *("dp-als", "dp-item-effects", "dp-ials", "gram-central"),
    *("gram-local", "popularity-local", "pairs-in-blanket"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Path]:
    """Return what runs a preset in one process, once for all tests of it."""
    known: dict[str, Path] = {}

    def directory(preset: dict[str, Any]) -> Path:
        if preset["name"] not in known:
            known[preset["name"]] = tmp_path_factory.mktemp("preset") / "run"
            bits(None, divided(preset, "local", 1, "all"), known[preset["name"]])
        return known[preset["name"]]

    return directory


def test_a_preset_runs_and_leaves_a_valid_directory(finished: Any, preset: dict[str, Any]) -> None:
    folder = finished(preset)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["name"] == preset["name"]
    assert summary["protocol"] == preset["protocol"]["kind"]
    with gzip.open(folder / "predictions.csv.gz", "rt", newline="") as file:
        predictions = list(csv.DictReader(file))
    assert len(predictions) == summary["dataset"]["test_ratings"]
    lists = "positive" in preset["dataset"]
    split = preset["split"]["kind"] == "holdout" and "schedule" not in preset
    assert len(predictions) == 160 or lists or not split
    if lists:
        assert summary["dataset"]["scale"] is None
        assert all(row["rating"] == "" and math.isfinite(float(row["prediction"])) for row in predictions)
    else:
        low, high = summary["dataset"]["scale"]
        assert [low, high] == ([-1, 1] if "binarization" in preset else [1, 5])
        assert all(low <= float(row["prediction"]) <= high for row in predictions)
        assert all(low <= float(row["rating"]) <= high for row in predictions)
    with (folder / "traffic.csv").open(newline="") as file:
        traffic = list(csv.DictReader(file))
    assert len(traffic) == summary["traffic"]["users"] == 40
    rounds = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in rounds] == list(range(1, len(rounds) + 1))
    assert len(rounds) == summary["traffic"]["rounds"]
    for direction in ("uplink", "downlink"):
        for size in ("payload", "message"):
            total = summary["traffic"][direction][f"{size}_bytes"]
            assert total == sum(int(row[f"{direction}_{size}_bytes"]) for row in traffic)
            assert total >= sum(line[direction][f"{size}_bytes"] for line in rounds)
        assert (
            summary["traffic"][direction]["message_bytes"] >= summary["traffic"][direction]["payload_bytes"]
        )
    main = "sign_accuracy" if "binarization" in preset else "ndcg_at_10" if lists else "rmse"
    assert math.isfinite(summary["accuracy"][main])
    assert summary["privacy"]["notes"]
    privacy, name = summary["privacy"], preset["name"]
    assert privacy["status"] == (
        "claimed" if name in CLAIMED else "none" if name in WITHOUT_PRIVACY else "proved"
    )
    others = "shuffle" if name in SHUFFLED else "secure-aggregation" if name in SUMMING else "local"
    assert privacy["trust"] == ("central" if name in TRUSTING else others)
    assert privacy["trusts_server"] is (name in TRUSTING)
    assert (privacy["epsilon_claimed"]["per_rating"] is None) == (name not in CLAIMED)
    assert (privacy["tau"] is not None) == (name in NOISY_SUMS)
    # What is claimed is never charged: the ledger's losses are proved, or have no bound.
    assert privacy["epsilon_per_rating"] is None or privacy["status"] != "none"
    if privacy["status"] == "claimed" and privacy["epsilon_per_rating"] is not None:
        beyond = privacy["epsilon_per_rating"] - privacy["epsilon_claimed"]["per_rating"]
        # Users with the largest epsilon of all are claimed to lose what a seen sample loses.
        assert beyond >= 0 if name == "personalised-sampling" else beyond > 0
    private = preset["protocol"].get("privacy")
    if preset["protocol"]["kind"] == "trusted-server":
        assert summary["privacy"]["trusts_server"] is True
    elif private and name not in CLAIMED:
        own = private["epsilon"]
        promised = max(own) if isinstance(own, dict) else own
        if private.get("per") == "user":
            composed = private.get("composition") == "pld"
            spent = summary["privacy"]["epsilon_composed" if composed else "epsilon_per_user"]["max"]
        else:
            spent = summary["privacy"]["epsilon_per_rating"]
        assert spent <= promised * (1 + 1e-6)


def drawn(plot: Plot) -> Rendered:
    """Draw a figure without writing it, which would take longer than the run."""
    to_figure(plot)
    return Rendered(plot, "<svg/>", "<svg/>")


@pytest.mark.thorough
def test_a_presets_bits_do_not_depend_on_the_division(
    tmp_path: Path, finished: Any, preset: dict[str, Any]
) -> None:
    whole = written(finished(preset))
    for users_per_node in (1, 7):
        folder = tmp_path / str(users_per_node)
        compare(whole, bits(None, divided(preset, "local", 2, users_per_node), folder))
    assert preset["name"] in run_page(read_run(finished(preset)), "", None, drawn)
