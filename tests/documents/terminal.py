"""What happens to a command that a page shows: it is run, or at least parsed by the real command line.

Runs are made small: on a few ratings, in this process, without pages. A comparison of a file that the page
shows runs; one of a preset is planned, and a small comparison takes the place of its result.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from pathlib import Path

import click
import pytest
from typer.main import get_command

from simulation import load
from simulation.comparison.planning import load_comparison
from simulation.console.command_line import app, main
from tests.documents.sample import SMALL
from tests.paths import ROOT

LOCAL = ["--set", "simulation.backend=local", "--no-page"]
ONE_CELL_EACH = ["--set", "epsilons=[1.0]", "--set", "seeds=[1]"]

NOT_RUN = {
    *(".", "cd", "chmod", "export", "head", "mkdir", "source"),  # of the shell
    *("curl", "docker", "journalctl", "pip", "ray", "sed", "sudo", "systemctl"),  # need more than a folder
    *("flower-superlink", "flwr", "nginx"),  # stay until they are stopped, or need what does
}
"""Programs that are not run."""

PARSED = {"fetch", "tune"}
"""Commands of dprec that are parsed and not run: they need a network, or take long."""


class Terminal:
    """A terminal in a folder with a few ratings.

    Parameters
    ----------
    folder : Path
    comparison : callable
        Returns the directory of a small comparison.
    """

    def __init__(self, folder: Path, comparison: Callable[[], Path]) -> None:
        self._folder = folder
        self._comparison = comparison
        self._not_written: set[str] = set()

    def type(self, words: Sequence[str]) -> None:
        """Do what a command says, or as much of it as can be done here."""
        surroundings = list(takewhile(re.compile(r"[A-Z_]+=").match, words))
        program, *arguments = words[len(surroundings) :]
        if program == "dprec":
            self._dprec(self._inside(arguments), parse_only=bool(surroundings))
        elif program == "make":
            rules = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            assert set(arguments) <= set(rules)
        elif program.startswith("python"):
            _python(arguments)
        elif not program.endswith("superlink.sh"):
            assert program in NOT_RUN, f"{program}: neither run here nor among the programs that are not"

    def _inside(self, arguments: Sequence[str]) -> list[str]:
        """Return arguments whose paths are in the folder."""
        moved = [re.sub(r"^/(tmp|srv|shared)/", rf"{self._folder}/\1/", each) for each in arguments]
        return [each.replace("../shared/data/ml-100k", "PATH/TO/ml-100k") for each in moved]

    def _dprec(self, arguments: list[str], *, parse_only: bool) -> None:
        verb = arguments[0]
        parse(arguments)
        if parse_only or verb in PARSED or "--all" in arguments or self._needs_what_was_not_run(arguments):
            self._not_written |= set(_output(arguments))
            return
        if verb in ("advise", "report"):
            self._provide(arguments[1])
        if verb == "compare" and not _is_small_file(arguments[1]):
            self._plan(arguments)
            return
        ends_well([*self._small(verb, arguments)])

    def _small(self, verb: str, arguments: list[str]) -> list[str]:
        """Return a command that does the same in little time."""
        if verb == "audit":
            return [*arguments, "--trials", "1000"]
        if verb == "compare":
            return [*arguments, *LOCAL, *ONE_CELL_EACH]
        if verb not in ("run", "attack"):
            return arguments
        own = "dataset" in " ".join(arguments) or Path(arguments[1]).is_file()
        small = [] if own else _few_ratings(arguments[1])
        if "schedule" in " ".join(arguments) or arguments[1].startswith("weekly"):
            small += ["--set", "dataset.arrivals={}"]
        return [*arguments, *small, *LOCAL]

    def _plan(self, arguments: list[str]) -> None:
        """Load the comparison of a preset, and put a small one where its result would be."""
        overrides = [value for flag, value in pairwise(arguments) if flag == "--set"]
        named = ROOT / arguments[1]
        assert load_comparison(str(named) if named.is_file() else arguments[1], overrides).cells
        for directory in _output(arguments):
            self._provide(directory)

    def _needs_what_was_not_run(self, arguments: list[str]) -> bool:
        return any(Path(each).parts[:1] == (made,) for each in arguments for made in self._not_written)

    def _provide(self, directory: str) -> None:
        if not Path(directory).exists():
            shutil.copytree(self._comparison(), directory)


def parse(arguments: Sequence[str]) -> None:
    """Parse arguments with the command line, and do nothing; an argument that is wrong raises."""
    command, name, rest = get_command(app), "dprec", list(arguments)
    context = click.Context(command, info_name=name)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        word, found, rest = command.resolve_command(context, rest)
        assert found is not None, f"dprec has no command {word}"
        name, command = str(word), found
        context = click.Context(command, context, info_name=name)
    if not isinstance(command, click.Group):
        command.make_context(name, rest, parent=context.parent)


def ends_well(arguments: Sequence[str]) -> None:
    """Run a command of dprec, which has to end with exit code 0."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 0, f"dprec {' '.join(arguments)}"


def _few_ratings(preset: str) -> list[str]:
    """Return the settings that make the generated ratings of a preset few."""
    if load(preset).dataset.kind == "synthetic-domains":
        return ["--set", "dataset={kind: synthetic-domains, users: 40, items: 30, ratings: 400}"]
    return ["--set", SMALL]


def _output(arguments: Sequence[str]) -> list[str]:
    """Return the directory that a command writes to, where it names one."""
    return [value for flag, value in pairwise(arguments) if flag in ("-o", "--output")]


def _is_small_file(config: str) -> bool:
    """Return whether a comparison is a file that the page shows."""
    return config.endswith(".yaml") and Path(config).is_file()


def pass_tests(file: str) -> None:
    """Run a file of tests, all of which have to pass."""
    own = ["-c", os.devnull, "--rootdir", ".", "-p", "no:xdist", "-p", "no:cacheprovider"]
    assert pytest.main([file, *own]) == 0, file


def _python(arguments: Sequence[str]) -> None:
    """Do what a command for Python says: run code; files of tests are run later, and programs must exist."""
    if arguments[0] == "-c":
        exec(arguments[1], {})
    elif list(arguments[:2]) == ["-m", "pytest"]:
        assert Path(arguments[2]).is_file()
    elif arguments[0] == "-m":
        module = ROOT / arguments[1].replace(".", "/")
        assert module.with_suffix(".py").is_file() or (module / "__main__.py").is_file()
    else:
        assert (ROOT / arguments[0]).is_file()
