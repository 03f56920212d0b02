"""The result of a run is a function of its configuration and seed: not of how the work is divided."""

from pathlib import Path
from typing import Any

import pytest

from tests.simulation.divisions import PROTOCOLS, Expected, bits, compare, divided, one_shot


@pytest.mark.parametrize("faults", [{}, {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}])
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_in_one_process(
    tmp_path: Path, tiny: dict[str, Any], expected: Expected, protocol: str, faults: dict[str, float]
) -> None:
    values = one_shot(tiny, protocol)
    values["simulation"] = {"faults": faults} if faults else {}
    if faults:
        assert any("malformed" in note for note in expected(values)["privacy"]["notes"])
    for workers, users_per_node in ((1, 1), (2, 7), (1, 7), (2, "auto")):
        folder = tmp_path / f"{users_per_node}-{workers}"
        compare(expected(values), bits(None, divided(values, "local", workers, users_per_node), folder))


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_in_shards(
    tmp_path: Path, tiny: dict[str, Any], expected: Expected, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    values = one_shot(tiny, protocol)
    whole = expected({**values, "simulation": {}})
    monkeypatch.setattr("clients.shards._RATINGS_PER_SHARD", 50)
    monkeypatch.setattr("strategies.roster._USERS_AT_ONCE", 10)
    values["simulation"] = {"devices_dir": str(tmp_path / "population")}
    # The second run finds the shards of the first.
    for users_per_node in (7, "all"):
        folder = tmp_path / str(users_per_node)
        compare(whole, bits(None, divided(values, "local", 1, users_per_node), folder))
    names = sorted(path.name for path in (tmp_path / "population").iterdir())
    assert names[0] == "ratings.json"
    assert len(names) > 4
    assert all(name.startswith("shard-") for name in names[1:])
