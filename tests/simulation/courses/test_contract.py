"""Every preset runs, leaves a valid run directory, and has the same bits however its users are divided."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation.pages.drawing import Plot, Rendered, to_figure
from simulation.pages.run_page import run_page
from simulation.storage.run_files import read_run
from tests.simulation.divisions import bits, compare, divided, written

CLAIMED = {
    *("x-map", "x-map-shrunk", "one-bit-output"),
    *("sampled-negatives", "personalised-sampling", "dpsr"),
}
WITHOUT_PRIVACY = {
    "colr",
    "ease",
    "fedavg-mf",
    "federated-mf",
    "fedmf",
    "fedncf",
    "fedrecon",
    "fedncf-published",
    "fedrep",
    "global-mean",
    "ials",
    "item-average",
    "lightgcn-free",
    "nx-map",
    "one-bit-clear",
    "pfedrec",
    "plain-mf",
    "popularity",
    "popularity-by-content",
    "privirec",
    "user-average",
}
SHUFFLED = {"pairs-in-blanket", "shuffled-on-device"}
TRUSTING = (
    (CLAIMED - {"sampled-negatives", "personalised-sampling", "dpsr"})
    | (WITHOUT_PRIVACY - {"privirec"})
    | {"one-bit-objective", "dp-als", "dp-cmf", "dp-item-effects"}
    | {"dp-ials", "fcf", "gram-central"}
)
SUMMING = {
    *("sums-on-device", "secagg-als", "secagg-item-effects"),
    *("gram-secagg", "gram-with-groups", "public-start", "popularity-secagg", "privirec"),
}
NOISY_SUMS = (SUMMING - {"privirec"}) | {
    *("dp-als", "dp-cmf", "dp-item-effects", "dp-ials", "gram-central"),
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
    files = read_run(finished(preset))
    summary, traffic, rounds = files.summary, files.traffic, files.rounds
    assert (summary.name, summary.protocol) == (preset["name"], preset["protocol"]["kind"])
    lists, signs = "positive" in preset["dataset"], "binarization" in preset
    predictions = files.predictions["prediction"]
    assert predictions.size == summary.dataset.test_ratings
    if preset["split"]["kind"] == "holdout" and "schedule" not in preset and not lists:
        assert predictions.size == 160
    assert np.isfinite(predictions).all()
    if lists:
        assert summary.dataset.scale is None
    else:
        low, high = (-1, 1) if signs else (1, 5)
        assert tuple(summary.dataset.scale or ()) == (low, high)
        for column in ("prediction", "rating"):
            assert low <= files.predictions[column].min() <= files.predictions[column].max() <= high
    main = "sign_accuracy" if signs else "ndcg_at_10" if lists else "rmse"
    assert math.isfinite(getattr(summary.accuracy, main))
    assert traffic["messages"].size == summary.traffic.users == 40
    assert [line.round for line in rounds] == list(range(1, summary.traffic.rounds + 1))
    for way in ("uplink", "downlink"):
        told = getattr(summary.traffic, way)
        for size in (f"{way}_payload_bytes", f"{way}_message_bytes"):
            total = getattr(told, size.partition("_")[2])
            assert total == traffic[size].sum() >= sum(getattr(line, size) for line in rounds)
        assert told.message_bytes >= told.payload_bytes


def test_a_preset_is_charged_what_it_promises(finished: Any, preset: dict[str, Any]) -> None:
    privacy, name = json.loads((finished(preset) / "summary.json").read_text())["privacy"], preset["name"]
    status = "claimed" if name in CLAIMED else "none" if name in WITHOUT_PRIVACY else "proved"
    others = "shuffle" if name in SHUFFLED else "secure-aggregation" if name in SUMMING else "local"
    trust = "central" if name in TRUSTING else others
    assert (privacy["status"], privacy["trust"], privacy["trusts_server"]) == (
        status,
        trust,
        name in TRUSTING,
    )
    assert (privacy["epsilon_claimed"]["per_rating"] is None) == (name not in CLAIMED)
    assert (privacy["tau"] is not None) == (name in NOISY_SUMS)
    assert privacy["notes"]
    # What is claimed is never charged: the ledger's losses are proved, or have no bound.
    assert privacy["epsilon_per_rating"] is None or status != "none"
    if status == "claimed" and privacy["epsilon_per_rating"] is not None:
        beyond = privacy["epsilon_per_rating"] - privacy["epsilon_claimed"]["per_rating"]
        # Users with the largest epsilon of all are claimed to lose what a seen sample loses.
        assert beyond >= 0 if name == "personalised-sampling" else beyond > 0
    budget = preset["protocol"].get("privacy")
    if budget and name not in CLAIMED and preset["protocol"]["kind"] != "trusted-server":
        own = budget["epsilon"]
        composed = "epsilon_composed" if budget.get("composition") == "pld" else "epsilon_per_user"
        per_user = budget.get("per") == "user"
        spent = privacy[composed]["max"] if per_user else privacy["epsilon_per_rating"]
        assert spent <= (max(own) if isinstance(own, dict) else own) * (1 + 1e-6)


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
