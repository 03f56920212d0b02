"""What `dprec describe` says of configurations and of components."""

import json
import math
import re

import pytest

from dprec.protocols.components import COMPONENT_REGISTRIES
from dprec.protocols.registry import PROTOCOLS
from simulation import load
from simulation.analysis.description import Description, as_json, describe, described_components
from simulation.configuration.strict_yaml import presets
from tests.refusals import refused_at

PRESETS = sorted(name for name, path in presets().items() if path.parent.name != "experiments")
RUNS = [name for name in PRESETS if not name.startswith("compare")]


def described(name: str, *overrides: str) -> Description:
    return describe(load(name, overrides))


@pytest.mark.parametrize("name", RUNS)
def test_every_preset_can_be_described_and_written_as_json(name: str) -> None:
    description = described(name)
    config = load(name)
    assert description.parts[0].kind == config.protocol.kind
    assert description.guarantee.reason
    values = json.loads(json.dumps(as_json(description), allow_nan=False))
    assert values["name"] == name
    assert len(values["settings"]) == len(description.settings) == len({s["key"] for s in values["settings"]})
    # A report is called unprotected only where nothing is promised.
    unprotected = description.protection == "not protected"
    assert unprotected <= (description.guarantee.status == "none")
    sent = description.sent
    if sent is not None and sent.epsilon is None and description.guarantee.status == "proved":
        assert description.guarantee.trust != "local" or sent.symbols == 1


def test_the_channel_is_that_of_the_budget_on_the_data_sets_scale() -> None:
    blp = described("blp-mog-mf", "protocol.privacy.epsilon=0.5", "protocol.mechanism.symbols=64")
    assert blp.sent is not None
    assert (blp.sent.reports, blp.sent.symbols, blp.sent.answers, blp.sent.per) == (1, 64, 106, "rating")
    assert blp.sent.epsilon == pytest.approx(0.5, abs=1e-9)
    assert (blp.example.scale.levels, blp.example.users, blp.example.items) == (5, 943, 1682)
    zheng = described("zheng-rr")
    assert zheng.sent is not None
    assert (zheng.sent.answers, zheng.sent.symbols, zheng.sent.per) == (1682, 6, "cell")
    signs = described("one-bit-input")
    assert signs.sent is not None
    assert (signs.sent.symbols, signs.example.scale.levels) == (2, 2)


def test_rounds_divide_the_budget() -> None:
    gradient = described("pg-mf").sent
    assert gradient is not None
    assert (gradient.reports, gradient.symbols, gradient.per) == (4, 2, "user")
    assert gradient.epsilon == pytest.approx(0.4, abs=1e-12)
    assert gradient.bits == math.ceil(math.log2(100 * 2)) + 1
    slopes = described("one-bit-gradient", "protocol.rounds=5").sent
    assert slopes is not None
    assert slopes.reports == 5
    assert slopes.epsilon == pytest.approx(0.2, abs=1e-9)


ROUNDS = re.compile(r"everything that all others see of a user in (\d+) rounds?,")


@pytest.mark.parametrize("aggregation", ["secure-aggregation", "central"])
@pytest.mark.parametrize(
    ("name", "users", "expected"),
    [
        *(("sums-on-device", 943, 2), ("sums-on-device", 100_000, 3)),
        *(("gram-secagg", 943, 2), ("popularity-secagg", 943, 1), ("dp-als", 943, 10)),
    ],
)
def test_as_many_reports_are_sent_as_rounds_are_promised(
    name: str, users: int, expected: int, aggregation: str
) -> None:
    one = described(name, f"dataset.users={users}", f"protocol.aggregation={{kind: {aggregation}}}")
    (rounds,) = [found[1] for note in one.guarantee.notes if (found := ROUNDS.search(note))]
    assert one.sent is not None
    assert (one.sent.reports, rounds) == (expected, str(expected))


@pytest.mark.parametrize(
    ("what", "kind"),
    [(each.name, kind) for each in (*COMPONENT_REGISTRIES, PROTOCOLS) for kind in each.kinds],
)
def test_every_component_is_described(what: str, kind: str) -> None:
    (described,) = described_components(f"{what}s/{kind}")
    assert (described.what, described.kind) == (what, kind)
    for each in described.settings:
        assert each.words.endswith(".")
        assert "a value" not in each.accepts, each.key
    json.dumps(described.as_json(), allow_nan=False)
    assert [each.what for each in described_components(kind)].count(what) == 1


def test_a_class_that_is_no_component_is_refused() -> None:
    with refused_at("dprec.randomness.keys:InstalledKeys"):
        described_components("dprec.randomness.keys:InstalledKeys")
