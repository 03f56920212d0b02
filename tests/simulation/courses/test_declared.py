"""Losses that rest on a class from outside are declared, and nobody sends for nothing."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dprec.accounting import Guarantee, PrivacyAccountant
from dprec.completion import Calibrated, OneBit
from dprec.gradients import FullGradient, OneBitGradient
from dprec.mechanisms import Channel, RandomizedResponse, SetOnly
from dprec.observations import EmbeddingRelease
from dprec.protocols.base import declaring
from dprec.protocols.one_shot import OneShotProtocol
from dprec.ratings import RatingScale
from simulation import audit, compare, load, run
from simulation.analysis.description import describe
from simulation.analysis.protocol_results import declared_lines
from simulation.courses.one_shot import OneShotCourse
from simulation.courses.task import Outcome, Task
from tests.make import small_run
from tests.refusals import refused_at

EPSILON = 1.6


class WholeFloats(FullGradient):
    """A gradient that says it keeps a budget, and sends integers without noise."""

    private: ClassVar[bool] = True

    def exact_epsilon(self, epsilon: float) -> float:
        return epsilon


class OtherMean(OneBitGradient):
    """Our own report, of which the server makes something else."""

    def gradient(self, aggregate: Any, shape: Any, epsilon: float, public_seed: int) -> Any:
        return 0.5 * super().gradient(aggregate, shape, epsilon, public_seed)


class Honest(OneBitGradient):
    """Our own report, encoded by code of one's own."""

    def encode(self, *given: Any) -> list[bytes]:
        return super().encode(*given)


class Matrix(RandomizedResponse):
    """A mechanism whose loss is that of its matrix."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        return super().channel(scale, 0.5 * epsilon)


class Rule(RandomizedResponse):
    """A mechanism that says that its symbols say nothing of ratings."""

    sends_values: ClassVar[bool] = False


class FreeCourse(OneShotCourse):
    """Charges nothing and says that all is proved."""

    def run(self, grid: Any, task: Task) -> Outcome:
        outcome = super().run(grid, task)
        nothing = PrivacyAccountant(rated=np.ones(task.n_users, dtype=np.bool_))
        promised = Guarantee("proved", "local", True, "it is said to be.")
        return replace(outcome, accountant=nothing, guarantee=promised)


class ZeroCourse(FreeCourse):
    """The same, which charges 0."""

    def run(self, grid: Any, task: Task) -> Outcome:
        outcome = super().run(grid, task)
        outcome.accountant.step(1, np.ones(task.n_users, dtype=np.bool_), 0.0, 0.0)
        return outcome


@dataclass(frozen=True, kw_only=True)
class Free(OneShotProtocol):
    """A protocol that sends true ratings, charges nothing and says that all is proved."""

    course: ClassVar[type[OneShotCourse]] = FreeCourse


@dataclass(frozen=True, kw_only=True)
class Zero(Free):
    """The same, which charges 0."""

    course: ClassVar[type[OneShotCourse]] = ZeroCourse


SMALL = small_run({}, 30, 12, 150, seed=0)


def iterative(gradient: Any) -> dict[str, Any]:
    privacy = {"epsilon": EPSILON, "per": "user"}
    protocol = {"kind": "iterative", "privacy": privacy, "gradient": gradient, "rounds": 2, "rank": 2}
    return {**SMALL, "protocol": protocol}


def one_shot(mechanism: Any, **protocol: Any) -> dict[str, Any]:
    completion = {"kind": "item-average"}
    own = {"kind": "one-shot", "mechanism": mechanism, "completion": completion, **protocol}
    return {**SMALL, "protocol": own}


def privacy_of(values: dict[str, Any]) -> dict[str, Any]:
    privacy: dict[str, Any] = run(values, page=False).summary["privacy"]
    return privacy


@pytest.mark.parametrize("gradient", [WholeFloats(), Honest()])
def test_the_loss_of_a_gradient_of_ones_own_is_declared(gradient: Any) -> None:
    privacy = privacy_of(iterative(gradient))
    name = f"{__name__}:{type(gradient).__name__}"
    assert privacy["status"] == "declared"
    assert [own["component"] for own in privacy["declared_by"]] == [name]
    assert privacy["epsilon_per_rating"] is None
    assert privacy["epsilon_per_user"]["max"] is None
    assert privacy["epsilon_composed"]["max"] is None
    assert privacy["epsilon_claimed"]["per_user"] == pytest.approx(EPSILON)
    assert privacy["notes"][0].startswith("Declared, not proved: the loss, what is hidden and who is trusted")
    assert not any("one bit" in note or note.startswith("Proved") for note in privacy["notes"])


def test_rounds_say_only_losses_that_are_proved() -> None:
    said = [[line["epsilon"] for line in run(iterative(each)).rounds] for each in (Honest(), OtherMean())]
    assert said == [[None, None], pytest.approx([EPSILON / 2, EPSILON], rel=1e-5)]


def test_what_only_the_server_does_leaves_a_proof() -> None:
    privacy = privacy_of(iterative(OtherMean()))
    assert (privacy["status"], privacy["declared_by"]) == ("proved", [])
    assert describe(load(iterative(OtherMean()))).guarantee.status == "proved"
    assert describe(load(iterative(Honest()))).guarantee.status == "declared"
    assert privacy["epsilon_per_user"]["max"] == pytest.approx(EPSILON)


def test_the_loss_of_a_mechanism_of_ones_own_is_that_of_its_matrix() -> None:
    budget = {"privacy": {"epsilon": EPSILON}}
    privacy = privacy_of(one_shot(Matrix(), **budget))
    assert (privacy["status"], privacy["epsilon_per_rating"]) == ("proved", pytest.approx(EPSILON / 2))
    assert declaring(load(one_shot(Rule(), **budget)).protocol) == (Rule,)
    assert declaring(load(one_shot(RandomizedResponse(), **budget)).protocol) == ()


class Telling(SetOnly):
    """A set of items that also says how they were rated."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        return RandomizedResponse().channel(scale, 1.0)


