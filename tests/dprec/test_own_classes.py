"""Components of one's own, named ``module:Class``: what is refused, and in which words."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.completion import COMPLETIONS
from dprec.components import imported, is_ours, kind_of, naming, redefined, reference_of, summary_of
from dprec.datasets import DATASETS
from dprec.errors import InputError, SettingError
from dprec.mechanisms import MECHANISMS, BoundedLaplace, Channel, Mechanism, RandomizedResponse
from dprec.ratings import RatingScale
from simulation.console.command_line import listing

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
    assert (kind_of(plain), plain().kind, summary_of(plain)) == (
        "own_first:Plain",
        "own_first:Plain",
        "A class without a kind.",
    )
    named = MECHANISMS.find("own_first:Named")
    assert (kind_of(named), named().kind, reference_of(named)) == ("named", "named", "own_first:Named")
    assert named().entries()["kind"] == "own_first:Named"
    assert kind_of(MECHANISMS.find("own_first:Other.Inner")) == "own_first:Other.Inner"
    assert MECHANISMS.find("laplace") is MECHANISMS["laplace"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("own_secnd:Plain", r"kind: no module 'own_secnd'; accepted: .*; did you mean own_second\?$"),
        ("own_second.part:Plain", r"no module 'own_second.part'"),
        ("own_second:Plane", r"kind: no Plane in own_second; accepted: .*Plain, .*; did you mean Plain\?$"),
        ("own_second:function", r"which is no Mechanism; accepted: a class derived from dprec\."),
        ("own_second:Other", r"which is no Mechanism"),
        ("own_second:Unfinished", r"which does not define channel"),
        ("own_second:Forgotten", r"settings are not read: share; accepted: @dataclass\(frozen=True"),
        ("own_second:Taken", r"with the kind 'laplace' of another mechanism"),
        ("own_second:", r"accepted: module:Class, such as"),
        (":Plain", r"accepted: module:Class"),
        ("a b:c", r"accepted: module:Class"),
        ("../own_second:Plain", r"accepted: module:Class"),
        ("own_second:f.<locals>.Plain", r"defined inside a function"),
        ("__main__:Nobody", r"a class of a notebook or script"),
        (
            "own_broken:Plain",
            r"whose import raised ZeroDivisionError: division by zero \(own_broken.py, line 2\)",
        ),
        (
            "own_lacking:Plain",
            r"own_lacking, whose import raised ModuleNotFoundError: No module named 'nowhere'",
        ),
        ("own_leaving:Plain", r"whose import raised SystemExit: 3"),
        ("own_unread:Plain", r"whose import raised SyntaxError"),
        ("own_raising:Plain", r"own_raising, whose import raised Mute \(own_raising.py, line 3\)"),
        ("own_hiding:Plain", r"no Plain in own_hiding"),
    ],
)
def test_what_is_no_component_is_refused(write: Callable[[str, str], None], kind: str, message: str) -> None:
    write("own_second", MINE)
    write("own_broken", "x = 0\nx = 1 / x\n")
    write("own_lacking", "import nowhere\n")
    write("own_leaving", "import sys\nsys.exit(3)\n")
    write("own_unread", "def\n")
    write("own_raising", "class Mute(BaseException):\n    def __str__(self): return 1 / 0\nraise Mute\n")
    write("own_hiding", "def __getattr__(name):\n    raise RuntimeError(name)\n")
    with pytest.raises(SettingError, match=message) as caught:
        MECHANISMS.find(kind)
    assert caught.value.key == "kind"
    assert "\n" not in str(caught.value)


def test_a_component_of_another_kind_is_refused(write: Callable[[str, str], None]) -> None:
    write("own_third", MINE)
    with pytest.raises(SettingError, match=r"no Completion; accepted: .*completion\.base\.Completion"):
        COMPLETIONS.find("own_third:Plain")
    with pytest.raises(SettingError, match=r"no Nobody in own_third; accepted: .*, of which it has none"):
        DATASETS.find("own_third:Nobody")
    assert imported("own_third:Plain", Mechanism) is MECHANISMS.find("own_third:Plain")


class Point:
    """An entry point as an installed package declares it."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value, self.dist = name, value, None


