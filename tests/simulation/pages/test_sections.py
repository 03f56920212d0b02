"""The section on attacks: every figure beside what it is judged by, for a run and by epsilon."""

import re

from simulation.analysis.protocol_results import ProtocolResult
from simulation.pages.sections import AttackedProtocol, attack_section, attacks_on
from simulation.storage.attacked import Reached
from tests.results import row


def attacked(name: str, epsilon: float | None, level: float | None) -> AttackedProtocol:
    figure = Reached(value=level, baseline=0.25, bound=None if level is None else level + 0.125)
    return AttackedProtocol(name, epsilon, {"recovered_level": figure})


def rows_of(lines: list[AttackedProtocol]) -> tuple[list[list[str]], str]:
    """Return the cells of the table, and the whole text of the section."""
    text = "".join(str(part) for part in attack_section(lines, ["A note <on> it."]).content)
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", own, re.S) for own in rows[1:]], text


def test_protocols_are_compared_by_epsilon() -> None:
    lines = [attacked("a", epsilon, level) for epsilon, level in ((1.0, 0.5), (3.0, 0.75))]
    rows, text = rows_of([*lines, attacked("b", None, 1.0), attacked("nothing", 1.0, None)])
    assert rows == [
        ["a", "1", "0.500<br><small>0.250 · ≤ 0.625</small>"],
        ["a", "3", "0.750<br><small>0.250 · ≤ 0.875</small>"],
        ["b", "–", "1.000<br><small>0.250 · ≤ 1.125</small>"],
        ["nothing", "1", "–<br><small>0.250</small>"],
    ]
    assert "A note &lt;on&gt; it." in text


def test_a_run_has_a_line_for_each_figure() -> None:
    assert rows_of([attacked("a", None, 0.5)])[0] == [["Levels recovered", "0.500", "0.250", "0.625"]]
    assert attack_section([]).content == ()


def test_the_section_is_folded_unless_attacks_are_what_was_asked_for() -> None:
    lines = [attacked("a", None, 0.5)]
    assert [attack_section(lines, folded=folded).folded for folded in (True, False)] == [True, False]


def test_what_a_comparison_reached_is_read_from_its_table() -> None:
    reached = {"shadow_auc": 0.75, "shadow_auc_baseline": 0.5, "shadow_auc_bound": None}
    rows = (row("a", 1.0, **reached), row("a", 1.0, **{**reached, "shadow_auc": 0.25}))
    lines = attacks_on([ProtocolResult("a", 1.0, rows), ProtocolResult("b", 1.0, (row("b", 1.0),))])
    expected = Reached(value=0.5, baseline=0.5, bound=None)
    assert lines == [AttackedProtocol("a", 1.0, {"shadow_auc": expected})]
