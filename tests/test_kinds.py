"""Code asks our components what they do, and not of what class they are, outside the folder of the class."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections import Counter

import dprec
from dprec.completion import Completed, Completion
from dprec.mechanisms import Mechanism
from dprec.reports import FollowUp, Reader, ReportFamily
from tests.test_structure import MODULES, ROOT

ASKED = (Mechanism, ReportFamily, Reader, FollowUp, Completion, Completed)
"""Bases of the classes about which nothing is asked by `isinstance` or `issubclass`."""

LEFT = {
    "dprec/personalization/broadcast.py": 2,
    "simulation/comparison/schedule.py": 1,
    "simulation/protocols/floors.py": 1,
}
"""Questions about completions that are still asked; none is about a mechanism or a family of reports."""


def folders() -> dict[str, str]:
    """Return the folder of every class that is derived from a base, by the name of the class."""
    found = {}
    for module in pkgutil.walk_packages(dprec.__path__, "dprec."):
        if module.name.startswith("dprec.testing"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(value) and issubclass(value, ASKED) and value.__module__ == module.name:
                found[name] = "/".join(module.name.split(".")[:2])
    return found


def questions() -> Counter[str]:
    """Return how often each file asks whether something is of such a class."""
    known, asked = folders(), Counter[str]()
    for path in MODULES:
        place = str(path.relative_to(ROOT))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            if call.func.id not in ("isinstance", "issubclass"):
                continue
            names = {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)}
            asked[place] += sum(name in known and not place.startswith(known[name]) for name in names)
    return +asked


def test_nothing_asks_of_what_class_a_mechanism_or_its_reports_are() -> None:
    assert {"ResidualBitFamily", "UserLevelBit", "Calibrated", "CountsAsked"} <= set(folders())
    assert questions() == LEFT
