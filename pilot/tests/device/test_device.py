"""What a device gives away, charges and remembers, whatever a server asks and whenever it dies."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from dprec.accounting import PrivacyBudget
from dprec.exchange import COUNT, DELIVER, REPORT, TELL, TRAIN, RefusalCode
from dprec.gradients import FullGradient, OneBitGradient
from dprec.mechanisms import BitsAndCounts, BoundedLaplace
from dprec.wire import FixedFields
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.ledger import Limits
from pilot.tests.make import (
    ITEMS,
    ROUNDS_SETUP,
    UNLIMITED,
    again,
    factors,
    group_on,
    install,
    key_of,
    limits,
    report_in,
    request,
    train,
)
from tests import make

RANK, ROUNDS, EPSILON = 2, 4, 0.4
REPORT_SETUP = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0))
GROUP = group_on(ROUNDS_SETUP)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return Device(install(tmp_path / "u0", ROUNDS_SETUP))


def refused(device: Device, message: Message) -> str:
    """Return the name of the code with which a request is refused; nothing is charged or remembered."""
    folder, before = device.folder, (device.charges, device.folder.state_file.read_bytes())
    ledger = folder.ledger_file.exists()
    reply = device.answer(message)
    assert (device.charges, folder.state_file.read_bytes()) == before
    assert folder.ledger_file.exists() is ledger
    code = RefusalCode(reply.error.code)
    assert reply.error.reason == code.name
    return code.name


def test_the_same_question_gets_the_same_answer_and_is_charged_once(device: Device) -> None:
    first = report_in(device.answer(train()))
    assert report_in(device.answer(train())) == first
    assert report_in(again(device).answer(train())) == first
    (charge,) = again(device).charges
    assert (charge.run, charge.round) == (key_of(1), 1)
    assert charge.per_user == OneBitGradient().exact_epsilon(ROUNDS_SETUP.epsilon_per_round)


def test_another_run_or_secret_gets_other_noise(tmp_path: Path) -> None:
    devices = [Device(install(tmp_path / f"u{copy}", REPORT_SETUP)) for copy in range(2)]
    group = group_on(REPORT_SETUP)
    reports = {
        report_in(device.answer(request(REPORT, group, run))) for device in devices for run in range(1, 4)
    }
    assert len(reports) == 6
    assert [charge.run for charge in devices[0].charges] == [key_of(run) for run in range(1, 4)]


def test_a_run_is_known_by_its_key_whatever_flower_calls_it(device: Device) -> None:
    first = report_in(device.answer(train()))
    restarted = again(device)
    assert report_in(restarted.answer(train(flower_run=2))) == first
    restarted.answer(train(2, flower_run=2))
    assert refused(restarted, train(1, seed=1, flower_run=3)) == "ROUND_ANSWERED"
    assert [(charge.run, charge.round) for charge in restarted.charges] == [(key_of(1), 1), (key_of(1), 2)]
    # Another key is another run, also in the same run of Flower.
    assert report_in(restarted.answer(train(run=2))) != first
    assert [charge.run for charge in again(device).charges][2:] == [key_of(2)]


@pytest.mark.parametrize("key", ["", "AAA", "AAAAA", "AA A", "AA/A", "AA==", "AAA\n", "ÄAAA"])
def test_a_run_without_a_key_is_refused(device: Device, key: str) -> None:
    question = train()
    question.metadata.__dict__["_group_id"] = GROUP[:4] + key
    assert refused(device, question) == "MALFORMED_REQUEST"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (train(ROUNDS + 1), "TOO_MANY_ROUNDS"),
        (train(0), "MALFORMED_REQUEST"),
        (train(factors=factors()[:-1]), "MALFORMED_REQUEST"),
        (train(factors=factors() + bytes(4)), "MALFORMED_REQUEST"),
        (train(factors=b"\0" + np.full((ITEMS, RANK), np.nan, "<f4").tobytes()), "MALFORMED_REQUEST"),
        (train(factors=b"\0" + np.full((ITEMS, RANK), np.inf, "<f4").tobytes()), "MALFORMED_REQUEST"),
        (train(asked=b"\0"), "WRONG_USER"),
        (train(asked=b"\x80\x80"), "WRONG_USER"),
        (train(asked=1), "WRONG_USER"),
        (request(TRAIN, "00000001", round=1, factors=factors()), "CHANGED_SETUP"),
        (request(TRAIN, GROUP), "MALFORMED_REQUEST"),
        (request(REPORT, GROUP), "NOT_SET_UP"),
        (request("train.other", GROUP), "MALFORMED_REQUEST"),
        # Which the nodes of a simulation answer, and no device.
        (request(TELL, GROUP), "MALFORMED_REQUEST"),
        (request(DELIVER, GROUP, factors=b"\2"), "MALFORMED_REQUEST"),
    ],
)
def test_what_was_not_agreed_to_is_refused(device: Device, message: Message, code: str) -> None:
    assert refused(device, message) == code


@pytest.mark.parametrize(
    ("message", "code"), [(train(2, seed=1), "CHANGED_REQUEST"), (train(1), "ROUND_ANSWERED")]
)
def test_what_contradicts_an_answer_is_refused_even_after_a_restart(
    device: Device, message: Message, code: str
) -> None:
    device.answer(train(1))
    device.answer(train(2))
    assert refused(device, message) == code
    assert refused(again(device), message) == code


def test_a_run_is_answered_to_its_end_from_the_profile_with_which_it_began(tmp_path: Path) -> None:
    # Whole gradients without noise, so that no two profiles have equal reports by chance.
    protocol = replace(ROUNDS_SETUP, gradient=FullGradient(), privacy=None)
    group = group_on(protocol)

    def train(round_index: int, run: int = 1) -> Message:
        return request(TRAIN, group, run, round=round_index, factors=factors())

    device, unchanged = (Device(install(tmp_path / name, protocol)) for name in ("u0", "same"))
    unchanged.folder.secret_file.write_bytes(device.folder.secret_file.read_bytes())
    unchanged = again(unchanged)
    for one in (device, unchanged):
        one.answer(train(1))
    lines = device.folder.profile_file.read_text().splitlines()
    device.folder.profile_file.write_text("\n".join(lines[:-1]))
    second = report_in(device.answer(train(2)))
    assert second == report_in(again(device).answer(train(2))) == report_in(unchanged.answer(train(2)))
    assert report_in(device.answer(train(3))) == report_in(unchanged.answer(train(3)))
    device.answer(train(1, run=2))
    kept = [charge.profile for charge in device.charges]
    assert kept[0] == kept[1] == kept[2] != kept[3]


def test_a_run_whose_profile_is_no_longer_kept_is_not_answered_from_another(device: Device) -> None:
    device.answer(train(1))
    (kept,) = device.folder.kept_profile_file("").parent.iterdir()
    device.folder.profile_file.write_text("item,rating\n")
    device.answer(train(1, run=2))
    kept.write_text("item,rating\n")
    assert refused(device, train(2)) == "INTERNAL_FAILURE"
    kept.unlink()
    assert refused(device, train(2)) == "INTERNAL_FAILURE"


@pytest.mark.parametrize("whose", ["agreed", "installed"])
def test_what_another_version_computes_is_not_answered(
    device: Device, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = train()
    if whose == "agreed":
        other = replace(device.folder.agreement, computes=COMPUTES + 1)
        device.folder.protocol_file.write_text(other.text)
        question = request(TRAIN, other.group(key_of(1)), round=1, factors=factors())
    else:
        monkeypatch.setattr("dprec_pilot.computing.COMPUTES", COMPUTES + 1)
    assert refused(again(device), question) == "OTHER_VERSION"


SHARE = OneBitGradient().exact_epsilon(EPSILON)


@pytest.mark.parametrize(
    ("allowed", "runs"),
    [
        (limits(per_user=2 * SHARE), [2, 2, 2]),
        (limits(per_rating=SHARE), [1, 1, 1]),
        (limits(per_user_lifetime=3 * SHARE), [3, 0, 0]),
        (limits(per_rating_lifetime=5 * SHARE, per_user=3.5 * SHARE), [3, 2, 0]),
        (limits(per_user=0.99 * SHARE), [0, 0, 0]),
        (replace(UNLIMITED, runs=2), [4, 4, 0]),
        (UNLIMITED, [4, 4, 4]),
    ],
)
def test_no_limit_is_exceeded(tmp_path: Path, allowed: Limits, runs: list[int]) -> None:
    device = Device(install(tmp_path / "u0", ROUNDS_SETUP, limits=allowed))
    for run, answered in enumerate(runs, start=1):
        for round_index in range(1, ROUNDS + 1):
            if round_index <= answered:
                assert device.answer(train(round_index, run=run)).has_content()
            else:
                assert refused(device, train(round_index, run=run)) == "BUDGET_SPENT"
    assert len(again(device).charges) == sum(runs)


def test_what_protects_nothing_is_sent_without_a_limit_only(tmp_path: Path) -> None:
    clear = replace(ROUNDS_SETUP, gradient=FullGradient(), privacy=None)
    for number, allowed in enumerate((limits(per_user_lifetime=1e9), UNLIMITED)):
        device = Device(install(tmp_path / f"u{number}", clear, limits=allowed))
        reply = device.answer(request(TRAIN, group_on(clear), round=1, factors=factors()))
        assert reply.has_content() is (allowed is UNLIMITED)
        assert [charge.loss.per_user for charge in again(device).charges] == [math.inf] * number


def test_counts_are_refused_where_no_report_has_paid_for_their_ratings(tmp_path: Path) -> None:
    protocol = make.one_shot(BitsAndCounts(), PrivacyBudget(epsilon=1.0))
    device = Device(install(tmp_path / "u0", protocol, limits=limits(per_rating_lifetime=1.0)))
    group = group_on(protocol)
    groups = FixedFields(ITEMS, BitsAndCounts().groups - 1).encode(np.zeros((1, ITEMS), dtype=np.int64))[0]
    counts = [request(COUNT, group, run, groups=groups) for run in (1, 2)]
    assert refused(device, counts[0]) == "MALFORMED_REQUEST"
    assert device.answer(request(REPORT, group)).has_content()
    assert device.answer(counts[0]).has_content()
    # Nor does the report of another run pay.
    assert refused(device, counts[1]) == "MALFORMED_REQUEST"
