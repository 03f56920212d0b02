import pytest

from dprec.accounting import note_on_delta


@pytest.mark.parametrize(
    ("delta", "users", "warns"), [(1e-3, 943, False), (1e-3, 1001, True), (0.1, 10, False)]
)
def test_a_delta_above_one_in_the_number_of_users_is_warned_about(
    delta: float, users: int, warns: bool
) -> None:
    assert (note_on_delta(delta, users) is not None) is warns


def test_the_reason_says_how_many_profiles_it_would_allow_to_publish() -> None:
    note = note_on_delta(1e-3, 6040)
    assert note is not None
    assert note.startswith("Delta = 0.001 is above one in 6,040 users: to publish 6.04 of the profiles in")
