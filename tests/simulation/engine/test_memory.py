"""What is said of memory before a run, and where the limits are read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError
from dprec.protocols.base import Public
from dprec.protocols.sums import REPORTS_AT_ONCE
from dprec.ratings import POSITIVE
from simulation.configuration.loading import load
from simulation.configuration.models import SimulationOptions
from simulation.engine import memory
from simulation.engine.memory import available_memory, check_memory, needed_memory
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


def test_an_address_limit_counts(system: Path) -> None:
    addresses(3 * GIB, system)
    assert available_memory(system) == 3 * GIB - ADDRESSES + RESIDENT


def test_of_few_addresses_libraries_that_are_not_loaded_yet_take_their_part(system: Path) -> None:
    write(system, "proc/self/status", f"VmSize:\t{GIB // 4096} kB\nVmRSS:\t{GIB // 8192} kB\n")
    addresses(GIB, system)
    assert available_memory(system) == GIB - 600e6
    addresses(GIB // 2, system)
    assert available_memory(system) == 0.0


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
    apart = needed_memory(everybody, size, LOCAL, public) - needed_memory(fewer, size, LOCAL, public)
    hosted = LOCAL.partition_size(users)
    assert apart == pytest.approx(memory._REPORTS_HELD * 0.75 * hosted * report)
    on_ray = SimulationOptions(backend="ray", workers=3)
    more = needed_memory(everybody, size, on_ray, public) - needed_memory(fewer, size, on_ray, public)
    assert more == pytest.approx(memory._REPORTS_HELD * 0.75 * 3 * on_ray.partition_size(users) * report)


def test_sums_hold_a_part_of_the_reports_at_a_time() -> None:
    size = users, items, _ = 100_000, 20_000, 2_000_000
    public, whole = Public(users, items, POSITIVE), load("popularity-secagg").protocol
    reported = LOCAL.partition_size(users) * whole.sent(public, 20).bits / 8
    assert reported > 10 * REPORTS_AT_ONCE
    known = needed_memory(whole, size, LOCAL, public) - needed_memory(whole, size, LOCAL)
    assert known == pytest.approx(memory._REPORTS_HELD * REPORTS_AT_ONCE + whole.model_bytes(public))


def test_the_least_run_needs_what_its_processes_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    protocol = load("item-average").protocol
    local = needed_memory(protocol, (10, 10, 10), LOCAL)
    assert local == memory._WITH_PAGE
    for workers in (1, 4):
        ray = needed_memory(protocol, (10, 10, 10), SimulationOptions(backend="ray", workers=workers))
        assert ray - local == memory._RAY + workers * memory._WORKER


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, size = load("blp-mf").protocol, (10_000_000, 2_000, 200_000_000)
    needed = needed_memory(protocol, size, LOCAL)
    for available in (None, needed + 1):
        monkeypatch.setattr(memory, "available_memory", lambda available=available: available)
        check_memory(protocol, size, LOCAL)
    monkeypatch.setattr(memory, "available_memory", lambda: 8e9)
    line = r"^memory: 10,000,000 users, 2,000 items and 200,000,000 ratings need about [\d.]+ GB, 8.0 GB are "
    with pytest.raises(InputError, match=line):
        check_memory(protocol, size, LOCAL)


SAMPLE = "item-average", "blp-mf", "popularity", "gram-central", "lightgcn-free", "one-bit-clear"


@pytest.mark.thorough
def test_a_sample_of_presets_takes_what_is_said_before() -> None:
    command = [sys.executable, "benchmarks/memory_model.py", *SAMPLE, "--sizes", "small"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert len(ran.stdout.splitlines()) == 1 + len(SAMPLE), ran.stderr
    assert ran.returncode == 0, ran.stdout


MEASURED = """
import json, re, sys
import simulation, simulation.execution
from simulation.engine.memory import needed_memory

told = []
simulation.execution.check_memory = lambda *size: told.append(needed_memory(*size))
simulation.run(json.loads(sys.argv[1]), sys.argv[2])
# Of this program alone: what getrusage knows begins with what started it.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([told[-1], 1024 * peak]))
"""
PROTOCOLS_OF_LISTS: dict[str, dict[str, Any]] = {
    "ease": {"kind": "ease"},
    "ease of some": {"kind": "ease", "most_items": 2_000},
    "ials": {"kind": "ials", "sweeps": 1, "rank": 256},
    "popularity": {"kind": "popularity"},
    "gram": {
        "kind": "gram",
        "aggregation": {"kind": "central"},
        "privacy": {"epsilon": 4.0, "delta": 1e-6, "per": "user", "composition": "pld"},
    },
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("users", "items"),
    [(500, 400), (4_000, 3_000), pytest.param(20_000, 6_000, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("name", PROTOCOLS_OF_LISTS)
def test_lists_need_what_is_said_before(tmp_path: Path, name: str, users: int, items: int) -> None:
    config = {
        "name": "lists",
        "seed": 1,
        "dataset": {
            "kind": "synthetic",
            "users": users,
            "items": items,
            "ratings": 20 * users,
            "positive": "> 0",
        },
        "split": {"kind": "user-holdout"},
        "protocol": PROTOCOLS_OF_LISTS[name],
        "simulation": {"backend": "local", "workers": 1},
    }
    command = [sys.executable, "-c", MEASURED, json.dumps(config), str(tmp_path / "run")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    told, peak = json.loads(ran.stdout.splitlines()[-1])
    assert 0.75 * peak <= told <= 1.3 * peak
