"""Every derivation of random words names its purpose, which no other one has, and no draw bypasses them."""

import ast
from collections import defaultdict
from functools import cache

import pytest

from tests.test_structure import trees

PURPOSE_AT = {
    "words": 1,
    "discrete_laplace": 1,
    "derived_key": 1,
    "private_key": 1,
    "agreed_key": 2,
    "device_draws": 1,
    "draws_of_rounds": 1,
    "lasting_words": 1,
    "generator": 1,
}
"""Place of the purpose among the arguments of what derives words, if it was imported."""

SOURCES = {
    "Philox": {"dprec/randomness/counters.py"},
    "philox": {"dprec/kernels/discrete_laplace.py", "dprec/randomness/counters.py"},
    "threefry": {
        "dprec/kernels/draws.py",
        "dprec/randomness/keys.py",
    },
    "Cipher": {"dprec/secure_aggregation/secrets.py"},
    "shake_256": {"dprec/randomness/keys.py"},
    "urandom": {
        "clients/device/folder.py",
        "dprec/exchange/groups.py",
        "simulation/deployment/preparing.py",
        "simulation/execution.py",
        "simulation/storage/run_directory.py",
    },
    "default_rng": {"dprec/mechanisms/base.py"},
    "RandomState": set(),
    "token_bytes": set(),
}
"""Where words come from, and the only modules that use it."""

ALTERNATIVES = {
    "split": "a run has one split",
    "report": "devices have one mechanism, which reports ratings, rows or profiles",
    "choice": "devices have one mechanism, which draws ratings or blocks",
    "replacement": "devices or the server replace items, each with keys of their own",
}
"""Purposes that several derivations name, of which a run has one."""


@cache
def users() -> dict[str, set[str]]:
    """Return which modules use a name, as a variable, an attribute or an import."""
    found = defaultdict(set)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
                    found[name].add(path)
    return found


def imported(tree: ast.Module) -> set[str]:
    """Return the names that stand for what derives words in a module, imported or defined there."""
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {name.name for node in froms for name in node.names if node.module != "dprec.datasets.delimited"}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return (names | (defined - {"words"})) & PURPOSE_AT.keys()


def purpose_of(call: ast.Call, known: set[str]) -> ast.expr | None:
    """Return the argument that names the purpose, if a call derives words."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(call.func, ast.Name) and call.func.id == "draws":
        return arguments[0]
    if isinstance(call.func, ast.Name) and call.func.id in known:
        return arguments[PURPOSE_AT[call.func.id]]
    if isinstance(call.func, ast.Attribute):
        if call.func.attr == "generator":
            return arguments[0]
        # That of a grid; perturbations have a `noise` too, with arguments of other types.
        if call.func.attr == "noise" and isinstance(arguments[1], ast.Constant | ast.JoinedStr):
            return arguments[1]
    return None


def text_of(purpose: ast.expr, constants: dict[str, str]) -> str | None:
    """Return a purpose as it is named, with braces for what is put in; None if it is handed on."""
    if isinstance(purpose, ast.Constant) and isinstance(purpose.value, str):
        return purpose.value
    if isinstance(purpose, ast.Name):
        return None if purpose.id == "purpose" else constants[purpose.id]
    assert isinstance(purpose, ast.JoinedStr), ast.dump(purpose)
    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in purpose.values]
    return "".join(map(str, parts))


def constants_of(tree: ast.Module) -> dict[str, str]:
    """Return the names of a module that stand for text, and what they stand for."""
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names, values = [node.targets[0]], [node.value]
            if isinstance(names[0], ast.Tuple) and isinstance(values[0], ast.Tuple):
                names, values = names[0].elts, values[0].elts
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                    constants[name.id] = str(value.value)
    return constants


def purposes() -> dict[str, list[str]]:
    """Return where each purpose is named."""
    found = defaultdict(list)
    for path, tree in trees().items():
        known, constants = imported(tree), constants_of(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            purpose = purpose_of(call, known)
            if purpose is not None and (text := text_of(purpose, constants)) is not None:
                found[text].append(f"{path}:{call.lineno}")
    return found


def test_every_derivation_names_a_purpose_of_its_own() -> None:
    found = purposes()
    assert {"noise of sums", "slope report", "polynomials", "similarities", "replacement"} <= found.keys()
    assert "" not in found
    several = {purpose: places for purpose, places in found.items() if len(places) > 1}
    assert several.keys() <= ALTERNATIVES.keys(), several


@pytest.mark.parametrize("source", SOURCES)
def test_words_come_from_nowhere_else(source: str) -> None:
    assert users().get(source, set()) == SOURCES[source]


def test_no_module_imports_the_generators_of_the_standard_library() -> None:
    names = {
        name.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
        if isinstance(node, ast.Import) or node.module in {"random", "secrets"}
    }
    assert names.isdisjoint({"random", "secrets", "numpy.random"})
