"""simulation.seed: os draws from the operating system, and a run that was interrupted goes on with that."""

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from simulation import run
from simulation.configuration.models import parse_config
from simulation.storage.directories import ENTROPY
from simulation.storage.run_directory import Checkpoints, RunDirectory


@pytest.fixture
def rounds(tiny: dict[str, Any]) -> dict[str, Any]:
    """Return a private run of three rounds that draws from the operating system."""
    return {
        **tiny,
        "protocol": {
            "kind": "iterative",
            "gradient": {"kind": "one-bit"},
            "privacy": {"epsilon": 3.0, "per": "user"},
            "rounds": 3,
            "rank": 2,
        },
        "simulation": {"backend": "local", "seed": "os"},
    }


class Killed(BaseException):
    """Stands for the end of the process."""


def test_no_two_runs_are_alike(tiny: dict[str, Any]) -> None:
    seeded, one, two = (
        run({**tiny, "simulation": {"backend": "local", "seed": seed}}).predictions
        for seed in ("run", "os", "os")
    )
    assert (one["prediction"] != two["prediction"]).any()
    # The experiment is the same: the users and items that are tested.
    for key in ("user", "item"):
        assert one[key].tolist() == seeded[key].tolist()


def test_an_interrupted_run_repeats_what_was_sent(
    tmp_path: Path, rounds: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", _dying(Checkpoints.save))
        with pytest.raises(Killed):
            run(rounds, tmp_path / "killed", page=False)
    kept = tmp_path / "killed" / ENTROPY
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    # The same without an interruption.
    RunDirectory.claim(tmp_path / "alone", parse_config(rounds))
    shutil.copy(kept, tmp_path / "alone" / ENTROPY)
    for name in ("killed", "alone"):
        run(rounds, tmp_path / name, resume=True, page=False)
        assert not (tmp_path / name / ENTROPY).exists()
    for name in ("predictions.csv.gz", "traffic.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def _dying(save: Any) -> Any:
    def saved_once(self: Any, state: Any) -> None:
        if len(state.records) == 2:
            raise Killed
        save(self, state)

    return saved_once
