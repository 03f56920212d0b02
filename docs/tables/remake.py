"""Make the committed results anew, and say what moved.

    python -m docs.tables.remake                    # all, then the documents; goes on where it stopped
    python -m docs.tables.remake ml-100k-u1 rc      # some of them
    python -m docs.tables.remake --check            # one cheap row of each, beside what is committed

Each NAME.yaml of docs/results holds what was typed, and what was typed before it. Commands are run as they
stand, in a folder of their own, with the folder of the data sets in place of PATH/TO.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from docs.tables import __main__ as documents
from docs.tables import gallery
from docs.tables.collect import FIGURES, collect, is_kept, rows_of
from docs.tables.moved import shows
from docs.tables.results import MOVED, files_of, made_of, names
from docs.tables.typed import run, typed
from dprec.errors import RunError
from simulation import compare
from simulation.analysis.protocol_results import read_comparison
from simulation.console.terminal import exit_code

_TOLERANCE = 1e-6
"""Relative difference that another processor may make to a figure."""


class Difference(NamedTuple):
    """A figure that is not what was committed."""

    table: str
    protocol: str
    epsilon: str
    population: str
    figure: str
    before: str
    after: str


Rows = dict[tuple[str, str, str], dict[str, str]]
"""Lines of a summary, by protocol, budget and population."""


def made_anew(name: str, data: Path, folder: Path) -> list[Difference]:
    """Run in a folder what a summary was made by, write the summary, and return what moved."""
    made = made_of(name)
    for line in made.before:
        run(typed(line, data), folder)
    arguments = typed(made.command, data)
    if "-o" in arguments:
        place = arguments.index("-o")
        del arguments[place : place + 2]
    run([*arguments, "-o", "comparison", "--no-page", "--quiet", *_resuming(folder / "comparison")], folder)
    table, how = files_of(name)
    before = _read(table)
    collect(folder / "comparison", table, how, made.command, made.before)
    return list(differences(name, before, _read(table), 0.0))


def checked(name: str, data: Path, folder: Path) -> list[Difference]:
    """Run the cheapest row of a summary, and return where it differs from what is committed."""
    made = made_of(name)
    if made.cheapest is None:
        raise RunError(f"{name}.yaml names no cheapest row; make it anew")
    for line in made.before:
        run(typed(line, data), folder)
    config, overrides = _asked(typed(made.command, data), folder)
    alone: dict[str, Any] = {"only": [made.cheapest["name"]], "baselines": False, "populations": None}
    alone |= {} if made.cheapest["epsilon"] is None else {"epsilons": [made.cheapest["epsilon"]]}
    only = [f"{key}={yaml.safe_dump(value, default_flow_style=True)}" for key, value in alone.items()]
    compare(config, folder / "checked", overrides=[*overrides, *only], jobs=1, page=False)
    found = rows_of(read_comparison(folder / "checked"))
    after = {_key(row): {key: _text(value) for key, value in row.items()} for row in found}
    whole = _read(files_of(name)[0])
    if not after or after.keys() - whole.keys():
        raise RunError(f"{name}: rows {sorted(after)}, of which the committed table does not have all")
    return list(differences(name, {key: whole[key] for key in after}, after, _TOLERANCE))


def _asked(arguments: Sequence[str], folder: Path) -> tuple[str | Path, list[str]]:
    """Return the comparison that a command names, and what it replaces in it."""
    config, *rest = arguments[arguments.index("compare") + 1 :]
    overrides = [each for flag, each in pairwise(rest) if flag == "--set"]
    return folder / config if (folder / config).is_file() else config, overrides


def _resuming(directory: Path) -> list[str]:
    return ["--resume"] if (directory / "comparison.yaml").is_file() else []


def _read(path: Path) -> Rows:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {_key(row): row for row in csv.DictReader(file)}


def _key(row: dict[str, object] | dict[str, str]) -> tuple[str, str, str]:
    return str(row["name"]), _text(row["epsilon"]), _text(row.get("population"))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def differences(table: str, before: Rows, after: Rows, tolerance: float) -> Iterator[Difference]:
    """Yield the figures of both that differ by more than a tolerance."""
    for key in before.keys() & after.keys():
        for figure in before[key].keys() & after[key].keys():
            if figure not in FIGURES and not is_kept(figure):
                continue
            old, new = before[key][figure], after[key][figure]
            if old != new and not _near(old, new, tolerance):
                yield Difference(table, *key, figure, old, new)


def _near(old: str, new: str, tolerance: float) -> bool:
    try:
        return abs(float(old) - float(new)) <= tolerance * max(abs(float(old)), abs(float(new)))
    except ValueError:
        return False


def _keep(moved: Sequence[Difference], remade: Sequence[str]) -> None:
    """Write which accuracies moved as shown, in place of those that moved before in the same tables."""
    with MOVED.open(encoding="utf-8", newline="") as file:
        lines = [Difference(**line) for line in csv.DictReader(file)]
    lines = [each for each in lines if each.table not in remade]
    own = [each for each in moved if shows(each._asdict())]
    with MOVED.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Difference._fields, *lines, *own])


def main() -> None:
    """Make summaries anew, or check them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    parser.add_argument("--check", action="store_true", help="run one cheap row of each")
    parser.add_argument("--data", type=Path, default=os.environ.get("DPREC_DATA", "../shared/data"))
    parser.add_argument(
        "-o", "--output", type=Path, default="runs/results", help="where comparisons are kept"
    )
    options = parser.parse_args()
    data, work = Path(options.data).resolve(), Path(options.output).resolve()
    each = checked if options.check else made_anew
    moved: list[Difference] = []
    for name in options.names or names():
        (work / name).mkdir(parents=True, exist_ok=True)
        found = each(name, data, work / name)
        print(f"{name}: {len(found)} figures {'differ' if options.check else 'moved'}", flush=True)
        moved += sorted(found)
    if options.check:
        if moved:
            raise RunError("\n".join(", ".join(each) for each in moved))
        return
    _keep(moved, options.names or names())
    documents.main()
    if not options.names:
        gallery.main()


if __name__ == "__main__":
    sys.exit(exit_code(main))
