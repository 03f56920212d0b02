"""dprec audit: promises that are kept, one that is broken, and what cannot be audited."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients import one_shot
from dprec.accounting import PrivacyBudget
from dprec.channel import Channel
from dprec.completion import OutputPerturbation
from dprec.protocols.findings import Finding, NoisySums
from dprec.protocols.gram import GramProtocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.private_als import FactorizationOptions, PrivateAlsProtocol
from dprec.protocols.sums import SumsProtocol
from dprec.sums import CentralAggregation, SecureAggregation, ShuffledAggregation
from dprec.sums.shuffled import MessagePlan
from simulation import audit, load
from simulation.auditing import Audit, auditing
from simulation.auditing.sums import sum_findings
from tests.paths import preset_file
from tests.refusals import refused_at

CONFIDENCE = 1 - 1e-7
"""A test of a promise that is kept fails by chance less than once in ten million runs; that a bound comes
near its promise, or a leak is detected, holds for the seeds of the presets."""

MEAN = "{kind: global-mean, mechanism: {kind: randomized-response}, privacy: {epsilon: 4, per: user}}"


def audited(name: str, *overrides: str, **options: Any) -> Audit:
    config = load(
        preset_file(name),
        ["dataset={kind: synthetic, users: 20, items: 10, ratings: 100}", *overrides],
    )
    return audit(config, **{"trials": 2_000, "confidence": CONFIDENCE, **options})


def test_attacks_of_a_configuration_are_left_out() -> None:
    asked, trials = "attacks=[{kind: membership}, {kind: reconstruction}]", {"trials": 200}
    attacked, plain = (audited("cells-on-device", *kinds, **trials) for kinds in ([asked], []))
    assert attacked.values()["findings"] == plain.values()["findings"]


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let devices perturb as if their budget were twice what it is."""
    honest = one_shot.installed_family

    def twice(population: Any) -> Any:
        family = honest(population)
        spending = replace(family, budget=replace(family.budget, epsilon=2 * family.budget.epsilon))
        vars(spending)["codec"] = family.codec  # the server reads what the honest channel would send
        return spending

    monkeypatch.setattr(one_shot, "installed_family", twice)


@pytest.mark.parametrize(
    ("name", "overrides", "least"),
    [
        ("blp-mog-mf", ("protocol.privacy={epsilon: 4, per: user}",), 0.3),
        ("zheng-rr", (), 0.3),
        ("pg-mf", ("protocol.privacy.epsilon=8", "protocol.rounds=2"), 0.2),
        ("global-mean", (f"protocol={MEAN}",), 0.2),
    ],
)
def test_what_is_promised_is_kept(name: str, overrides: tuple[str, ...], least: float) -> None:
    result = audited(name, *overrides, trials=2_000)
    assert result.holds
    sampled = [finding for finding in result.findings if finding.charged is not None]
    assert max(finding.at_least / finding.promised for finding in sampled) > least
    assert all(finding.at_least <= finding.charged <= finding.promised * 1.001 for finding in sampled)
    exact = [finding for finding in result.findings if finding.exact]
    assert exact
    assert all(finding.at_least == pytest.approx(finding.promised, rel=1e-3) for finding in exact)


@pytest.mark.usefixtures("leaky")
def test_a_device_that_spends_twice_its_budget_is_detected_and_fails_the_command(
    tmp_path: Path, dprec: Any
) -> None:
    finished = dprec("audit", preset_file("zheng-rr"), "-o", tmp_path / "out", "--trials", 4000)
    assert finished.code == 1
    (error,) = finished.err.splitlines()
    assert "epsilon = 1 per cell is promised, but epsilon is at least" in error
    page = (tmp_path / "out" / "report.html").read_text()
    assert "The promise is broken. value of one rating, ε = 1 per cell: epsilon is at least" in page
    kept = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert kept["power"] > 0.95
    assert kept["holds"] is False
    assert "epsilon is at least" in kept["findings"][2]["defect"]


