"""What replies tell of a profile beyond what the mechanism sends: nothing, whatever a server asks.

Each test is an attack: a server asks devices with different profiles the same, and compares what they say.
When they leave is the subject of `test_service.py`.
"""

import logging
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from dprec.accounting import PrivacyBudget, worst_pair
from dprec.binarization import binary_scale
from dprec.completion import slope_channel
from dprec.exchange import (
    COUNT,
    DELIVER,
    IDENTIFY,
    PERSONALIZE,
    RECOMMEND,
    REPLACE,
    REPORT,
    ROW_ENTRY,
    SLOPES,
    TRAIN,
    RefusalCode,
)
from dprec.mechanisms import BitsAndCounts, BoundedLaplace, FisherOptimal, Hybrid, Mechanism, ThresholdBit
from dprec.personalization import BroadcastDevices
from dprec.protocols.base import Protocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.ratings import Ratings
from dprec.reports import CellFamily, DrawsFor, ProfileLevels
from dprec.wire import ItemListCodec, ItemTable, encode_broadcast
from dprec_pilot.device.device import LOG, Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.ledger import Limits
from pilot.tests.make import (
    ITEMS,
    RATINGS,
    ROUNDS_SETUP,
    UNLIMITED,
    device_with,
    factors,
    group_on,
    install,
    limits,
    report_in,
    request,
    write_profile,
)
from tests import make
from tests.make import rated

LEVELS = RATINGS.scale.levels
SETUP = make.one_shot(ThresholdBit(), PrivacyBudget(epsilon=0.1), predicts=True)
GROUP = group_on(SETUP)
NO_BUDGET = Limits(per_rating=0, per_rating_lifetime=0, per_user=0, per_user_lifetime=0, runs=0)

TOP = float(RATINGS.scale.values[-1])
PROFILES: dict[str, dict[int, float]] = {
    "nothing": {},
    "one rating": {0: TOP},
    "the other half": dict(zip(range(0, ITEMS, 2), [1.0, 2.0, 3.0, 4.0, 5.0, 1.0], strict=True)),
    "everything": {item: 1.0 + item % LEVELS for item in range(ITEMS)},
}


def devices(folder: Path, protocol: Protocol = SETUP, allowed: Limits = UNLIMITED) -> list[Device]:
    """Return a device for each of the profiles."""
    return [device_with(folder / name, profile, protocol, allowed) for name, profile in PROFILES.items()]


def outcome(reply: Message) -> str:
    """Return what a server learns from how a reply turned out: that it is one, or the code of an error."""
    if not reply.has_error():
        return "answered"
    assert reply.error.reason == RefusalCode(reply.error.code).name
    return reply.error.reason


def told(asked: list[Device], question: Message) -> str:
    """Ask devices with different profiles the same; return what all of them say."""
    outcomes = {outcome(device.answer(question)) for device in asked}
    assert len(outcomes) == 1
    return outcomes.pop()


def personalize(table: ItemTable, run: int) -> Message:
    return request(PERSONALIZE, GROUP, run, table=table.encode())


