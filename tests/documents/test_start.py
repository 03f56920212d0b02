"""The figures of the first result are those of the run that the page shows."""

import pytest

from dprec import run
from tests.documents.pages import PAGES


@pytest.fixture(scope="module")
def page() -> str:
    return PAGES["docs/start.md"].read_text(encoding="utf-8")


@pytest.mark.thorough
def test_the_first_result_is_that_of_the_page(page: str) -> None:
    first, other = (run("one-bit-on-device", overrides=[f"seed={seed}"]).summary for seed in (1, 2))
    alone = run("nothing-sent").summary["accuracy"]["rmse"]
    traffic = first["traffic"]
    assert f"RMSE of about {first['accuracy']['rmse']:.2f}" in page
    assert f"(`nothing-sent`) reaches {alone:.2f}" in page
    assert f"{first['privacy']['epsilon_per_user']['max']:.0f} for the busiest user" in page
    up, down = (traffic[way]["message_mean_per_user"] for way in ("uplink", "downlink"))
    assert f"{up:.0f} up, {down / 1000:.0f} kB down" in page
    assert 0.005 < abs(first["accuracy"]["rmse"] - other["accuracy"]["rmse"]) < 0.015
