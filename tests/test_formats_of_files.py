"""Every file that outlives a process is refused where another dprec has written it in another format."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.shards import ShardedRatings, write_shards
from dprec import formats
from dprec.datasets import Synthetic
from dprec.errors import InputError
from simulation import audit, run
from simulation.storage.directories import AUDIT, TABLE, ComparisonDirectory, check_table, parse_audit
from simulation.storage.run_directory import Checkpoints
from simulation.storage.summary import read_summary
from simulation.tuning.running import TuningDirectory
from strategies.iterative import State
from tests.simulation.conftest import TINY

SOME = Synthetic(users=5, items=12, ratings=30)
ACCEPT = Callable[[], object]


def a_run(folder: Path) -> ACCEPT:
    run("nothing-sent", folder / "run", dataset=SOME, simulation={"backend": "local"}, page=False)
    return lambda: read_summary(folder / "run")


def an_audit(folder: Path) -> ACCEPT:
    audit(copy.deepcopy(TINY), folder / "audit", trials=200)
    return lambda: parse_audit((folder / "audit" / AUDIT).read_text(), AUDIT)


def a_checkpoint(folder: Path) -> ACCEPT:
    state, kept = State.begin(np.ones(4, dtype=bool), 3, 2, 1), Checkpoints(folder / "checkpoint.npz", {})
    kept.save(state)
    return lambda: kept.load(state)


def tables(folder: Path) -> ACCEPT:
    ComparisonDirectory(folder).write_tables([{"name": "one"}], [])
    return lambda: check_table(folder / TABLE)


def trials(folder: Path) -> ACCEPT:
    TuningDirectory(folder).write({"one": ()})
    return lambda: TuningDirectory(folder).read()


def shards(folder: Path) -> ACCEPT:
    write_shards(folder, SOME.load())
    return lambda: ShardedRatings.open(folder)


WRITERS: dict[str, Callable[[Path], ACCEPT]] = {
    "SUMMARY": a_run,
    "AUDIT": an_audit,
    "CHECKPOINT": a_checkpoint,
    "TABLES": tables,
    "TRIALS": trials,
    "SHARDS": shards,
}
"""By the name of the format: what writes such a file to a folder, and returns what reads it."""


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("step", [-1, 1])
def test_an_earlier_or_later_format_is_refused(
    name: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: formats.Format = getattr(formats, name)
    with monkeypatch.context() as elsewhere:
        # As another version of dprec writes it.
        elsewhere.setattr(formats, name, replace(here, number=here.number + step))
        elsewhere.setattr(formats, "__version__", "9.8.7")
        read = WRITERS[name](tmp_path)
        read()
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.found.startswith(f"format {here.number + step}, written by dprec ")
    assert caught.value.accepted.startswith(f"format {here.number}, of dprec ")
    if name != "SUMMARY":  # which says what is installed
        assert caught.value.accepted.endswith("is dprec 9.8.7")


def test_every_format_that_is_read_is_tried() -> None:
    tried = {getattr(formats, name) for name in WRITERS}
    # Nothing here reads what attacks reached: summary.json has it too.
    assert {*formats.FORMATS} - tried == {formats.ATTACKS}
