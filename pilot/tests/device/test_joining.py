"""Joining: a folder as prepare makes them, from an invitation that is not trusted and a table of ratings."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from dprec.accounting import PrivacyBudget
from dprec.completion import ItemAverage
from dprec.components import to_json
from dprec.mechanisms import BoundedLaplace
from dprec.protocols.one_shot import OneShotProtocol
from dprec_pilot.device.folder import Agreement
from dprec_pilot.device.joining import Invitation, join, read_ratings, rotate
from dprec_pilot.device.ledger import Limits
from dprec_pilot.device.node_key import PublicLine, new_node_key, public_line, read_node_key
from dprec_pilot.server.certificates import Authority
from pilot.tests.make import KEYS, RATINGS, ROUNDS_SETUP, agreement_on
from tests import make
from tests.make import STARS
from tests.refusals import refused_at

ITEMS = [str(item) for item in RATINGS.item_ids]
KEY = new_node_key().public
LIMITS = Limits(per_rating=1.0, per_rating_lifetime=2.0, per_user=None, per_user_lifetime=None, runs=2)
CERTIFICATE = Authority.new(1).issued.certificate.decode()


ONE_SHOT = OneShotProtocol(
    mechanism=BoundedLaplace(), privacy=PrivacyBudget(epsilon=1.0, per="rating"), completion=ItemAverage()
)


def invitation(**changed: Any) -> Invitation:
    values: dict[str, Any] = {
        "protocol": agreement_on(ROUNDS_SETUP).text,
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


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEY,
        f"0 {KEY}\n1 {KEY}",
        f"-1 {KEY}",
        f"{10**9} {KEY}",
        f"0 {KEY[:-8]}",
        f"0 {KEY} me@home",
        f'0 command="rm" {KEY}',
        f"0 {public_line(ec.generate_private_key(ec.SECP256R1()).public_key())}",
    ],
    ids=lambda text: "line",
)
def test_what_is_no_line_of_a_device_is_refused(text: str) -> None:
    with refused_at("LINE"):
        PublicLine.read(text, "LINE")


def test_a_signature_holds_for_one_user_one_key_and_the_next() -> None:
    before, after, other = (ec.generate_private_key(ec.SECP384R1()) for _ in range(3))
    old, new, else_ = (public_line(key.public_key()) for key in (before, after, other))
    line = PublicLine.signed(3, new, before)
    assert PublicLine.read(line.text, "LINE") == line
    assert line.follows(old)
    assert not line.follows(else_)
    assert not line.follows(new)
    assert not PublicLine(4, new, line.signature).follows(old)
    assert not PublicLine(3, else_, line.signature).follows(old)
    assert not PublicLine(3, new).follows(old)
    assert not PublicLine.signed(3, new, other).follows(old)


def test_only_the_owner_reads_a_folder(tmp_path: Path, invited: Path, ratings: Path) -> None:
    folder = join(invited, ratings, tmp_path / "me", 0).folder.path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        (ONE_SHOT, ["sent in clear: which items were rated", "{} together: epsilon {:g} in one run{}"]),
        (ROUNDS_SETUP, ["the server does not see which items were rated"]),
    ],
)
@pytest.mark.parametrize(("count", "ratings"), [(1, "1 rating"), (12, "12 ratings")])
@pytest.mark.parametrize(("limit", "unbounded"), [(None, ", which no limit bounds"), (99.0, "")])
def test_who_joins_is_told_what_is_seen_and_what_all_ratings_cost(
    tmp_path: Path, setup: Any, told: list[str], count: int, ratings: str, limit: float | None, unbounded: str
) -> None:
    path, table = tmp_path / "invitation.json", tmp_path / "mine.csv"
    limits = replace(LIMITS, per_user=limit)
    path.write_text(invitation(protocol=agreement_on(setup).text, limits=limits).text)
    table.write_text("\n".join(["item,rating", *(f"{item},4" for item in ITEMS[:count])]))
    said = join(path, table, tmp_path / "me", 0).in_words
    assert said[1 : 1 + len(told)] == [each.format(ratings, count, unbounded) for each in told]
    assert said[-1].startswith(f"{ratings} in ")


def protocol(**changed: Any) -> str:
    values = json.loads(agreement_on(ROUNDS_SETUP).text)
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
        ({"certificate": ""}, "invitation.json, certificate"),
        ({"certificate": CERTIFICATE.replace("A", "B")}, "invitation.json, certificate"),
        ({"protocol": "{}"}, "invitation.json, protocol, protocol"),
        ({"protocol": "no JSON"}, "invitation.json, protocol, JSON"),
        pytest.param({"protocol": "[" * 100_000}, "invitation.json, protocol, JSON", id="deep"),
        ({"protocol": protocol(items=len(ITEMS) + 1)}, "invitation.json, items"),
        ({"protocol": protocol(computes=9999)}, "invitation.json, protocol"),
        ({"protocol": protocol(directory="0" * 64)}, "invitation.json, protocol"),
        (
            {"protocol": protocol(protocol={"kind": "../etc/passwd"})},
            "invitation.json, protocol, protocol.kind",
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


def test_a_class_of_somebody_is_imported_only_where_the_owner_names_it(
    tmp_path: Path, ratings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, path = tmp_path / "imported", tmp_path / "invitation.json"
    (tmp_path / "prying.py").write_text(f"open({str(trace)!r}, 'w').close()\nclass Prying: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    one_shot = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0))
    prying = {**json.loads(to_json(one_shot)), "mechanism": {"kind": "prying:Prying"}}
    path.write_text(to_json(invitation(protocol=protocol(protocol=prying))))
    with refused_at("invitation.json, protocol, protocol.mechanism.kind"):
        join(path, ratings, tmp_path / "me", 0)
    assert not trace.exists()
    with refused_at("invitation.json, protocol, protocol.mechanism.kind"):
        join(path, ratings, tmp_path / "me", 0, ["prying:Prying"])
    assert trace.exists()


def table(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "table.csv, line 1"),
        ("item,time\n1,4\n", "table.csv, line 1"),
        ("item,rating\n1,4\n2,5\n1,4\n", "table.csv, line 4"),
        ("item,rating\n1,4\n2,6\n", "table.csv, line 3"),
        ("user,item,rating\na,1,4\nb,2,5\n", "table.csv"),
    ],
)
def test_what_is_no_rating_of_one_user_is_named(tmp_path: Path, text: str, where: str) -> None:
    with refused_at(where):
        read_ratings(table(tmp_path, text), STARS)


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
