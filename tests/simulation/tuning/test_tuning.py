"""Settings chosen by trials: what is read, what is tried, what it costs, and how it goes on."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.splits import KFold
from simulation import load, run, tune
from simulation.execution import load_ratings
from simulation.tuning import running
from simulation.tuning.running import Judgement, Trial, validation_parts
from simulation.tuning.space import derived_space, read_space
from tests.refusals import refused_at

SPACE = """
protocol.completion.rank: {low: 1, high: 6}
protocol.mechanism.symbols: [4, 16, 256]
"""


class Untouchable:
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the test ratings are read: {name}")


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return path


@pytest.fixture
def quick(tiny: dict[str, Any]) -> dict[str, Any]:
    tiny["protocol"]["completion"]["iterations"] = 3
    return tiny


def lines(directory: Path) -> list[dict[str, str]]:
    with (directory / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_test_ratings_are_not_read(
    tmp_path: Path, quick: dict[str, Any], space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = tune([quick], tmp_path / "before", 2, space=space)
    monkeypatch.setattr(running, "load_ratings", lambda config: (load_ratings(config)[0], Untouchable()))
    (after,) = tune([quick], tmp_path / "after", 2, space=space)
    assert after.trials == before.trials


def test_validation_ratings_are_a_part_of_the_training_ratings(quick: dict[str, Any]) -> None:
    config = load(quick)
    train, _ = load_ratings(config)
    fit, judging = validation_parts(config, 3)
    cells = [
        set(zip(part.users.tolist(), part.items.tolist(), strict=True)) for part in (train, fit, judging)
    ]
    assert cells[1] | cells[2] == cells[0]
    assert not cells[1] & cells[2]
    assert judging.count == round(0.2 * train.count)
    assert validation_parts(config, 4)[1].items.tolist() != judging.items.tolist()


def test_a_validation_part_that_is_given_judges(tmp_path: Path, quick: dict[str, Any]) -> None:
    parts = KFold(folds=4).split(Synthetic(users=40, items=30, ratings=400), 1)
    (train, test), folder = parts, tmp_path / "parts"
    folder.mkdir()
    judging = np.arange(train.count) % 5 == 0
    for name, part in (
        ("train", train.select(~judging)),
        ("test", test),
        ("validation", train.select(judging)),
    ):
        part.to_csv(folder / f"{name}.csv")
    config = load(quick, [f"dataset={folder}"])
    fit, judged = validation_parts(config, 3)
    learned, tested = load_ratings(config)
    np.testing.assert_array_equal(fit.cells, learned.cells)
    assert (judged.count, tested.count, learned.count) == (60, 100, 240)
    assert not np.isin(judged.cells, [*learned.cells, *tested.cells]).any()
    summary = run(config, page=False).summary
    assert summary["dataset"]["test_ratings"] == 100
    assert any("validation part is in neither" in note for note in summary["privacy"]["notes"])
    # What another split divides are all ratings, so that no part of them is set aside.
    again = load(quick, [f"dataset={folder}", "split={kind: holdout}"])
    assert sum(part.count for part in load_ratings(again)) == 400
    assert validation_parts(again, 3)[1].count == 64


def test_every_configuration_gets_as_many_trials_and_the_best_can_be_run(
    tmp_path: Path, quick: dict[str, Any], space: Path
) -> None:
    other = {**quick, "name": "other", "protocol": {**quick["protocol"], "completion": {"kind": "svd"}}}
    tuned = tune([quick, other], tmp_path / "out", 3, space=space)
    table = lines(tmp_path / "out")
    assert [line["name"] for line in table] == ["tiny"] * 3 + ["other"] * 3
    assert [line["trial"] for line in table] == ["0", "1", "2"] * 2
    for each in tuned:
        assert each.start is not None
        assert each.best is not None
        values = [trial.judgement.value for trial in each.trials]
        assert each.best.judgement.value == min(value for value in values if value is not None)
        assert len({tuple(trial.settings.values()) for trial in each.trials}) > 1
        chosen = load(tmp_path / "out" / f"{each.config.name}.yaml")
        assert chosen.protocol.completion.rank == each.best.settings["protocol.completion.rank"]
        assert chosen.protocol.privacy == each.config.protocol.privacy
        assert run(chosen, page=False).summary["accuracy"]["rmse"] > 0


def test_more_trials_go_on_where_fewer_ended(tmp_path: Path, quick: dict[str, Any], space: Path) -> None:
    whole = tune([quick], tmp_path / "whole", 4, space=space)
    tune([quick], tmp_path / "parts", 2, space=space)
    with refused_at("parts"):
        tune([quick], tmp_path / "parts", 4, space=space)
    parts = tune([quick], tmp_path / "parts", 4, space=space, resume=True)
    assert parts[0].trials == whole[0].trials
    written = [(tmp_path / name / "trials.csv").read_bytes() for name in ("whole", "parts")]
    assert written[0] == written[1]
    with refused_at("tuning.yaml: seed"):
        tune([quick], tmp_path / "parts", 4, space=space, seed=1, resume=True)


def test_trials_on_private_ratings_are_added_up(tmp_path: Path, quick: dict[str, Any], space: Path) -> None:
    (tuned,) = tune([quick], tmp_path / "out", 2, space=space)
    per_rating, per_user = tuned.spent
    losses = [trial.judgement.epsilon_per_user for trial in tuned.trials]
    assert per_rating == pytest.approx(2.0)
    assert per_user == sum(loss for loss in losses if loss is not None) > 2
    lost = Trial(settings=tuned.trials[0].settings, judgement=Judgement(value=None, reason="too few replies"))
    quick["dataset"] = {"kind": "movielens-100k", "path": "unread"}
    note = replace(tuned, config=load(quick), trials=(*tuned.trials, lost)).privacy_note
    assert "its 2 trials spend ε = 2 per rating" in note
    assert "without 1 that did not end" in note


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("dataset.users: [1, 2]", "dataset.users.*a setting of the protocol"),
        ("protocol.completion.rank: {low: 3, high: 2}", "rank.high: 2; accepted: more than low, 3"),
        ("protocol.completion.rank: 3", "rank: 3; accepted: {low"),
        ("protocol.completion.rang: [1, 2]", "no such setting.*did you mean protocol.completion.rank"),
        ("{}", "no settings"),
    ],
)
def test_spaces_that_cannot_be_searched_are_refused(
    tmp_path: Path, quick: dict[str, Any], text: str, complaint: str
) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint):
        tune([quick], tmp_path / "out", 1, space=path)


def test_spaces_are_read_and_derived(space: Path, quick: dict[str, Any]) -> None:
    assert read_space(space, {"tiny": load(quick)}) == {
        "tiny": {
            "protocol.completion.rank": IntDistribution(1, 6),
            "protocol.mechanism.symbols": CategoricalDistribution((4, 16, 256)),
        }
    }
    assert derived_space(load(quick)) == {"protocol.completion.rank": IntDistribution(1, 8, log=True)}
    steps = derived_space(load("federated-mf"))
    assert steps["protocol.step.size"] == FloatDistribution(0.0125, 0.2, log=True)
    assert steps["protocol.step.momentum"].high <= 1
    assert {"protocol.rank", "protocol.ridge"} < set(steps)
    assert not any("epsilon" in key or "evaluate" in key for key in steps)
    with refused_at("nothing-sent"):
        derived_space(load("nothing-sent"))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"trials": 0}, "trials: 0; accepted: at least 1"),
        ({"seed": -1}, "seed: -1; accepted: at least 0"),
        ({"metric": "relative_error"}, "metric: .relative_error.; accepted: a column"),
        ({"metric": "ranking_ndcg_at_10"}, "which tiny does not have; accepted: rmse"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tmp_path: Path, quick: dict[str, Any], space: Path, changes: dict[str, Any], complaint: str
) -> None:
    asked = {"trials": 1, **changes}
    with pytest.raises(InputError, match=complaint):
        tune([quick], tmp_path / "out", space=space, **asked)
    with refused_at("tune"):
        tune([], tmp_path / "out", 1)
    with refused_at("tune"):
        tune([quick, quick], tmp_path / "out", 1, space=space)


def test_no_file_is_overwritten(tmp_path: Path, quick: dict[str, Any], space: Path) -> None:
    with refused_at("name"):
        tune([{**quick, "name": "tuning"}], tmp_path / "out", 1, space=space)
    for name in ("tiny.yaml", "trials.csv"):
        held = tmp_path / name.replace(".", "-") / name
        held.parent.mkdir()
        held.write_text("mine")
        with pytest.raises(InputError, match=rf"it holds {name} of something else"):
            tune([quick], held.parent, 1, space=space)
        assert held.read_text() == "mine"


def test_an_interrupted_tuning_says_how_to_go_on(
    tmp_path: Path, quick: dict[str, Any], space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("simulation.tuning.running.run_prepared", interrupted)
        with pytest.raises(KeyboardInterrupt) as ended:
            tune([quick], tmp_path / "out", 2, space=space)
    assert ended.value.__notes__ == [
        f"{tmp_path / 'out'} holds the trials that are finished; "
        f"the same command with --resume -o {tmp_path / 'out'} goes on"
    ]
    (tuned,) = tune([quick], tmp_path / "out", 2, space=space, resume=True)
    assert len(tuned.trials) == 2


@pytest.mark.parametrize(("column", "best"), [("rmse", 1), ("precision_at_k", 4)])
def test_the_best_trial_is_that_of_the_metric(
    tmp_path: Path, quick: dict[str, Any], column: str, best: int
) -> None:
    trials = [
        Trial(settings={"protocol.completion.rank": rank}, judgement=Judgement(value=rank / 10))
        for rank in (3, 1, 4, 2)
    ]
    config = load(quick)
    tuned = running._Study(config, derived_space(config), column, 0).tuned(trials, tmp_path)
    assert tuned.best is not None
    assert tuned.best.settings == {"protocol.completion.rank": best}
    assert tuned.path == tmp_path / f"{config.name}.yaml"
    assert f"rank: {best}" in tuned.path.read_text()
