"""What can be followed of a run: a log, and who answered what, in its directory while it goes on.

`run.log` has a line for each thing that happens, the last of which says how the run ended; a run whose log
ends otherwise goes on, or was killed. `exchanges.jsonl` has a line for each thing that was asked: who
answered, who did not, and why. `rounds.jsonl` has the rounds so far. None of that says more than the server
knows anyway. The log goes to standard output as well, which Flower shows as the run's own (`flwr log`).
"""

import fcntl
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from flwr.app import ConfigRecord, Message
from flwr.serverapp import Grid

from dprec.errors import one_line, plural
from dprec.exchange import COUNT, COUNT_ROUND, REPORT, REQUEST, is_integer, words_of
from dprec.reports import REPORT_ROUND
from dprec_pilot.files import OPEN, OWNER_ONLY, read_text, unusable, write_durably
from dprec_pilot.server.server_folder import Enrolled
from simulation.engine.grids import WaitingGrid
from simulation.storage.directories import ROUNDS
from simulation.storage.exchanges import EXCHANGES, Exchange, read_exchanges
from simulation.storage.run_files import written_rounds
from strategies.participation import NoReportError, RoundRecord
from strategies.roster import reply_record

LOG = logging.getLogger("dprec.server")

RUN_LOG = "run.log"
_PROGRESS_SECONDS = 10.0
"""Time between lines on how far a computation is."""
_LOG = "run.log as a run writes it"
ENDED, FAILED, STOPPED = "the run has ended", "the run has failed", "the run was stopped"
"""Beginnings of the last line of a log."""

_ROUNDS = {REPORT: REPORT_ROUND, COUNT: COUNT_ROUND}
"""Of requests that do not name theirs."""


def how_it_ended(directory: Path) -> str | None:
    """Return the last line of a run's log without its time, if that says how the run ended."""
    path = directory / RUN_LOG
    lines = read_text(path, _LOG).splitlines() if path.exists() else []
    last = lines[-1].partition(" ")[2] if lines else ""
    return last if last.startswith((ENDED, FAILED, STOPPED)) else None


def began_at(directory: Path) -> str | None:
    """Return when a run began, in UTC, by its log."""
    path = directory / RUN_LOG
    return read_text(path, _LOG).partition(" ")[0] or None if path.exists() else None


def is_written(directory: Path) -> bool:
    """Return whether a process has a run under way: it holds the log for as long as it lives."""
    try:
        with (directory / RUN_LOG).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@dataclass
class RunLog:
    """What is told of a run in its directory."""

    directory: Path
    users: Mapping[int, str]
    """Who has which node."""
    everybody: Sequence[str]
    """All who are enrolled."""
    told: float
    """When it was last told how far a computation is, on the clock of `time.monotonic`."""
    exchanges: list[Exchange] = field(default_factory=list)
    rounds: list[RoundRecord] = field(default_factory=list)

    def progress(self, what: str, done: int, total: int) -> None:
        """Tell how far a computation is, now and then."""
        if time.monotonic() - self.told >= _PROGRESS_SECONDS:
            self.told = time.monotonic()
            LOG.info("%s: %d of %d", what, done, total)

    def note(self, exchange: Exchange) -> None:
        """Note what was asked and answered, unless a run that is resumed repeats what is known already."""
        if exchange.exchange <= len(self.exchanges):
            return
        self.exchanges.append(exchange)
        lines = (json.dumps(each.model_dump(mode="json")) + "\n" for each in self.exchanges)
        self._write(EXCHANGES, lines, OWNER_ONLY)
        causes = _in_words(exchange.causes)
        LOG.info(
            "%s: %d answered in %.1f s%s", exchange.asks, len(exchange.answered), exchange.seconds, causes
        )

    def note_round(self, record: RoundRecord) -> None:
        """Note how a round went."""
        self.rounds.append(record)
        self._write(ROUNDS, written_rounds(self.rounds), OPEN)
        LOG.info("round %d: %d reports can be used%s", record.round, record.replies, _in_words(record.causes))

    def _write(self, name: str, lines: Iterable[str], mode: int) -> None:
        try:
            write_durably(self.directory / name, "".join(lines), mode)
        except OSError as error:
            raise unusable(self.directory / name, error) from None


