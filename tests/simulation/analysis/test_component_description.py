"""What components are, by their kinds."""

import dataclasses
import json

import pytest

from dprec.components import option
from dprec.errors import InputError
from dprec.mechanisms import RandomizedResponse
from simulation.analysis.description import described_components
from simulation.protocols import PROTOCOLS
from simulation.protocols.components import COMPONENT_REGISTRIES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared(RandomizedResponse):
    """Of somebody's own.

    In two paragraphs.
    """

    share: float = option("Share of the budget.", 0.5, gt=0, le=1, published=0.25, source="li2021, Eq. 2")


@pytest.mark.parametrize(
    ("what", "kind"),
    [(each.name, kind) for each in (*COMPONENT_REGISTRIES, PROTOCOLS) for kind in each.kinds],
)
def test_every_component_is_described(what: str, kind: str) -> None:
    (described,) = described_components(f"{what}s/{kind}")
    assert (described.what, described.kind) == (what, kind)
    for each in described.settings:
        assert each.words.endswith(".")
        assert "a value" not in each.accepts, each.line.key
    json.dumps(described.as_json(), allow_nan=False)
    assert [each.what for each in described_components(kind)].count(what) == 1


def test_settings_have_defaults_bounds_and_sources() -> None:
    (described,) = described_components(f"{__name__}:Shared")
    assert described.kind == described.place == f"{__name__}:Shared"
    assert described.words == "Of somebody's own.\n\nIn two paragraphs."
    (share,) = described.settings
    assert (share.line.key, share.line.default, share.accepts) == (
        "share",
        0.5,
        "a number, above 0, at most 1",
    )
    assert (share.line.published, share.line.source) == ((0.25,), "li2021, Eq. 2")
    (one_shot,) = described_components("one-shot")
    settings = {each.line.key: each for each in one_shot.settings}
    assert settings["privacy.epsilon"].accepts == "a number, above 0"
    assert settings["personalization"].accepts == "none, on-device"
    assert settings["mechanism"].line.default == "required"
    assert settings["mechanism"].accepts.endswith("or module:Class")


def test_a_kind_of_several_registries_is_described_in_each() -> None:
    assert [each.what for each in described_components("one-bit")] == ["completion", "gradient"]
    assert described_components("nothing of this name") == []


def test_a_class_that_is_no_component_is_refused() -> None:
    with pytest.raises(InputError, match="a class that is no component; accepted: one derived"):
        described_components("dprec.randomness.keys:InstalledKeys")
