"""Small pilots: their configurations, and their devices in this process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.server.preparing import PilotOptions, prepare
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, write_enrolment
from pilot.tests.device.devices import DeviceGrid
from simulation.configuration.models import RunConfig, parse_config

USERS = 5

BLP: dict[str, Any] = {
    "name": "blp-mf",
    "seed": 1,
    "dataset": {"kind": "synthetic", "users": USERS, "items": 30, "ratings": 60},
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "protocol": {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0, "per": "rating"},
        "mechanism": {"kind": "bounded-laplace"},
        "completion": {"kind": "mf"},
        "delivery": {"items": 30},
    },
    "simulation": {"backend": "local"},
}

WEEKLY: dict[str, Any] = {
    **{key: value for key, value in BLP.items() if key != "split"},
    "name": "weekly",
    "dataset": {**BLP["dataset"], "arrivals": {}},
    "schedule": {"kind": "increments"},
}

PG: dict[str, Any] = {
    **BLP,
    "name": "pg-mf",
    "protocol": {
        "kind": "iterative",
        "privacy": {"epsilon": 1.6, "per": "user"},
        "gradient": {"kind": "one-bit"},
        "rounds": 3,
        "rank": 2,
    },
}

_SETS = {"kind": "synthetic", "users": USERS, "items": 30, "ratings": 100, "positive": ">= 3", "min_items": 2}

GRAM: dict[str, Any] = {
    **BLP,
    "name": "gram-central",
    "dataset": _SETS,
    "split": {"kind": "user-holdout", "test_fraction": 0.2},
    "protocol": {"kind": "gram", "table": {"items": 12}, "aggregation": {"kind": "trusted"}},
}

GRAM_LOCAL: dict[str, Any] = {
    **GRAM,
    "name": "gram-local",
    "protocol": {
        "kind": "gram",
        "privacy": {"epsilon": 2.0, "per": "user"},
        "table": {"items": 12},
        "aggregation": {"kind": "local"},
    },
}

GRAM_SECURE: dict[str, Any] = {
    **GRAM,
    "name": "gram-secagg",
    "protocol": {
        "kind": "gram",
        "privacy": {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5},
        "table": {"items": 12},
        "aggregation": {"kind": "secure", "dropouts": 0.2, "colluders": 0},
    },
}

SECRET_SET: dict[str, Any] = {
    **BLP,
    "name": "best-secret-set",
    "protocol": {"kind": "best-secret-set", "aggregation": {"kind": "trusted"}},
}

RANDOMIZED_SETS: dict[str, Any] = {
    **GRAM,
    "name": "randomized-sets",
    "protocol": {"kind": "randomized-sets", "privacy": {"epsilon": 2.0, "per": "cell"}, "items": 12},
}


def with_nodes(enrolled: list[Enrolled], nodes: dict[str, int]) -> list[Enrolled]:
    """Return the list with the node id of every key that has one."""
    return [replace(each, node_id=nodes.get(each.public_key or "", each.node_id)) for each in enrolled]


def pilot(values: dict[str, Any], folder: Path, **options: Any) -> tuple[RunConfig, ServerFolder]:
    """Prepare a pilot, by default of seeded devices."""
    config = parse_config(values)
    return config, prepare(config, folder, PilotOptions(**{"seeded": True, **options}))


def grid_of(server: ServerFolder) -> DeviceGrid:
    """Return the grid of a pilot's devices, which are enrolled."""
    folders = [DeviceFolder(path) for path in sorted((server.path.parent / "devices").iterdir())]
    grid = DeviceGrid([Device(folder, seeded=folder.seeded is not None) for folder in folders])
    enrolled = server.enrolled()
    keys = [each.public_key or "" for each in enrolled]
    nodes = dict(zip(keys, grid.get_node_ids(), strict=True))
    write_enrolment(server.enrolment_file, with_nodes(enrolled, nodes))
    return grid
