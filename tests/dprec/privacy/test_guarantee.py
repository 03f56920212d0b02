"""What is said of a guarantee, and whom it leaves users to trust."""

from __future__ import annotations

import pytest

from dprec.accounting import Guarantee, Status, Trust


@pytest.mark.parametrize(
    ("status", "opening"),
    [("proved", "Proved: "), ("claimed", "Claimed, not proved: "), ("none", "No privacy: ")],
)
def test_the_status_comes_first_and_says_why(status: Status, opening: str) -> None:
    guarantee = Guarantee(status, "local", True, "for a reason.", ("What else there is to know.",))
    assert guarantee.statements == (f"{opening}for a reason.", "What else there is to know.")


@pytest.mark.parametrize(
    ("trust", "trusts_server"),
    [("central", True), ("secure-aggregation", False), ("shuffle", False), ("local", False)],
)
def test_only_a_trusted_server_sees_true_ratings(trust: Trust, trusts_server: bool) -> None:
    assert Guarantee("proved", trust, False, "for a reason.").trusts_server is trusts_server
