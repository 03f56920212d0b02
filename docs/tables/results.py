"""The results that are kept with the project, and the published systems of docs/papers.yaml.

Of a comparison, NAME.csv in docs/results holds a line for every protocol at every budget, in the columns of
comparison.csv: means over folds and seeds, and the losses of the worst run. NAME.yaml beside it says how
they were made. What `dprec advise --data` reads is a folder, with both as comparison.csv and made.yaml.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from dprec import load
from dprec.accounting import ComparableUnit
from simulation.analysis.protocol_results import ProtocolResult, read_results
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.directories import TABLE

DOCS = Path(__file__).resolve().parents[1]
RESULTS = DOCS / "results"
"""The folder of the summaries."""

MOVED = DOCS / "moved.csv"
"""The accuracies that moved, at the digits shown, when summaries were made anew last."""


@dataclass(frozen=True)
class Provenance:
    """How a summary was made."""

    command: str
    """What was typed; the path of the data is a placeholder."""
    unit: ComparableUnit
    """What the budget of every protocol is for."""
    splits: dict[str, str]
    """How each data set was split, in words."""
    presets: dict[str, str]
    """The presets of the protocols that have another name in the comparison."""
    runs: str
    """Seeds and folds, the version of dprec, and the day on which it finished."""
    before: tuple[str, ...] = ()
    """What was typed before, in the same folder."""
    versions: str = ""
    """Of Python and of the libraries that figures depend on, the processor, and the commit."""
    ratings: tuple[str, ...] = ()
    """Digests of the ratings."""
    cheapest: dict[str, Any] | None = None
    """Name and epsilon of the protocol that takes the least time, baselines aside."""


@dataclass(frozen=True)
class Committed:
    """A summary that is kept with the project."""

    made: Provenance
    results: list[ProtocolResult]
    """On the comparison's own ratings."""
    populations: list[ProtocolResult]
    """On other populations."""

    def preset(self, result: ProtocolResult) -> str:
        """Return the preset that a protocol is made from."""
        return self.made.presets.get(result.name, result.name)

    def source(self, result: ProtocolResult) -> str:
        """Return where a protocol comes from, with a link to its page; a dagger where it was tuned."""
        preset, words = self.preset(result), "no privacy" if result.reference else "ours"
        if preset in papers()["field"]:
            words = f"[{papers()['field'][preset]['short']}](docs:field.md)"
        for system in reversed(systems().values()):
            link = f"[{system.short}](docs:systems/{system.page}.md)"
            for names, said in (
                (system.variants, f"ours, after {link}"),
                (system.references, f"reference of {link}"),
                (system.presets, link),
            ):
                words = said if preset in names else words
        return ("baseline" if result.baseline else words) + " †" * bool(self.tuned_on(result))

    def tuned_on(self, result: ProtocolResult) -> str | None:
        """Return the ratings that settings of a protocol were chosen on; None where they are its paper's."""
        preset = self.preset(result)
        for ratings, scripts in papers()["tuned"].items():
            for name in itertools.chain(*scripts.values()):
                # A baseline in its form for other ratings carries their name behind its own.
                if name == preset or (result.baseline and preset.startswith(f"{name}-")):
                    return str(ratings)
        return None

    def published(self, result: ProtocolResult) -> bool:
        """Return whether a protocol is a paper's, with the paper's settings."""
        preset = self.preset(result)
        return preset in papers()["field"] or any(preset in each.presets for each in systems().values())


_MADE = "made.yaml"


def names() -> list[str]:
    """Return the names of the summaries."""
    kept = (path.parent.relative_to(RESULTS) for path in RESULTS.rglob(_MADE))
    return sorted([*map(str, kept), *(path.stem for path in RESULTS.glob("*.yaml"))])


def files_of(name: str) -> tuple[Path, Path]:
    """Return where a summary is, and where it stands how it was made."""
    folder = RESULTS / name
    if (folder / _MADE).is_file():
        return folder / TABLE, folder / _MADE
    return RESULTS / f"{name}.csv", RESULTS / f"{name}.yaml"


def made_of(name: str) -> Provenance:
    """Return how a summary was made."""
    return TypeAdapter(Provenance).validate_python(read_yaml(files_of(name)[1]))


@cache
def summary(name: str) -> Committed:
    """Return a committed summary."""
    results = read_results(files_of(name)[0])
    own = [each for each in results if each.population is None]
    return Committed(made_of(name), own, [each for each in results if each.population is not None])


@dataclass(frozen=True)
class System:
    """A published system."""

    page: str
    """Its page in docs/systems, without ``.md``."""
    title: str
    short: str
    """As a source in a table."""
    presets: tuple[str, ...]
    references: tuple[str, ...]
    """Those that follow the paper, and those that it compares with."""
    variants: tuple[str, ...]
    """Ours."""


@cache
def papers() -> dict[str, Any]:
    """Return docs/papers.yaml."""
    return read_yaml(DOCS / "papers.yaml")


def configuration(name: str) -> RunConfig:
    """Return a preset, or what docs/papers.yaml changes in one under a name of its own."""
    changed = papers()["changed"].get(name)
    return load(name) if changed is None else load(changed["of"], changed["set"])


@cache
def systems() -> dict[str, System]:
    """Return the published systems by their pages, in the order of docs/papers.yaml."""
    lines = {page: {"page": page, **line} for page, line in papers()["systems"].items()}
    return TypeAdapter(dict[str, System]).validate_python(lines)
