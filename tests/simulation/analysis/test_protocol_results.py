"""Which results of a comparison stand for the others."""

from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation.analysis.protocol_results import (
    _NEEDED,
    at_reference,
    read_results,
    reference_budget,
)
from simulation.analysis.vocabulary import METRICS
from tests.results import result

RMSE = METRICS[0]


def test_the_reference_budget_is_the_most_common_and_then_the_nearest_to_one() -> None:
    results = [result("a", 1, 1, budget) for budget in (0.1, 0.5, 3.0)] + [result("b", 1, 1, 3.0)]
    assert reference_budget(results) == 3.0
    assert reference_budget(results[:3]) == 0.5
    assert reference_budget([result("c", 1, 1, None)]) is None
    chosen = at_reference([*results[:2], result("b", 1, 1, 3.0), result("b", 1, 1, 8.0)])
    assert [(one.name, one.budget) for one in chosen] == [("a", 0.5), ("b", 3.0)]


HEAD = ",".join(_NEEDED) + ",seed,rmse,dataset\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("isgd", "isgd"), "line 3: the run of line 2 again"),
        (
            ("isgd", "a\N{RIGHT-TO-LEFT OVERRIDE}b"),
            "line 3: name: .*; accepted: a name of characters that can be printed",
        ),
    ],
)
def test_a_run_told_twice_and_a_name_that_turns_the_line_are_refused(
    tmp_path: Path, lines: tuple[str, str], found: str
) -> None:
    table = tmp_path / "comparison.csv"
    table.write_text(
        HEAD + "".join(f"{name},1.0,proved,1.0,9.0,300,100,1,0.9,movielens-100k\n" for name in lines)
    )
    with pytest.raises(InputError, match=found):
        read_results(table)
