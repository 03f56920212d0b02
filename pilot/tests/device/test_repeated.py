"""What a device answers again in every run: the same, whatever was lost, and charged once."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from clients import one_shot
from clients.population import open_population
from dprec.accounting import PrivacyBudget
from dprec.errors import InputError
from dprec.exchange import PERSONALIZE, REPORT, MemoisedSetup, OneShotSetup, Setup
from dprec.mechanisms import ThresholdBit
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.ratings import Ratings, RatingScale
from dprec.wire import ItemTable
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import Agreement, DeviceFolder
from dprec_pilot.device.ledger import Charge, Ledger, Limits
from pilot.tests.device.devices import (
    ITEMS,
    KEYS,
    UNLIMITED,
    agreement_on,
    group_on,
    install,
    key_of,
    report_in,
    request,
    some_ratings,
)
from pilot.tests.device.fake_superlink import FakeSuperLink
from pilot.tests.device.test_device import again, limits
from pilot.tests.device.test_folder import MOMENTS, Disk, Killed, disk
from pilot.tests.device.test_service import KEY, serving, superlink
from pilot.tests.device.test_what_replies_tell import (
    PROFILES,
    device_with,
    devices,
    outcome,
    told,
    write_profile,
)
from tests.builders import populated

__all__ = ["disk", "superlink"]

RATINGS = some_ratings()
BUDGET = PrivacyBudget(epsilon=3.0)
KEEP = MemoisedSetup(mechanism=RandomizedResponse(), privacy=BUDGET, predicts=True)
UPDATE = replace(KEEP, on_change="update")
SYMBOLS = KEEP.family(RATINGS.scale, ITEMS).channel(1).symbols
LOSS = KEEP.family(RATINGS.scale, ITEMS).channel(1).epsilon
HALF = {item: 1.0 + item % 5 for item in range(0, ITEMS, 2)}
WHOLE = {item: 1.0 + item % 5 for item in range(ITEMS)}
CHANGED = {item: 5.0 - item % 5 for item in range(0, ITEMS, 2)}
"""Each other value is that of `HALF` but for item 2, whose value is in the middle."""


def asked(run: int, setup: Setup = KEEP) -> Message:
    return request(REPORT, group_on(setup, RATINGS), run)


def symbols(device: Device, run: int) -> dict[int, int]:
    """Return what a device answers in a run, by item; a symbol that the channel lacks is no answer."""
    return {item: symbol for item, symbol in shown(device, run).items() if symbol < SYMBOLS}


def shown(device: Device, run: int) -> dict[int, int]:
    """Return what a device says in a run of the items that it shows."""
    agreement = device.folder.agreement
    report = report_in(device.answer(request(REPORT, agreement.group(key_of(run)), run)))
    decoded = agreement.setup.family(agreement.scale, agreement.items).codec.decode([report])
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


def test_a_server_is_sent_the_same_in_its_next_run(superlink: FakeSuperLink, device: Device) -> None:
    device.folder.node_key_file.write_bytes(KEY)
    for run in (1, 2):
        superlink.put(asked(run))
        serving(again(device)).run_once()
    first, second = map(report_in, superlink.replies)
    assert first == second
    assert len(again(device).charges) == 1


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


def test_a_rating_that_is_removed_is_answered_no_longer_and_as_before_when_it_is_back(device: Device) -> None:
    before = symbols(device, 1)
    write_profile(device.folder, {item: HALF[item] for item in (0, 6)})
    assert symbols(device, 2) == {item: before[item] for item in (0, 6)}
    write_profile(device.folder, CHANGED)
    assert symbols(device, 3) == before
    assert len(device.charges) == 1


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


def test_another_answer_about_another_value_is_independent(tmp_path: Path) -> None:
    """Of 2,000 ratings that changed, as many answers are the same as of two people's."""
    count, scale = 2_000, RatingScale.evenly(1, 5, 1)
    setup = MemoisedSetup(mechanism=ThresholdBit(), privacy=PrivacyBudget(epsilon=1.0), on_change="update")

    def rated(level: int) -> Ratings:
        nobody, items = np.zeros(count, dtype=np.int64), np.arange(count)
        return Ratings.from_triples(nobody, items, np.full(count, level), scale, item_ids=items)

    device = Device(install(tmp_path / "own", setup, rated(4)))
    first = symbols(device, 1)
    device.folder.profile_file.write_text("\n".join(["item,rating", *(f"{item},5" for item in range(count))]))
    second = symbols(device, 2)
    lie = device.folder.agreement.setup.family(scale, count).channel(1).probabilities[4].min()
    alike = np.mean([first[item] == second[item] for item in range(count)])
    # Off by more than 6 standard deviations with probability 2e-9.
    expected = (1 - lie) ** 2 + lie**2
    assert abs(alike - expected) < 6 * np.sqrt(expected * (1 - expected) / count)


