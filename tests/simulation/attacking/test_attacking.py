"""A run that is attacked: the same run, with what its attacks reached beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec import formats
from dprec.attacks import Attack, Attacked, Game
from dprec.errors import InputError
from simulation import compare, load, run
from simulation.execution import load_ratings
from simulation.storage.columns import read_rows
from simulation.storage.summary import read_summary
from tests.refusals import refused_at
from tests.simulation.attacking.games import SPYING, Spying
from tests.simulation.conftest import presets

ATTACKED = {"attacks": [{"kind": SPYING}]}
ON_DEVICE = {
    "kind": "one-shot",
    "privacy": {"epsilon": 1.0},
    "mechanism": {"kind": "randomized-response"},
    "completion": {"kind": "item-average"},
    "personalization": "on-device",
}


def game_of(values: dict[str, Any]) -> Game:
    run({**values, **ATTACKED})
    return Spying.said[-1]


@pytest.mark.parametrize("protocol", [None, ON_DEVICE, "gram-secagg", "pg-mf"])
def test_the_bits_of_a_run_do_not_depend_on_attacks(tiny: dict[str, Any], protocol: Any) -> None:
    values = tiny if protocol is None else {**tiny, "protocol": protocol}
    if isinstance(protocol, str):
        values = presets()[protocol]
    plain, attacked = run(values), run({**values, **ATTACKED})
    for name, column in plain.predictions.items():
        np.testing.assert_array_equal(attacked.predictions[name], column)
    for name, column in plain.traffic.items():
        np.testing.assert_array_equal(attacked.traffic[name], column)
    assert "attacks" not in plain.summary
    assert "attacks" not in plain.config.plain_values()


def test_a_server_that_predicts_has_symbols_and_lists(tiny: dict[str, Any]) -> None:
    game = game_of(tiny)
    (observed,) = game.transcript.reports
    symbols = observed.symbols
    assert symbols is not None
    assert symbols.symbols.size == game.truth.count
    assert game.transcript.newcomer is None
    lists = game.transcript.lists
    assert lists is not None
    assert lists.shape == (40, 10)
    rated = game.truth.to_sets().toarray()
    assert not any(rated[user, row[row >= 0]].any() for user, row in enumerate(lists))
    assert not game.transcript.trusted


def test_devices_that_predict_have_a_table(tiny: dict[str, Any]) -> None:
    game = game_of({**tiny, "protocol": ON_DEVICE})
    assert game.transcript.lists is None
    assert game.transcript.newcomer is not None
    assert np.unique(game.transcript.newcomer(np.arange(30))).size > 1


def test_a_server_that_is_given_the_ratings_is_trusted(tiny: dict[str, Any]) -> None:
    clear = {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "item-average"}}
    assert game_of({**tiny, "protocol": clear}).transcript.trusted


def test_another_run_has_other_noise_and_whoever_is_present(tiny: dict[str, Any]) -> None:
    present = np.arange(40) >= 10

    class Repeating(Spying):
        """Runs again."""

        def perform(self, game: Game) -> Attacked:
            said = [game.again(present, number) for number in (1, 1, 2)]
            first, same, other = (each.reports[0] for each in said)
            assert not first.counts[:10].any()
            np.testing.assert_array_equal(first.counts[10:], game.truth.counts[10:])
            drawn = [each.symbols.symbols for each in (first, same, other) if each.symbols]
            np.testing.assert_array_equal(drawn[0], drawn[1])
            kept = game.transcript.reports[0].symbols
            assert kept is not None
            honest = kept.symbols[~np.isin(game.truth.users, np.arange(10))]
            for others in (drawn[2], honest):
                assert np.mean(drawn[0] == others) < 0.5
            return super().perform(game)

    Repeating.__module__ = __name__
    run({**tiny, "attacks": [Repeating()]})


@pytest.mark.parametrize("name", ["pg-mf", "dp-item-effects", "randomized-sets"])
def test_who_is_absent_sends_nothing_under_any_protocol(name: str) -> None:
    class Without(Spying):
        """Runs again with few users."""

        def perform(self, game: Any) -> Attacked:
            absent = np.arange(40) < 10
            outcome = game._run(game.truth, "another run", absent)
            assert not outcome.traffic.uplink_payload[absent].any()
            assert outcome.traffic.uplink_payload[~absent].all()
            return super().perform(game)

    Without.__module__ = __name__
    run({**presets()[name], "attacks": [Without()]})


def test_a_secure_sum_stands_half_of_the_users_who_contribute_nothing() -> None:
    class Half(Spying):
        """Runs again with half of the users."""

        def perform(self, game: Game) -> Attacked:
            assert game.again(np.arange(40) < 20, 1).n_users == 40
            return super().perform(game)

    Half.__module__ = __name__
    run({**presets()["gram-secagg"], "attacks": [Half()]})


def test_figures_are_in_every_file_and_read_back(tiny: dict[str, Any], tmp_path: Path) -> None:
    attacked = run({**tiny, **ATTACKED}, tmp_path / "run", page=False)
    cells = float(game_of(tiny).truth.count)
    written = json.loads((tmp_path / "run" / "attack.json").read_text())
    reached = {key: written[key] for key in written if key.startswith(("recovered", "reported", "endless"))}
    assert reached == {
        "recovered_level": 0.5,
        "recovered_level_baseline": 0.25,
        "recovered_level_bound": 0.75,
        "reported": cells,
        "reported_baseline": None,
        "reported_bound": None,
        "endless": None,
        "endless_baseline": None,
        "endless_bound": None,
    }
    assert written["schema"] == formats.NUMBER
    assert written["epsilon_per_rating"] == pytest.approx(1)
    (performed,) = written["attacks"]
    assert performed["settings"] == {"kind": SPYING, "least": 1}
    assert performed["notes"] == ["Cells are counted."]
    again = run({**tiny, **ATTACKED}, tmp_path / "run", resume=True, page=False)
    assert again.summary == attacked.summary


def test_every_cell_of_a_comparison_is_attacked(tiny: dict[str, Any], tmp_path: Path) -> None:
    values = {
        **{key: tiny[key] for key in ("name", "dataset", "split", "simulation")},
        **ATTACKED,
        "epsilons": [1.0],
        "protocols": [{"name": "ours", "protocol": tiny["protocol"]}],
    }
    result = compare(values, tmp_path / "out", page=False)
    assert not result.failures
    rows = read_rows(tmp_path / "out" / "comparison.csv")
    assert {row["name"] for row in rows} >= {"ours", "nothing-sent"}
    for row in rows:
        assert row["recovered_level_bound"] == 0.75
        assert row.get("reported") == (None if row["name"] == "nothing-sent" else row["reported"])


class Renaming(Spying):
    """Has a figure by a name that is taken."""

    def figures(self) -> tuple[str, ...]:
        """Return a name that is that of another column."""
        return ("rmse",)


@pytest.mark.parametrize(
    ("attacks", "key"),
    [
        ([{"kind": "nonsense"}], "attacks[0].kind"),
        ([{"kind": SPYING, "least": -1}], "attacks[0].least"),
        ([{"kind": SPYING}, {"kind": SPYING}], "attacks"),
        ([Renaming()], "attacks"),
    ],
)
def test_attacks_that_cannot_be_are_refused(tiny: dict[str, Any], attacks: list[Any], key: str) -> None:
    with pytest.raises(InputError, match=key.replace("[", r"\[").replace("]", r"\]")):
        run({**tiny, "attacks": attacks})


def test_collections_over_time_are_attacked_but_not_run_again() -> None:
    attacks = [{"kind": "rounds"}, {"kind": "shadow"}, {"kind": "promotion"}]
    summary = run({**presets()["weekly-fresh"], "attacks": attacks}).record.summary.attacks
    assert summary is not None
    rounds, *others = summary.performed
    assert "reports each" in rounds.notes[0]
    assert summary.reached["rounds_sign"].value is not None
    for each in others:
        assert "not run again" in each.notes[0]
        assert {summary.reached[name].value for name in each.figures} == {None}


def test_an_attack_is_an_instance_too(tiny: dict[str, Any]) -> None:
    loaded = load({**tiny, "attacks": (Spying(least=2),)})
    (attack,) = load(loaded, ["seed=5"]).attacks
    assert isinstance(attack, Attack)
    assert attack == Spying(least=2)


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (("schema",), "attacks"),
        (("rmse",), "attacks"),
        (("x", "x_bound"), "attacks"),
        (("x_baseline",), "attacks"),
        (("x", "x"), "attacks"),
        (None, "attacks[0]"),
        ("abc", "attacks[0]"),
        ((1,), "attacks[0]"),
    ],
)
def test_figures_with_names_of_others_are_refused(
    tiny: dict[str, Any], names: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spying, "figures", lambda self: names)
    with refused_at(where):
        run({**tiny, **ATTACKED})


def test_columns_that_are_not_there_are_refused_before_anything_runs(tiny: dict[str, Any]) -> None:
    asked = {"kind": "attributes", "columns": ["nosuch"]}
    with refused_at("attacks[0].columns"):
        load_ratings(load({**tiny, "attacks": [asked]}))


def test_a_summary_without_a_figure_of_its_attacks_is_refused(tiny: dict[str, Any], tmp_path: Path) -> None:
    run({**tiny, **ATTACKED}, tmp_path / "out", page=False)
    file = tmp_path / "out" / "summary.json"
    for change in ({"further": {}}, {"recovered_level": None}):
        values = json.loads(file.read_text())
        values["attacks"] |= change
        file.with_name("changed").mkdir(exist_ok=True)
        (file.parent / "changed" / "summary.json").write_text(json.dumps(values))
        with pytest.raises(InputError, match="no figure"):
            read_summary(file.parent / "changed")
