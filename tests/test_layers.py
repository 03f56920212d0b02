"""The arrows between the packages point one way only: simulation -> strategies, clients -> dprec."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dprec", "clients", "strategies", "simulation")

ALLOWED = {
    "dprec": {"dprec", "numpy", "scipy"},
    "clients": {"clients", "dprec", "flwr", "numpy"},
    "strategies": {"strategies", "dprec", "flwr", "numpy"},
}
OPTIONAL = {"pandas", "openpyxl", "xlrd"}
"""What dprec may import inside a function, where a user asks for it."""

MODULES = [path for package in ALLOWED for path in sorted((ROOT / package).rglob("*.py"))]


def imports(tree: ast.AST, *, inside_function: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the top-level package of every import, and whether it waits for a call or for a type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside_function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield str(node.module).split(".")[0], inside_function
        waits = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types(node)
        yield from imports(node, inside_function=inside_function or waits)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_imports_nothing_above_it(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for imported, lazy in imports(ast.parse(path.read_text(encoding="utf-8"))):
        allowed = ALLOWED[package] | set(sys.stdlib_module_names)
        if lazy and package == "dprec":
            allowed = allowed | OPTIONAL
        assert imported in allowed, f"{path} imports {imported}"


def test_every_package_is_covered() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(PACKAGES) - {"simulation"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is_for(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_the_check_sees_what_it_must() -> None:
    source = "import os\nif TYPE_CHECKING:\n    import pandas\ndef f():\n    from flwr.app import Message\n"
    assert list(imports(ast.parse(source))) == [("os", False), ("pandas", True), ("flwr", True)]
