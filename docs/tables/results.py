"""The results that are kept with the project, and the published systems of docs/papers.yaml.

Of a comparison, NAME.csv in docs/results holds a line for every protocol at every budget, and NAME.yaml
beside it how they were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError, with_config

from dprec.accounting import ComparableUnit, Status, Trust
from dprec.errors import InputError
from simulation.analysis.gains import Gain, gain_digits
from simulation.analysis.vocabulary import METRICS, Metric
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.tables import csv_of_rows, read_lines

RESULTS = Path(__file__).resolve().parents[1] / "results"
"""The folder of the summaries."""

_ACCEPTED = "a table that `python -m docs.tables.collect` wrote"


def _known(column: str) -> str:
    known = [metric.column for metric in METRICS]
    if column not in known:
        raise ValueError(f"one of {', '.join(known)}")
    return column


@with_config(ConfigDict(allow_inf_nan=False))
@dataclass(frozen=True)
class Result:
    """One protocol at one budget: means over folds and seeds, losses of the worst run.

    Parameters
    ----------
    protocol, preset : str
        Its name in the comparison, and the preset that it is made from.
    dataset, split : str
        What it was tried on.
    panel : str
        Panel of the comparison; empty if it has none.
    unit : {"rating", "user"}
        What the budget is for.
    epsilon : float or None
        The budget that it was given; None without one.
    baseline : bool
        Whether it is there to be compared with.
    metric : str
        The column of its main metric, as in comparison.csv.
    accuracy : float
    deviation : float or None
        Standard deviation over seeds, or over folds if there is one seed; None for a single run.
    runs : int
        Folds times seeds.
    mae, f_score : float or None
        Further metrics.
    gain, gain_low, gain_high : float or None
        How much better it is than with nothing sent, and the ends of the 95 % interval over users.
    epsilon_per_rating, epsilon_per_user : float or None
        The largest loss that is proved; None without a bound.
    claimed_per_rating, claimed_per_user : float or None
        The largest loss that is claimed and not proved.
    composed, delta : float or None
        The largest loss per user by composition, and its delta.
    status : {"proved", "claimed", "none"}
    trust : {"central", "secure-aggregation", "shuffle", "local"}
    hides_rated_items : bool
    server_sees : str
        What the server learns directly from devices, in words.
    bytes_up, bytes_down : float or None
        Mean bytes of a user's messages.
    network_up, network_down : float or None
        Mean bytes that a network carries for a user.
    rounds : float or None
    """

    protocol: str
    preset: str
    dataset: str
    split: str
    panel: str
    unit: ComparableUnit
    epsilon: float | None
    baseline: bool
    metric: Annotated[str, AfterValidator(_known)]
    accuracy: float
    deviation: float | None
    runs: int
    mae: float | None
    f_score: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    epsilon_per_rating: float | None
    epsilon_per_user: float | None
    claimed_per_rating: float | None
    claimed_per_user: float | None
    composed: float | None
    delta: float | None
    status: Status
    trust: Trust
    hides_rated_items: bool
    server_sees: str
    bytes_up: float | None
    bytes_down: float | None
    network_up: float | None
    network_down: float | None
    rounds: float | None

    @property
    def evaluation(self) -> tuple[str, str, str, str]:
        """What may share a table: metric, data set, split and panel."""
        return self.metric, self.dataset, self.split, self.panel

    @property
    def measured_by(self) -> Metric:
        """The metric of its accuracy."""
        return next(metric for metric in METRICS if metric.column == self.metric)

    @property
    def against_nothing_sent(self) -> Gain | None:
        """How much better it is than with nothing sent; None where that is itself or does not apply."""
        if self.gain is None:
            return None
        return Gain(self.gain, self.gain_low, self.gain_high, gain_digits(self.measured_by))

    @property
    def reference(self) -> bool:
        """Whether it has neither a budget nor a bound on a privacy loss, and is no baseline."""
        return not self.baseline and self.epsilon is None and self.epsilon_per_user is None


@dataclass(frozen=True)
class Provenance:
    """How a summary was made.

    Parameters
    ----------
    title : str
    command : str
        What was typed; the path of the data is a placeholder.
    seeds, folds : tuple of str
        Folds are empty where the split is one.
    dprec : str
        Version that ran it.
    date : str
        When it finished, as in 2026-01-31.
    """

    title: str
    command: str
    seeds: tuple[str, ...]
    folds: tuple[str, ...]
    dprec: str
    date: str


def write_results(path: Path, results: Sequence[Result]) -> None:
    """Write a summary as CSV."""
    path.write_text("".join(csv_of_rows([asdict(result) for result in results])), encoding="utf-8")


def read_results(path: Path) -> list[Result]:
    """Read a summary.

    Raises
    ------
    InputError
        When it is not such a table; the error names the line.
    """
    lines = read_lines(path, [field.name for field in fields(Result)], _ACCEPTED)
    _, header = next(lines)
    return [_checked(_RESULT, _not_empty(header, cells), where) for where, cells in lines]


def read_provenance(path: Path) -> Provenance:
    """Read how a summary was made.

    Raises
    ------
    InputError
    """
    return _checked(_PROVENANCE, read_yaml(path), str(path))


def summary(name: str) -> list[Result]:
    """Return the lines of a committed summary."""
    return read_results(RESULTS / f"{name}.csv")


def provenance(name: str) -> Provenance:
    """Return how a committed summary was made."""
    return read_provenance(RESULTS / f"{name}.yaml")


_Held = TypeVar("_Held")

_RESULT, _PROVENANCE = TypeAdapter(Result), TypeAdapter(Provenance)


def _not_empty(header: Sequence[str], cells: Sequence[str]) -> dict[str, str | None]:
    """Return the cells of a line by their columns; empty ones are None, but for the panel."""
    return {name: text if text or name == "panel" else None for name, text in zip(header, cells, strict=True)}


def _checked(adapter: TypeAdapter[_Held], held: object, where: str) -> _Held:
    try:
        return adapter.validate_python(held)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {key}", repr(first["input"]), first["msg"]) from None


DOCS = RESULTS.parent


@dataclass(frozen=True)
class System:
    """A published system.

    Parameters
    ----------
    page : str
        Its page in docs/systems, without ``.md``.
    title, short : str
        As a heading, and as a source in a table.
    paper : str
        Its key in docs/references.bib.
    presets, references, variants : tuple of str
        Those that follow the paper, those that it compares with, and our variants.
    """

    page: str
    title: str
    short: str
    paper: str
    presets: tuple[str, ...]
    references: tuple[str, ...]
    variants: tuple[str, ...]


@cache
def papers() -> dict[str, Any]:
    """Return docs/papers.yaml."""
    return read_yaml(DOCS / "papers.yaml")


@cache
def systems() -> dict[str, System]:
    """Return the published systems by their pages, in the order of docs/papers.yaml."""
    return {
        page: TypeAdapter(System).validate_python({"page": page, **line})
        for page, line in papers()["systems"].items()
    }


@cache
def tuned_on() -> dict[str, str]:
    """Return the ratings that settings of a preset were chosen on, by its name."""
    return {
        preset: ratings
        for ratings, scripts in papers()["tuned"].items()
        for presets in scripts.values()
        for preset in presets
    }


def source_of(result: Result) -> str:
    """Return where a protocol comes from, with a link to its page, and what its settings were chosen on."""
    names = [name for name in tuned_on() if name == result.preset or _is_baseline(result, name)]
    return ", ".join([_source(result), *(f"tuned on {tuned_on()[name]}" for name in names[:1])])


def _is_baseline(result: Result, name: str) -> bool:
    """Return whether a result is a baseline in its form for other ratings of the same comparison."""
    return result.baseline and result.preset.startswith(f"{name}-")


def _source(result: Result) -> str:
    if result.baseline:
        return "baseline"
    for system in systems().values():
        link = f"[{system.short}](docs:systems/{system.page}.md)"
        if result.preset in system.presets:
            return link
        if result.preset in system.references:
            return f"reference of {link}"
        if result.preset in system.variants:
            return f"ours, after {link}"
    return "no privacy" if result.reference else "ours"
