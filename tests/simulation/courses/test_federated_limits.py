"""Federated models at the ends of their settings, after an interruption, under attack and in an audit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import Poisson, largest_sampled_distance, sampled_gaussian_epsilon
from dprec.errors import InputError, SettingError
from dprec.federated import LARGEST_CLIP, LEAST_CLIP, STEPS, AdaptiveClip, ContractError, UpdateCode, begun
from simulation import audit, run
from simulation.storage.run_directory import Checkpoints
from simulation.storage.run_files import read_run
from tests.faulty_models import Personal
from tests.make import ON_THIS_MACHINE, STARS, small_run

BUDGET = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}


def values(**protocol: Any) -> dict[str, Any]:
    own = {"kind": "federated", "model": {"kind": "tests.faulty_models:Personal"}, "rounds": 3}
    return small_run({**own, "privacy": BUDGET, **protocol}, 40, 12, 300, simulation=ON_THIS_MACHINE)


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize(
    "protocol",
    [
        {"trust": "local", "sampling": {"rate": 0.6}, "adaptive_clip": {}},
        {"adjacency": "replace-one"},
        {"sampling": {"rate": 0.05}, "adaptive_clip": {}},
    ],
)
def test_an_interrupted_run_goes_on_to_the_figures_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: dict[str, Any], after: int
) -> None:
    config, save = values(**protocol), Checkpoints.save

    def interrupted(checkpoints: Checkpoints, state: Any) -> None:
        save(checkpoints, state)
        if len(state.records) == after:
            raise KeyboardInterrupt

    whole = run(config, page=False)
    monkeypatch.setattr(Checkpoints, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path, page=False)
    monkeypatch.undo()
    again = run(config, tmp_path, resume=True, page=False)
    for name in ("epsilon_composed", "epsilon_per_user"):
        np.testing.assert_array_equal(again.traffic[name], whole.traffic[name])
    for one, other in zip(whole.rounds, again.rounds, strict=True):
        for name in ("epsilon", "accuracy", "observed"):
            assert one[name] == other[name]


@pytest.mark.parametrize(("clip", "power"), [(LEAST_CLIP, -1e300), (1.0, -1e300), (1.0, 1e300)])
def test_a_clip_that_adapts_stays_among_those_that_devices_accept(clip: float, power: float) -> None:
    share = 1.0 if power < 0 else 0.0
    moved = AdaptiveClip(step=abs(power)).moved(clip, share)
    code = UpdateCode(((1,),), clip=moved, deviation=0.0, bit=0.05)
    read, _ = code.unpack(code.pack((np.zeros(1),)))
    assert read.clip == moved == pytest.approx(LEAST_CLIP if power < 0 else LARGEST_CLIP, rel=1e-7)


def test_the_faintest_bit_is_still_a_step() -> None:
    assert AdaptiveClip(noise=1000.0).bit * STEPS >= 1
    with pytest.raises(SettingError, match="noise"):
        AdaptiveClip(noise=1001.0)


@pytest.mark.parametrize("rate", [1e-300, 1e-30, 3e-6])
def test_whoever_is_hardly_ever_drawn_loses_nothing_but_with_delta(rate: float) -> None:
    assert sampled_gaussian_epsilon(1e3, Poisson(rate), 3, 1e-5) == 0.0
    assert largest_sampled_distance(1.0, 1e-5, Poisson(rate), 3) >= 1e6
    # One drawn a little more often is not covered by delta.
    assert sampled_gaussian_epsilon(1e3, Poisson(4e-6), 3, 1e-5) > 1.0


@pytest.mark.parametrize("loss", [np.inf, -np.inf, 1.7e308])
def test_a_run_whose_losses_are_too_large_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    honest = Personal.update
    monkeypatch.setattr(Personal, "update", lambda *given: honest(*given)._replace(loss=loss))
    run(values(rounds=1), tmp_path, page=False)
    (record,) = read_run(tmp_path).rounds
    told = json.loads((tmp_path / "rounds.jsonl").read_text())["observed"]
    assert told == record.observed
    assert ("loss" in told) is bool(np.isfinite(loss))


@pytest.mark.thorough
@pytest.mark.parametrize("sampling", [{"rate": 0.2}, {"clients": 5}])
def test_what_devices_send_is_audited_whoever_is_asked(sampling: dict[str, Any]) -> None:
    assert audit(values(trust="local", sampling=sampling, adaptive_clip={}), trials=400).holds


@pytest.mark.parametrize("trust", ["central", "local"])
def test_rounds_are_attacked_where_a_clip_adapts(trust: str) -> None:
    attacks = [{"kind": "rounds", "made_up": 50}]
    result = run({**values(trust=trust, adaptive_clip={}), "attacks": attacks}, page=False)
    reached = result.summary["attacks"]["rounds_membership_auc"]["value"]
    assert 0.2 < reached <= 1.0


def test_numbers_by_themselves_can_be_kept_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Personal.update

    def update(model: Any, parameters: Any, profile: Any, random: Any, state: Any) -> Any:
        level, rounds = state
        made = honest(model, parameters, profile, random, (level,))
        return made._replace(state=(*made.state, rounds + 1), loss=float(rounds))

    monkeypatch.setattr(Personal, "begin", lambda *_: (np.zeros(1), 0))
    monkeypatch.setattr(Personal, "update", update)
    monkeypatch.setattr(Personal, "predict", lambda model, parameters, profile, state: parameters[0])
    assert [each["observed"]["loss"] for each in run(values(), page=False).rounds] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("kept", [np.array([None]), np.array(["x"]), {"a": 1}])
def test_what_a_device_keeps_is_numbers(monkeypatch: pytest.MonkeyPatch, kept: Any) -> None:
    monkeypatch.setattr(Personal, "begin", lambda *_: kept if isinstance(kept, dict) else (kept,))
    with pytest.raises(ContractError) as caught:
        begun(Personal(), 3, STARS, np.zeros((2, 2), dtype=np.uint64))
    assert caught.value.accepted == "numbers"


@pytest.mark.parametrize(("name", "broken"), [("parameter 0", np.nan), ("clip", 0.0), ("clip", np.inf)])
def test_a_checkpoint_that_no_server_wrote_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, broken: float
) -> None:
    config, save = values(adaptive_clip={}), Checkpoints.save

    def interrupted(checkpoints: Checkpoints, state: Any) -> None:
        save(checkpoints, state)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path, page=False)
    path = tmp_path / "checkpoint.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    (place,) = (each for each in arrays if each.endswith(name))
    arrays[place] = np.full_like(arrays[place], broken)
    np.savez(path, **arrays)
    monkeypatch.undo()
    with pytest.raises(InputError) as caught:
        run(config, tmp_path, resume=True, page=False)
    assert caught.value.where == str(path)
