"""User-defined components, named ``module:Class``: what is found and refused, digests, and travels."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dprec.components import (
    is_ours,
    kind_of,
    naming,
    packed,
    redefined,
    reference_of,
    sources_of,
    summary_of,
    unpacked,
)
from dprec.errors import InputError, SettingError
from dprec.mechanisms import MECHANISMS, BoundedLaplace, Channel, Mechanism, RandomizedResponse
from dprec.ratings import RatingScale
from simulation.console.names import listing

MINE = '''
from dataclasses import dataclass
from typing import Literal
from dprec.completion import Completion
from dprec.mechanisms import BoundedLaplace, Mechanism
from dprec.components.options import option

class Plain(BoundedLaplace):
    """A class without a kind."""

@dataclass(frozen=True, kw_only=True)
class Named(BoundedLaplace):
    """A class with a kind."""

    kind: Literal["named"] = "named"
    share: float = option("A share.", 0.5, gt=0, le=1)

@dataclass(frozen=True, kw_only=True)
class Taken(BoundedLaplace):
    kind: Literal["laplace"] = "laplace"

class Forgotten(BoundedLaplace):
    share: float = 0.5

class Unfinished(Mechanism):
    """Without a channel."""

class Other:
    class Inner(BoundedLaplace):
        """A class inside a class."""

def function():
    """Not a class."""
'''


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Return a function that writes a module to the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield lambda name, text: (tmp_path / f"{name}.py").write_text(text) and None
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_class_is_found_in_the_current_directory(write: Callable[[str, str], None]) -> None:
    write("own_first", MINE)
    plain = MECHANISMS.find("own_first:Plain")
    assert issubclass(plain, BoundedLaplace)
    assert not is_ours(plain)
    assert kind_of(plain) == plain().kind == "own_first:Plain"
    assert summary_of(plain) == "A class without a kind."
    named = MECHANISMS.find("own_first:Named")
    assert (kind_of(named), named().kind, reference_of(named)) == ("named", "named", "own_first:Named")
    assert named().entries()["kind"] == "own_first:Named"
    assert kind_of(MECHANISMS.find("own_first:Other.Inner")) == "own_first:Other.Inner"
    assert MECHANISMS.find("laplace") is MECHANISMS["laplace"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("own_secnd:Plain", r"kind: no module 'own_secnd'; accepted: .*; did you mean own_second\?$"),
        ("own_second:Plane", r"kind: no Plane in own_second; accepted: .*Plain, .*; did you mean Plain\?$"),
        ("own_second:function", r"which is no Mechanism; accepted: a class derived from dprec\."),
        ("own_second:Unfinished", r"which does not define channel"),
        ("own_second:Forgotten", r"settings are not read: share; accepted: @dataclass\(frozen=True"),
        ("own_second:Taken", r"with the kind 'laplace' of another mechanism"),
        ("../own_second:Plain", r"accepted: module:Class"),
        ("own_second:f.<locals>.Plain", r"defined inside a function"),
        ("own_broken:Plain", r"raised ZeroDivisionError: division by zero \(own_broken.py, line 2\)"),
        ("own_leaving:Plain", r"whose import raised SystemExit: 3"),
        ("own_raising:Plain", r"own_raising, whose import raised Mute \(own_raising.py, line 3\)"),
    ],
)
def test_what_is_no_component_is_refused(write: Callable[[str, str], None], kind: str, message: str) -> None:
    write("own_second", MINE)
    write("own_broken", "x = 0\nx = 1 / x\n")
    write("own_leaving", "import sys\nsys.exit(3)\n")
    write("own_raising", "class Mute(BaseException):\n    def __str__(self): return 1 / 0\nraise Mute\n")
    with pytest.raises(SettingError, match=message) as caught:
        MECHANISMS.find(kind)
    assert caught.value.key == "kind"
    assert "\n" not in str(caught.value)


class Point:
    """An entry point as an installed package declares it."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value, self.dist = name, value, None


def test_packages_add_components(write: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    write("own_fourth", MINE)
    points: list[Any] = [Point("theirs", "own_fourth:Named")]
    monkeypatch.setattr(
        "dprec.components.options._entry_points", lambda group: points if group == MECHANISMS.group else []
    )
    assert MECHANISMS.group == "dprec.mechanisms"
    assert MECHANISMS.of_packages() == {"theirs": "own_fourth:Named"}
    assert MECHANISMS.find("theirs").__name__ == "Named"
    with pytest.raises(SettingError, match=r"'thiers'; accepted: .*, theirs; did you mean theirs\?"):
        MECHANISMS.find("thiers")


def test_a_package_that_cannot_be_used_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("theirs", "own_nowhere:Nothing"), Point("alike", "dprec.mechanisms:Laplace")]
    monkeypatch.setattr("dprec.components.options._entry_points", lambda group: points)
    shown = dict(listing("mechanisms"))
    assert shown["theirs"] == "cannot be used: no module 'own_nowhere'."
    assert shown["alike"] == shown["laplace"]
    points.append(Point("laplace", "own_nowhere:Laplace"))
    shown = dict(listing("mechanisms"))
    assert "laplace" in shown
    said = "cannot be used: laplace, which dprec and own_nowhere:Laplace both claim."
    assert shown["dprec.mechanisms"] == said


class Loses(Mechanism):
    """Loses more than its budget."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        steps = np.abs(np.subtract.outer(np.arange(scale.levels), np.arange(scale.levels)))
        return Channel.from_probabilities(np.exp(-epsilon * steps), scale.values, scale.values, epsilon)


class Wavers(Mechanism):
    """Has another channel each time."""

    asked = count(1)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        return RandomizedResponse().channel(scale, epsilon / next(self.asked))


@pytest.mark.parametrize(
    ("mechanism", "line"),
    [
        (Loses, r"Loses: no channel at epsilon 1: .*; accepted: rows that are dist"),
        (Wavers, r"Wavers: its channel is another whenever it is asked for; accepted"),
    ],
)
def test_a_channel_that_cannot_be_held_to_its_budget_is_refused(
    mechanism: type[Mechanism], line: str
) -> None:
    with pytest.raises(InputError, match=line):
        mechanism().channel(RatingScale.evenly(1, 5, 1), 1.0)


def test_what_a_class_from_outside_raises_is_one_line_and_what_it_redefines_is_known() -> None:
    class Changed(RandomizedResponse):
        def channel(self, scale: RatingScale, epsilon: float) -> Channel:
            return super().channel(scale, epsilon)

    assert redefined(BoundedLaplace) == frozenset()
    assert redefined(Changed) == {"channel"}
    with pytest.raises(InputError) as caught, naming(Changed(), "one that works"):
        raise ValueError("bad\x1b\nhere")
    place = f"test_user_defined.py, line {caught.traceback[0].lineno + 2}"
    line = f"Changed: ValueError: bad\\x1b here ({place}); accepted: code that raises no exception"
    assert str(caught.value).endswith(line)
    with pytest.raises(ZeroDivisionError), naming(BoundedLaplace(), ""):
        raise ZeroDivisionError


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
        ("FACTOR = 1.0", "FACTOR = 2.0"),
        ("share: float = 0.5", "share: float = 0.25"),
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
        "import sys; from dprec.components import sources_of, unpacked;"
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


def test_what_cannot_travel_is_refused() -> None:
    with pytest.raises(InputError, match=r"^my:Class: cannot be sent to workers \(.*lock"):
        packed(threading.Lock(), "my:Class")
