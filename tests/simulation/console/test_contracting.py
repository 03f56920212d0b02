"""`dprec contract`: a line for each rule, what to change, and how it ends."""

from typing import Any

import pytest

from dprec.federated import RULES


def first_words(out: str) -> dict[str, str]:
    """Return what is said of each rule, by its name."""
    lines = [line for line in out.splitlines() if not line.startswith(" ")]
    return {line[11:].partition(":")[0]: line[:11].strip() for line in lines}


def test_a_good_model_keeps_every_rule(dprec: Any) -> None:
    finished = dprec("contract", "fcf", "--set", "rank=2")
    assert (finished.code, finished.err) == (0, "")
    assert first_words(finished.out) == dict.fromkeys((rule.name for rule in RULES), "kept")


def test_what_is_broken_is_said_with_what_to_change(dprec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    finished = dprec("contract", "tests.faulty_models:TrainingRows")
    assert finished.code == 1
    assert finished.err == "dprec: tests.faulty_models:TrainingRows breaks untouched\n"
    said = first_words(finished.out)
    assert [said.pop(name) for name in ("defined", "starts", "untouched")] == ["kept", "kept", "BROKEN"]
    assert set(said.values()) == {"not tried"}
    assert [line for line in finished.out.splitlines() if line.startswith(" ")] == [
        "           change: copy first what you change, such as what is trained: array.copy(), or "
        "torch.tensor(array)"
    ]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["nowhere:Model"], "nowhere:Model"),
        (["tests.models:Nothing"], "tests.models:Nothing"),
        (["nothing"], "nothing"),
        (["fcf", "--set", "rank=0"], "overrides.rank"),
        (["tests.models:Mixing", "--set", "more=1"], "overrides.more"),
        (["fcf", "--set", "rank"], "--set"),
        (["tests.faulty_models:HoldsFunction"], "length"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(dprec: Any, arguments: list[str], where: str) -> None:
    finished = dprec("contract", *arguments)
    assert (finished.code, finished.out) == (2, "")
    assert finished.err.startswith(f"dprec: {where}: ")
    assert finished.err.count("\n") == 1