def restored(device: Device, *files: str) -> Callable[[], Device]:
    """Make a backup of some files now; return what puts it back and starts the device."""
    copies = {
        name: path.read_bytes() if (path := device.folder.path / name).exists() else None for name in files
    }

    def restore() -> Device:
        for name, contents in copies.items():
            if contents is None:
                (device.folder.path / name).unlink(missing_ok=True)
            else:
                (device.folder.path / name).write_bytes(contents)
        return again(device)

    return restore


def test_a_backup_of_the_state_alone_has_forgotten_nothing(device: Device) -> None:
    backups = [restored(device, "state")]
    device.answer(asked(1))
    backups.append(restored(device, "state"))
    write_profile(device.folder, CHANGED | {1: 5.0})
    whole, ledger = report_in(device.answer(asked(2))), device.folder.ledger_file.read_bytes()
    for restore in backups:
        assert report_in(restore().answer(asked(3))) == whole
        assert report_in(again(device).answer(asked(4))) == whole
        assert device.folder.ledger_file.read_bytes() == ledger
    write_profile(device.folder, WHOLE)
    backups[0]().answer(asked(5))
    assert [each for _, each in spent(again(device))] == [len(HALF), 1, len(WHOLE) - len(HALF) - 1]


def test_a_backup_of_the_ledger_alone_is_refused(device: Device) -> None:
    restore = restored(device, "ledger.jsonl")
    for run, item in enumerate((1, 3), start=1):
        device.answer(asked(run))
        write_profile(device.folder, HALF | {item: 5.0})
    device.answer(asked(3))
    with pytest.raises(InputError, match=r"ledger\.jsonl:1: a line that is missing"):
        restore()


def test_a_backup_of_the_whole_folder_repeats_what_has_the_same_value(device: Device) -> None:
    before = restored(device, "ledger.jsonl", "state")
    first = symbols(device, 1)
    after = restored(device, "ledger.jsonl", "state")
    write_profile(device.folder, HALF | {1: 5.0})
    second = symbols(device, 2)
    # A backup from before the first answer: the same answers, whose charges are as many as were forgotten.
    assert symbols(before(), 3) == second
    assert spent(again(device)) == [(LOSS, len(HALF) + 1)]
    # One from between them: the values that were answered first are known.
    write_profile(device.folder, CHANGED | {1: 5.0})
    assert symbols(after(), 4) == second
    # Without them, a changed rating is answered from its present value, and charged like a first answer.
    lost = symbols(before(), 5)
    assert spent(again(device)) == [(LOSS, len(HALF) + 1)]
    same = [item for item in HALF if HALF[item] == CHANGED[item]]
    assert {item: lost[item] for item in same} == {item: first[item] for item in same}
    assert lost != second


def test_a_raised_epsilon_is_a_new_charge(device: Device) -> None:
    first = symbols(device, 1)
    raised = replace(KEEP, privacy=PrivacyBudget(epsilon=4.0))
    agree(device, agreement_on(raised, RATINGS))
    other = again(device)
    symbols(other, 2)
    symbols(other, 3)
    assert [round(charge.loss.per_rating) for charge in other.charges] == [3, 4]
    assert other.charges[1].memory != other.charges[0].memory
    agree(device, agreement_on(KEEP, RATINGS))
    assert symbols(again(device), 4) == first
    assert len(again(device).charges) == 2


def agree(device: Device, agreement: Agreement) -> None:
    device.folder.protocol_file.write_text(agreement.text)


def test_answers_belong_to_items_wherever_these_stand_in_the_catalogue(device: Device) -> None:
    first = symbols(device, 1)
    ids = ["another", *map(str, RATINGS.item_ids)]
    device.folder.catalogue_file.write_text("".join(f"{item}\n" for item in ids))
    agree(device, Agreement.of(KEEP, RATINGS.scale, ids, public=KEYS.public))
    assert symbols(again(device), 2) == {item + 1: symbol for item, symbol in first.items()}
    # Nothing was answered, but one rating more could have been.
    assert [charge.answered for charge in again(device).charges][1:] == [()]
    assert again(device).charges[1].most.per_user == (ITEMS + 1) * LOSS


