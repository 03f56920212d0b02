"""The contract of federated models: what keeps it, and which rule each planted fault breaks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.federated import RULES, FederatedModel, Trial, UpdateCode, verdicts
from dprec.testing import contract
from tests import faulty_models
from tests.models import Mixing

RULE = {rule.name: rule for rule in RULES}

FAULTS = [
    ("defined", "Half"),
    ("starts", "ScalesLists"),
    ("draws", "DrawsOfItsOwn"),
    ("draws", "DrawsOfAll"),
    ("draws", "SeedsForAll"),
    ("memory", "Counting"),
    ("memory", "FirstSeen"),
    ("finite", "OfFew"),
    ("finite", "RowsOfFew"),
    ("finite", "DrawsNegatives"),
    ("company", "Normalised"),
    ("order", "InPlaces"),
    ("untouched", "Training"),
    ("untouched", "TrainingState"),
    ("untouched", "TrainingRows"),
    ("untouched", "CentringRows"),
    ("shapes", "OfOwnItems"),
    ("shapes", "KeepsItems"),
    ("shapes", "KeepsFractions"),
    ("shapes", "RowsOfItems"),
    ("generator", "KeepsGenerator"),
    ("generator", "KeepsTheFirst"),
    ("forms", "Differing"),
]
ALSO = {"Normalised": {"alone"}, "InPlaces": {"alone", "company"}}
"""Rules that a fault cannot but break as well."""

TestGood = contract(
    faulty_models.Personal(), faulty_models.Twofold(), faulty_models.InSingle(), faulty_models.InTensors()
)


def model_of(name: str) -> FederatedModel:
    model: FederatedModel = getattr(faulty_models, name)()
    return model


@pytest.mark.parametrize(("rule", "name"), FAULTS)
def test_a_planted_fault_breaks_its_rule(rule: str, name: str) -> None:
    broken = RULE[rule].broken(Trial.of(model_of(name)))
    assert broken is not None
    assert broken.change


@pytest.mark.thorough
@pytest.mark.parametrize(("rule", "name"), FAULTS)
def test_a_planted_fault_breaks_no_other_rule(rule: str, name: str) -> None:
    broken = {each.name for each, found in verdicts(model_of(name)) if found is not None}
    assert broken == {rule} | ALSO.get(name, set())


def test_a_model_that_changes_profiles_changes_none_of_the_next_rule() -> None:
    trial = Trial.of(model_of("CentringRows"))
    before = trial.devices(4).profiles.values.copy()
    assert RULE["untouched"].broken(trial) is not None
    np.testing.assert_array_equal(trial.devices(4).profiles.values, before)


def test_what_a_model_raises_is_said_with_its_line() -> None:
    broken = RULE["finite"].broken(Trial.of(model_of("DrawsNegatives")))
    assert broken is not None
    source = Path(faulty_models.__file__).read_text().splitlines()
    line = next(number for number, text in enumerate(source, 1) if "random.choice(others)" in text)
    assert broken.found.startswith("ValueError: ")
    assert broken.found.endswith(f"({faulty_models.__file__}:{line})")


@pytest.mark.parametrize(
    ("name", "found", "change"),
    [
        ("ScalesLists", "lists have no scale", "to what needs neither low nor high"),
        ("OneArray", "start returned ndarray", "to a tuple of arrays, also where it is one"),
        ("ArrayOfChanges", "change is ndarray", "to a tuple of arrays, also where it is one"),
        ("LossOfEach", "loss of shape (3,)", "to one number"),
    ],
)
def test_what_is_no_update_is_said_with_what_is_one(name: str, found: str, change: str) -> None:
    assert RULE["shapes"].broken(Trial.of(model_of(name))) == (found, change)


def test_a_model_that_writes_into_itself_is_told_of_the_state() -> None:
    broken = RULE["shapes"].broken(Trial.of(model_of("Writes")))
    assert broken is not None
    assert "state" in broken.change


@pytest.mark.parametrize("rule", ["shapes", "generator"])
def test_rules_ask_devices_for_what_they_are_asked_in_a_run(rule: str) -> None:
    assert RULE[rule].broken(Trial.of(model_of("OfRaters"))) is None


@pytest.mark.parametrize("rule", ["alone", "company"])
def test_mixing_users_breaks_two_rules(rule: str) -> None:
    assert RULE[rule].broken(Trial.of(Mixing())) is not None


@pytest.mark.parametrize("name", ["Personal", "Twofold"])
def test_reports_longer_than_a_clip_break_their_rule(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Planted in the code that clips: what is longer is not scaled down."""

    def steps(code: UpdateCode, updates: Any, holds: Any = None) -> Any:
        rows = np.concatenate([each.reshape(len(each), -1) for each in updates], axis=1)
        return np.rint(rows * 2**14 / code.clip).astype(np.int32), np.linalg.norm(rows, axis=1)

    monkeypatch.setattr(UpdateCode, "steps", steps)
    assert RULE["clipped"].broken(Trial.of(model_of(name))) is not None


def test_rules_after_a_broken_one_that_they_rest_on_are_not_tried() -> None:
    tried = [rule.name for rule, _ in verdicts(model_of("OfOwnItems"))]
    assert tried == ["defined", "starts", "untouched", "shapes"]
