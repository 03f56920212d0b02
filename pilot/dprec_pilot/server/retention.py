"""What a SuperLink keeps of runs that have ended, and how it is made to forget it.

A SuperLink has every request and report in its database until a run has ended, and deletes them when
somebody asks for the list of runs. What a database deletes stays in its file, and in that of its write-ahead
log, until other data happen to be written there. So whoever keeps a SuperLink has to ask for the list, and
then to have the database written anew.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dprec.errors import RunError

_HOLDING = ("message_ins", "message_res", "objects")
"""Tables with what is asked and answered."""

_BUSY_SECONDS = 10.0
"""How long the database may be in use by the SuperLink."""


def held(database: Path) -> int:
    """Return how many messages and parts of such a database has; raises RunError as `clean`."""
    with _opened(database) as connection:
        return sum(_count(connection, f"SELECT count(*) FROM {table}") for table in _HOLDING)


def forget(database: Path) -> None:
    """Write a database anew, without what was deleted, and empty its write-ahead log; see `clean`."""
    with _opened(database) as connection:
        connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("in use by the SuperLink")


def clean(database: Path, delete: Callable[[], object]) -> bool:
    """Have a SuperLink delete what it has of runs that have ended, and then forget it.

    ``delete``: asks the SuperLink. Returns whether nothing is left of any run: one that goes on needs its
    messages. Raises RunError when that cannot be, or the SuperLink has the database in use for too long.
    """
    if not database.exists():
        return True
    delete()
    forget(database)
    return held(database) == 0


def keep_clean(
    database: Path, delete: Callable[[], object], every: float, say: Callable[[str], object]
) -> None:
    """Clean a database when a run has ended, again and again, as long as the parent of this process lives.

    ``every``: seconds between looks. What goes wrong is said once, and tried again.
    """
    keeper, cleaned, said = os.getppid(), -1, ""
    while os.getppid() == keeper:
        time.sleep(every)
        try:
            if database.exists():
                with _opened(database) as connection:
                    found = _count(connection, "SELECT count(*) FROM task WHERE finished_at IS NOT NULL")
                if found != cleaned and clean(database, delete):
                    cleaned, said = found, ""
        except RunError as error:
            if said != str(error):
                said = str(error)
                say(said)
    # Nobody uses it any longer.
    with contextlib.suppress(RunError):
        forget(database)


def _count(connection: sqlite3.Connection, query: str) -> int:
    (count,) = connection.execute(query).fetchone()
    return int(count)


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    try:
        connection = sqlite3.connect(database, timeout=_BUSY_SECONDS, isolation_level=None)
        with contextlib.closing(connection):
            yield connection
    except sqlite3.Error as error:
        raise RunError(f"{database}: {error}; what the SuperLink has deleted may still be in it") from None