def _in_words(causes: Mapping[str, int]) -> str:
    return "".join(f"; {count} {cause}" for cause, count in causes.items())


@contextmanager
def followed(directory: Path, enrolled: Iterable[Enrolled]) -> Iterator[RunLog]:
    """Tell of a run in its directory, as long as the context lasts, and of how it ended."""
    everybody = tuple(enrolled)
    users = {each.node_id: each.user for each in everybody if each.node_id is not None}
    began = time.monotonic()
    log = RunLog(directory, users, tuple(each.user for each in everybody), began)
    with _written_to(directory / RUN_LOG):
        log.exchanges += read_exchanges(directory)
        goes_on = f"goes on after {plural(len(log.exchanges), 'question')}" if log.exchanges else "begins"
        LOG.info("the run %s: %d users, %d with a device", goes_on, len(everybody), len(users))
        try:
            yield log
        except Exception as error:
            if isinstance(error, NoReportError):
                log.note_round(error.record)
            LOG.error("%s after %.0f s: %s", FAILED, time.monotonic() - began, one_line(error))
            raise
        except BaseException:
            LOG.error("%s after %.0f s", STOPPED, time.monotonic() - began)
            raise
        LOG.info("%s after %.0f s", ENDED, time.monotonic() - began)


@contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Append what the server logs to a file, which only its owner may read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
    except OSError as error:
        raise unusable(path, error) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file, handled_by(file):
        # For `is_written`; the lock ends with the process, however it ends.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def handled_by(stream: TextIO) -> Iterator[None]:
    """Write what the server logs to a stream; Flower takes the log of a run from standard output."""
    handler, level = logging.StreamHandler(stream), LOG.level
    handler.setFormatter(_OneLine("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(level)


class _OneLine(logging.Formatter):
    """One line for each record, with the time in UTC: how a run ended is its last line."""

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        return " ".join(super().format(record).split())


class FollowedGrid(WaitingGrid):
    """Another grid, of which a log tells what was asked and who answered."""

    def __init__(self, grid: Grid, log: RunLog) -> None:
        super().__init__(grid)
        self._log, self._asked = log, 0

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Ask, and return the replies; a device that has no node is absent as well."""
        questions, began, started = list(messages), datetime.now(UTC), time.monotonic()
        self._asked += 1
        if not questions:
            return self._grid.send_and_receive(questions, timeout=timeout)
        if self._asked > len(self._log.exchanges):
            LOG.info("%s: asking %d devices", questions[0].metadata.message_type, len(questions))
        replies = list(self._grid.send_and_receive(questions, timeout=timeout))
        asks, record = questions[0].metadata.message_type, questions[0].content.get(REQUEST)
        named = record.get("round") if isinstance(record, ConfigRecord) else None
        exchange = Exchange(
            exchange=self._asked,
            asks=asks,
            round=named if is_integer(named) else _ROUNDS.get(asks),
            began=began.isoformat(timespec="seconds"),
            seconds=time.monotonic() - started,
            **self._sorted_by_fate(questions, replies),
        )
        self._log.note(exchange)
        return replies

    def _sorted_by_fate(self, questions: Sequence[Message], replies: Sequence[Message]) -> dict[str, Any]:
        """Return the users by how they answered, each list in the order of the enrolment."""
        users = self._log.users
        fates = {users[node]: "absent" for each in questions if (node := each.metadata.dst_node_id) in users}
        for reply in replies:
            if (user := users.get(reply.metadata.src_node_id)) in fates:
                record = reply_record(reply)
                late = record is not None and record.get("late")
                answered = "late" if late else "answered"
                fates[user] = words_of(reply.error.code) if reply.has_error() else answered
        by_fate: dict[str, list[str]] = {}
        for user in self._log.everybody:
            if user in fates:
                by_fate.setdefault(fates[user], []).append(user)
        known = {fate: tuple(by_fate.pop(fate, ())) for fate in ("answered", "late", "absent")}
        return {**known, "refused": {fate: tuple(those) for fate, those in sorted(by_fate.items())}}
