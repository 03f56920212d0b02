"""What holds of every attack, under protocols of every kind."""

from typing import Any

import pytest

from dprec.attacks import ATTACKS, Attack
from simulation import run
from simulation.storage.attacked import Reached
from tests.simulation.conftest import presets

KINDS = list(ATTACKS)
PROVED = "attribute_", "linkage_top1", "membership_auc", "membership_tpr", "rounds_membership_auc"
"""How the names of figures begin that have a bound; see `dprec.attacks.bounds`."""
LATER = [
    *("cells-on-device", "one-bit-on-device", "shuffled-on-device", "user-level-bit", "item-average"),
    *("dp-item-effects", "pg-mf", "fmf-ldp", "x-map", "one-bit-input"),
    *("gram-secagg", "gram-with-groups", "sums-on-device", "randomized-sets", "pairs-in-blanket"),
    *("public-start", "popularity"),
]


def _later(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.thorough)


def reached(name: str, attack: type[Attack]) -> dict[str, Reached]:
    summary = run({**presets()[name], "attacks": [attack()]}).record.summary.attacks
    assert summary is not None
    return summary.reached


@pytest.mark.parametrize("attack", KINDS, ids=lambda attack: attack.kind)
class TestEveryAttack:
    def test_its_figures_have_names_of_their_own(self, attack: type[Attack]) -> None:
        names = attack().figures()
        others = [name for each in KINDS if each is not attack for name in each().figures()]
        assert len({*names}) == len(names) > 0
        assert not {*names} & {*others}

    def test_where_nothing_is_sent_it_reaches_what_it_does_with_nothing_sent(
        self, attack: type[Attack]
    ) -> None:
        for figure in reached("nothing-sent", attack).values():
            assert figure.value is None or figure.value == pytest.approx(figure.baseline)

    @pytest.mark.parametrize("name", ["blp-mf", *map(_later, LATER)])
    def test_it_finds_its_way_under_every_kind_of_protocol(self, attack: type[Attack], name: str) -> None:
        for figure, each in reached(name, attack).items():
            if each.bound is not None:
                assert figure.startswith(PROVED)
                assert each.value is not None
                assert each.value <= each.bound
