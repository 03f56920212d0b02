import pytest
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectUnavailableError
from flwr.superlink.grid import http_grid

from simulation.deployment.bounded_pulls import bounded_pulls


def never(object_id: str) -> bytes:
    raise ObjectUnavailableError(object_id)


def test_contents_that_never_come_are_given_up() -> None:
    before = http_grid.pull_objects
    with bounded_pulls(0.05), pytest.raises(ObjectPullError):
        http_grid.pull_objects(["id"], never)
    assert http_grid.pull_objects is before


def test_contents_that_come_are_returned() -> None:
    with bounded_pulls(0.05):
        assert http_grid.pull_objects(["id"], lambda object_id: b"object") == {"id": b"object"}
