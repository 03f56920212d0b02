"""The section on attacks: every figure beside what it is judged by, for a run and by epsilon."""

from simulation.analysis.attacks import AttackedResult, names_of, of_results
from simulation.analysis.protocol_results import ProtocolResult
from simulation.pages.attacks import attack_sections
from simulation.pages.figures.marks import Line
from simulation.pages.figures.panels import SERIES, Look
from simulation.pages.figures.rendering import Plot, Rendered, render
from simulation.storage.attacked import Reached
from tests.results import row

LOOKS = {"a": Look(SERIES[0], "o"), "b": Look(SERIES[1], "^")}


def attacked(name: str, epsilon: float | None, level: float | None) -> AttackedResult:
    figure = Reached(value=level, baseline=0.25, bound=None if level is None else level + 0.125)
    return AttackedResult(name, epsilon, {"recovered_level": figure})


def drawn(lines: list[AttackedResult]) -> tuple[str, list[Plot]]:
    """Return the section as text, and the figures in it."""
    plots: list[Plot] = []

    def draw(plot: Plot) -> Rendered:
        plots.append(plot)
        return render(plot)

    sections = attack_sections(lines, LOOKS, draw, ["A note <on> it."])
    return "".join(part for section in sections for part in section.content), plots


def test_nothing_is_said_without_attacks() -> None:
    assert attack_sections([], {}, render) == []


def test_a_run_has_a_table_of_its_figures_and_what_is_to_be_known() -> None:
    text, plots = drawn([attacked("a", None, 0.5)])
    assert plots == []
    for words in ("Levels recovered", "0.500", "0.250", "0.625", "A note &lt;on&gt; it."):
        assert words in text


def test_protocols_are_compared_by_epsilon() -> None:
    lines = [attacked("a", epsilon, level) for epsilon, level in ((0.1, 0.3), (1.0, 0.5), (3.0, 0.75))]
    text, plots = drawn([*lines, attacked("b", None, 1.0), attacked("nothing", 1.0, None)])
    (panel,) = plots[0].draw()
    baseline, allowed, reached = (mark for mark in panel.marks if isinstance(mark, Line))
    assert (reached.label, list(reached.y), list(reached.x)) == ("a", [0.3, 0.5, 0.75], [0.1, 1.0, 3.0])
    assert list(baseline.y) == [0.25] * 3
    assert list(allowed.y) == [0.425, 0.625, 0.875]
    assert "0.250 · ≤ 0.625" in text


def test_what_a_comparison_reached_is_read_from_its_table() -> None:
    reached = {"shadow_auc": 0.75, "shadow_auc_baseline": 0.5, "shadow_auc_bound": None}
    rows = (row("a", 1.0, **reached), row("a", 1.0, **{**reached, "shadow_auc": 0.25}))
    lines = of_results([ProtocolResult("a", 1.0, rows), ProtocolResult("b", 1.0, (row("b", 1.0),))])
    expected = Reached(value=0.5, baseline=0.5, bound=None)
    assert lines == [AttackedResult("a", 1.0, {"shadow_auc": expected})]
    assert names_of(lines) == ["shadow_auc"]