def test_a_budget_that_is_not_divided_by_the_rounds_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger charges the same wrong losses, so it agrees with what is measured."""
    monkeypatch.setattr(IterativeProtocol, "epsilon_per_round", property(lambda self: self.privacy.epsilon))
    result = audited("pg-mf", "protocol.rounds=4", trials=1_000, confidence=0.99)
    defects = {finding.test: finding.defect for finding in result.findings if not finding.holds}
    assert defects["answers of all rounds, as probabilities"] == "epsilon is at least 6.4"
    assert defects["all ratings, through all rounds"].startswith("epsilon is at least")
    assert defects["value of one rating"] == "the ledger charges 6.4"


def test_lengths_that_depend_on_ratings_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = one_shot.reports

    def padded(partition: Any) -> list[bytes]:
        highest = np.bincount(np.repeat(np.arange(partition.size), partition.counts), partition.levels) == 5
        return [
            report + bytes(more) for report, more in zip(honest(partition), highest.tolist(), strict=True)
        ]

    monkeypatch.setattr(one_shot, "reports", padded)
    assert not audited("blp-mf", trials=2_000).holds


def test_noise_that_is_that_of_every_run_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, of_all_runs = Channel.sample, np.uint64(11400714819323198485)

    def sample(self: Channel, levels: Any, words: Any) -> Any:
        return honest(self, levels, np.arange(words.size, dtype=np.uint64) * of_all_runs)

    monkeypatch.setattr(Channel, "sample", sample)
    result = audited("blp-mf", trials=2_000)
    tests = {"noise of two runs", "noise at two budgets", "noise before and after a changed rating"}
    assert tests <= {finding.test for finding in result.findings if not finding.holds}


@pytest.mark.parametrize(
    ("name", "options", "where"),
    [
        ("plain-mf", {}, "protocol.mechanism.kind"),
        ("federated-mf", {}, "protocol.gradient.kind"),
        ("blp-mf", {"trials": 99}, "trials"),
        ("global-mean", {}, "protocol.mechanism.kind"),
        ("blp-mf", {"confidence": 1.0}, "confidence"),
        ("blp-mf", {"confidence": float("nan")}, "confidence"),
    ],
)
def test_what_cannot_be_audited(name: str, options: dict[str, Any], where: str, tmp_path: Path) -> None:
    with refused_at(where):
        audited(name, output=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_command_and_the_page_say_how_many_tests_are_weak(tmp_path: Path, dprec: Any) -> None:
    finished = dprec("audit", preset_file("zheng-rr"), "-o", tmp_path / "out", "--trials", 200)
    printed = " ".join(finished.out.split())
    words = (
        printed[printed.index("The strongest test") : printed.index("make them stronger.")]
        + "make them stronger."
    )
    assert "tests by samples are weak, below 0.5: more --trials" in words
    assert words.replace('"', "&#34;") in (tmp_path / "out" / "report.html").read_text()


@pytest.fixture
def two_presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave three presets, two of which send the same."""
    monkeypatch.chdir(tmp_path)
    again = shutil.copy(preset_file("zheng-rr"), tmp_path / "zheng-rr-again")
    files = {name: preset_file(name) for name in ("nothing-sent", "zheng-rr")}
    monkeypatch.setattr(auditing, "presets", lambda: {**files, "zheng-rr-again": again})


