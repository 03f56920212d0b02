"""The nodes of a Ray cluster: each computes with the same code, and sees the same files.

The same bits need the same sources and the same libraries everywhere. A node that differs is named before
anything is computed.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dprec
from clients.places import place_of
from dprec.errors import InputError, RunError, one_line
from dprec.start import PACKAGES

_NODE_SECONDS = 120.0
"""Longest wait for a node to start a worker and answer."""

_ATTEMPTS = 3
"""How often a node is asked whose workers fail."""

_LIBRARIES = {"NumPy": "numpy", "SciPy": "scipy", "Flower": "flwr"}


def installation() -> dict[str, str]:
    """Return what this process computes with: names and versions, and a digest of the packages' sources."""
    return {
        "dprec": dprec.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(distribution) for name, distribution in _LIBRARIES.items()},
        "sources": _sources(Path(dprec.__file__).parents[1]),
    }


def check_nodes(folder: Path | None, accepted: str) -> None:
    """Check all nodes that have a processor.

    Parameters
    ----------
    folder : Path, optional
        From `place_of`; must be seen by all nodes.
    accepted : str
        Which folder would be seen, for the error.

    Raises
    ------
    InputError
        When a node does not see the folder.
    RunError
        When a node runs something else, or does not answer, naming it.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote: Any = ray.remote(num_cpus=0, max_retries=0)(_examine)
    path = None if folder is None else str(folder)

    def ask(node: str) -> Any:
        place = NodeAffinitySchedulingStrategy(node, soft=False)
        return remote.options(scheduling_strategy=place).remote(path)

    ours, nodes = installation(), working_nodes()
    for node, first in [(node, ask(node)) for node in nodes]:
        answer = _answer(node, nodes[node], first, ask)
        if answer is None:
            continue
        theirs, seen = answer
        check_same(nodes[node], theirs, ours)
        if not seen:
            raise InputError(str(path), f"not on the Ray node {nodes[node]}", accepted)


def check_same(node: str, theirs: dict[str, str], ours: dict[str, str]) -> None:
    """Refuse a node whose installation differs from this process's, naming both versions.

    Raises
    ------
    RunError
    """
    different = [
        f"{name} {theirs.get(name, 'unknown')}, not {own}"
        for name, own in ours.items()
        if theirs.get(name) != own
    ]
    if different:
        raise RunError(f"the Ray node {node} has {'; '.join(different)}")


def working_nodes() -> dict[str, str]:
    """Return the names of the nodes that are alive and have a processor, by their ids."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return {
        node["NodeID"]: node["NodeName"]
        for node in nodes
        if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
    }


def _answer(
    node: str, name: str, reference: Any, ask: Callable[[str], Any]
) -> tuple[dict[str, str], bool] | None:
    """Return a node's answer, or None if it leaves the cluster; its workers may die first."""
    import ray

    for attempt in range(_ATTEMPTS):
        try:
            answer: tuple[dict[str, str], bool] = ray.get(
                reference if attempt == 0 else ask(node), timeout=_NODE_SECONDS
            )
        except ray.exceptions.GetTimeoutError as error:
            raise RunError(f"the Ray node {name} did not answer within {_NODE_SECONDS:g} s") from error
        except ray.exceptions.RayError as error:
            if node not in working_nodes():
                return None
            reason = one_line(error)
        else:
            return answer
    raise RunError(f"the Ray node {name} cannot run dprec: {reason}")


def _examine(folder: str | None) -> tuple[dict[str, str], bool]:
    """Return this node's installation, and whether it sees a folder."""
    return installation(), folder is None or place_of(folder).is_dir()


def _sources(home: Path) -> str:
    """Return a digest of the packages' sources, wherever they are installed."""
    digest = hashlib.sha256()
    for path in sorted(path for package in PACKAGES for path in (home / package).rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]
