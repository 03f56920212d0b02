"""ledger.npz: what comes back is the history that the run charged, or a clear error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.errors import InputError
from dprec.privacy.ledger import PrivacyLedger
from dprec.privacy.ledger_arrays import ledger_arrays
from dprec.randomness import generator
from simulation import run
from simulation.storage.run_files import read_ledger, write_ledger


def contents(ledger: PrivacyLedger) -> dict[str, tuple[str, Any]]:
    return {name: (str(array.dtype), array.tolist()) for name, array in ledger_arrays(ledger).items()}


def ledger_of(users: int, rounds: int, seed: int) -> PrivacyLedger:
    draws = generator(seed, "ledger")
    ledger = PrivacyLedger(rated=draws.random(users) < 0.8)
    by_user = draws.random(users)
    for round_index in range(1, rounds + 1):
        ledger.charge(round_index, draws.random(users) < 0.6, 0.1 * round_index, by_user)
    return ledger


@settings(deadline=None)
@given(users=st.integers(1, 20), rounds=st.integers(0, 5), seed=st.integers(0, 1000))
def test_the_history_comes_back(
    tmp_path_factory: pytest.TempPathFactory, users: int, rounds: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    written = ledger_of(users, rounds, seed)
    write_ledger(folder, written)
    assert contents(read_ledger(folder)) == contents(written)


def test_many_rounds_are_a_small_file(tmp_path: Path) -> None:
    users, rounds = 10_000, 100
    ledger = PrivacyLedger(rated=np.ones(users, dtype=np.bool_))
    for round_index in range(1, rounds + 1):
        ledger.charge(round_index, generator(round_index, "asked").random(users) < 0.5, 0.1, 0.2)
    write_ledger(tmp_path, ledger)
    bits = users * rounds / 8
    assert (tmp_path / "ledger.npz").stat().st_size < 1.1 * bits


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_run_keeps_its_history(tmp_path: Path, tiny: dict[str, Any], rounds: int) -> None:
    if rounds > 1:
        gradient = {"kind": "one-bit"}
        budget = {"epsilon": 3.0, "per": "user"}
        tiny["protocol"] = {
            "kind": "iterative", "privacy": budget, "gradient": gradient, "rounds": rounds, "rank": 2,
        }  # fmt: skip
    result = run(tiny, tmp_path / "run", page=False)
    ledger = read_ledger(tmp_path / "run")
    assert [charge.round_index for charge in ledger.history] == list(range(1, rounds + 1))
    assert contents(ledger) == contents(result.privacy)
    assert ledger.per_rating.tobytes() == result.traffic["epsilon_per_rating"].tobytes()
    assert ledger.per_user.tobytes() == result.traffic["epsilon_per_user"].tobytes()
    again = run(tiny, tmp_path / "run", resume=True, page=False)
    assert contents(again.privacy) == contents(ledger)


def test_without_the_file_a_finished_run_is_not_complete(tmp_path: Path, tiny: dict[str, Any]) -> None:
    run(tiny, tmp_path, page=False)
    (tmp_path / "ledger.npz").unlink()
    with pytest.raises(InputError, match=r"ledger\.npz: No such file"):
        run(tiny, tmp_path, resume=True, page=False)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("rated", np.ones(8, dtype=np.bool_)),
        ("rated", np.ones(9)),
        ("users", np.array([7])),
        ("losses", np.zeros((1, 4))),
        ("per_user_row", np.zeros(0, dtype=np.int64)),
        ("per_rating", np.zeros((1, 2))),
        ("per_rating", np.array(["a"])),
    ],
)
def test_arrays_of_no_ledger_are_refused(tmp_path: Path, name: str, array: Any) -> None:
    arrays = ledger_arrays(ledger_of(9, 1, 0))
    np.savez(tmp_path / "ledger.npz", allow_pickle=False, **{**arrays, name: array})
    with pytest.raises(InputError) as caught:
        read_ledger(tmp_path)
    assert caught.value.where == str(tmp_path / "ledger.npz")


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    write_ledger(tmp_path, ledger_of(9, 2, 0))
    path = tmp_path / "ledger.npz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="truncated or damaged"):
        read_ledger(tmp_path)
