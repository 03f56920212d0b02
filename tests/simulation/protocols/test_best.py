"""The protocol that picks the best of the others."""

from typing import Any

import pytest

from dprec.errors import InputError
from dprec.privacy.matched_budget import MatchedBudget
from simulation import audit, load
from simulation.analysis.description import describe
from simulation.protocols.best import COUNTS_UP_TO, BestProtocol
from simulation.run import run


def best(**changes: Any) -> BestProtocol:
    settings = [f"protocol.{key.replace('__', '.')}={value}" for key, value in changes.items()]
    protocol = load("best-on-device", settings).protocol
    assert isinstance(protocol, BestProtocol)
    return protocol


@pytest.mark.parametrize(
    ("changes", "kind", "personalization"),
    [
        ({}, "fisher-optimal", "on-device"),
        ({"privacy__epsilon": COUNTS_UP_TO["device"]}, "bits-and-counts", "on-device"),
        ({"predicts": "server", "privacy__epsilon": COUNTS_UP_TO["server"]}, "bits-and-counts", "none"),
        ({"predicts": "server", "privacy__epsilon": 1.01 * COUNTS_UP_TO["server"]}, "fisher-optimal", "none"),
        ({"privacy__per": "user"}, "residual-bits", "on-device"),
        ({"item_set": "hidden", "privacy__per": "user"}, "user-level-bit", "on-device"),
        ({"item_set": "hidden", "privacy__per": "cell"}, "hidden-threshold", "on-device"),
    ],
)
def test_the_pick_follows_from_epsilon_unit_item_set_and_who_predicts(
    changes: dict[str, Any], kind: str, personalization: str
) -> None:
    protocol = best(**changes)
    assert protocol.picked.mechanism.kind == kind == protocol.mechanism_name
    assert protocol.picked.personalization == personalization
    assert f"Best picked {kind}: " in " ".join(protocol.guarantee((10, 10)).notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol.privacy.per": "cell"}, r"protocol\.item_set: 'visible', with a budget per cell"),
        (
            {"protocol.privacy.per": "user", "protocol.predicts": "server"},
            r"protocol\.predicts: 'server', with a budget per user",
        ),
    ],
)
def test_what_no_candidate_can_hold_is_refused(changes: dict[str, str], words: str) -> None:
    settings = [f"{key}={value}" for key, value in changes.items()]
    with pytest.raises(InputError, match=words):
        run(load("best-on-device", settings), page=False)
    with pytest.raises(InputError, match=words):
        describe(load("best-on-device", settings))
    with pytest.raises(InputError, match=words):
        audit(load("best-on-device", settings))


def test_a_run_is_that_of_the_pick_and_says_so() -> None:
    small = ["dataset={kind: synthetic, users: 40, items: 30, ratings: 600}", "simulation.backend=local"]
    ours = run(load("best-on-device", small), page=False)
    same = run(load("optimal-on-device", small), page=False)
    assert best().picked == load("optimal-on-device").protocol
    # The devices' draws are keyed by the protocol, so that noise differs and promises do not.
    for unit in ("epsilon_per_rating", "epsilon_per_user"):
        assert ours.summary["privacy"][unit] == same.summary["privacy"][unit]
    sizes = [each.traffic["uplink_payload_bytes"].sum() for each in (ours, same)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
    assert any("Best picked fisher-optimal" in note for note in ours.summary["privacy"]["notes"])


def test_a_budget_moves_to_the_unit_that_the_item_set_allows() -> None:
    assert best().at_budget(MatchedBudget(2.0, "user")).privacy.per == "user"
    hidden = best(item_set="hidden", privacy__per="cell")
    assert hidden.at_budget(MatchedBudget(2.0)).privacy.per == "cell"
    assert hidden.at_budget(MatchedBudget(2.0, "user")).privacy.per == "user"
