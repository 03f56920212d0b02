"""dprec audit: promises that are kept, one that is broken, and what cannot be audited."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clients import gradient_perturbation, one_shot
from dprec.errors import InputError
from simulation import load
from simulation.audit import audit
from simulation.auditing import Audit
from simulation.console.command_line import main
from tests.paths import CONFIGS

CONFIDENCE = 1 - 1e-7
"""A test of a promise that is kept fails by chance less than once in ten million runs; that a bound comes
near its promise holds for the seeds of the presets."""


def audited(name: str, *overrides: str, **options: Any) -> Audit:
    config = load(
        CONFIGS / f"{name}.yaml",
        ["dataset={kind: synthetic, users: 20, items: 10, ratings: 100}", *overrides],
    )
    return audit(config, **{"trials": 20_000, "confidence": CONFIDENCE, **options})


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let devices perturb as if their budget were twice what it is."""
    honest = one_shot._installed

    def twice(population: Any) -> Any:
        calibrated, codec = honest(population)
        spent = replace(calibrated.budget, epsilon=2 * calibrated.budget.epsilon)
        return replace(calibrated, budget=spent), codec

    monkeypatch.setattr(one_shot, "_installed", twice)


@pytest.mark.parametrize(
    ("name", "overrides", "least"),
    [
        ("blp-mf", (), 0.3),
        ("isgd", (), 0.6),
        ("blp-mog-mf", ("protocol.privacy={epsilon: 2, per: user}",), 1.2),
        ("zheng-rr", (), 0.6),
        ("zheng-laplace", (), 0.2),
        ("one-bit-input", (), 0.6),
        ("one-bit-gradient", ("protocol.rounds=2",), 0.1),
        ("pg-mf", ("protocol.privacy.epsilon=8", "protocol.rounds=2"), 0.5),
    ],
)
def test_what_is_promised_is_kept(name: str, overrides: tuple[str, ...], least: float) -> None:
    found = audited(name, *overrides)
    assert found.holds
    for finding in found.findings:
        assert least <= finding.at_least <= finding.claimed
    hides = name.startswith(("zheng", "pg"))
    assert [finding.unit for finding in found.findings] == ["rating", "user" if name == "pg-mf" else "cell"][
        : 1 + hides
    ]


@pytest.mark.usefixtures("leaky")
def test_a_device_that_spends_twice_its_budget_is_found_out(tmp_path: Path) -> None:
    found = audited("blp-mf", output=tmp_path)
    (finding,) = found.findings
    assert finding.claimed == pytest.approx(1.0)
    assert finding.at_least > 1.2
    kept = json.loads((tmp_path / "audit.json").read_text())
    assert kept["holds"] is False
    assert kept["findings"][0]["at_least"] == finding.at_least


@pytest.mark.usefixtures("leaky")
def test_a_broken_promise_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", CONFIGS / "blp-mf.yaml", "-o", tmp_path / "out", "--trials", "20000"]
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "epsilon = 1 per rating is promised, but it is at least" in error


def test_the_command_tells_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", CONFIGS / "zheng-rr.yaml", "-o", tmp_path / "out", "--trials", "2000"]
    arguments += ["--confidence", str(CONFIDENCE)]
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    assert caught.value.code == 0
    told = capsys.readouterr().out
    assert told.count("no evidence against it") == 2
    assert (tmp_path / "out" / "config.yaml").exists()


@pytest.mark.parametrize(
    ("name", "options", "where"),
    [
        ("plain-mf", {}, "protocol.mechanism.kind"),
        ("federated-mf", {}, "protocol.gradient.kind"),
        ("one-bit-output", {}, "protocol.kind"),
        ("x-map", {}, "protocol.kind"),
        ("blp-mf", {"trials": 99}, "--trials"),
        ("blp-mf", {"confidence": 1.0}, "--confidence"),
        ("blp-mf", {"confidence": float("nan")}, "--confidence"),
    ],
)
def test_what_cannot_be_audited(name: str, options: dict[str, Any], where: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        audited(name, output=tmp_path / "out", **options)
    assert caught.value.where == where
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "override", "where"),
    [
        ("pg-mf", "protocol.privacy=null", "protocol.privacy"),
        ("pg-mf", "protocol.privacy.per=rating", "protocol.privacy.per"),
        ("one-bit-gradient", "protocol.privacy.per=user", "protocol.privacy.per"),
        ("one-bit-gradient", "binarization=null", "binarization"),
    ],
)
def test_what_a_run_refuses_an_audit_refuses(name: str, override: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        audited(name, override)
    assert caught.value.where == where


def test_noise_that_is_used_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = gradient_perturbation.words

    def stale(*arguments: Any, round_index: int = 0) -> Any:
        return fresh(*arguments, round_index=1)

    monkeypatch.setattr(gradient_perturbation, "words", stale)
    found = audited("one-bit-gradient", "protocol.rounds=2", "protocol.privacy.epsilon=2", trials=50_000)
    assert not found.holds


def test_a_preset_is_audited_by_its_name() -> None:
    small = ["dataset={kind: synthetic, users: 20, items: 10, ratings: 100}"]
    assert audit("blp-mf", overrides=small, trials=1_000).holds
