"""What a shell offers for an argument that is half typed."""

from __future__ import annotations

from pathlib import Path


def configurations(incomplete: str) -> list[str]:
    """Return the presets and the YAML files whose names begin with what is typed."""
    from simulation.configuration.presets import presets

    folder = Path(incomplete).parent if incomplete.rpartition("/")[1] else Path()
    entries = sorted(folder.glob("*")) if folder.is_dir() else []
    files = [f"{entry}/" if entry.is_dir() else str(entry) for entry in entries]
    offered = [*presets(), *(file for file in files if file.endswith(("/", ".yaml", ".yml")))]
    return [name for name in offered if name.startswith(incomplete)]


def presets_and_kinds(incomplete: str) -> list[str]:
    """Return the configurations, and the kinds of every component."""
    from simulation.protocols import PROTOCOLS
    from simulation.protocols.components import COMPONENT_REGISTRIES

    kinds = {kind for registry in (*COMPONENT_REGISTRIES, PROTOCOLS) for kind in registry.kinds}
    return [*configurations(incomplete), *sorted(kind for kind in kinds if kind.startswith(incomplete))]