def test_no_table_of_items_tells_which_items_are_rated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Cut points so close that rounding leaves nothing of a level, near one item at a time."""
    asked, run = devices(tmp_path, allowed=NO_BUDGET), 0
    for gap, shift, item in product((1e-16, 1e-15, 1e-38), (0.0, 3.5), range(0, ITEMS, 2)):
        means, run = np.full(ITEMS, 100.0), run + 1
        means[item] = 0.0
        cuts = (np.arange(LEVELS - 1) - shift) * gap
        assert told(asked, personalize(ItemTable.of_biases(cuts, means, np.zeros(ITEMS)), run)) == "answered"
        for device in asked:
            work = device.take_work()
            assert work is not None
            work()
    assert [record.getMessage() for record in caplog.records] == []


def test_a_reply_has_left_before_anything_is_computed_for_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(BroadcastDevices, "predict", fails)
    table = ItemTable.of_biases(np.arange(LEVELS - 1.0), np.zeros(ITEMS), np.ones(ITEMS))
    (device,) = devices(tmp_path)[:1]
    assert not device.answer(personalize(table, 1)).has_error()
    work = device.take_work()
    assert work is not None
    assert device.take_work() is None
    with caplog.at_level(logging.ERROR, logger=LOG.name):
        work()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert not device.folder.predictions_file.exists()


def test_a_run_delivers_once(tmp_path: Path) -> None:
    asked = devices(tmp_path)
    one, other = (
        ItemTable.of_biases(np.arange(LEVELS - 1.0), np.full(ITEMS, mean), np.ones(ITEMS)) for mean in (0, 1)
    )
    assert told(asked, personalize(one, 1)) == "answered"
    asked = [Device(DeviceFolder(device.folder.path)) for device in asked]
    assert told(asked, personalize(one, 1)) == "answered"
    assert told(asked, personalize(other, 1)) == "CHANGED_REQUEST"
    assert told(asked, personalize(other, 2)) == "answered"


def test_a_profile_that_changes_or_is_damaged_does_not_show(tmp_path: Path) -> None:
    asked = [device_with(tmp_path / str(number), PROFILES["everything"], SETUP) for number in range(3)]
    assert told(asked, request(REPORT, GROUP)) == "answered"
    write_profile(asked[1].folder, PROFILES["nothing"])
    asked[2].folder.profile_file.write_text("item,rating\n1,no stars\n")
    for question in (request(IDENTIFY, ""), request(REPORT, GROUP), request(REPORT, GROUP, run=2)):
        assert told(asked, question) == "answered"
    asked = [Device(device.folder) for device in asked[:2]]
    assert told(asked, request(IDENTIFY, "")) == "answered"


ALLOWED = [
    limits(per_rating=0.05),
    limits(per_rating_lifetime=0.05),
    limits(per_user=0.05),
    limits(per_user=0.1),
    limits(per_user=0.35),
    limits(per_user_lifetime=0.1 * ITEMS),
    limits(per_user_lifetime=1.5 * 0.1 * ITEMS),
    UNLIMITED,
    NO_BUDGET,
]
"""For 0.1 per rating: below one, between one rating and all of them, exactly all, and one run of two."""


@pytest.mark.parametrize("number", range(len(ALLOWED)))
@pytest.mark.parametrize("mechanism", [ThresholdBit(), BoundedLaplace(), BitsAndCounts()])
def test_no_limit_tells_how_much_is_rated(tmp_path: Path, number: int, mechanism: Mechanism) -> None:
    protocol = make.one_shot(mechanism, PrivacyBudget(epsilon=0.1))
    asked, group = devices(tmp_path, protocol, ALLOWED[number]), group_on(protocol)
    first, second = (told(asked, request(REPORT, group, run)) for run in (1, 2))
    whole, budget = 0.1 * ITEMS, ALLOWED[number]
    fits = min(budget.per_user or np.inf, budget.per_user_lifetime or np.inf) >= whole
    free = budget.per_rating is budget.per_rating_lifetime is None
    assert first == ("answered" if budget is not NO_BUDGET and free and fits else "BUDGET_SPENT")
    assert second == ("answered" if budget is UNLIMITED else "BUDGET_SPENT")
    for device in asked:
        for charge in device.charges:
            assert charge.loss.per_rating <= charge.most.per_rating
            assert charge.loss.per_user <= charge.most.per_user


def test_a_defect_does_not_show_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong for some profiles: the device answers as if nothing were rated, and pays."""
    empty, device = (
        device_with(tmp_path / name, profile, SETUP) for name, profile in [*PROFILES.items()][:2]
    )
    drawn = CellFamily.drawn

    def fails_for_some(family: CellFamily, profiles: ProfileLevels, draws: DrawsFor) -> np.ndarray:
        if profiles.items.size:
            raise FloatingPointError
        return drawn(family, profiles, draws)

    monkeypatch.setattr(CellFamily, "drawn", fails_for_some)
    replies = [each.answer(request(REPORT, GROUP)) for each in (empty, device)]
    assert report_in(replies[0]) == report_in(replies[1])
    assert len(device.charges) == 1


@pytest.mark.parametrize("mechanism", [FisherOptimal(), Hybrid()])
def test_short_profiles_are_reported_on_where_a_budget_per_user_gives_them_more_symbols(
    tmp_path: Path, mechanism: Mechanism
) -> None:
    budget = PrivacyBudget(epsilon=20.0, per="user")
    protocol = make.one_shot(mechanism, budget)
    calibrated = mechanism.family(budget, RATINGS.scale, ITEMS)
    assert calibrated.channel(1).symbols >= calibrated.channel(ITEMS).symbols
    for device in devices(tmp_path, protocol)[1:]:
        group = group_on(protocol)
        reports = [report_in(device.answer(request(REPORT, group, run))) for run in range(1, 9)]
        decoded = calibrated.codec.decode(reports)
        assert decoded.valid.all()
        assert np.diff(decoded.indptr).min() > 0


def test_replies_expire_by_the_numbers_of_the_request_alone(tmp_path: Path) -> None:
    for question in (request(REPORT, GROUP), request(REPORT, "other"), request(IDENTIFY, "")):
        for device in devices(tmp_path / str(question.metadata.message_id + question.metadata.group_id)):
            reply, asked = device.answer(question).metadata, question.metadata
            assert (reply.created_at, reply.ttl) == (asked.created_at, asked.ttl)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e19, 3e38])