@pytest.mark.parametrize(
    ("setup", "allowed", "ever"),
    [
        (replace(KEEP, answers_per_user=2), UNLIMITED, 2),
        (KEEP, limits(per_user_lifetime=4.5 * LOSS), 4),
        (replace(KEEP, answers_per_user=2), limits(per_user_lifetime=4.5 * LOSS), 2),
        (UPDATE, limits(per_user_lifetime=4.5 * LOSS), 2),
        (KEEP, limits(per_user_lifetime=1e9), ITEMS),
    ],
)
def test_a_limit_of_a_lifetime_is_one_of_answers(
    tmp_path: Path, setup: MemoisedSetup, allowed: Limits, ever: int
) -> None:
    device = device_with(tmp_path / "limited", {0: 1.0}, setup, allowed)
    one = symbols(device, 1)
    write_profile(device.folder, WHOLE)
    some = symbols(device, 2)
    assert len(some) == ever
    assert {item: some[item] for item in one} == one
    # Which they are does not depend on values, and nothing is answered in place of what was removed.
    write_profile(device.folder, {item: 5.0 for item in WHOLE if item != 0})
    assert sorted(symbols(again(device), 3)) == sorted(some.keys() - {0})
    # Where the agreement has a word for it, ratings without an answer are shown as rated.
    assert len(shown(again(device), 4)) == (
        len(some) - (0 in some) if setup.answers_per_user is None else ITEMS - 1
    )
    limit = allowed.per_user_lifetime
    assert limit is None or sum(charge.loss.per_user for charge in again(device).charges) <= limit


@pytest.mark.parametrize("ever", [1, 3])
def test_the_ratings_that_are_answered_are_drawn_whatever_their_values(tmp_path: Path, ever: int) -> None:
    setup, chosen = replace(KEEP, answers_per_user=ever), []
    for number, value in enumerate((1.0, 5.0)):
        device = device_with(tmp_path / f"u{number}", dict.fromkeys(WHOLE, value), setup)
        device.folder.secret_file.write_bytes(bytes(range(32)))
        chosen.append(list(symbols(again(device), 1)))
    assert chosen[0] == chosen[1]
    assert len(chosen[0]) == ever


REFUSALS: list[tuple[Limits, list[tuple[Setup, str]]]] = [
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
    tmp_path: Path, allowed: Limits, asking: list[tuple[Setup, str]]
) -> None:
    own = {name: tmp_path / name for name in PROFILES}
    served = devices(tmp_path, asking[0][0], allowed)
    for run, (setup, expected) in enumerate(asking, start=1):
        for device in served:
            agree(device, agreement_on(setup, RATINGS))
        served = [Device(DeviceFolder(path)) for path in own.values()]
        assert told(served, asked(run, setup)) == expected
        # Everybody rates what somebody else has rated.
        later = [*PROFILES.values()][run % len(PROFILES) :] + [*PROFILES.values()][: run % len(PROFILES)]
        for device, profile in zip(served, later, strict=True):
            write_profile(device.folder, profile)


def test_what_a_further_epsilon_may_cost_does_not_depend_on_what_was_rated(tmp_path: Path) -> None:
    """The first memory has room for the whole catalogue, so that the second has as little for everybody."""
    raised = replace(KEEP, privacy=PrivacyBudget(epsilon=4.0))
    allowed = limits(per_user_lifetime=(ITEMS + 0.5) * LOSS)
    served = devices(tmp_path, KEEP, allowed)
    assert told(served, asked(1)) == "answered"
    for device in served:
        agree(device, agreement_on(raised, RATINGS))
    assert told([again(device) for device in served], asked(2, raised)) == "BUDGET_SPENT"
    for device in served:
        agree(device, agreement_on(KEEP, RATINGS))
        write_profile(device.folder, WHOLE)
    assert told([again(device) for device in served], asked(3)) == "answered"


def test_a_limit_that_is_lowered_leaves_what_was_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device = device_with(tmp_path / "u0", HALF, UPDATE)
    before = symbols(device, 1)
    options = device.folder.options_file
    options.write_text(
        options.read_text().replace('"per_rating_lifetime": null', '"per_rating_lifetime": 1.0')
    )
    write_profile(device.folder, CHANGED | WHOLE)
    write_profile(device.folder, {item: 5.0 - item % 5 for item in WHOLE})
    assert symbols(again(device), 2) == before
    assert len(again(device).charges) == 1
    assert "repeated, and nothing else: epsilon 6 per_rating_lifetime" in caplog.text


def test_a_fresh_report_is_charged_beside_the_repeated_ones(device: Device) -> None:
    symbols(device, 1)
    fresh = OneShotSetup(mechanism=RandomizedResponse(), privacy=BUDGET)
    agree(device, agreement_on(fresh, RATINGS))
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


def test_what_is_predicted_rests_on_the_ratings_as_they_are(tmp_path: Path) -> None:
    setup = replace(KEEP, answers_per_user=1)
    device = device_with(tmp_path / "u0", HALF, setup)
    symbols(device, 1)
    write_profile(device.folder, CHANGED)
    table = ItemTable.of_biases(np.arange(4.0), np.zeros(ITEMS), np.ones(ITEMS))
    group = group_on(setup, RATINGS)

    def predictions(one: Device) -> str:
        reply = one.answer(request(PERSONALIZE, group, 1, table=table.encode()))
        assert outcome(reply) == "answered"
        work = one.take_work()
        assert work is not None
        work()
        return one.folder.predictions_file.read_text()

    expected = predictions(device_with(tmp_path / "other", CHANGED, setup))
    assert predictions(device) == expected
    assert len(expected.splitlines()) == 1 + ITEMS - len(CHANGED)


