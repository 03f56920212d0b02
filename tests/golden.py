"""What every preset computes, to nine digits: `python -m tests.golden` compares it with golden.json.

Every preset runs on small data with all attacks, and is audited; some run on MovieLens 100K too. Kept is a
digest of each: predictions, users, rounds, accuracy, privacy, traffic, attacks, findings. A digit may depend
on the machine's linear algebra, so write the file and compare it on one machine:

    python -m tests.golden --write [PRESET ...]     before a change that is to change no figure
    python -m tests.golden [PRESET ...]             after it; exit 1 where something differs
    python -m tests.golden --values PRESET ...      what the digests are of
"""

import copy
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dprec.errors import InputError
from simulation import attack, audit, run
from simulation.configuration.strict_yaml import apply_override, read_yaml
from simulation.configuration.strict_yaml import presets as found_presets
from tests.paths import DATA, ROOT
from tests.simulation.conftest import presets

FILE = Path(__file__).with_suffix(".json")
TRIALS = 400
ON_REAL_RATINGS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("blp-mf", "blp-mog-mf", "zheng-rr", "one-bit-gradient", "dp-als", "plain-mf")},
    **{name: {} for name in ("cells-on-device", "sums-on-device")},
    "best": {"predicts": "server"},
    "pg-mf": {"rounds": 3},
    "gram-secagg": {},
    "pairs-in-blanket": {},
}
"""Presets that run on MovieLens 100K, fold u1, with what their protocols are given besides."""

Computed = dict[str, Any]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it, numbers with nine digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, str | None | bool | int):
        return value
    if isinstance(value, float | np.floating):
        return f"{value:.9g}"
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return [plain(inner) for inner in value] if isinstance(value, Iterable) else str(value)


def digest(value: Any) -> str:
    """Return the beginning of the SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def kept(result: Any) -> Computed:
    """Return what is compared of a run."""
    summary = {key: value for key, value in result.summary.items() if value is not None}
    rounds = [{key: value for key, value in line.items() if key != "seconds"} for line in result.rounds]
    told = ("accuracy", "privacy", "traffic", "attacks")
    return {
        "predictions": plain(result.predictions),
        "users": plain(result.traffic),
        "rounds": plain(rounds),
        **{key: plain({**summary[key], "notes": None}) for key in told if key in summary},
    }


def computed(task: tuple[str, str, dict[str, Any]]) -> tuple[str, Computed]:
    """Run, attack or audit a preset; what is refused is kept as the place of the refusal."""
    name, what, values = task
    try:
        if what == "audit":
            once = {key: value for key, value in values.items() if key != "schedule"}
            return f"{name}: audit", {"findings": plain(audit(once, trials=TRIALS).values()["findings"])}
        result = attack(values) if what == "small" else run(values)
        return f"{name}: {what}", kept(result)
    except InputError as error:
        return f"{name}: {what}", {"refused": error.where}


def variants() -> dict[str, dict[str, Any]]:
    """Return the small runs of the names in tables that stand for a preset and `--set`."""
    changed = read_yaml(ROOT / "docs" / "papers.yaml")["changed"]
    made = {name: {**presets()[variant["of"]], "name": name} for name, variant in changed.items()}
    for name, values in made.items():
        for override in changed[name]["set"]:
            apply_override(values, override)
        if "rounds" in values["protocol"]:
            values["protocol"]["rounds"] = min(values["protocol"]["rounds"], 4)
    return made


def tasks(names: Iterable[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what is computed of some presets, or of all."""
    small, asked = {**presets(), **variants()}, [*names]
    found = [(name, what, small[name]) for name in asked or small for what in ("small", "audit")]
    if not DATA.is_dir():
        return found
    for name in asked or ON_REAL_RATINGS:
        if name in ON_REAL_RATINGS:
            values = copy.deepcopy(read_yaml(found_presets()[name]))
            positive = {key: values["dataset"][key] for key in ("positive",) if key in values["dataset"]}
            path = str(DATA / "ml-100k")
            values["dataset"] = {"kind": "movielens-100k", "path": path, **positive}
            values["split"] = {"kind": "predefined", "fold": "u1"}
            values["simulation"] = {"backend": "local"}
            values["protocol"] |= ON_REAL_RATINGS[name]
            found.append((name, "movielens-100k", values))
    return found


def main() -> int:
    """Write the file, or compare it with what is computed now, or print the values."""
    option = next((word for word in sys.argv[1:] if word.startswith("--")), "")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    known: dict[str, dict[str, str]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    differing = 0
    with ProcessPoolExecutor(2) as pool:
        for name, values in pool.map(computed, tasks(word for word in sys.argv[1:] if word != option)):
            digests = {part: digest(value) for part, value in values.items()}
            parts = [part for part, found in digests.items() if found != known.get(name, {}).get(part)]
            if option == "--values":
                print(json.dumps({name: values}, indent=1))
            elif option == "--write":
                known[name] = digests
            elif parts:
                differing += 1
                print(f"{name}: {', '.join(parts)}", flush=True)
    if option == "--write":
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
