"""Runs a comparison, from its configuration to its table.

Beside the cells, the noise of their mechanisms is sampled, and held against theory, as in Fig. 2 of Neera et
al. [neera2023]: n = r* - r, what is sent minus the true rating, over all ratings of the train set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.errors import InputError, within
from dprec.progress import Announce, Progress, silent, unheard
from dprec.randomness import categories, uniforms, words
from dprec.ratings import Ratings, RatingScale
from simulation.analysis.vocabulary import grouped_by
from simulation.comparison import cell_runs
from simulation.comparison.planning import Comparison
from simulation.comparison.tabulation import Tabulation
from simulation.comparison.templates import Cell, LeftOut, of_entry
from simulation.execution import load_ratings, prepared_ratings
from simulation.protocols.base import check_suits
from simulation.storage.columns import typed_frame, write_parquet
from simulation.storage.directories import CELLS, COMPARISON, NOISE, SUMMARY, claim, fingerprint
from simulation.storage.files import Row, csv_of_rows, write_atomically
from simulation.storage.summary import read_summary

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SYMBOLS_PER_INTERVAL = 16
"""With fewer, intervals would differ by how many symbols happen to lie in them."""

_FEWEST_INTERVALS = 16


def sampled_noise(comparison: Comparison) -> list[Row]:
    """Sample the noise of every private one-shot protocol that reveals the item set, at every epsilon.

    Ratings and seed are those of the first fold and seed. A budget per user is calibrated to a user with
    the median number of ratings.

    The lines of noise.csv, one per protocol, epsilon and interval: the share of the samples in the interval,
    and its probability. Empty if the configuration asks for no samples. Raises InputError when no protocol of
    the comparison qualifies.
    """
    count = comparison.config.noise_samples
    if count is None:
        return []
    chosen: dict[tuple[str, float | None], Cell] = {}
    for cell in comparison.cells:
        if cell.config.protocol.mechanism_of_ratings is not None:
            chosen.setdefault((cell.protocol, cell.epsilon), cell)
    cells = list(chosen.values())
    if not cells:
        raise InputError(
            "noise_samples",
            f"{count}, without a mechanism to sample",
            "a private one-shot protocol whose mechanism reveals the item set",
        )
    return [row for cell in cells for row in _rows(cell, count)]


def _rows(cell: Cell, count: int) -> list[Row]:
    protocol = cell.config.protocol
    mechanism = protocol.mechanism_of_ratings
    assert mechanism is not None
    train, _ = load_ratings(cell.config)
    family = mechanism.family(protocol.privacy, train.scale, train.n_items)
    device = family.device_channel(train.counts)
    assert device is not None
    edges, shares = noise_edges(device.channel, train.scale), train.histogram()
    noise = draw_noise(device.channel, train, count, cell.seed, f"{cell.protocol}/{cell.epsilon!r}")
    # The paper's density where it has one, or what follows from the channel.
    theory = mechanism.noise_between(edges, train.scale, shares, device.channel.epsilon)
    if theory is None:
        theory = exact_probabilities(edges, device.channel, shares)
    columns = (edges[:-1], edges[1:], np.histogram(noise, edges)[0] / count, theory)
    names = ("low", "high", "sampled_share", "theoretical_probability")
    same = {"protocol": cell.protocol, "mechanism": mechanism.kind, "epsilon": cell.epsilon}
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return [{**same, **dict(zip(names, line, strict=True))} for line in lines]


def draw_noise(channel: Channel, train: Ratings, count: int, seed: int, name: str) -> NDArray[np.float64]:
    """Sample noise: draw a level from the histogram of the ratings, and what the channel sends for it.

    ``count``: number of samples.
    ``name``: samples under different names are independent.
    The result, shape (count,), is in rating units.
    """
    cumulative = np.cumsum(train.histogram())
    places = uniforms(words(seed, f"noise levels/{name}", 0, count)) * cumulative[-1]
    levels = (categories(cumulative, places) + 1).astype(np.uint8)
    symbols = channel.sample(levels, words(seed, f"noise/{name}", 0, count))
    noise: NDArray[np.float64] = channel.values[symbols] - train.scale.values[levels - 1]
    return noise


def exact_probabilities(
    edges: NDArray[np.float64], channel: Channel, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probability of the noise between neighbouring edges, from the channel's own matrix.

    ``edges``, shape (intervals + 1,): they enclose all of the noise.
    ``shares``, shape (levels,): how often each level occurs.
    """
    chances = channel.probabilities * shares[:, None]
    probabilities: NDArray[np.float64] = np.histogram(
        _noise_values(channel).ravel(), edges, weights=chances.ravel()
    )[0]
    return probabilities