def test_rows_that_differ_are_values() -> None:
    with refused_at("tests.simulation.courses.test_declared:Telling"):
        run(one_shot(Telling()), page=False)


@pytest.mark.parametrize("kind", ["Free", "Zero"])
def test_a_protocol_of_ones_own_that_sends_for_nothing_is_refused(kind: str) -> None:
    with refused_at(f"{__name__}:{kind}") as caught:
        run(one_shot({"kind": "none"}, kind=f"{__name__}:{kind}"), page=False)
    sent = int(caught.value.found.split(" bytes from 30 users")[0].split()[-1].replace(",", ""))
    honest = run(one_shot({"kind": "none"}), page=False).traffic["uplink_message_bytes"]
    assert sent == honest.sum()
    assert "a charge to everybody who sends" in caught.value.accepted


def test_an_audit_of_the_same_code_stands_beside_it(tmp_path: Path) -> None:
    values = {
        **{key: SMALL[key] for key in ("name", "dataset", "split", "simulation")},
        "epsilons": [EPSILON],
        "protocols": [{"name": "own", "protocol": iterative(Honest())["protocol"]}],
        "baselines": False,
    }
    (row,) = compare(values, tmp_path, page=False).rows
    assert row["status"] == "declared"
    found = audit(iterative(Honest()), tmp_path / "audits" / "own", trials=2000)
    assert found.holds
    assert list(found.declared_by) == [f"{__name__}:Honest"]
    exact = [finding.test for finding in found.findings if finding.exact]
    assert exact == ["another question in a round that was answered"]
    (line,) = declared_lines(tmp_path)
    assert f"at ε = {EPSILON:g} at least {found.lower_bound:.4g} was" in line
    file = tmp_path / "audits" / "own" / "audit.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "declared_by": {f"{__name__}:Honest": "0" * 16}}))
    assert "no audit of this code is in audits/" in declared_lines(tmp_path)[0]


def test_an_audit_sees_through_whole_floats() -> None:
    found = audit(iterative(WholeFloats()), trials=2000)
    assert not found.holds
    assert found.lower_bound > 2 * EPSILON


class OwnSigns(OneBit):
    """Our own completion, of which somebody else has changed a step."""


class OwnPlaces(Calibrated):
    """Our own completion, which could place items by the sets as they are."""


def test_noise_rests_on_no_completion_from_outside() -> None:
    few = ["dataset.users=40", "dataset.items=20", "dataset.ratings=400"]
    trusted, places = load("one-bit-objective", few), load("one-bit-on-device", few)
    signs, release = OwnSigns(alpha=0.25, rank=2, bounded=True), EmbeddingRelease(epsilon=1.0)
    for config, changes, key in (
        (trusted, {"completion": signs}, "completion.kind"),
        (places, {"completion": OwnPlaces(), "item_embeddings": release}, "item_embeddings.epsilon"),
    ):
        protocol = replace(config.protocol, **changes)
        with refused_at(f"protocol.{key}"):
            run(config.model_copy(update={"protocol": protocol}), page=False)
