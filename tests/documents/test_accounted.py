"""What the documents say of losses is what the accountant computes, and what runs are charged."""

import pytest

from docs.tables.accounted import composed, guesses, lost, sampled, shares, shuffled
from docs.tables.results import summary


def test_a_guess_is_right_as_often_as_randomised_response_tells_the_truth() -> None:
    assert guesses().splitlines()[0] == "| ε | 0 | 0.1 | 0.5 | 1 | 2 | 4 | 8 |"
    assert guesses().splitlines()[-1].startswith("| at most | 0.5 | 0.525 | 0.6225 | 0.7311 | ")


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_bits_lose_what_the_busiest_user_of_a_committed_run_is_charged(epsilon: float) -> None:
    (charged,) = (
        each.mean("epsilon_composed_max")
        for each in summary("ml-100k-u1").results
        if (each.name, each.budget) == ("one-bit-on-device", epsilon)
    )
    assert lost("one bit", 685, epsilon) == pytest.approx(charged, rel=1e-6)


def test_a_row_of_composed_losses_has_the_sum_first() -> None:
    assert "| one bit | 685.0 | 422.5 | 68.5 | 15.2 |" in composed("685")


def test_shares_of_few_draws_gain_nothing() -> None:
    assert "| 4 of one bit | 0.25 | 0.25 |" in shares()
    assert "| 50 of one bit | 0.02 | 0.0344 |" in shares()


def test_rounds_of_all_users_cost_what_gaussian_dp_says() -> None:
    # mu = sqrt(1000) / 2, and twice as much between any two profiles.
    assert "| everybody | 199.28 | 649.39 |" in sampled("1000")


def test_a_message_hides_the_better_the_more_there_are() -> None:
    *_, bit, two, four = shuffled().splitlines()
    for line in (bit, two, four):
        losses = [float(cell) for cell in line.split("|")[2:-1]]
        assert losses == sorted(losses, reverse=True)
    assert "| 1.999 |" in two  # hardly less than alone