def test_seeded_devices_repeat_what_the_simulation_does(tmp_path: Path) -> None:
    populated(tmp_path / "run", RATINGS, KEEP, 1, seed=1)
    population = open_population(str(tmp_path / "run"))
    for user in range(RATINGS.n_users):
        folder = install(tmp_path / f"u{user}", KEEP, RATINGS, user, seeded=KEYS)
        (report,) = one_shot.reports(population.partition(user))
        device = Device(DeviceFolder(folder.path), seeded=True)
        assert report_in(device.answer(asked(1))) == report_in(device.answer(asked(2))) == bytes(report)


OLDER = """\
{"time": "2026-01-01T10:00:00+00:00", "run": "1", "question": "query.report", "round": 1, \
"per_rating": 1.0, "per_user": 3.0, "most_per_rating": 1.0, "most_per_user": 3.0, \
"protocol": "ab", "profile": "cd", \
"chain": "c540f1fe6d047999f6ab67eb9d955060ac68d2b1c798bfc4d442da4d5399018a"}
{"time": "2026-01-02T10:00:00+00:00", "run": "2", "question": "query.report", "round": 1, \
"per_rating": null, "per_user": null, "most_per_rating": null, "most_per_user": null, \
"protocol": "ab", "profile": "cd", \
"chain": "cdeafef6e8c54671278a6489f68bb858faf1259a9f0ef7bffd12f022a037e562"}
"""


def test_lines_of_before_are_read_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(OLDER)
    ledger = Ledger.open(path, 2, b"")
    assert [charge.run for charge in ledger.charges] == ["1", "2"]
    repeated = replace(ledger.charges[0], memory="m", answered=(("42", 4), ("7", 1)))
    ledger = ledger.append(ledger.line(repeated))
    assert Ledger.open(path, 2, b"").charges == ledger.charges
    assert ledger.charges[2].answered == (("42", 4), ("7", 1))
    # A line of another kind that the device does not remember is not used.
    ledger.append(ledger.line(replace(ledger.charges[0], run="4")))
    with pytest.raises(InputError, match=r"ledger\.jsonl:4: a line that the device does not remember"):
        Ledger.open(path, 2, b"")
    assert isinstance(ledger.charges[0], Charge)


WEEKS, RATED = 52, 400


def recovered(folder: Path, setup: Setup) -> list[float]:
    """Return the share of a profile's bits that majorities of a device's answers give, week by week."""
    scale, items = RatingScale.evenly(1, 5, 1), np.arange(RATED)
    levels = np.random.default_rng(1).integers(1, 6, RATED)
    people = Ratings.from_triples(np.zeros(RATED, dtype=np.int64), items, levels, scale, item_ids=items)
    device, counts = Device(install(folder, setup, people)), np.zeros(RATED)
    shares = []
    for week in range(1, WEEKS + 1):
        said = symbols(device, week)
        counts += [2 * said[item] - 1 for item in range(RATED)]
        shares.append(float(np.mean(np.where(counts == 0, 0.5, (counts > 0) == (levels >= 4)))))
    return shares


@pytest.mark.thorough
def test_a_year_of_runs_reveals_no_more_than_the_first_unless_the_noise_is_fresh(tmp_path: Path) -> None:
    budget = PrivacyBudget(epsilon=1.0)
    repeated = recovered(tmp_path / "repeated", MemoisedSetup(mechanism=ThresholdBit(), privacy=budget))
    fresh = recovered(tmp_path / "fresh", OneShotSetup(mechanism=ThresholdBit(), privacy=budget))
    assert set(repeated) == {repeated[0]}
    # An answer is true with probability .731, and the majority of 52 with .9998. Of 400, a share further from
    # the first than 6 standard deviations has probability 2e-9, and more than 6 lost of the second 1e-10.
    truth = np.e / (1 + np.e)
    for first in (repeated[0], fresh[0]):
        assert abs(first - truth) < 6 * np.sqrt(truth * (1 - truth) / RATED)
    assert fresh[-1] >= 1 - 6 / RATED


def test_another_version_is_agreed_on_as_another_memory_with_other_noise(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = symbols(device, 1)
    for module in ("folder", "device"):
        monkeypatch.setattr(f"dprec_pilot.device.{module}.COMPUTES", COMPUTES + 1)
    device.folder.protocol_file.write_text(agreement_on(KEEP, RATINGS).text)
    after = symbols(again(device), 2)
    assert after.keys() == before.keys()
    assert after != before
    assert len({charge.memory for charge in again(device).charges}) == 2
    assert spent(again(device)) == [(LOSS, len(HALF))] * 2
