"""Joining: a folder as prepare makes them, from an invitation that is not trusted and a table of ratings."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.exchange import OneShotSetup, to_json
from dprec.mechanisms import BoundedLaplace
from dprec.ratings import POSITIVE, RatingScale
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import Agreement, DeviceFolder
from dprec_pilot.device.joining import Invitation, join, read_invitation, read_ratings, rotate
from dprec_pilot.device.ledger import Limits
from dprec_pilot.device.node_key import PublicLine, public_line, read_node_key
from dprec_pilot.server.certificates import Authority
from pilot.tests.device.devices import KEYS, agreement_on
from pilot.tests.device.test_device import ROUNDS_SETUP
from tests.refusals import refused_at

RATINGS = Synthetic(users=5, items=12, ratings=30).load()
ITEMS = [str(item) for item in RATINGS.item_ids]
LIMITS = Limits(per_rating=1.0, per_rating_lifetime=2.0, per_user=None, per_user_lifetime=None, runs=2)
CERTIFICATE = Authority.new(1).issued.certificate.decode()
STARS = RatingScale(np.arange(1.0, 6.0))


def invitation(**changed: Any) -> Invitation:
    values: dict[str, Any] = {
        "protocol": agreement_on(ROUNDS_SETUP, RATINGS).text,
        "items": tuple(ITEMS),
        "limits": LIMITS,
        "certificate": CERTIFICATE,
    }
    return Invitation(**{**values, **changed})


@pytest.fixture
def invited(tmp_path: Path) -> Path:
    path = tmp_path / "invitation.json"
    path.write_text(invitation().text)
    return path


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    path.write_text(f"item,rating\n{ITEMS[3]},4\n{ITEMS[0]},1.0\nunknown,5\n")
    return path


def test_a_folder_is_made_as_prepare_makes_them(tmp_path: Path, invited: Path, ratings: Path) -> None:
    joined = join(invited, ratings, tmp_path / "new" / "me", 4)
    device = Device(joined.folder)
    assert joined.folder.path == tmp_path / "new" / "me"
    assert device.folder.agreement.fingerprint == agreement_on(ROUNDS_SETUP, RATINGS).fingerprint
    assert (device.folder.options.user, device.folder.options.limits) == (4, LIMITS)
    assert device.charges == ()
    assert joined.folder.profile_file.read_text() == f"item,rating\n{ITEMS[3]},4.0\n{ITEMS[0]},1.0\n"
    assert (joined.ratings, joined.unknown) == (2, ("unknown",))
    key = read_node_key(joined.folder.node_key_file)
    assert joined.line == PublicLine(4, public_line(key.public_key()))
    assert (joined.folder.path / "ca.crt").read_text() == CERTIFICATE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["invitation.json", "new", "ratings.csv"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["me"]


def test_only_the_owner_reads_a_folder(tmp_path: Path, invited: Path, ratings: Path) -> None:
    folder = join(invited, ratings, tmp_path / "me", 0).folder.path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_two_devices_share_no_secret(tmp_path: Path, invited: Path, ratings: Path) -> None:
    one, other = (join(invited, ratings, tmp_path / name, 0) for name in ("a", "b"))
    assert one.folder.secret != other.folder.secret
    assert one.line.key != other.line.key


def test_an_empty_folder_may_be_there_and_a_full_one_is_left_alone(
    tmp_path: Path, invited: Path, ratings: Path
) -> None:
    (tmp_path / "me").mkdir()
    join(invited, ratings, tmp_path / "me", 0)
    before = {path: path.read_bytes() for path in (tmp_path / "me").iterdir()}
    with refused_at("me"):
        join(invited, ratings, tmp_path / "me", 0)
    assert {path: path.read_bytes() for path in (tmp_path / "me").iterdir()} == before


def protocol(**changed: Any) -> str:
    values = json.loads(agreement_on(ROUNDS_SETUP, RATINGS).text)
    return json.dumps({**values, **changed})


def agreed_on(items: list[str]) -> dict[str, Any]:
    agreement = Agreement.of(ROUNDS_SETUP, RATINGS.scale, items, public=KEYS.public)
    return {"protocol": agreement.text, "items": tuple(items)}


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"items": tuple(reversed(ITEMS))}, "invitation.json, items"),
        ({"items": tuple(ITEMS[:-1])}, "invitation.json, items"),
        (agreed_on([*ITEMS[1:], ITEMS[1]]), "invitation.json, items"),
        (agreed_on([*ITEMS[:-1], "a\nb"]), "invitation.json, items"),
        (agreed_on([*ITEMS[:-1], "a\rb"]), "invitation.json, items"),
        ({"certificate": ""}, "invitation.json, certificate"),
        ({"certificate": "\N{SNOWMAN}"}, "invitation.json, certificate"),
        ({"certificate": CERTIFICATE.replace("A", "B")}, "invitation.json, certificate"),
        ({"protocol": "{}"}, "invitation.json, protocol, setup"),
        ({"protocol": "no JSON"}, "invitation.json, protocol, JSON"),
        pytest.param({"protocol": "[" * 100_000}, "invitation.json, protocol, JSON", id="deep"),
        ({"protocol": protocol(items=len(ITEMS) + 1)}, "invitation.json, items"),
        ({"protocol": protocol(computes=9999)}, "invitation.json, protocol"),
        ({"protocol": protocol(directory="0" * 64)}, "invitation.json, protocol"),
        (
            {"protocol": protocol(setup={"kind": "../../etc/passwd"})},
            "invitation.json, protocol, setup.kind",
        ),
    ],
)
def test_an_invitation_that_contradicts_itself_is_named_and_makes_nothing(
    tmp_path: Path, ratings: Path, changed: dict[str, Any], where: str
) -> None:
    path = tmp_path / "invitation.json"
    path.write_text(to_json(invitation(**changed)))
    with refused_at(where):
        join(path, ratings, tmp_path / "me", 0)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["invitation.json", "ratings.csv"]


@pytest.mark.parametrize(
    ("contents", "where"),
    [
        (b"", "invitation.json, JSON"),
        (b"\xff", "invitation.json"),
        (b"[]", "invitation.json, JSON"),
        (b'{"protocol": 1}', "invitation.json, protocol"),
        (to_json(invitation())[:-1].encode() + b', "path": "/etc"}', "invitation.json, path"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_what_is_no_invitation_is_named(tmp_path: Path, contents: bytes, where: str) -> None:
    path = tmp_path / "invitation.json"
    path.write_bytes(contents)
    with refused_at(where):
        read_invitation(path)
    with refused_at("nowhere"):
        read_invitation(tmp_path / "nowhere")


def test_a_class_of_somebody_is_imported_only_where_the_owner_names_it(
    tmp_path: Path, ratings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, path = tmp_path / "imported", tmp_path / "invitation.json"
    (tmp_path / "prying.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Prying: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    one_shot = OneShotSetup(mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0))
    setup = {**json.loads(to_json(one_shot)), "mechanism": {"kind": "prying:Prying"}}
    path.write_text(to_json(invitation(protocol=protocol(setup=setup))))
    with refused_at("invitation.json, protocol, setup.mechanism.kind"):
        join(path, ratings, tmp_path / "me", 0)
    assert not trace.exists()
    with refused_at("invitation.json, protocol, setup.mechanism.kind"):
        join(path, ratings, tmp_path / "me", 0, ["prying:Prying"])
    assert trace.exists()


def test_a_number_without_a_budget_of_its_own_is_refused(
    tmp_path: Path, invited: Path, ratings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(ROUNDS_SETUP), "numbers", lambda self, start, stop: np.zeros(2)[start:stop])
    join(invited, ratings, tmp_path / "me", 1)
    with refused_at("--user"):
        join(invited, ratings, tmp_path / "other", 2)


def table(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "items", "values"),
    [
        ("item,rating\n1,4\n2,5\n", ["1", "2"], [4.0, 5.0]),
        ("movieId;Rating;timestamp\n10;3;17\n7;1;18\n", ["10", "7"], [3.0, 1.0]),
        ("rating\titem\n5\ta b\n4\tc\n", ["a b", "c"], [5.0, 4.0]),
        ('item,rating\n"a, b",4\n"c ""d""",2\n', ["a, b", 'c "d"'], [4.0, 2.0]),
        ("user,item,rating\nme,007,4\nme,x,5\n", ["007", "x"], [4.0, 5.0]),
        ("item,rating\n", [], []),
    ],
)
def test_a_table_is_read_by_the_names_of_its_columns(
    tmp_path: Path, text: str, items: list[str], values: list[float]
) -> None:
    found, rated = read_ratings(table(tmp_path, text), STARS)
    assert found == items
    assert rated.tolist() == values


