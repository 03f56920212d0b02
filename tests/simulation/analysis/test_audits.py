"""How strong an audit is called: by its strongest test, and by how many are weak."""

from typing import Any

import pytest

from simulation.analysis.audits import strength_of_tests

SEEN = 'The strongest test by samples, "values", is strong: it would see a leak of twice the promise with'


def found(test: str, power: float, promised: float = 1.0, *, exact: bool = False) -> dict[str, Any]:
    return {"test": test, "power": power, "promised": promised, "exact": exact}


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([], ""),
        ([found("items", 0.5)], ""),
        (
            [found("items", 0.0)],
            " 1 of the 3 tests by samples is weak, below 0.5: more --trials would make it stronger.",
        ),
        (
            [found("items", 0.1), found("noise", 0.08, 0.0), found("matrix", 0.0, exact=True)],
            " 2 of the 4 tests by samples are weak, below 0.5: more --trials would make them stronger.",
        ),
    ],
)
def test_the_strongest_test_is_named_and_weak_ones_are_counted(
    others: list[dict[str, Any]], words: str
) -> None:
    findings = [*others, found("values", 0.96), found("all noise", 1.0, 0.0)]
    assert strength_of_tests(findings) == f"{SEEN} probability 0.96 or more.{words}"


def test_without_tests_by_samples_nothing_is_said() -> None:
    assert strength_of_tests([found("matrix", 1.0, exact=True), found("noise", 1.0, 0.0)]) == ""
