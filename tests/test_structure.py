"""Files and functions that stay short, and modules that say what they are for.

`python tests/test_structure.py` prints the longest files and functions.
"""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("clients", "dprec", "simulation", "strategies")
MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION = 600, 50

MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def trees() -> dict[str, ast.Module]:
    """Return the source of every module by its path, parsed once."""
    # A tree is no garbage: to look for some while it grows takes longer than to parse it.
    gc.disable()
    found = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    gc.freeze()
    gc.enable()
    return found


def functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every function's lines, signature and docstring included, and its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, node.name


def file_lengths() -> list[tuple[int, str]]:
    """Return the lines and the path of every file, the longest first."""
    lengths = ((len(path.read_text(encoding="utf-8").splitlines()), path) for path in MODULES)
    return sorted(((lines, str(path.relative_to(ROOT))) for lines, path in lengths), reverse=True)


def function_lengths() -> list[tuple[int, str]]:
    """Return the lines and the place of every function, the longest first."""
    found = ((lines, f"{path}: {name}") for path, tree in trees().items() for lines, name in functions(tree))
    return sorted(found, reverse=True)


def test_no_file_is_too_long() -> None:
    assert [found for found in file_lengths() if found[0] > MOST_LINES_OF_A_FILE] == []


def test_no_function_is_too_long() -> None:
    assert [found for found in function_lengths() if found[0] > MOST_LINES_OF_A_FUNCTION] == []


def test_the_length_of_a_function_includes_its_signature_and_docstring() -> None:
    source = 'class A:\n    def b(\n        self,\n    ):\n        """Return."""\n        return 1\n'
    assert list(functions(ast.parse(source))) == [(5, "b")]


def test_every_module_says_what_it_is_for() -> None:
    assert [path for path, tree in trees().items() if not ast.get_docstring(tree)] == []


if __name__ == "__main__":
    files, shown = file_lengths(), 10
    print(f"{len(files)} files, {sum(lines for lines, _ in files):,} lines")
    for title, lengths in (("longest files", files), ("longest functions", function_lengths())):
        print(f"\n{title}")
        for lines, place in lengths[:shown]:
            print(f"{lines:5}  {place}")