def noise_edges(channel: Channel, scale: RatingScale) -> NDArray[np.float64]:
    """Return the edges of equal intervals that enclose all of the noise.

    They are multiples of a quarter, a half, ... of the scale's mean step, as the symbols allow, so that 0 is
    an edge; if the symbols are the levels themselves, the intervals are centred on the differences between
    levels instead.
    """
    noise = _noise_values(channel)
    low, high = float(noise.min()), float(noise.max())
    step = (scale.high - scale.low) / (scale.levels - 1)
    if np.isin(channel.values, scale.values).all():
        return np.arange(np.floor(low / step), np.ceil(high / step) + 2) * step - step / 2
    between = (float(channel.values.max()) - float(channel.values.min())) / (channel.symbols - 1)
    width = min(_SYMBOLS_PER_INTERVAL * between, (high - low) / _FEWEST_INTERVALS)
    width = step * 2.0 ** max(-2, np.ceil(np.log2(width / step)))
    edges: NDArray[np.float64] = np.arange(np.floor(low / width), np.ceil(high / width) + 1) * width
    return edges


def _noise_values(channel: Channel) -> NDArray[np.float64]:
    noise: NDArray[np.float64] = channel.values[None, :] - channel.inputs[:, None]
    return noise


_STAGE = "running"


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """What a comparison produced."""

    comparison: Comparison
    directory: Path
    rows: list[Row]
    """The lines of comparison.csv."""
    timings: list[Row]
    """The lines of timing.csv."""
    failures: dict[str, str]
    """Why cells failed, by their keys."""

    def to_pandas(self) -> pd.DataFrame:
        """Return comparison.csv as a data frame, whose ``attrs["meanings"]`` say what its columns are.

        Raises
        ------
        ModuleNotFoundError
            When pandas is not installed.
        """
        return typed_frame(self.rows)

    def to_parquet(self, path: str | Path) -> None:
        """Write comparison.csv as a Parquet file, whose columns have types and say what they are.

        Raises
        ------
        InputError
            When pyarrow is not installed, or the file cannot be written.
        """
        write_parquet(Path(path), self.rows)

    def plot(self) -> Figure:
        """Draw accuracy against epsilon, or against bytes without epsilons: the main figure of the page.

        Returns
        -------
        matplotlib.figure.Figure
            Independent of pyplot; `savefig` writes it.

        Raises
        ------
        InputError
            When no run is finished, or the directory no longer holds the comparison.
        """
        from simulation.pages import plot_comparison  # matplotlib is loaded only when something is drawn

        return plot_comparison(self.directory)

    def notes_on_ratings(self) -> tuple[str, ...]:
        """Return what the runs say of ratings from a user's file, such as what their scale reveals."""
        summaries = (
            self.directory / CELLS / cell.key
            for cell in self.comparison.cells
            if cell.config.dataset.own and cell.population is None
        )
        ended = (read_summary(folder) for folder in summaries if (folder / SUMMARY).is_file())
        return next(filter(None, (each.dataset.notes for each in ended)), ())

    def __repr__(self) -> str:
        ended = f"{len(self.rows)} of {len(self.comparison.cells)} runs"
        return f"ComparisonResult({self.comparison.config.name}: {ended}, in {self.directory})"

    def _repr_html_(self) -> str:
        from simulation.pages import comparison_html

        return comparison_html(self.rows, self.comparison.config.name)


class InterruptedComparison(KeyboardInterrupt):
    """An interrupt of a comparison, whose table holds what is finished."""

    def __init__(self, result: ComparisonResult) -> None:
        super().__init__()
        self.result = result


