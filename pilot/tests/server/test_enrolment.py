"""The enrolment list."""

from pathlib import Path

import pytest

from dprec.errors import InputError
from dprec_pilot.server.server_folder import Enrolled, read_enrolment, write_enrolment

SOME = [Enrolled("u1", "key one", 2**64 - 1), Enrolled("u,2", "key two"), Enrolled("u3", None)]


def test_it_is_read_as_written_with_gaps(tmp_path: Path) -> None:
    write_enrolment(tmp_path / "enrolment.csv", SOME)
    assert read_enrolment(tmp_path / "enrolment.csv") == SOME


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ":1: nothing"),
        ("user,node_id\n", ":1: user,node_id"),
        ("user,public_key,node_id\nu1,k\n", ":2: u1,k"),
        pytest.param(f"user,public_key,node_id\nu1,{'k' * 140_000},\n", ": field larger", id="long"),
        ("user,public_key,node_id\n,k,7\n", ":2: ,k,7"),
        ("user,public_key,node_id\nu1,k,1\n", ":2: node 1"),
        ("user,public_key,node_id\nu1,k,-7\n", ":2: node -7"),
        ("user,public_key,node_id\nu1,k,18446744073709551616\n", ":2: node 1844"),
        pytest.param(f"user,public_key,node_id\nu1,k,{'9' * 5000}\n", ":2: node 999", id="digits"),
        ("user,public_key,node_id\nu1,k,7\nu2,k,8\n", ":3: k again"),
        ("user,public_key,node_id\nu1,k,7\nu2,l,7\n", ":3: node 7 again"),
        ("user,public_key,node_id\nu1,,\nu1,,\n", ":3: user u1 again"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "enrolment.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_enrolment(path)
    assert f"{path}{line}" in str(refused.value)
