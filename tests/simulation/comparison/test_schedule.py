"""One cell of each protocol runs first, then the costliest; cells with one fit run one after the other."""

from pathlib import Path

import pytest

from simulation.comparison.planning import load_comparison
from simulation.comparison.schedule import Schedule
from simulation.comparison.templates import Cell

DATASET = "dataset={kind: synthetic, users: 12, items: 9, ratings: 60}"


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    """Return cells of cheap, costly and shared fits, the cheap ones first."""
    path = tmp_path / "comparison.yaml"
    path.write_text(
        "name: order\nseeds: [1, 2]\nepsilons: [1.0]\nbaselines: false\n"
        "dataset: {kind: synthetic}\nsplit: {kind: holdout}\n"
        "protocols: [item-average, blp-mf, isgd, zheng-rr, "
        "one-bit-clear, one-bit-objective, one-bit-output]\n"
    )
    return list(load_comparison(path, [DATASET]).cells)


def test_one_of_every_protocol_and_then_the_costliest_come_first(cells: list[Cell]) -> None:
    schedule = Schedule([cell for cell in cells if not cell.protocol.startswith("one-bit")])
    order = [schedule.next_for(worker % 2) for worker in range(8)]
    costly = ["zheng-rr", "isgd", "blp-mf", "item-average"]
    assert [cell.protocol for cell in order] == [*reversed(costly), *costly]
    assert [cell.seed for cell in order] == [1] * 4 + [2] * 4
    assert not schedule


def test_what_a_cell_took_counts_for_those_like_it(cells: list[Cell]) -> None:
    first = {cell.protocol: cell for cell in reversed(cells)}
    kept = ("item-average", "zheng-rr")
    schedule = Schedule(
        [cell for cell in cells if cell.protocol in kept and cell is not first[cell.protocol]]
    )
    schedule.ended(first["item-average"], 90.0)
    schedule.ended(first["zheng-rr"], 1.0)
    assert schedule.next_for(1).protocol == "item-average"


def test_cells_with_one_fit_stay_with_the_worker_that_has_it(cells: list[Cell]) -> None:
    bounded = [cell for cell in cells if cell.protocol.startswith("one-bit")]
    schedule = Schedule(bounded)
    taken: dict[str, list[str]] = {"one": [], "other": []}
    while schedule:
        for worker, own in taken.items():
            if schedule:
                own.append(schedule.next_for(worker).key)
    # The splits of the two seeds differ, and so do the fits.
    assert taken["one"][:2] == ["one-bit-clear-seed1", "one-bit-output-eps1.0-seed1"]
    # No fit is shared with the objective's: it is the first cell of its protocol.
    objective, *others = taken["other"]
    assert objective == "one-bit-objective-eps1.0-seed1"
    assert others == ["one-bit-clear-seed2", "one-bit-output-eps1.0-seed2"]
    assert taken["one"][2:] == ["one-bit-objective-eps1.0-seed2"]


def test_a_cell_of_a_lost_worker_waits_again(cells: list[Cell]) -> None:
    schedule = Schedule(cells)
    cell = schedule.next_for("lost")
    schedule.again(cell, "lost")
    assert len(schedule) == len(cells)
    assert cell in [schedule.next_for("next") for _ in cells]
