"""Who chooses which epsilon, and which choices there are."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from dprec.accounting import AnyBudget, BudgetChoice, OwnBudgets
from dprec.catalogue import UsersTable
from dprec.components import as_values, parse_json
from dprec.errors import SettingError
from dprec.protocols.one_shot import OneShotProtocol

SHARES = {0: 0.2, 0.1: 0.3, 1: 0.4, 3: 0.1}
USERS = 1000


def chosen(seed: int = 1, **choice: Any) -> Any:
    """Return the numbers that users choose of whom each rates more, and lower, than the one before."""
    budgets = OwnBudgets.of(SHARES, choice=BudgetChoice(**choice) if choice else None)
    return budgets.chosen(np.arange(USERS), np.linspace(5, 1, USERS), seed)


def test_a_file_has_the_shares_under_epsilon() -> None:
    budgets = OwnBudgets.of(SHARES, choice=BudgetChoice(by="taste", strength=0.5))
    written = as_values(budgets)
    assert written["epsilon"] == {"0": 0.2, "0.1": 0.3, "1": 0.4, "3": 0.1}
    protocol = {
        "kind": "one-shot",
        "privacy": written,
        "mechanism": {"kind": "threshold-bit"},
        "completion": {"kind": "item-average"},
    }
    read = parse_json(OneShotProtocol, json.dumps(protocol))
    assert read.privacy == budgets
    assert as_values(read)["privacy"] == written


def users(**columns: Any) -> UsersTable:
    return UsersTable({name: np.array(column) for name, column in columns.items()}, 4)


def test_a_column_says_who_has_which_epsilon() -> None:
    unread = TypeAdapter(AnyBudget).validate_python({"epsilon": "chosen", "per": "rating"})
    assert as_values(unread) == {"epsilon": "chosen", "per": "rating"}
    read = unread.of_users(users(age=[7.0] * 4, chosen=[3.0, -0.0, 0.5, 3.0]))
    assert as_values(read) == as_values(unread)
    assert read.shares == ((0.0, 0.25), (0.5, 0.25), (3.0, 0.5))
    assert read.epsilon == 3
    counts, means = np.ones(4, dtype=np.int64), np.ones(4)
    assert read.chosen(counts, means, 1).tolist() == read.chosen(counts, means, 2).tolist() == [2, 0, 1, 2]
    assert as_values(read.installed)["epsilon"] == {"0": 0.25, "0.5": 0.25, "3": 0.5}
    with pytest.raises(ValueError, match="0 users"):
        unread.chosen(counts, means, 1)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        ([1.0, np.nan, 2.0, np.nan], "none for 2 of 4 users"),
        (["", "", "", ""], "none for 4 of 4 users"),
        (["1", "2.5", "high", "2"], "'high'"),
        (["1", "2.5", "nan", "2"], "'nan'"),
        (["1", "inf", "0", "2"], "'inf'"),
        (["1.2.3", "1", "0", "2"], "'1.2.3'"),
        ([1.0, -0.5, 2.0, 3.0], "-0.5"),
        ([1.0, np.inf, 2.0, 3.0], "inf"),
        ([1.0, 21.0, 2.0, 3.0], "21"),
        ([0.0] * 4, "0"),
    ],
)
def test_columns_that_are_no_epsilons_are_refused(column: list[Any], found: str) -> None:
    with pytest.raises(SettingError) as caught:
        OwnBudgets.named("chosen").of_users(users(chosen=column))
    assert caught.value.key == "epsilon"
    assert found in caught.value.found


def test_a_mapping_is_read_back_as_it_was() -> None:
    budgets = OwnBudgets.of({0.1 + 0.2: 0.5, 1: 0.25, 0: 0.25})
    written = as_values(budgets)["epsilon"]
    assert list(written) == ["0", "0.30000000000000004", "1"]
    assert OwnBudgets.of(written) == budgets


def test_scaled_budgets_stay_with_their_users() -> None:
    budgets = OwnBudgets.named("chosen").of_users(users(chosen=[0.5, 1.0, 0.5, 1.0]))
    scaled = budgets.scaled(0.5)
    counts, means = np.ones(4, dtype=np.int64), np.ones(4)
    assert scaled.epsilons == (0.25, 0.5)
    assert scaled.chosen(counts, means, seed=1).tolist() == [0, 1, 0, 1]


def test_shares_are_exact_and_drawn_by_the_seed() -> None:
    first, again, other = chosen(), chosen(), chosen(seed=2)
    assert np.bincount(first).tolist() == [200, 300, 400, 100]
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    # The correlation of 1,000 independent choices with anything is beyond .16 with a chance below 1e-6.
    assert abs(np.corrcoef(first, np.arange(USERS))[0, 1]) < 0.16


def test_choices_go_with_activity_or_taste() -> None:
    assert (np.diff(chosen(by="activity").astype(int)) >= 0).all()
    assert (np.diff(chosen(by="activity", strength=-1.0).astype(int)) <= 0).all()
    assert (np.diff(chosen(by="taste").astype(int)) <= 0).all()
    half = np.corrcoef(chosen(by="taste", strength=0.5), np.arange(USERS))[0, 1]
    assert -0.65 < half < -0.3
