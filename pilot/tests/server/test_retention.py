"""What a SuperLink has deleted is in none of its files any longer."""

import sqlite3
from pathlib import Path

import pytest

from dprec_pilot.server import retention

REPORT = b"a report that nobody is to find" * 300


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a database as a SuperLink has it, with a report and an end of a task."""
    path = tmp_path / "superlink.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    # Some builds of SQLite overwrite what is deleted by themselves, others do not.
    connection.execute("PRAGMA secure_delete = OFF")
    for table in ("message_ins", "message_res", "objects"):
        connection.execute(f"CREATE TABLE {table} (content BLOB)")
    connection.execute("CREATE TABLE task (finished_at TIMESTAMP)")
    connection.execute("INSERT INTO objects VALUES (?)", [REPORT])
    connection.execute("INSERT INTO task VALUES ('2026-01-01')")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint")
    # A SuperLink keeps its connections, so that the write-ahead log stays.
    CONNECTIONS[path] = connection
    return path


CONNECTIONS: dict[Path, sqlite3.Connection] = {}


def delete(path: Path) -> None:
    CONNECTIONS[path].execute("DELETE FROM objects")
    CONNECTIONS[path].commit()


def found(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir() if REPORT[:100] in file.read_bytes()}


def test_what_is_deleted_stays_in_the_files_until_it_is_forgotten(database: Path) -> None:
    delete(database)
    assert found(database) == {"superlink.db", "superlink.db-wal"}
    retention.forget(database)
    assert found(database) == set()


def test_a_run_that_goes_on_keeps_its_messages(database: Path) -> None:
    assert not retention.clean(database, lambda: None)
    assert found(database)
    assert retention.clean(database, lambda: delete(database))
    assert found(database) == set()
