"""What a refusal is held to: that it names what is at fault, in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dprec.errors import InputError


@contextmanager
def refused_at(where: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect a refusal of a setting, or of a file by its name and the place in it."""
    with pytest.raises(InputError) as caught:
        yield caught
    found = caught.value.where
    assert found == where or found.endswith(f"/{where}"), found
    assert "\n" not in str(caught.value)
