"""What `dprec-pilot status` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dprec.errors import plural
from simulation.console.listing import text_column
from simulation.console.terminal import print_json, print_lines, print_table, text_of

if TYPE_CHECKING:
    from dprec_pilot.server.status import InRun, PilotStatus, RunStatus, UserStatus
    from simulation.storage.column import Column

_LAST_RUNS = 3
"""Runs that have a column each."""


def print_status(status: PilotStatus, *, as_json: bool) -> None:
    """Print how a pilot is doing: the runs, a line each, and a table of the users."""
    if as_json:
        print_json(asdict(status))
        return
    print_lines([_pilot(status), *map(_run, status.runs)])
    typer.echo()

    def of(run: RunStatus) -> Column[UserStatus]:
        return text_column(run.name, lambda each: _in_run(each.runs.get(run.name)), wrapped=True)

    columns = [
        text_column("user", lambda each: each.user),
        text_column("folder", lambda each: each.folder, rank=2),
        text_column("device", _device, rank=1),
        text_column("last seen", lambda each: each.last_seen and f"{each.last_seen:%Y-%m-%d %X}", rank=3),
        *map(of, status.runs[-_LAST_RUNS:]),
    ]
    print_table(columns, status.users, "dprec-pilot status --json")


def _pilot(status: PilotStatus) -> str:
    registered = sum(each.node_id is not None for each in status.users)
    online = sum(each.device == "online" for each in status.users)
    here = "" if status.superlink is None else f", {online} online"
    name, count = text_of(status.name), len(status.users)
    return f"{name}, protocol {status.protocol[:8]}: {plural(count, 'user')}, {registered} registered{here}"


def _run(run: RunStatus) -> str:
    causes = "".join(f", {count} {cause}" for cause, count in run.causes.items())
    told = f"{plural(run.rounds, 'round')}, {plural(run.answers, 'answer')}{causes}"
    asked, answered = run.waited_for or (0, 0)
    waits = "" if run.waited_for is None else f", {answered} of {asked} have answered what is open"
    return f"run {text_of(run.name)}, {run.began or 'not begun'}: {told}; {text_of(run.state)}{waits}"


def _device(user: UserStatus) -> str:
    registered = user.device or ("not registered" if user.node_id is None else "registered")
    return registered if user.has_key else "no key"


def _in_run(did: InRun | None) -> str | None:
    """Return what became of a device in a run, in a few words."""
    if did is None:
        return None
    fates = {"answered": did.answered, "late": did.late, **did.refused, "absent": did.absent}
    told = [f"{fate} {_ranges(rounds)}" for fate, rounds in fates.items() if rounds]
    if did.epsilon_per_user is not None and (did.answered or did.late):
        told.append(f"\N{GREEK SMALL LETTER EPSILON} {did.epsilon_per_user:.4g}")
    return ", ".join(told) or None


def _ranges(rounds: Iterable[int]) -> str:
    """Return ascending numbers in short: 1-3 5."""
    ranges = list[list[int]]()
    for number in rounds:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    return " ".join("-".join(map(str, each)) for each in ranges)
