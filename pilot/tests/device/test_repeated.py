"""What a device answers again in every run: the same, whatever was lost, and charged once."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from clients import one_shot
from clients.population import open_population
from dprec.accounting import PrivacyBudget
from dprec.exchange import REPORT
from dprec.mechanisms import ThresholdBit
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.protocols.base import Protocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.schedules import RepeatedAnswers
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import Agreement, DeviceFolder
from dprec_pilot.device.ledger import Limits
from pilot.tests.device.test_folder import MOMENTS, Disk, Killed, disk
from pilot.tests.device.test_service import superlink
from pilot.tests.device.test_what_replies_tell import PROFILES, devices, told
from pilot.tests.make import (
    ITEMS,
    KEYS,
    RATINGS,
    UNLIMITED,
    again,
    agreement_on,
    device_with,
    group_on,
    install,
    key_of,
    limits,
    report_in,
    request,
    write_profile,
)
from tests import make
from tests.builders import populated
from tests.make import table

__all__ = ["disk", "superlink"]

BUDGET = PrivacyBudget(epsilon=3.0)
KEEP = make.one_shot(RandomizedResponse(), BUDGET, predicts=True, answers=RepeatedAnswers())
UPDATE = replace(KEEP, answers=RepeatedAnswers(on_change="update"))
CAPPED = replace(KEEP, answers=RepeatedAnswers(answers_per_user=2))
SYMBOLS = KEEP.family(RATINGS.scale, ITEMS).channel(1).symbols
LOSS = KEEP.family(RATINGS.scale, ITEMS).channel(1).epsilon
HALF = {item: 1.0 + item % 5 for item in range(0, ITEMS, 2)}
WHOLE = {item: 1.0 + item % 5 for item in range(ITEMS)}
CHANGED = {item: 5.0 - item % 5 for item in range(0, ITEMS, 2)}
"""Each other value is that of `HALF` but for item 2, whose value is in the middle."""


def asked(run: int, protocol: Protocol = KEEP) -> Message:
    return request(REPORT, group_on(protocol), run)


def symbols(device: Device, run: int) -> dict[int, int]:
    """Return what a device answers in a run, by item; a symbol that the channel lacks is no answer."""
    return {item: symbol for item, symbol in shown(device, run).items() if symbol < SYMBOLS}


def shown(device: Device, run: int) -> dict[int, int]:
    """Return what a device says in a run of the items that it shows."""
    agreement = device.folder.agreement
    report = report_in(device.answer(request(REPORT, agreement.group(key_of(run)), run)))
    decoded = agreement.protocol.family(agreement.scale, agreement.items).codec.decode([report])
    assert decoded.valid.all()
    return dict(zip(decoded.items.tolist(), decoded.symbols.tolist(), strict=True))


def spent(device: Device) -> list[tuple[float, float]]:
    return [(charge.loss.per_rating, round(charge.loss.per_user / LOSS, 9)) for charge in device.charges]


@pytest.fixture
def device(tmp_path: Path) -> Device:
    return device_with(tmp_path / "u0", HALF, KEEP)


def test_further_runs_and_restarts_repeat_the_answer_and_cost_nothing(device: Device) -> None:
    first = report_in(device.answer(asked(1)))
    ledger = device.folder.ledger_file.read_bytes()
    assert spent(device) == [(LOSS, len(HALF))]
    for run in (1, 2, 3):
        assert report_in(device.answer(asked(run))) == first
        assert report_in(again(device).answer(asked(run + 3))) == first
    assert device.folder.ledger_file.read_bytes() == ledger


def test_what_is_rated_later_is_charged_when_it_is_first_answered(device: Device) -> None:
    before = symbols(device, 1)
    write_profile(device.folder, WHOLE)
    after = symbols(device, 2)
    assert {item: after[item] for item in before} == before
    assert list(after) == list(WHOLE)
    assert symbols(again(device), 3) == after
    assert spent(again(device)) == [(LOSS, len(HALF)), (LOSS, len(WHOLE) - len(HALF))]
    # All that any profile could lose is in each line, and is lost once.
    assert {charge.most.per_user for charge in device.charges} == {ITEMS * LOSS}


def test_a_changed_rating_is_answered_as_it_was_first(device: Device) -> None:
    first = report_in(device.answer(asked(1)))
    write_profile(device.folder, CHANGED)
    assert report_in(device.answer(asked(2))) == report_in(again(device).answer(asked(3))) == first
    assert spent(again(device)) == [(LOSS, len(HALF))]
    # A device that was first asked now answers otherwise: it has other values.
    other = device_with(device.folder.path.parent / "other", CHANGED, KEEP)
    other.folder.secret_file.write_bytes(device.folder.secret)
    assert report_in(again(other).answer(asked(4))) != first


def test_a_change_is_answered_once_more_where_that_is_agreed_on(tmp_path: Path) -> None:
    device = device_with(tmp_path / "update", HALF, UPDATE)
    first = symbols(device, 1)
    write_profile(device.folder, CHANGED)
    second = symbols(device, 2)
    changed = sum(HALF[item] != CHANGED[item] for item in HALF)
    assert second != first
    assert spent(device) == [(LOSS, len(HALF)), (LOSS, changed)]
    # Back to the first value, and on to a third one: nothing is answered that was not before.
    write_profile(device.folder, HALF)
    assert symbols(again(device), 3) == first
    write_profile(device.folder, dict.fromkeys(HALF, 3.0))
    assert symbols(again(device), 4) == second
    assert len(again(device).charges) == 2
    most = device.charges[-1].most
    assert (most.per_rating, most.per_user) == (2 * LOSS, 2 * ITEMS * LOSS)


def test_a_backup_of_the_state_alone_has_forgotten_nothing(device: Device) -> None:
    state = device.folder.state_file
    backups = [state.read_bytes()]
    device.answer(asked(1))
    backups.append(state.read_bytes())
    write_profile(device.folder, CHANGED | {1: 5.0})
    whole, ledger = report_in(device.answer(asked(2))), device.folder.ledger_file.read_bytes()
    for backup in backups:
        state.write_bytes(backup)
        for run in (3, 4):
            assert report_in(again(device).answer(asked(run))) == whole
        assert device.folder.ledger_file.read_bytes() == ledger
    write_profile(device.folder, WHOLE)
    state.write_bytes(backups[0])
    again(device).answer(asked(5))
    assert [each for _, each in spent(again(device))] == [len(HALF), 1, len(WHOLE) - len(HALF) - 1]


def agree(device: Device, agreement: Agreement) -> None:
    device.folder.protocol_file.write_text(agreement.text)


@pytest.mark.parametrize(
    ("protocol", "allowed", "ever"),
    [
        (CAPPED, UNLIMITED, 2),
        (KEEP, limits(per_user_lifetime=4.5 * LOSS), 4),
        (CAPPED, limits(per_user_lifetime=4.5 * LOSS), 2),
        (UPDATE, limits(per_user_lifetime=4.5 * LOSS), 2),
    ],
)
def test_a_limit_of_a_lifetime_is_one_of_answers(
    tmp_path: Path, protocol: OneShotProtocol, allowed: Limits, ever: int
) -> None:
    device = device_with(tmp_path / "limited", {0: 1.0}, protocol, allowed)
    one = symbols(device, 1)
    write_profile(device.folder, WHOLE)
    some = symbols(device, 2)
    assert len(some) == ever
    assert {item: some[item] for item in one} == one
    # Which they are does not depend on values, and nothing is answered in place of what was removed.
    write_profile(device.folder, {item: 5.0 for item in WHOLE if item != 0})
    assert sorted(symbols(again(device), 3)) == sorted(some.keys() - {0})
    # Where the agreement has a word for it, ratings without an answer are shown as rated.
    assert len(shown(again(device), 4)) == (ITEMS - 1 if protocol == CAPPED else len(some) - (0 in some))
    limit = allowed.per_user_lifetime
    assert limit is None or sum(charge.loss.per_user for charge in again(device).charges) <= limit


REFUSALS: list[tuple[Limits, list[tuple[Protocol, str]]]] = [
    (limits(per_rating=2.9), [(KEEP, "BUDGET_SPENT")] * 2),
    (limits(per_rating=3.0), [(KEEP, "answered"), (KEEP, "answered"), (UPDATE, "answered")]),
    (limits(per_rating=3.0), [(UPDATE, "BUDGET_SPENT"), (KEEP, "answered")]),
    (limits(per_user=11.9 * LOSS), [(KEEP, "BUDGET_SPENT")]),
    (replace(UNLIMITED, runs=1), [(KEEP, "answered")] * 3),
    (limits(per_user_lifetime=0.9 * LOSS), [(KEEP, "BUDGET_SPENT")] * 2),
    (limits(per_user_lifetime=12.5 * LOSS), [(KEEP, "answered")] * 2),
]


@pytest.mark.parametrize(("allowed", "asking"), REFUSALS)
def test_whether_there_is_an_answer_does_not_depend_on_what_was_rated_when(
    tmp_path: Path, allowed: Limits, asking: list[tuple[Protocol, str]]
) -> None:
    own = {name: tmp_path / name for name in PROFILES}
    served = devices(tmp_path, asking[0][0], allowed)
    for run, (protocol, expected) in enumerate(asking, start=1):
        for device in served:
            agree(device, agreement_on(protocol))
        served = [Device(DeviceFolder(path)) for path in own.values()]
        assert told(served, asked(run, protocol)) == expected
        # Everybody rates what somebody else has rated.
        later = [*PROFILES.values()][run % len(PROFILES) :] + [*PROFILES.values()][: run % len(PROFILES)]
        for device, profile in zip(served, later, strict=True):
            write_profile(device.folder, profile)


def test_a_fresh_report_is_charged_beside_the_repeated_ones(device: Device) -> None:
    symbols(device, 1)
    fresh = make.one_shot(RandomizedResponse(), BUDGET)
    agree(device, agreement_on(fresh))
    other = again(device)
    assert len({report_in(other.answer(asked(run, fresh))) for run in (1, 2, 3)}) == 3
    assert [bool(charge.memory) for charge in other.charges] == [True, False, False, False]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_killed_at_any_moment(device: Device, disk: Disk, moment: int, after: bool) -> None:
    first = symbols(device, 1)
    write_profile(device.folder, HALF | {1: 5.0})
    disk.left, disk.after, disk.error = moment, after, Killed
    left: dict[int, int] = {}
    with suppress(Killed):
        left = symbols(device, 2)
    disk.left = -1
    revived = again(device)
    assert len(revived.charges) in (1, 2)
    assert not left or len(revived.charges) == 2
    write_profile(device.folder, CHANGED | {1: 1.0})
    last = symbols(revived, 3)
    assert {item: last[item] for item in first} == first
    # What was charged is answered as it was, also if nobody has seen it.
    assert len(again(device).charges) == 2
    assert not left or last == left


def test_seeded_devices_repeat_what_the_simulation_does(tmp_path: Path) -> None:
    populated(tmp_path / "run", RATINGS, KEEP, 1, seed=1)
    population = open_population(str(tmp_path / "run"))
    for user in range(RATINGS.n_users):
        folder = install(tmp_path / f"u{user}", KEEP, RATINGS, user, seeded=KEYS)
        (report,) = one_shot.reports(population.partition(user))
        device = Device(DeviceFolder(folder.path), seeded=True)
        assert report_in(device.answer(asked(1))) == report_in(device.answer(asked(2))) == bytes(report)


def test_another_version_is_agreed_on_as_another_memory_with_other_noise(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = symbols(device, 1)
    for module in ("dprec_pilot.device.folder", "dprec_pilot.computing"):
        monkeypatch.setattr(f"{module}.COMPUTES", COMPUTES + 2)
    device.folder.protocol_file.write_text(agreement_on(KEEP).text)
    after = symbols(again(device), 2)
    assert after.keys() == before.keys()
    assert after != before
    assert len({charge.memory for charge in again(device).charges}) == 2
    assert spent(again(device)) == [(LOSS, len(HALF))] * 2


WEEKS, RATED = 52, 400


@pytest.mark.thorough
def test_a_year_of_runs_reveals_no_more_than_the_first_unless_the_noise_is_fresh(tmp_path: Path) -> None:
    levels = np.random.default_rng(1).integers(1, 6, (1, RATED))
    budget, recovered = PrivacyBudget(epsilon=1.0), {}
    for name, answers in (("repeated", RepeatedAnswers()), ("fresh", None)):
        protocol = make.one_shot(ThresholdBit(), budget, answers=answers)
        device, votes = Device(install(tmp_path / name, protocol, table(levels))), np.zeros(RATED)
        shares = recovered[name] = []
        for week in range(1, WEEKS + 1):
            said = symbols(device, week)
            votes += [2 * said[item] - 1 for item in range(RATED)]
            shares.append(np.where(votes == 0, 0.5, (votes > 0) == (levels[0] >= 4)).mean())
    assert set(recovered["repeated"]) == {recovered["repeated"][0]}
    # An answer is true with probability .731, and the majority of 52 with .9998. Of 400, a share further from
    # the first than 6 standard deviations has probability 2e-9, and more than 6 lost of the second 1e-10.
    truth = np.e / (1 + np.e)
    assert abs(recovered["repeated"][0] - truth) < 6 * np.sqrt(truth * (1 - truth) / RATED)
    assert recovered["fresh"][-1] >= 1 - 6 / RATED
