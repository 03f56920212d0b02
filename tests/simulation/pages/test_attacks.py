"""The section on attacks: every figure beside what it is judged by, for a run and by epsilon."""

import numpy as np
from matplotlib.axes import Axes

from simulation.analysis.protocol_results import ProtocolResult
from simulation.pages.attacks import Attacked, attack_section, attacks_on
from simulation.pages.drawing import Plot, to_figure
from simulation.pages.looks import SERIES, Look
from simulation.storage.attacked import Reached
from tests.results import row

LOOKS = {"a": Look(SERIES[0], "o"), "b": Look(SERIES[1], "^")}


def attacked(name: str, epsilon: float | None, level: float | None) -> Attacked:
    figure = Reached(value=level, baseline=0.25, bound=None if level is None else level + 0.125)
    return Attacked(name, epsilon, {"recovered_level": figure})


def parts(lines: list[Attacked]) -> tuple[str, list[Plot]]:
    """Return the text of the section, and the figures in it."""
    content = attack_section(lines, LOOKS, ["A note <on> it."]).content
    plots = [part for part in content if isinstance(part, Plot)]
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


def test_what_a_comparison_reached_is_read_from_its_table() -> None:
    reached = {"shadow_auc": 0.75, "shadow_auc_baseline": 0.5, "shadow_auc_bound": None}
    rows = (row("a", 1.0, **reached), row("a", 1.0, **{**reached, "shadow_auc": 0.25}))
    lines = attacks_on([ProtocolResult("a", 1.0, rows), ProtocolResult("b", 1.0, (row("b", 1.0),))])
    expected = Reached(value=0.5, baseline=0.5, bound=None)
    assert lines == [Attacked("a", 1.0, {"shadow_auc": expected})]
