"""simulation.seed: os draws from the operating system, and a run that was interrupted goes on with that."""

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from simulation import compare, run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import dump_yaml
from simulation.storage.directories import ENTROPY
from simulation.storage.run_directory import Checkpoints, RunDirectory
from tests.refusals import refused_at


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
        if state.rounds_done == 2:
            raise Killed
        save(self, state)

    return saved_once


def test_a_damaged_file_is_refused(tmp_path: Path, rounds: dict[str, Any]) -> None:
    directory = RunDirectory.claim(tmp_path / "run", parse_config(rounds))
    first = directory.entropy()
    assert directory.entropy() == first
    (tmp_path / "run" / ENTROPY).write_text(first.hex()[:-1])
    with pytest.raises(InputError, match=ENTROPY):
        run(rounds, tmp_path / "run", resume=True, page=False)


def test_a_run_goes_on_with_what_it_began_with(tmp_path: Path, rounds: dict[str, Any]) -> None:
    RunDirectory.claim(tmp_path / "run", parse_config(rounds))
    rounds["simulation"]["seed"] = "run"
    with refused_at("config.yaml: simulation.seed"):
        run(rounds, tmp_path / "run", resume=True, page=False)


@pytest.mark.parametrize(
    ("seed", "words"), [("run", "knows or guesses the seed"), ("os", "operating system, which was not kept")]
)
def test_the_notes_say_what_determinism_means(tiny: dict[str, Any], seed: str, words: str) -> None:
    tiny["simulation"]["seed"] = seed
    assert words in " ".join(run(tiny).summary["privacy"]["notes"])


def test_comparisons_accept_it(tmp_path: Path, tiny: dict[str, Any]) -> None:
    (tmp_path / "tiny.yaml").write_text(dump_yaml(tiny))
    values = {
        "name": "drawn",
        **{key: tiny[key] for key in ("dataset", "split")},
        "seeds": [1],
        "epsilons": [1.0],
        "protocols": ["tiny"],
        "baselines": False,
        "simulation": {"backend": "local", "seed": "os"},
    }
    (tmp_path / "drawn.yaml").write_text(dump_yaml(values))
    compare(tmp_path / "drawn.yaml", tmp_path / "out", page=False)
    (cell,) = (tmp_path / "out" / "cells").iterdir()
    assert "operating system" in (cell / "summary.json").read_text()
    assert not (cell / ENTROPY).exists()
