"""The section on attacks: every figure beside what it is judged by, for a run and by epsilon."""

from collections.abc import Mapping

import numpy as np
import pytest
from matplotlib.axes import Axes

from simulation.analysis.attacks import AttackedResult, names_of, of_results
from simulation.analysis.protocol_results import ProtocolResult
from simulation.pages.attacks import attack_section
from simulation.pages.drawing import Plot, to_figure
from simulation.pages.looks import SERIES, Look
from simulation.storage.attacked import Reached
from tests.results import row

LOOKS = {"a": Look(SERIES[0], "o"), "b": Look(SERIES[1], "^")}


def attacked(name: str, epsilon: float | None, level: float | None) -> AttackedResult:
    figure = Reached(value=level, baseline=0.25, bound=None if level is None else level + 0.125)
    return AttackedResult(name, epsilon, {"recovered_level": figure})


def parts(lines: list[AttackedResult]) -> tuple[str, list[Plot]]:
    """Return the text of the section, and the figures in it."""
    content = attack_section(lines, LOOKS, ["A note <on> it."]).content
    plots = [plot for part in content if not isinstance(part, str) for plot in part]
    return "".join(part for part in content if isinstance(part, str)), plots


def line(ax: Axes, place: int) -> list[list[float]]:
    return np.asarray(ax.lines[place].get_xydata()).T.tolist()  # type: ignore[no-any-return]


def test_protocols_are_compared_by_epsilon() -> None:
    lines = [attacked("a", epsilon, level) for epsilon, level in ((1.0, 0.5), (0.1, 0.3), (3.0, 0.75))]
    text, plots = parts([*lines, attacked("b", None, 1.0), attacked("nothing", 1.0, None)])
    (ax,) = to_figure(plots[0]).axes
    baseline, allowed, reached = (line(ax, place) for place in range(3))
    assert reached == [[0.1, 1.0, 3.0], [0.3, 0.5, 0.75]]
    assert baseline[1] == [0.25] * 3
    assert allowed[1] == [0.425, 0.625, 0.875]
    assert "0.250 · ≤ 0.625" in text


def lied(
    name: str, epsilon: float | None, ranks: Mapping[str, float | None], *, main: bool = True
) -> AttackedResult:
    figures = {
        f"target_rank{end}": Reached(value=rank, baseline=200.0, bound=None) for end, rank in ranks.items()
    }
    return AttackedResult(name, epsilon, figures, main)


@pytest.mark.parametrize("epsilon", [1.0, None])
def test_ranks_are_drawn_by_the_share_of_liars(epsilon: float | None) -> None:
    ranks = {"": 3.0, "_at_0_5_percent": 90.0, "_at_5_percent": 3.0, "_at_1_percent": 60.0}
    others = [lied("a", 3.0, ranks, main=False), lied("b", 1.0, {"": 9.0})] if epsilon else []
    text, plots = parts([lied("a", epsilon, ranks), *others])
    (plot,) = [each for each in plots if each.name == "attacks-liars"]
    (ax,) = to_figure(plot).axes
    assert line(ax, 0) == [[0.0, 0.005, 0.01, 0.05], [200.0, 90.0, 60.0, 3.0]]
    assert "a, 0.5 % liars: 90.0" in plot.alt
    assert plot.title.endswith("ε = 1") is (epsilon is not None)
    assert "Target, rank, 0.5 % liars" in text


def test_what_a_comparison_reached_is_read_from_its_table() -> None:
    reached = {"shadow_auc": 0.75, "shadow_auc_baseline": 0.5, "shadow_auc_bound": None}
    rows = (row("a", 1.0, **reached), row("a", 1.0, **{**reached, "shadow_auc": 0.25}))
    lines = of_results([ProtocolResult("a", 1.0, rows), ProtocolResult("b", 1.0, (row("b", 1.0),))])
    expected = Reached(value=0.5, baseline=0.5, bound=None)
    assert lines == [AttackedResult("a", 1.0, {"shadow_auc": expected})]
    assert names_of(lines) == ["shadow_auc"]


def test_ranks_by_liars_are_at_the_reference_budget() -> None:
    reached = {f"target_rank_at_{share}_percent{end}": 9.0 for share in (1, 5) for end in ("", "_baseline")}
    results = [ProtocolResult("a", epsilon, (row("a", epsilon, **reached),)) for epsilon in (0.1, 1.0, 3.0)]
    lines = of_results(results)
    assert [(line.budget, line.main) for line in lines] == [(0.1, False), (1.0, True), (3.0, False)]
    assert lines[1].ranks_by_liars == [(0.0, 9.0), (0.01, 9.0), (0.05, 9.0)]
