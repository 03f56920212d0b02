"""Digests of code from outside: what changes them, and what does not."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from dprec.components import packed, sources_of, unpacked

SCRIPT = """
from dataclasses import dataclass
import numpy as np
from dprec.mechanisms import Channel, RandomizedResponse

FACTOR = 1.0

def slope(epsilon):
    return FACTOR * epsilon

def unused(epsilon):
    return 0.0

@dataclass(frozen=True, kw_only=True)
class Own(RandomizedResponse):
    share: float = 0.5

    def channel(self, scale, epsilon):
        weights = np.exp([slope(epsilon) * self.share, *(0.0 for _ in (1, 2))])
        return super().channel(scale, float(weights[0]))

    @property
    def half(self):
        return self.share / 2
"""


def program(text: str) -> type[Any]:
    """Return the class of a notebook with these contents."""
    module = ModuleType("__main__")
    exec(compile(dedent(text), "<cell>", "exec"), module.__dict__)
    own: type[Any] = module.Own  # type: ignore[attr-defined]
    return own


def digest(text: str = SCRIPT) -> str:
    return sources_of([program(text)])["__main__:Own"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.share, *", "self.share + 1, *"),
        ("FACTOR * epsilon", "epsilon"),
        ("FACTOR = 1.0", "FACTOR = 2.0"),
        ("share: float = 0.5", "share: float = 0.25"),
        ("self.share / 2", "self.share / 3"),
        ("(1, 2)", "(1, 2, 3)"),
    ],
)
def test_changed_code_of_a_notebook_has_another_digest(before: str, after: str) -> None:
    assert before in SCRIPT
    assert digest(SCRIPT.replace(before, after)) != digest()


def test_what_a_class_does_not_use_does_not_count() -> None:
    assert digest(f"\n\n{SCRIPT.replace('return 0.0', 'return 1.0')}") == digest()


def test_the_digest_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "own").write_bytes(packed(program(SCRIPT), "it"))
    assert sources_of([unpacked((tmp_path / "own").read_bytes(), "it")])["__main__:Own"] == digest()
    code = (
        "import sys; from dprec.components.user_defined import unpacked; from dprec.components.user_defined import sources_of;"
        "print(sources_of([unpacked(open(sys.argv[1], 'rb').read(), 'it')])['__main__:Own'])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "own")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == digest()


def test_of_a_module_the_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "own_source_module.py"
    file.write_text("from dprec.mechanisms import BoundedLaplace\nclass Own(BoundedLaplace):\n    pass\n")
    from own_source_module import Own  # type: ignore[import-not-found]

    before = sources_of([Own])
    assert list(before) == ["own_source_module:Own"]
    assert len(before["own_source_module:Own"]) == 16
    assert sources_of([Own]) == before
    file.write_text(file.read_text() + "# a word\n")
    assert sources_of([Own]) != before
