"""What is told of attacks: no empty figure, and no damage to what the data do not have."""

import pytest

from simulation.analysis.attacks import told
from simulation.storage.attacked import Reached


@pytest.mark.parametrize(
    ("accuracy", "damage"),
    [
        ({"rmse": 0.9, "ndcg_at_10": None}, "damage_rmse"),
        ({"ndcg_at_10": 0.1}, "damage_ndcg"),
    ],
)
def test_damage_is_told_of_what_was_measured(accuracy: dict[str, float | None], damage: str) -> None:
    nothing_to_look_at = Reached(value=None, baseline=0.25, bound=None)
    reached = {
        "damage_rmse": Reached(value=0.1, baseline=0.0, bound=None),
        "damage_ndcg": Reached(value=None, baseline=0.0, bound=None),
        "recovered_level": nothing_to_look_at,
        "endless": Reached(value=None, baseline=None, bound=None),
    }
    assert set(told(reached, accuracy)) == {damage, "recovered_level"}
