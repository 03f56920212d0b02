"""What Flower does not promise to keep is used where it runs, where devices are reached, and for sizes."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("dprec", "clients", "strategies", "simulation")
PUBLIC = {"flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy", "flwr.simulation"}
MAY_USE_MORE = (
    "clients/device/fleet.py",
    "clients/device/durable.py",
    "simulation/deployment/",
    "simulation/engine/",
    "strategies/rounds.py",
)


def imported(path: Path) -> set[str]:
    """Return the modules of Flower that a file imports from."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            modules.add(node.module)
    return {module for module in modules if module.split(".")[0] == "flwr"}


def test_private_modules_of_flower_are_used_in_few_places() -> None:
    users = {
        path.relative_to(ROOT).as_posix(): private
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if (private := sorted(imported(path) - PUBLIC))
    }
    assert users
    assert {path: used for path, used in users.items() if not path.startswith(MAY_USE_MORE)} == {}


def test_private_attributes_of_messages_are_set_in_few_places() -> None:
    users = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if 'metadata.__dict__["_' in path.read_text(encoding="utf-8")
    ]
    assert users
    assert [path for path in users if not path.startswith(MAY_USE_MORE)] == []
