"""How a contract says which of its rules is broken: in one line, with what was seen and what is expected."""

import dataclasses
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from dprec.components import Options, summary_of

_LONGEST = 400
"""Characters of what was seen: comparisons of arrays are long."""


class Contract:
    """Base of the contracts: a test's name is the rule, and its docstring what is expected."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.isfunction(test):
                setattr(cls, name, _told(test))


def _told(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test that fails in one line where an assertion does."""
    rule = test.__name__.removeprefix("test_").replace("_", " ")
    expected = " ".join((test.__doc__ or "what its assertions say").split())

    @wraps(test)
    def telling(*arguments: Any, **fixtures: Any) -> None:
        try:
            test(*arguments, **fixtures)
        except AssertionError as error:
            failure = " ".join(str(error).split()) or "an assertion that does not hold"
            failure = failure if len(failure) <= _LONGEST else f"{failure[:_LONGEST]} ..."
            raise pytest.fail.Exception(
                f"{rule}: seen {failure}; expected: {expected}", pytrace=False
            ) from None

    return telling


def described(component: Options) -> None:
    """Hold a component to a sentence as its docstring, and to words for each of its settings."""
    summary = summary_of(type(component))
    assert summary.endswith("."), repr(summary)
    kind, *settings = dataclasses.fields(component)
    assert kind.name == "kind"
    silent = [setting.name for setting in settings if not setting.metadata.get("description")]
    assert not silent, f"without words: {silent}"
