"""attendance.csv: who answered in which round of a deployment. Simulated users can answer as they did."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clients.faults import ABSENT, LATE, NOT_ASKED, PUNCTUAL, Attendance
from dprec.errors import InputError
from simulation.storage.files import Row, csv_of_rows, read_columns, write_atomically

ATTENDANCE = "attendance.csv"
"""Name of the file in a run directory."""

OUTCOMES = {"answered": PUNCTUAL, "late": LATE, "absent": ABSENT, "not-asked": NOT_ASKED}
"""What can become of a question; a device that refused has a code in place of these, and was absent."""

_ACCEPTED = "an attendance.csv, as deployments write it"
_MOST_ROUNDS = 100_000


def write_attendance(path: Path, rows: Sequence[tuple[int, str, str]]) -> None:
    """Write rows of a round, a user's id and what became of the question."""
    table: list[Row] = [{"round": number, "user": user, "outcome": outcome} for number, user, outcome in rows]
    write_atomically(path, csv_of_rows(table))


def read_attendance(path: Path, user_ids: Sequence[str]) -> Attendance:
    """Read who answered; raises InputError for other users, a row given twice and what is no such file."""
    columns = read_columns(path, {"round": np.int64, "user": np.str_, "outcome": np.str_}, _ACCEPTED)
    rounds, users = columns["round"], columns["user"].tolist()
    if not rounds.size or rounds.min() < 1 or rounds.max() > _MOST_ROUNDS:
        found = "no round" if not rounds.size else f"round {rounds.min()} to {rounds.max()}"
        raise InputError(str(path), found, f"rounds from 1 to {_MOST_ROUNDS:,}")
    position = {user: number for number, user in enumerate(user_ids)}
    if strange := next((user for user in users if user not in position), None):
        raise InputError(str(path), f"user {strange!r}", "users of the data set")
    places = np.array([position[user] for user in users], dtype=np.int64)
    cells = (rounds - 1) * len(user_ids) + places
    if np.unique(cells).size < cells.size:
        raise InputError(str(path), "a user twice in a round", "one row for each")
    fates = np.full((int(rounds.max()), len(user_ids)), NOT_ASKED, dtype=np.int8)
    fates[rounds - 1, places] = [OUTCOMES.get(outcome, ABSENT) for outcome in columns["outcome"].tolist()]
    return Attendance(fates)
