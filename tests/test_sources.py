"""What holds of every source file: its length, its imports, whom it asks, and whence its random words.

`python tests/test_sources.py` prints the longest files and functions.
"""

import ast
import gc
import importlib
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = ("clients", "dprec", "simulation", "strategies")
PILOT = "pilot/dprec_pilot"
"""Next door, if it is there."""
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 600, 50


@cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Return the source and the tree of every module, by its path."""
    paths = sorted(path for package in (*PACKAGES, PILOT) for path in (ROOT / package).rglob("*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    gc.disable()  # Searching millions of nodes for garbage takes longer than making them.
    trees = {path: (text, ast.parse(text)) for path, text in texts.items()}
    gc.freeze()
    gc.enable()
    return trees


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Return all nodes of every module."""
    return {path: list(ast.walk(tree)) for path, (_, tree) in modules().items()}


def file_lengths() -> list[tuple[int, str]]:
    """Return the lines and the path of every file, the longest first."""
    return sorted(((text.count("\n"), path) for path, (text, _) in modules().items()), reverse=True)


def function_lengths() -> list[tuple[int, str]]:
    """Return the lines, docstring included, and the place of every function, the longest first."""
    return sorted(
        (
            ((node.end_lineno or node.lineno) - node.lineno + 1, f"{path}: {node.name}")
            for path, found in nodes().items()
            for node in found
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        reverse=True,
    )


def test_no_file_and_no_function_is_too_long() -> None:
    assert [found for found in file_lengths() if found[0] > MOST_LINES_OF_A_FILE] == []
    assert [found for found in function_lengths() if found[0] > MOST_LINES_OF_A_FUNCTION] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path, (_, tree) in modules().items() if not ast.get_docstring(tree)] == []