def test_a_set_is_read_from_a_column_of_items(tmp_path: Path) -> None:
    for text in ("item\na\nb c\n", "item,rating\na,9\nb c,0\n"):
        items, values = read_ratings(table(tmp_path, text), POSITIVE)
        assert items == ["a", "b c"]
        assert np.isnan(values).all()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "table.csv, line 1"),
        ("1,4\n2,5\n", "table.csv, line 1"),
        ("item,time\n1,4\n", "table.csv, line 1"),
        ("item,rating\n1,4\n2,5\n1,4\n", "table.csv, line 4"),
        ("item,rating\n1,4\n2,6\n", "table.csv, line 3"),
        ("user,item,rating\na,1,4\nb,2,5\n", "table.csv"),
    ],
)
def test_what_is_no_rating_of_one_user_is_named(tmp_path: Path, text: str, where: str) -> None:
    with refused_at(where):
        read_ratings(table(tmp_path, text), STARS)


@pytest.mark.parametrize(
    "text", ["item,rating\n1,4\n2,\n", "item,rating\n1,4\n2,nan\n", b"item,rating\n\xff,\0\n"]
)
def test_a_table_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(InputError, match=r"table\.csv") as caught:
        read_ratings(table(tmp_path, text), STARS)
    assert "\n" not in str(caught.value)


