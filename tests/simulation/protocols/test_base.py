"""What others ask of a protocol: every preset's answers, by one class of under two hundred lines."""

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from dprec.errors import SettingError
from simulation import load
from simulation.protocols import Protocol, base
from simulation.protocols.audited import Finding
from simulation.protocols.base import BASELINES
from tests.simulation.conftest import presets

NAMES = sorted(presets())


class Asked:
    """An auditor that only says which of its tests a protocol asks for."""

    def __getattr__(self, name: str) -> Any:
        def asked(*_: Any) -> Iterator[Finding]:
            yield Finding(name, "user", 1.0, 0.0, None, exact=True, power=1.0)

        return asked


def test_the_base_is_one_class_of_under_two_hundred_lines() -> None:
    assert len(inspect.getsource(base).splitlines()) < 200
    asked = {name: value for name, value in vars(Protocol).items() if not name.startswith("_")}
    methods = {name: value for name, value in asked.items() if callable(value) or isinstance(value, property)}
    assert [name for name, method in methods.items() if not method.__doc__] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_answers_for_itself(name: str) -> None:
    protocol = load(name).protocol
    assert protocol.baseline == (name if name in BASELINES else None)
    picked = protocol.picked
    assert picked.not_deployed or type(picked).serve is not Protocol.serve
    if picked.not_deployed:
        with pytest.raises(SettingError) as caught:
            picked.check_deployed()
        assert caught.value.key == "kind"
    try:
        audited = protocol.audited()
    except SettingError:
        return
    promise = protocol.promise()
    assert promise.epsilon > 0
    assert promise.loss(2) >= promise.loss(1)
    (found,) = list(audited.audit(Asked()))
    assert found.test.startswith("of_")


def test_every_kind_of_audit_is_asked_for() -> None:
    asked = set()
    for name in NAMES:
        try:
            asked |= {found.test for found in load(name).protocol.audited().audit(Asked())}
        except SettingError:
            continue
    assert asked == {"of_devices", "of_releases", "of_sums", "of_outputs"}