# What is imported.


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {canonical(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in requirements}


@cache
def imports() -> set[tuple[str, str]]:
    """Return the path and the module of every import of the four packages."""
    found = {
        (path, name)
        for path, own in nodes().items()
        for node in own
        if isinstance(node, ast.Import | ast.ImportFrom) and not path.startswith(PILOT)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
        if name is not None
    }
    return {(path, name) for path, name in found if name.partition(".")[0] not in PACKAGES}


def project() -> dict[str, object]:
    table: dict[str, dict[str, object]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return table["project"]


def dependencies() -> set[str]:
    """Return what pyproject.toml declares, extras included."""
    found = project()
    return declared(found["dependencies"]).union(*map(declared, found["optional-dependencies"].values()))  # type: ignore[arg-type, attr-defined]


def test_every_import_is_a_declared_dependency_and_every_dependency_is_pinned() -> None:
    # PyTorch is in no locked environment.
    distributions = {"torch": ["torch"], **packages_distributions()}
    others = {(path, name.partition(".")[0]) for path, name in imports()}
    undeclared = {
        (path, module)
        for path, module in others
        if module not in sys.stdlib_module_names
        and not {canonical(name) for name in distributions[module]} & dependencies()
    }
    assert undeclared == set()
    pinned = declared((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    assert dependencies() - pinned - {"dprec"} == set()


PUBLIC_OF_FLOWER = {
    *("flwr.app", "flwr.clientapp", "flwr.serverapp", "flwr.serverapp.strategy", "flwr.simulation"),
}
MAY_USE_MORE = ("simulation/engine/", "strategies/rounds.py")


def test_private_modules_of_flower_are_used_in_few_places() -> None:
    private = {
        path for path, name in imports() if name.split(".")[0] == "flwr" and name not in PUBLIC_OF_FLOWER
    }
    assert private
    assert [path for path in private if not path.startswith(MAY_USE_MORE)] == []


# Nobody asks a component what it is: it answers for itself, and only its own folder may know its class.

KINDS = {
    "dprec.completion": ("Completed", "Completion", "Perturbation"),
    "dprec.protocols.base": ("Protocol",),
    "dprec.federated": ("FederatedModel",),
    "dprec.gradients": ("GradientReport",),
    "dprec.mechanisms": ("Mechanism",),
    "dprec.reports": ("Asking", "FollowUp", "ReportFamily", "ReportReader"),
    "dprec.schedules": ("Schedule",),
    "dprec.sums": ("Aggregation",),
}

ALLOWED = {
    # What devices are sent follows from what a completion knows of the items.
    ("dprec/personalization/broadcast.py", "CalibratedModel"),
    ("dprec/personalization/broadcast.py", "ItemBiasesModel"),
    # How long a bounded fit takes.
    ("simulation/comparison/cell_runs.py", "OneBit"),
    # The baseline of this name.
    ("dprec/protocols/one_shot.py", "ItemAverage"),
}
"""Questions that are asked all the same, by file and class."""


def classes_asked_for(found: list[ast.AST]) -> Iterator[str]:
    """Yield the names of classes in `isinstance`, `issubclass`, comparisons of types and patterns."""
    for node in found:
        asked: list[ast.AST] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            asked = [node.args[1]] * (node.func.id in ("isinstance", "issubclass"))
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            asked = list(node.comparators) * (ast.unparse(node.left.func) == "type")
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for each in asked:
            yield from (name.id for name in ast.walk(each) if isinstance(name, ast.Name))


def questions() -> Iterator[tuple[str, str]]:
    """Yield which classes of components which files ask for, outside the folder of the class."""
    kinds = tuple(
        getattr(importlib.import_module(module), name) for module, own in KINDS.items() for name in own
    )
    for path, found in nodes().items():
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in found
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES
            for alias in node.names
        }
        for module, name in {imported[name] for name in classes_asked_for(found) if name in imported}:
            component: object = getattr(importlib.import_module(str(module)), name)
            if not (isinstance(component, type) and issubclass(component, kinds)):
                continue
            if Path(*component.__module__.split(".")[:2]) not in Path(path).parents:
                yield path, name


def test_no_component_is_asked_what_it_is() -> None:
    assert set(questions()) - ALLOWED == set()


def test_questions_are_found() -> None:
    source = (
        "isinstance(a, A | B)\nissubclass(c, (C, D))\ntype(e) is E\nmatch f:\n    case F():\n        pass\n"
    )
    assert sorted(classes_asked_for(list(ast.walk(ast.parse(source))))) == ["A", "B", "C", "D", "E", "F"]


# Every derivation of random words names its purpose, which no other one has, and no draw bypasses them.

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
        "dprec/kernels/rounding.py",
        "dprec/randomness/keys.py",
    },
    "Cipher": {"dprec/secure_aggregation/streams.py"},
    "shake_256": {"dprec/randomness/keys.py"},
    "urandom": {
        f"{PILOT}/device/folder.py",
        f"{PILOT}/groups.py",
        f"{PILOT}/server/preparing.py",
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
    for path, own in nodes().items():
        for node in own:
            match node:
                case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
                    found[name].add(path)
    return found


def deriving(tree: ast.Module) -> set[str]:
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
        named = arguments[1:2] if call.func.attr == "noise" else []
        if any(isinstance(each, ast.Constant | ast.JoinedStr) for each in named):
            return named[0]
    return None


def text_of(purpose: ast.expr, constants: dict[str, str]) -> str | None:
    """Return a purpose as it is named, with braces for what is put in; None if it is handed on."""
    if isinstance(purpose, ast.Constant) and isinstance(purpose.value, str):
        return purpose.value
    if isinstance(purpose, ast.Name):
        return None if purpose.id == "purpose" else constants[purpose.id]
    if isinstance(purpose, ast.Attribute) and purpose.attr == "purpose":  # of a class, which names it
        return None
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
    for path, (_, tree) in modules().items():
        known, constants = deriving(tree), constants_of(tree)
        for named in (node for node in nodes()[path] if isinstance(node, ast.AnnAssign)):
            if ast.unparse(named.target) == "purpose" and isinstance(named.value, ast.Constant):
                found[str(named.value.value)].append(f"{path}:{named.lineno}")
        for call in (node for node in nodes()[path] if isinstance(node, ast.Call)):
            purpose = purpose_of(call, known)
            if purpose is not None and (text := text_of(purpose, constants)) is not None:
                found[text].append(f"{path}:{call.lineno}")
    return found


def test_every_derivation_names_a_purpose_of_its_own() -> None:
    found = purposes()
    assert {"noise of sums", "slope report", "similarities", "replacement"} <= found.keys()
    assert "" not in found
    several = {purpose: places for purpose, places in found.items() if len(places) > 1}
    assert several.keys() <= ALTERNATIVES.keys(), several


@pytest.mark.parametrize("source", SOURCES)
def test_words_come_from_nowhere_else(source: str) -> None:
    there = {path for path in SOURCES[source] if path in modules()}
    assert users().get(source, set()) == there


def test_no_module_imports_the_generators_of_the_standard_library() -> None:
    assert {name for _, name in imports()}.isdisjoint({"random", "secrets", "numpy.random"})


if __name__ == "__main__":
    for title, lengths in (("longest files", file_lengths()), ("longest functions", function_lengths())):
        print(title, *(f"{lines:5}  {place}" for lines, place in lengths[:10]), "", sep="\n")