def test_ratings_of_other_items_alone_are_taken_for_another_file(
    tmp_path: Path, invited: Path, ratings: Path
) -> None:
    ratings.write_text("item,rating\nx,4\ny,5\n")
    with refused_at("ratings.csv"):
        join(invited, ratings, tmp_path / "me", 0)
    ratings.write_text("item,rating\n")
    assert join(invited, ratings, tmp_path / "me", 0).ratings == 0


def test_the_next_key_is_signed_and_the_present_one_stays(
    tmp_path: Path, invited: Path, ratings: Path
) -> None:
    joined = join(invited, ratings, tmp_path / "me", 3)
    kept = {path: path.read_bytes() for path in joined.folder.path.iterdir()}
    line = rotate(joined.folder.path)
    assert line.user == 3
    assert line.key != joined.line.key
    assert line.follows(joined.line.key)
    assert {path: path.read_bytes() for path in kept} == kept
    later = joined.folder.next_node_key_file
    assert stat.S_IMODE(later.stat().st_mode) == 0o600
    assert public_line(read_node_key(later).public_key()) == line.key
    again = rotate(joined.folder.path)
    assert again.key == line.key
    assert again.follows(joined.line.key)
    joined.folder.take_next_node_key()
    assert public_line(read_node_key(joined.folder.node_key_file).public_key()) == line.key
    assert rotate(joined.folder.path).follows(line.key)


def no_device(folder: DeviceFolder) -> str:
    folder.options_file.unlink()
    return "device.json"


def masks(folder: DeviceFolder) -> str:
    folder.protocol_file.write_text(protocol(directory="0" * 64))
    return "protocol.json"


def no_key(folder: DeviceFolder) -> str:
    folder.next_node_key_file.write_bytes(b"")
    return "node.key.next"


@pytest.mark.parametrize("spoil", [no_device, masks, no_key])
def test_a_device_that_gets_no_other_key_is_named(
    tmp_path: Path, invited: Path, ratings: Path, spoil: Callable[[DeviceFolder], str]
) -> None:
    folder = join(invited, ratings, tmp_path / "me", 3).folder
    with refused_at(spoil(folder)):
        rotate(folder.path)


def test_a_device_that_is_served_gets_no_other_key(tmp_path: Path, invited: Path, ratings: Path) -> None:
    folder = join(invited, ratings, tmp_path / "me", 3).folder
    with folder.locked(), refused_at("me"):
        rotate(folder.path)
    assert not folder.next_node_key_file.exists()