@pytest.mark.usefixtures("two_presets")
def test_all_presets_are_audited_each_protocol_once(tmp_path: Path, dprec: Any) -> None:
    options = "--trials", 200, "-o", tmp_path / "out", "--json", "--confidence", CONFIDENCE
    finished = dprec("audit", "--all", *options)
    assert finished.code == 0
    silent, first, second = json.loads(finished.out)
    assert (silent["audit"], silent["reason"].split(":")[0]) == (None, "protocol.kind")
    assert (first["same_as"], second["same_as"]) == (None, "zheng-rr")
    assert first["audit"]["findings"] == second["audit"]["findings"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "one item rated or not" in page
    assert "of 2 presets that promise something. By the strongest test of each audit, 2 weak." in page
    assert "1 preset promises nothing that can be tested." in page
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["presets"][1] == first


def test_a_trusted_server_that_adds_a_fifth_of_the_noise_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = OutputPerturbation.noise

    def less(self: Any, completion: Any, shape: Any, epsilon: float) -> Any:
        return honest(self, completion, shape, 5 * epsilon)

    monkeypatch.setattr(OutputPerturbation, "noise", less)
    result = audited("one-bit-output", "protocol.completion.iterations=20", trials=300, confidence=0.99)
    assert not result.holds
    assert [finding.promised for finding in result.findings] == [1.0, 2.0]


def test_what_devices_charge_and_answer_besides_is_compared() -> None:
    result = audited("pg-mf", "protocol.rounds=2", trials=100)
    found = {finding.test: finding for finding in result.findings if finding.exact}
    assert result.holds
    for unit in ("rating", "user"):
        charged = found[f"what devices charge, per {unit}"]
        assert charged.charged == pytest.approx(charged.at_least) == pytest.approx(1.6)
    assert found["another question in a round that was answered"].at_least == 1.6


def test_what_x_map_lets_out_is_audited() -> None:
    domains = "dataset={kind: synthetic-domains, users: 40, items: 60, ratings: 800}"
    config = load("x-map", [domains, "protocol.recommendation.epsilon=4"])
    result = audit(config, trials=2_000, confidence=CONFIDENCE)
    assert result.holds
    found = {finding.test: finding for finding in result.findings}
    assert 0.5 < found["replacement of an item, from the table"].at_least <= 0.6
    assert 1.0 < found["a similarity of a prediction"].at_least <= 2.0
    assert found["a neighbour and its similarity"].promised == 4.0


OF_DEVICES = PrivateAlsProtocol(
    privacy=PrivacyBudget(epsilon=2.0, per="user", composition="pld", delta=1e-3),
    factorization=FactorizationOptions(rank=0),
    aggregation=SecureAggregation(colluders=3, dropouts=0.2),
)
OF_SERVER = replace(OF_DEVICES, aggregation=CentralAggregation())
OF_COUNTS = replace(OF_DEVICES, aggregation=ShuffledAggregation(colluders=3, dropouts=0.2))
FAILURE = 1e-6
LONGEST, APART, WHOLE, BUT_FOR = range(4)


def released(protocol: SumsProtocol) -> NoisySums:
    class Collected:
        def of_sums(self, sums: NoisySums) -> list[NoisySums]:
            return [sums]

    (sums,) = protocol.audit(Collected())  # type: ignore[arg-type]
    assert isinstance(sums, NoisySums)
    return sums


def findings(protocol: SumsProtocol, trials: int = 40_000) -> list[Finding]:
    return list(sum_findings(released(protocol), protocol.promise(), trials, 1, FAILURE))


def defects(protocol: SumsProtocol, trials: int = 10_000) -> set[str]:
    return {finding.test for finding in findings(protocol, trials) if finding.defect}


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
@pytest.mark.parametrize("protocol", [OF_DEVICES, OF_SERVER, OF_COUNTS], ids=["devices", "server", "counts"])
def test_the_bound_on_sums_is_below_the_promise_and_not_far_below(
    protocol: PrivateAlsProtocol, adjacency: str
) -> None:
    found = findings(replace(protocol, adjacency=adjacency))
    assert [finding.test for finding in found if finding.defect] == []
    assert 0.5 < found[WHOLE].at_least <= found[WHOLE].promised == 2.0
    # A Poisson number is not as symmetric as a normal one: less can be told by a threshold.
    least = 0.4 if protocol is OF_COUNTS else 0.5
    assert found[WHOLE].promised > found[BUT_FOR].promised > found[BUT_FOR].at_least > least
    assert found[LONGEST].exact
    assert 0.99 * 2.0 < found[LONGEST].at_least <= 2.0 * (1 + 1e-9)


@pytest.mark.parametrize("protocol", [OF_DEVICES, OF_SERVER, OF_COUNTS], ids=["devices", "server", "counts"])
def test_what_few_trials_cannot_show_at_a_small_delta_is_left_out(protocol: PrivateAlsProtocol) -> None:
    assert protocol.privacy is not None
    found = findings(replace(protocol, privacy=replace(protocol.privacy, delta=1e-5)), 2000)
    assert [finding.exact for finding in found[:3]] == [True, True, False]
    assert found[2].test.endswith(", but for a probability of 0.01")
    assert all(finding.promised == 0 for finding in found[3:])


def test_item_sets_are_as_far_apart_as_is_said() -> None:
    protocol = GramProtocol(privacy=OF_DEVICES.privacy, aggregation=SecureAggregation(colluders=3))
    apart = findings(protocol, 1000)[APART]
    assert apart.defect is None
    assert 0.99 * apart.promised < apart.at_least <= apart.promised


def test_noise_that_counts_on_too_many_devices_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.sums.secure.honest_shares", lambda users, *_: 12 * users)
    assert any("colluding devices" in test for test in defects(OF_DEVICES, 40_000))


def test_messages_among_too_few_fakes_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as too_many:
        too_many.setattr("dprec.sums.shuffled.honest_shares", lambda users, *_: 4 * users)
        assert any("in the counts" in test for test in defects(OF_COUNTS, 40_000))

    def alike(plan: MessagePlan, vectors: Any, starts: np.ndarray, orders: Any) -> np.ndarray:
        return np.repeat(np.arange(starts.size)[:, None] % 2, plan.messages, axis=1)

    monkeypatch.setattr(MessagePlan, "said", alike)
    of_each = {"the longest of some contributions", "two contributions that are far apart"}
    assert defects(OF_COUNTS, 1000) == of_each


def test_a_schedule_is_refused(dprec: Any) -> None:
    finished = dprec("audit", "weekly-increments", "--trials", 200)
    assert finished.code == 2
    (error,) = finished.err.splitlines()
    assert error.startswith("dprec: schedule: 'increments'; accepted: one collection: --set schedule=null")
