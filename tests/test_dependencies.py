"""Whatever the packages import is declared in pyproject.toml, or an installation elsewhere would lack it."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.paths import ROOT
from tests.test_structure import PACKAGES, trees


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def declared(requirements: list[str]) -> set[str]:
    return {canonical(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in requirements}


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    always = declared(project["dependencies"])
    optional = {name for extra in project["optional-dependencies"].values() for name in declared(extra)}
    distributions = packages_distributions()
    undeclared = [
        (path, module)
        for path, tree in trees().items()
        for module in sorted(imported(tree))
        if not {canonical(name) for name in distributions[module]} & (always | optional)
    ]
    assert undeclared == []


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = declared((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    extras = project["optional-dependencies"].values()
    everything = declared(project["dependencies"]).union(*map(declared, extras))
    assert everything - pinned - {"dprec"} == set()
