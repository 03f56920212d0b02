"""What the check before a run announces of its memory, and what the run takes at most, in memory.csv.

Each preset runs in a process of its own on generated ratings, a few rounds or sweeps, with its page. What is
measured is the most that the process has held in memory; a run that has used its processor seconds is
stopped, and has held that at least. What is kept is announced anew without a run. The exit code is 1 if a
figure that was announced is beyond 30 % of what was measured.
"""

import argparse
import csv
import multiprocessing
import resource
import signal
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from measuring import RESULTS
from process_memory import peak_resident

from dprec.errors import InputError
from dprec.start import return_memory
from simulation import execution, load, run
from simulation.configuration.strict_yaml import presets
from simulation.engine.memory import check_memory, needed_memory

SIZES = {
    "small": (2_000, 500, 40_000),
    "medium": (10_000, 4_000, 200_000),
    "large": (100_000, 2_000, 4_000_000),
}
"""Users, items and ratings."""

SHORTER = (
    *("protocol.rounds=2", "protocol.evaluate_every=1", "protocol.sweeps=2"),
    *("protocol.completion.iterations=3", "protocol.completion.sweeps=3"),
)
"""What makes runs shorter and none smaller, where it is accepted."""

FOLDERS, WITHIN = ("published", "ours", "baselines"), 0.3
COLUMNS = "preset", "users", "items", "ratings", "announced MB", "measured MB", "ratio", "ended"


class Stopped(BaseException):
    """The processor seconds of a run are used, or it has announced what it needs."""


def stop(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it comes every second
    raise Stopped


def run_preset(preset: str, settings: list[str], seconds: int) -> tuple[float, float, bool]:
    """Return what is announced and measured, in bytes, and if the run has ended; 0 seconds: it is not run."""
    announced, ended = list[float](), False

    def announce(*given: Any, **attacked: Any) -> None:
        announced.append(sum(needed_memory(*given, **attacked)))
        check_memory(*given, **attacked)
        if not seconds and given[-1] is not None:
            raise Stopped

    vars(execution)["check_memory"] = announce
    return_memory()
    signal.signal(signal.SIGXCPU, stop)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds or resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as folder, suppress(Stopped):
        run(preset, Path(folder) / "run", overrides=settings)
        ended = True
    return announced[-1], peak_resident(), ended


def settings_of(preset: str, size: tuple[int, int, int]) -> list[str]:
    """Return what makes a preset run on so many users, items and ratings."""
    settings = [f"dataset.{key}={number}" for key, number in zip(COLUMNS[1:4], size, strict=True)]
    for setting in SHORTER:
        with suppress(InputError):
            load(preset, [*settings, setting])
            settings.append(setting)
    return settings


def row_of(preset: str, name: str, seconds: int, before: list[str] | None) -> list[str]:
    """Return the row of a preset at a size, with what was measured before if it was."""
    settings = settings_of(preset, size := SIZES[name])
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as anew:
        announced, peak, ended = anew.submit(run_preset, preset, settings, 0 if before else seconds).result()
    if before:
        peak, ended = 1e6 * float(before[5]), before[7] == "yes"
    figures = f"{announced / 1e6:.0f}", f"{peak / 1e6:.0f}", f"{announced / peak:.2f}"
    return [preset, *map(str, size), *figures, "yes" if ended else "no"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    every = [name for name, path in presets().items() if path.parent.name in FOLDERS]
    parser.add_argument("presets", nargs="*", default=every, metavar="PRESET", help="by default, all")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--seconds", type=int, default=20, help="processor seconds of a run at most")
    parser.add_argument("--results", type=Path, default=RESULTS / "memory.csv")
    given = parser.parse_args()
    lines = given.results.read_text().splitlines()[1:] if given.results.is_file() else []
    named = {size[0]: name for name, size in SIZES.items()}
    rows = {(row[0], named[int(row[1])]): row for row in csv.reader(lines)}
    for key in (asked := [(preset, size) for size in given.sizes for preset in given.presets]):
        try:
            rows[key] = row_of(*key, given.seconds, rows.get(key))
        except InputError as error:
            print(*key, error, flush=True)
            continue
        print("{:24}{:>9}{:>7}{:>9}{:>8}{:>8}{:>7} {}".format(*rows[key]), flush=True)
        with given.results.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(rows[key] for key in sorted(rows))])
    ratios = [(float(row[6]), row[7] == "yes") for key, row in rows.items() if key in asked]
    return int(any(abs(ratio - 1) > WITHIN and (ended or ratio < 1) for ratio, ended in ratios))


if __name__ == "__main__":
    sys.exit(main())
