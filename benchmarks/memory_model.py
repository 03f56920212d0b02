"""What the check before a run announces of its memory, and what the run takes at most.

Each preset runs in a process of its own on generated ratings, a few rounds or sweeps, with its page. What is
measured is the most that the process has held in memory. A run that has used its processor seconds is
stopped, and has held what is shown at least. The exit code is 1 if a figure that was announced is beyond 30 %
of what was measured.
"""

import argparse
import multiprocessing
import resource
import signal
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from process_memory import peak_resident

from dprec.errors import InputError
from dprec.start import return_memory
from simulation import execution, load, run
from simulation.configuration.strict_yaml import presets
from simulation.engine.memory import needed_memory

SIZES = {
    "small": (2_000, 500, 40_000),
    "medium": (20_000, 2_000, 400_000),
    "large": (100_000, 5_000, 2_000_000),
}
"""Users, items and ratings."""

SHORTER = (
    "protocol.rounds=2",
    "protocol.evaluate_every=1",
    "protocol.sweeps=2",
    "protocol.completion.iterations=3",
    "protocol.completion.sweeps=3",
)
"""What makes runs shorter and none smaller, where it is accepted."""

FOLDERS, WITHIN = ("published", "ours", "baselines"), 0.3


class Stopped(BaseException):
    """The processor seconds of a run are used."""


def stop(_number: int, _frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # it comes every second
    raise Stopped


def run_preset(preset: str, settings: list[str], seconds: int) -> tuple[float, float, bool] | str:
    """Return what is announced and measured, in bytes, and if the run has ended; or why it is refused."""
    announced: list[float] = []
    vars(execution)["check_memory"] = lambda *size: announced.append(needed_memory(*size))
    return_memory()
    signal.signal(signal.SIGXCPU, stop)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    ended = False
    with tempfile.TemporaryDirectory() as folder, suppress(Stopped):
        try:
            run(preset, Path(folder) / "run", overrides=settings)
        except InputError as error:
            return str(error)
        ended = True
    return announced[-1], peak_resident(), ended


def settings_of(preset: str, size: tuple[int, int, int]) -> list[str]:
    """Return what makes a preset run on so many users, items and ratings."""
    names = "users", "items", "ratings"
    settings = [f"dataset.{name}={number}" for name, number in zip(names, size, strict=True)]
    for setting in SHORTER:
        with suppress(InputError):
            load(preset, [*settings, setting])
            settings.append(setting)
    return settings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="by default, all")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=[*SIZES])
    parser.add_argument("--seconds", type=int, default=60, help="processor seconds of a run at most")
    chosen = parser.parse_args()
    print(f"{'':24}{'users':>9}{'items':>7}{'announced MB':>14}{'measured MB':>13}{'ratio':>7}")
    missed = 0
    of_runs = [name for name, path in presets().items() if path.parent.name in FOLDERS]
    for preset in chosen.presets or of_runs:
        for size in map(SIZES.__getitem__, chosen.sizes):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as anew:
                told = anew.submit(run_preset, preset, settings_of(preset, size), chosen.seconds).result()
            if isinstance(told, str):
                print(f"{preset:24}{size[0]:>9,}{size[1]:>7,}  {told}", flush=True)
                continue
            announced, peak, ended = told
            ratio, least = announced / peak, "" if ended else " of what it took at least"
            figures = f"{announced / 1e6:>14,.0f}{peak / 1e6:>13,.0f}{ratio:>7.2f}"
            print(f"{preset:24}{size[0]:>9,}{size[1]:>7,}{figures}{least}", flush=True)
            missed += abs(ratio - 1) > WITHIN and (ended or ratio < 1)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