def run_comparison(
    comparison: Comparison,
    output: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    tabulated: Callable[[Path], object] | None = None,
    announce: Announce = unheard,
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table.

    Parameters
    ----------
    output : str or Path
        The comparison's directory.
    jobs : int, optional
        Number of cells to run at a time; one per core by default.
    resume : bool
        Continue an interrupted comparison; its finished cells are kept.
    tabulated : callable, optional
        Called with the directory now and then while cells run, when it holds the table of the finished ones.
    announce : callable, optional
        Called with a sentence on what a long comparison may take, before its first run.

    Raises
    ------
    InputError
        When the configuration, the data or the output directory cannot be used; raised before any cell runs.
    InterruptedComparison
        When cells had begun; the table of the finished ones is written.
    """
    if jobs is not None and jobs < 1:
        raise InputError("jobs", str(jobs), "at least 1")
    comparison, directory, samples = _claimed(comparison, output, resume, progress)
    backend, cells = comparison.config.simulation.backend, comparison.cells
    waiting = [cell for cell in cells if not cell_runs.finished(cell, directory / CELLS)]
    if announce is not unheard and waiting:
        progress("estimating what it will take", 0, 1)
        workers = 1 if backend == "local" else jobs or cell_runs.processors(len(waiting))
        cell_runs.announce_estimate(waiting, samples, workers, announce)
    table, failures = Tabulation(cells, directory), dict[str, str]()

    try:
        with closing(cell_runs.run_cells(cells, directory / CELLS, jobs, backend)) as ended:
            _follow(ended, table, failures, progress, tabulated)
    except KeyboardInterrupt:
        result = ComparisonResult(comparison, directory, *table.write(), failures)
        raise InterruptedComparison(result) from None
    return ComparisonResult(comparison, directory, *table.write(), failures)


def _claimed(
    comparison: Comparison, output: str | Path, resume: bool, progress: Progress
) -> tuple[Comparison, Path, dict[cell_runs.Contender, cell_runs.Sample]]:
    """Return what of a comparison suits the ratings, its directory, and samples of the ratings.

    All kernels are compiled, so that the workers find them on disk.
    """
    from dprec.kernels.compilation import prepare

    prepare(progress)
    comparison, fingerprints, samples = _checked(comparison, progress)
    noise = sampled_noise(comparison)
    directory = claim(output, COMPARISON, comparison.to_yaml(fingerprints), resume=resume)
    if noise:
        write_atomically(directory / NOISE, csv_of_rows(noise))
    return comparison, directory, samples


_FIRST_SECONDS, _SHARE = 10.0, 0.02
"""The table is first written after so many seconds, and then again for such a share of the time."""


def _follow(
    ended: Iterable[tuple[Cell, cell_runs.Failure | None]],
    table: Tabulation,
    failures: dict[str, str],
    progress: Progress,
    tabulated: Callable[[Path], object] | None,
) -> None:
    """Note how every cell ends, and now and then write the table."""
    planned, due = len(table.cells), monotonic() + _FIRST_SECONDS
    progress(_STAGE, 0, planned)
    for cell, failure in ended:
        if failure is None:
            table.finished.add(cell.key)
        else:
            failures[cell.key] = failure
        progress(_STAGE, len(table.finished) + len(failures), planned)
        if tabulated is not None and table.finished and (began := monotonic()) >= due:
            table.write()
            tabulated(table.directory)
            due = monotonic() + (monotonic() - began) / _SHARE


def _checked(
    comparison: Comparison, progress: Progress
) -> tuple[Comparison, dict[str, str], dict[cell_runs.Contender, cell_runs.Sample]]:
    """Check each protocol at each of its budgets; return what suits the ratings, with their fingerprints.

    Beside these come samples of the ratings, for an estimate of what the cells take.

    Ratings are those of the protocol's first fold and seed on every population: what a check depends on, the
    numbers of users and items and the scale, hardly differs between folds.
    """
    fingerprints: dict[str, str] = {}
    unsuited: dict[str, LeftOut] = {}
    samples: dict[cell_runs.Contender, cell_runs.Sample] = {}
    load = lru_cache(maxsize=3)(prepared_ratings)
    listed = {each.name for each in comparison.config.protocols}
    by_contender = grouped_by(((cell.protocol, cell.population), cell) for cell in comparison.cells)
    for done, ((name, population), cells) in enumerate(by_contender.items()):
        progress("checking protocols and ratings", done, len(by_contender))
        try:
            firsts = {cell.epsilon: cell for cell in reversed(cells)}
            train, test = _suitable_ratings(cells[0], [*reversed(firsts.values())], load)
        except _UnsuitedError as error:
            if not comparison.other_data and name in listed:
                raise InputError(error.where, error.found, error.accepted) from None
            unsuited[name] = LeftOut(name, f"{error.found}; accepted: {error.accepted}")
            continue
        samples[name, population] = cell_runs.Sample.of(train, test)
        key = name if population is None else f"{name} of {population}"
        config = cells[0].config
        users = config.dataset.users_table(train.user_ids) if config.reads_users else None
        fingerprints[key] = fingerprint(train, test, config.dataset.catalogue(train.item_ids), users)
    if unsuited:
        comparison = comparison.without(list(unsuited.values()))
    kept = {cell.protocol for cell in comparison.cells}
    own = {key: value for key, value in fingerprints.items() if key.split(" of ")[0] in kept}
    return comparison, own, samples


class _UnsuitedError(InputError):
    """Ratings that are in order, and that a protocol cannot be run on."""


def _suitable_ratings(
    first: Cell, cells: Sequence[Cell], prepare: Callable[..., tuple[Ratings, Ratings]]
) -> tuple[Ratings, Ratings]:
    """Return the ratings of a protocol's first cell, checked by the protocol at each of its budgets."""
    with of_entry(first.where):
        readable = load_ratings(first.config.model_copy(update={"binarization": None}), prepare)
    cell = first
    try:
        cut = first.config.binarization is not None
        train, test = load_ratings(first.config, prepare) if cut else readable
        for cell in cells:
            with within("protocol"):
                check_suits(cell.config.protocol, train, test)
    except InputError as error:
        raise _UnsuitedError(f"{cell.where}: {error.where}", error.found, error.accepted) from None
    return train, test
