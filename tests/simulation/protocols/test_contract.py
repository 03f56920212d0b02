"""Every preset runs, and leaves a run directory that keeps the contract."""

import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

from simulation import run

CLAIMED = {"x-map", "x-map-shrunk", "one-bit-output", "one-bit-output-effects"}
WITHOUT_PRIVACY = {
    "federated-mf",
    "global-mean",
    "item-average",
    "nx-map",
    "nx-map-shrunk",
    "one-bit-clear",
    "one-bit-clear-effects",
    "plain-mf",
    "user-average",
}
SHUFFLED = {"shuffled-on-device"}
TRUSTING = (
    CLAIMED
    | WITHOUT_PRIVACY
    | {"one-bit-objective", "one-bit-objective-effects", "dp-als", "dp-item-effects"}
)
SUMMING = {"secagg-als", "secagg-item-effects"}


def test_a_preset_runs_and_leaves_a_valid_directory(tmp_path: Path, preset: dict[str, Any]) -> None:
    result = run(preset, tmp_path, page=False)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["name"] == preset["name"]
    assert summary["protocol"] == preset["protocol"]["kind"]
    with gzip.open(tmp_path / "predictions.csv.gz", "rt", newline="") as file:
        predictions = list(csv.DictReader(file))
    assert len(predictions) == summary["dataset"]["test_ratings"]
    assert len(predictions) == 160 or preset["split"]["kind"] == "cold-start"
    low, high = summary["dataset"]["scale"]
    assert [low, high] == ([-1, 1] if "binarization" in preset else [1, 5])
    assert all(low <= float(row["prediction"]) <= high for row in predictions)
    assert all(low <= float(row["rating"]) <= high for row in predictions)
    with (tmp_path / "traffic.csv").open(newline="") as file:
        traffic = list(csv.DictReader(file))
    assert len(traffic) == summary["traffic"]["users"] == 40
    rounds = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text().splitlines()]
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
    main = "sign_accuracy" if "binarization" in preset else "rmse"
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
    # What is claimed is never charged: the ledger's losses are proved, or have no bound.
    assert privacy["epsilon_per_rating"] is None or privacy["status"] != "none"
    if privacy["status"] == "claimed" and privacy["epsilon_per_rating"] is not None:
        assert privacy["epsilon_per_rating"] > privacy["epsilon_claimed"]["per_rating"]
    private = preset["protocol"].get("privacy")
    if preset["protocol"]["kind"] == "trusted-server":
        assert summary["privacy"]["trusts_server"] is True
    elif private:
        promised = private["epsilon"]
        if private.get("per") == "user":
            composed = private.get("composition") == "pld"
            spent = summary["privacy"]["epsilon_composed" if composed else "epsilon_per_user"]["max"]
        else:
            spent = summary["privacy"]["epsilon_per_rating"]
        assert spent <= promised * (1 + 1e-6)
    assert result.summary["accuracy"] == summary["accuracy"]