def test_packages_add_components(write: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    write("own_fourth", MINE)
    points: list[Any] = [Point("theirs", "own_fourth:Named")]
    monkeypatch.setattr(
        "dprec.components.registry.entry_points", lambda group: points if group == MECHANISMS.group else []
    )
    assert MECHANISMS.group == "dprec.mechanisms"
    assert MECHANISMS.of_packages() == {"theirs": "own_fourth:Named"}
    assert MECHANISMS.find("theirs").__name__ == "Named"
    with pytest.raises(SettingError, match=r"'thiers'; accepted: .*, theirs; did you mean theirs\?"):
        MECHANISMS.find("thiers")


def test_a_package_that_cannot_be_used_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("theirs", "own_nowhere:Nothing"), Point("alike", "dprec.mechanisms:Laplace")]
    monkeypatch.setattr("dprec.components.registry.entry_points", lambda group: points)
    shown = dict(listing("mechanisms"))
    assert shown["theirs"] == "cannot be used: no module 'own_nowhere'."
    assert shown["alike"] == shown["laplace"]


def test_a_channel_that_loses_more_than_its_budget_is_refused_in_one_line() -> None:
    class Loses(Mechanism):
        def channel(self, scale: RatingScale, epsilon: float) -> Channel:
            steps = np.abs(np.subtract.outer(np.arange(scale.levels), np.arange(scale.levels)))
            return Channel.from_probabilities(np.exp(-epsilon * steps), scale.values, scale.values, epsilon)

    with pytest.raises(InputError, match=r"Loses: no channel at epsilon 1: .*; accepted: rows that are dist"):
        Loses().channel(RatingScale.evenly(1, 5, 1), 1.0)


@pytest.mark.parametrize(("name", "other"), [("theirs", "own_fifth:Plain"), ("laplace", "dprec")])
def test_two_packages_cannot_claim_a_name(monkeypatch: pytest.MonkeyPatch, name: str, other: str) -> None:
    points = [Point(name, "own_fifth:Plain"), Point(name, "own_fifth:Named")]
    monkeypatch.setattr("dprec.components.registry.entry_points", lambda group: points)
    with pytest.raises(
        InputError, match=f"entry points of dprec.mechanisms: {name}, which {other} and .*claim"
    ):
        MECHANISMS.of_packages()


def test_what_a_class_from_outside_raises_is_one_line_and_a_defect_of_ours_is_none() -> None:
    class Mine:
        pass

    with pytest.raises(InputError) as caught, naming(Mine(), "a class that works"):
        raise ValueError("bad [red]thing\x1b[31m\nhere")
    assert str(caught.value).endswith(
        "Mine: ValueError: bad [red]thing\\x1b[31m here; accepted: a class that works"
    )
    with pytest.raises(ZeroDivisionError), naming(BoundedLaplace(), ""):
        raise ZeroDivisionError
    with pytest.raises(InputError, match=r"^file: bad"), naming(Mine(), ""):
        raise InputError("file", "bad", "good")


def test_a_class_without_a_docstring_is_listed() -> None:
    class Wordless(BoundedLaplace):
        pass

    Wordless.__doc__ = None
    assert summary_of(Wordless) == "Not described."


def test_what_is_redefined_is_what_a_class_from_outside_has_anew() -> None:
    class Settings(BoundedLaplace):
        symbols: int = 8

    class Mixed:
        sends_values = False

    class Changed(Mixed, RandomizedResponse):
        def helper(self) -> None:
            """Nothing of ours."""

        def channel(self, scale: RatingScale, epsilon: float) -> Channel:
            return super().channel(scale, epsilon)

    assert redefined(BoundedLaplace) == redefined(Settings) == frozenset()
    assert redefined(Changed) == {"channel", "sends_values"}
