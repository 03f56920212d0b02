"""What is said of memory before a run, and where the limits are read."""

import csv
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clients.faults import FaultOptions
from dprec.errors import InputError
from dprec.protocols.base import Public
from dprec.protocols.sums import REPORTS_AT_ONCE
from dprec.ratings import POSITIVE
from simulation.configuration.loading import load
from simulation.configuration.models import SimulationOptions
from simulation.configuration.strict_yaml import presets
from simulation.engine import memory
from simulation.engine.memory import addressable_memory, available_memory, check_memory, needed_memory
from tests.paths import ROOT

LOCAL, GIB = SimulationOptions(backend="local"), 2**30
RESIDENT, ADDRESSES = GIB // 4, GIB


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Return a system with 8 GiB left and no limit; its process has 1 GiB of addresses, and holds .25."""
    write(tmp_path, "proc/meminfo", f"MemTotal: {16 * GIB // 1024} kB\nMemAvailable: {8 * GIB // 1024} kB\n")
    status = f"Name:\tpython\nVmSize:\t{ADDRESSES // 1024} kB\nVmRSS:\t{RESIDENT // 1024} kB\n"
    write(tmp_path, "proc/self/status", status)
    addresses("unlimited", tmp_path)
    return tmp_path


def write(system: Path, name: str, text: str) -> None:
    path = system / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def addresses(most: object, system: Path) -> None:
    line = f"Max address space         {most}            unlimited            bytes"
    write(system, "proc/self/limits", f"Limit                     Soft Limit\n{line}\n")


def first_version(system: Path, group: str, limit: object) -> None:
    within = f"sys/fs/cgroup/memory/{group}"
    write(system, f"{within}/memory.limit_in_bytes", f"{limit}\n")
    write(system, f"{within}/memory.usage_in_bytes", f"{GIB}\n")
    write(system, f"{within}/memory.stat", f"cache 1\ntotal_cache {GIB // 2}\ntotal_shmem {GIB // 4}\n")


def second_version(system: Path, group: str, limit: object) -> None:
    within = f"sys/fs/cgroup/{group}"
    write(system, f"{within}/memory.max", f"{limit}\n")
    write(system, f"{within}/memory.current", f"{GIB}\n")
    write(system, f"{within}/memory.stat", f"anon 5\nfile {GIB // 2}\nshmem {GIB // 4}\n")


def test_without_limits_it_is_what_the_machine_has_left_and_the_process_holds(system: Path) -> None:
    assert available_memory(system) == 8 * GIB + RESIDENT


def test_where_the_system_does_not_say_it_nothing_is_known(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


def test_an_address_limit_counts_for_this_process_alone(system: Path) -> None:
    assert addressable_memory(system) is None
    addresses(3 * GIB, system)
    assert addressable_memory(system) == 3 * GIB - ADDRESSES + RESIDENT
    assert available_memory(system) == 8 * GIB + RESIDENT


def test_what_a_system_does_not_say_of_this_process_is_none(system: Path) -> None:
    (system / "proc/self/status").unlink()
    addresses(3 * GIB, system)
    assert available_memory(system) == 8 * GIB
    assert addressable_memory(system) == 3 * GIB - memory._RESERVED


def test_of_few_addresses_libraries_that_are_not_loaded_yet_take_their_part(system: Path) -> None:
    write(system, "proc/self/status", f"VmSize:\t{GIB // 4096} kB\nVmRSS:\t{GIB // 8192} kB\n")
    addresses(GIB, system)
    assert addressable_memory(system) == GIB - 600e6
    addresses(GIB // 2, system)
    assert addressable_memory(system) == 0.0


@pytest.mark.parametrize(
    ("version", "line"), [(first_version, "4:cpu,memory:{}\n9:pids:/x\n"), (second_version, "0::{}\n")]
)
@pytest.mark.parametrize(
    ("groups", "path", "left"),
    [
        ({"jobs/one": 4 * GIB}, "/jobs/one", 3.25 * GIB),  # the cache counts as used, but gives way
        ({"jobs": 2 * GIB, "jobs/one": 4 * GIB}, "/jobs/one", 1.25 * GIB),  # the one around it has less
        ({"": 4 * GIB}, "/docker/0123", 3.25 * GIB),  # in a container that does not see where it is
        ({"jobs/other": 2 * GIB}, "/jobs/one", 8 * GIB),
        ({"jobs/one": "max"}, "/jobs/one", 8 * GIB),
    ],
)
def test_a_limit_of_a_control_group_counts(
    system: Path, version: Any, line: str, groups: dict[str, Any], path: str, left: float
) -> None:
    write(system, "proc/self/cgroup", line.format(path))
    for group, limit in groups.items():
        version(system, group, limit)
    assert available_memory(system) == left + RESIDENT


def test_reports_that_a_node_adds_up_count_by_their_size() -> None:
    size = users, items, _ = 100_000, 400, 2_000_000
    public = Public(users, items, POSITIVE)
    everybody, fewer = (
        load("lightgcn-free", [f"protocol.sampling.rate={rate}"]).protocol for rate in (1.0, 0.25)
    )
    report = everybody.sent(public, 20).bits / 8
    assert report == 400 * 64 * 2
    apart = sum(needed_memory(everybody, size, LOCAL, public)) - sum(
        needed_memory(fewer, size, LOCAL, public)
    )
    hosted = LOCAL.partition_size(users)
    assert apart == pytest.approx(memory._REPORTS_HELD * 0.75 * hosted * report)
    on_ray = SimulationOptions(backend="ray", workers=3)
    (here, more), (other, less) = (needed_memory(each, size, on_ray, public) for each in (everybody, fewer))
    assert here == other
    assert more - less == pytest.approx(
        memory._REPORTS_HELD * 0.75 * 3 * on_ray.partition_size(users) * report
    )


def test_what_devices_keep_counts_by_its_size() -> None:
    public = Public(1_000, 400, POSITIVE)
    # A score function of 32 weights and an offset, and scores of all items.
    assert load("pfedrec").protocol.model_bytes(public) == 3 * 1_000 * 8 * (32 + 1 + 400)
    assert load("lightgcn-free").protocol.model_bytes(public) == 0


@pytest.mark.parametrize(("name", "held"), [("popularity-secagg", 0), ("popularity-local", REPORTS_AT_ONCE)])
def test_sums_hold_a_part_of_the_reports_at_a_time_or_none(name: str, held: int) -> None:
    size = users, items, _ = 100_000, 20_000, 2_000_000
    public, whole = Public(users, items, POSITIVE), load(name).protocol
    assert whole.held_at_once(1 << 40, unseen=True) == held
    sent = whole.sent(public, 20).bits / 8
    reported = min(LOCAL.partition_size(users) * sent, held)
    found = memory._reports_bytes(whole, public, size, LOCAL, unseen=True)
    assert found == pytest.approx((3 * reported, users * sent))


def test_reports_of_secure_sums_count_where_some_go_wrong_or_are_looked_at() -> None:
    size = users, items, _ = 10_000, 20_000, 2_000_000
    public, protocol = Public(users, items, POSITIVE), load("popularity-secagg").protocol
    faulty = SimulationOptions(backend="local", faults=FaultOptions(dropout=0.01))
    usual, lost = (sum(needed_memory(protocol, size, each, public)) for each in (LOCAL, faulty))
    sent = protocol.sent(public, 200).bits / 8
    hosted = LOCAL.partition_size(users) * sent
    least = memory._PROCESS + 15e6 + 1_050 * users + protocol.model_bytes(public)
    assert usual == max(least, memory._WITH_PAGE + 150 * users + 25 * 2_000_000)
    assert lost == pytest.approx(least + 3 * min(hosted, REPORTS_AT_ONCE))
    # Nobody reads masked ones, so that none are kept.
    assert sum(needed_memory(protocol, size, LOCAL, public, attacked=True)) == pytest.approx(lost)


def test_an_attacked_server_holds_what_reports_say_by_themselves() -> None:
    public = Public(1_000_000, 400, POSITIVE)
    assert load("popularity-secagg").protocol.attack_bytes(public, 9e6) == 0
    assert load("popularity-local").protocol.attack_bytes(public, 9e6) == 9e6 + 36 * 400 * 1_000_000
    assert load("lightgcn-free").protocol.attack_bytes(public, 9e6) == 18e6


def test_answers_about_profiles_are_about_no_cells() -> None:
    assert load("user-level-bit").protocol.seen_cells(10_000, 100, 1_000_000) == 0


def test_the_least_run_needs_what_its_processes_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    protocol = load("item-average").protocol
    assert needed_memory(protocol, (0, 10, 0), LOCAL) == (memory._WITH_PAGE, 0.0)
    for workers in (1, 4):
        ray = needed_memory(protocol, (0, 10, 0), SimulationOptions(backend="ray", workers=workers))
        assert ray == (memory._WITH_PAGE, memory._RAY + workers * memory._WORKER)


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, size = load("blp-mf").protocol, (10_000_000, 2_000, 200_000_000)
    needed = sum(needed_memory(protocol, size, LOCAL))
    for available in (None, needed + 1):
        monkeypatch.setattr(memory, "available_memory", lambda available=available: available)
        check_memory(protocol, size, LOCAL)
    monkeypatch.setattr(memory, "available_memory", lambda: 8e9)
    line = r"^memory: 10,000,000 users, 2,000 items and 200,000,000 ratings need about [\d.]+ GB, 8.0 GB are "
    with pytest.raises(InputError, match=line):
        check_memory(protocol, size, LOCAL)


def test_workers_do_not_count_for_the_addresses_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    protocol, size = load("item-average").protocol, (0, 10, 0)
    ray = SimulationOptions(backend="ray", workers=4)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    monkeypatch.setattr(memory, "addressable_memory", lambda: memory._WITH_PAGE)
    check_memory(protocol, size, ray)
    monkeypatch.setattr(memory, "addressable_memory", lambda: memory._WITH_PAGE - 1)
    with pytest.raises(InputError, match=r"need about 0\.3 GB"):
        check_memory(protocol, size, ray)


PRESETS_OF_RUNS = [
    name for name, path in presets().items() if path.parent.name in ("published", "ours", "baselines")
]
FAMILIES = {
    "small": ("item-average", "lightgcn-free", "x-map"),
    "medium": ("blp-mf", "ease"),
}
"""Presets that stand for others: at a size at which data count where they can, and the least run."""


def model(folder: Path, *given: str) -> list[dict[str, str]]:
    """Return the rows that `benchmarks/memory_model.py` measures; all are within what it allows."""
    results = folder / "memory.csv"
    command = [sys.executable, "benchmarks/memory_model.py", *given, "--results", str(results)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [*csv.DictReader(results.read_text().splitlines())]


@pytest.mark.thorough
@pytest.mark.parametrize("size", FAMILIES)
def test_families_of_presets_take_what_is_said_before(tmp_path: Path, size: str) -> None:
    rows = model(tmp_path, *FAMILIES[size], "--sizes", size)
    assert [row["preset"] for row in rows] == sorted(FAMILIES[size])


@pytest.mark.nightly
@pytest.mark.parametrize("name", PRESETS_OF_RUNS)
def test_every_preset_takes_what_is_said_before_at_up_to_three_sizes(tmp_path: Path, name: str) -> None:
    if name == "fedrep":
        pytest.importorskip("torch")
    # A preset is refused at the sizes that it does not accept.
    assert model(tmp_path, name)


def within(addresses: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return what becomes of a command that may use so many bytes of addresses."""
    command = [sys.executable, "-m", "dprec", *arguments]
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (addresses, addresses))
    return subprocess.run(command, cwd=ROOT, preexec_fn=limit, capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_a_run_that_does_not_fit_says_so_in_one_line_and_the_same_with_enough_ends(tmp_path: Path) -> None:
    def run(addresses: int) -> subprocess.CompletedProcess[str]:
        config = "item-average", "-o", str(tmp_path / "run"), "--quiet", "--no-page"
        sized = "--set", "dataset.users=2000", "--set", "dataset.items=500", "--set", "dataset.ratings=40000"
        return within(addresses, "run", *config, *sized)

    refused = run(int(memory._WITH_PAGE + memory._RESERVED - 25e6))
    assert refused.returncode == 2
    assert refused.stderr.startswith("dprec: memory: 2,000 users, 500 items and 40,000 ratings need about")
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
    fits = run(int(memory._WITH_PAGE + memory._RESERVED + 75e6))
    assert fits.returncode == 0, fits.stderr


@pytest.mark.thorough
def test_an_audit_that_does_not_fit_says_so_in_one_line_and_the_same_with_fewer_trials_ends() -> None:
    def audited(trials: int) -> subprocess.CompletedProcess[str]:
        sized = "--set", "dataset.users=200", "--set", "dataset.items=50", "--set", "dataset.ratings=4000"
        addresses = int(memory._RESERVED + memory._AUDIT + 5_000 * memory._AUDIT_OF_PERSON + 75e6)
        return within(addresses, "audit", "blp-mf", *sized, "--trials", str(trials))

    refused = audited(100_000)
    assert refused.returncode == 2
    assert refused.stderr.startswith("dprec: memory: 500,000 made-up users at a time need about 0.6 GB")
    assert refused.stderr.endswith("accepted: fewer trials, or a larger machine\n")
    assert refused.stderr.count("\n") == 1
    fits = audited(1_000)
    assert fits.returncode == 0, fits.stderr
