"""Nobody asks a component what it is: it answers for itself, and only its own folder may know its class.

`python tests/test_kinds.py` prints the questions that are asked.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from dprec.completion import Completed, Completion, Perturbation
from dprec.exchange import Setup
from dprec.federated import FederatedModel
from dprec.gradients import GradientReport
from dprec.mechanisms import Mechanism
from dprec.reports import Asking, FollowUp, Reader, ReportFamily
from dprec.schedules import Schedule
from dprec.sums import Aggregation
from simulation.protocols import Protocol
from tests.test_structure import MODULES, PACKAGES, ROOT

KINDS = (
    Protocol,
    Setup,
    Mechanism,
    ReportFamily,
    Reader,
    FollowUp,
    Asking,
    Completion,
    Completed,
    GradientReport,
    Aggregation,
    Perturbation,
    FederatedModel,
    Schedule,
)

_TABLE = "what devices are sent follows from what a completion knows of the items"

ALLOWED: dict[tuple[str, str], str] = {
    ("dprec/personalization/broadcast.py", "CalibratedModel"): _TABLE,
    ("dprec/personalization/broadcast.py", "ItemBiasesModel"): _TABLE,
    ("simulation/protocols/one_shot.py", "ItemAverage"): "the baseline of this name",
}
"""Questions that are asked all the same, by file and class, with the reason."""


def questions() -> set[tuple[str, str]]:
    """Return which classes of components which files ask for, outside the folder of the class."""
    return {(str(path.relative_to(ROOT)), name) for path in MODULES for name in _asked_for(path)}


def _asked_for(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES
        for alias in node.names
    }
    for name in _names(tree):
        if name not in imported:
            continue
        module, original = imported[name]
        component: object = getattr(importlib.import_module(str(module)), original)
        if not (isinstance(component, type) and issubclass(component, KINDS)):
            continue
        if Path(*component.__module__.split(".")[:2]) not in path.relative_to(ROOT).parents:
            yield original


def _names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of classes in `isinstance`, `issubclass`, comparisons of types and patterns."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            asked = [node.args[1]] * (node.func.id in ("isinstance", "issubclass"))
        elif isinstance(node, ast.Compare) and _is_type(node.left):
            asked = list(node.comparators)
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for each in asked:
            yield from (name.id for name in ast.walk(each) if isinstance(name, ast.Name))


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def test_no_component_is_asked_what_it_is() -> None:
    assert questions() - ALLOWED.keys() == set()


def test_questions_are_found() -> None:
    source = (
        "isinstance(a, A | B)\nissubclass(c, (C, D))\ntype(e) is E\nmatch f:\n    case F():\n        pass\n"
    )
    assert sorted(_names(ast.parse(source))) == ["A", "B", "C", "D", "E", "F"]


if __name__ == "__main__":
    for file, name in sorted(questions()):
        print(f"{file}: {name}")
