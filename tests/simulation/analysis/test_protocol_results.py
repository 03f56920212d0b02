"""Which results of a comparison stand for the others."""

from pathlib import Path

import pytest

from dprec.errors import InputError
from simulation.analysis.columns import asked_column
from simulation.analysis.protocol_results import (
    _NEEDED,
    at_reference,
    read_results,
    reference_budget,
)
from simulation.analysis.vocabulary import METRICS
from simulation.pages.comparison_figures import EpsilonAxis
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


def test_a_budget_says_for_what_it_is_and_with_which_delta_where_that_is_not_the_unit() -> None:
    composed = {"epsilon_per_user_max": None, "epsilon_composed_max": 1.0, "delta": 1e-6}
    claimed = {"status": "claimed", "epsilon_claimed_per_rating": 1.0, "epsilon_per_rating": 1.25}
    results = [
        result("rating", 1, 1, per="rating"),
        result("user", 1, 1, per="user", delta=1e-6),
        result("user-and-delta", 1, 1, per="user", **composed),
        result("claims", 1, 1, per="rating", **claimed),
        result("claims-alone", 1, 1, per="rating", **claimed | {"epsilon_per_rating": None}),
        result("nothing", 1, 1, None, epsilon_per_user_max=0.0),
    ]
    of_ratings, of_users = asked_column("rating"), asked_column("user")
    told = ["1", "1 per user", "1 per user, δ = 1e-06", "1 claimed, 1.25 proved", "1 claimed", "0"]
    assert [of_ratings.text(each) for each in results] == told
    assert [of_users.text(each) for each in results[:3]] == ["1 per rating", "1", "1"]
    mixed = EpsilonAxis("rating", requested=True, mixed=True)
    assert mixed.label == "requested ε per rating or user"
