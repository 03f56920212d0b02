"""What attacks have reached on a run, or on the protocols of a comparison at its budgets."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simulation.analysis.protocol_results import ProtocolResult, at_reference
from simulation.storage.attacked import Reached
from simulation.storage.summary import Summary

_BASELINE, _BOUND = "_baseline", "_bound"


@dataclass(frozen=True)
class AttackedResult:
    """A protocol at a budget, and what attacks on it have reached."""

    name: str
    budget: float | None
    """The epsilon that it was given; None without privacy, or for a run by itself."""
    reached: dict[str, Reached]
    """By the name of the figure."""
    main: bool = True
    """Whether it is no baseline, and its budget the reference, or the nearest to it."""

    @property
    def ranks_by_liars(self) -> list[tuple[float, float]]:
        """Shares of liars and the rank of targets, from none; empty where one share alone was measured."""
        ranks = {share: each for name, each in self.reached.items() if (share := _share(name)) is not None}
        none = next((each.baseline for each in ranks.values()), None)
        known = [(0.0, none), *((share, ranks[share].value) for share in sorted(ranks))]
        course = [(share, rank) for share, rank in known if rank is not None]
        return course if len(course) > 2 else []


def of_run(summary: Summary) -> list[AttackedResult]:
    """Return what attacks on a run have reached; nothing if there were none."""
    return [] if summary.attacks is None else [AttackedResult(summary.name, None, summary.attacks.reached)]


def of_results(results: Sequence[ProtocolResult]) -> list[AttackedResult]:
    """Return what attacks on the results of a comparison have reached: means over folds and seeds."""
    main = {id(each) for each in at_reference([each for each in results if each.baseline is None])}
    attacked = [(each, _figures(each)) for each in results]
    return [
        AttackedResult(each.name, each.budget, reached, id(each) in main)
        for each, reached in attacked
        if reached
    ]


def names_of(lines: Iterable[AttackedResult]) -> list[str]:
    """Return the names of the figures that any of the lines has, in their order."""
    return list(dict.fromkeys(name for line in lines for name in line.reached))


def _figures(result: ProtocolResult) -> dict[str, Reached]:
    columns = dict.fromkeys(name for row in result.rows for name in row)
    stems = [name.removesuffix(_BASELINE) for name in columns if name.endswith(_BASELINE)]
    return {
        name: Reached(
            value=result.mean(name),
            baseline=result.mean(f"{name}{_BASELINE}"),
            bound=result.mean(f"{name}{_BOUND}"),
        )
        for name in stems
        if any(result.has(f"{name}{suffix}") for suffix in ("", _BASELINE, _BOUND))
    }


def _share(name: str) -> float | None:
    """Return the share of liars at which a figure is the rank of targets; None for another figure."""
    found = re.fullmatch(r"target_rank_at_(\d+(?:_\d+)?)_percent", name)
    return None if found is None else float(found[1].replace("_", ".")) / 100