def test_no_factors_tell_what_is_rated(tmp_path: Path, size: float) -> None:
    asked, group = devices(tmp_path, ROUNDS_SETUP), group_on(ROUNDS_SETUP)
    for run, pattern in enumerate(
        (np.ones((ITEMS, 2)), np.tile([1.0, -1.0], (ITEMS, 1)), np.eye(ITEMS, 2)), 1
    ):
        sent = encode_broadcast((size * pattern).astype("<f4"))
        assert told(asked, request(TRAIN, group, run, round=1, factors=sent)) == "answered"
        assert told(asked, request(DELIVER, group, run, factors=sent)) == "answered"
        for device in asked:
            work = device.take_work()
            assert work is not None
            work()


REFUSED = [
    (request(RECOMMEND, GROUP, lists=[b"\xff" * 9]), "MALFORMED_REQUEST"),
    (request(RECOMMEND, GROUP, lists=[]), "MALFORMED_REQUEST"),
    (request(PERSONALIZE, GROUP, table=b""), "MALFORMED_REQUEST"),
    (request(REPORT, "00000000"), "CHANGED_SETUP"),
    (request(TRAIN, GROUP, round=1, factors=factors()), "NOT_SET_UP"),
    (request(COUNT, GROUP, groups=b""), "MALFORMED_REQUEST"),
    (request(IDENTIFY, "", asked=b"\0"), "WRONG_USER"),
    (request("query.other", GROUP), "MALFORMED_REQUEST"),
    # An AlterEgo holds ratings as they are, at items that whoever sends the candidates chooses.
    (request(REPLACE, GROUP, start=0, stop=1, rows=b""), "NOT_SET_UP"),
]


def test_what_is_refused_is_refused_to_everybody(tmp_path: Path) -> None:
    asked = devices(tmp_path)
    for question, code in REFUSED:
        assert told(asked, question) == code


SETUP_LOSSES = GradientPerturbationProtocol(rounds=3, privacy=PrivacyBudget(epsilon=2.25))
RATED = (4, 1, 0)
"""Ratings of three users."""


def signs() -> Ratings:
    cells = np.arange(6) < np.array(RATED)[:, None]
    return rated(cells, np.where(np.nonzero(cells)[1] % 2, 1.0, -1.0), binary_scale())


@pytest.mark.parametrize("user", range(len(RATED)))
def test_slopes_are_charged_once_for_every_rating_in_every_round(tmp_path: Path, user: int) -> None:
    ratings, own = signs(), RATED[user]
    device = Device(install(tmp_path / "u", SETUP_LOSSES, ratings, user))
    group = group_on(SETUP_LOSSES, ratings)
    for round_index in range(1, SETUP_LOSSES.rounds + 1):
        row = np.full(own, 0.1 * round_index, dtype=ROW_ENTRY).tobytes() if round_index > 1 else b""
        assert device.answer(request(SLOPES, group, round=round_index, rows=[row])).has_content()
    slope = worst_pair(
        slope_channel(SETUP_LOSSES.clamp, SETUP_LOSSES.symbols, SETUP_LOSSES.epsilon_per_round).weights
    )[0]
    assert slope == pytest.approx(SETUP_LOSSES.epsilon_per_round, rel=1e-6)
    of_rating = [charge.loss.per_rating for charge in device.charges]
    of_user = [charge.loss.per_user for charge in device.charges]
    assert math.fsum(of_rating) == pytest.approx((own > 0) * SETUP_LOSSES.rounds * slope, rel=1e-9)
    assert math.fsum(of_user) == pytest.approx(own * SETUP_LOSSES.rounds * slope, rel=1e-9)


def test_what_was_delivered_is_known_after_something_else_was(tmp_path: Path) -> None:
    """Of each type of message, whatever came between."""
    asked = devices(tmp_path)
    table = ItemTable.of_biases(np.arange(LEVELS - 1.0), np.zeros(ITEMS), np.ones(ITEMS))
    lists = ItemListCodec(ITEMS)
    one, other = (
        request(RECOMMEND, GROUP, lists=lists.encode(np.array([[item]]), np.array([[3.0]])))
        for item in (0, 1)
    )
    assert told(asked, one) == told(asked, personalize(table, 1)) == "answered"
    assert told(asked, other) == "CHANGED_REQUEST"
    assert told(asked, one) == "answered"


TIMES = [(0.0, -(2.0**47) + 2.0**30), (2.0**47, 3600.0), (float("nan"), 1.0), (0.0, float("inf"))]


@pytest.mark.parametrize("times", TIMES)
def test_a_request_of_no_usual_time_is_refused(tmp_path: Path, times: tuple[float, float]) -> None:
    """Sums of such numbers with the time at which an answer is ready are rounded by what that time is."""
    asked, question = devices(tmp_path), request(REPORT, GROUP)
    for device in asked:
        question.metadata.__dict__["_created_at"], question.metadata.__dict__["_ttl"] = times
        reply = device.answer(question)
        assert outcome(reply) == "MALFORMED_REQUEST"
        assert (reply.metadata.created_at, reply.metadata.ttl) == (0.0, 1e7)
