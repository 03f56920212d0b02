"""What is compared where nothing else is said: every preset, and under every trust model."""

from pathlib import Path

import pytest

from dprec.protocols.base import BASELINE_PRESETS, INFORMED_BASELINES
from simulation.comparison.planning import load_comparison
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import presets, read_yaml

DEFAULT_COMPARISONS = {
    "ratings": (
        "compare-seeds",
        "compare-per-user",
        "compare-systems",
        "compare-weekly",
        "compare-field-ratings",
    ),
    "lists": (
        "compare-lists",
        "compare-lists-msweb",
        "compare-lists-per-item",
        "compare-pairs",
        "compare-field",
    ),
}
"""What is run on each kind of data where nothing else is said."""

_REFERENCE = "a federated model without privacy, to compare one's own with"

ELSEWHERE = {
    "blp-mf": "the example of documents, in compare-quick; published as blp-mog-mf",
    "fedavg-mf": _REFERENCE,
    "fedncf": _REFERENCE,
    "fedrep": _REFERENCE,
    "lightgcn-free": _REFERENCE,
    "own-budgets-on-device": "users choose their budgets, so that no epsilon is the same for all protocols",
    "personalised-sampling": "users choose their budgets, so that no epsilon is the same for all protocols",
    "pg-mf-reduced": "pg-mf for 200,000 users and 100 items",
    "user-average": "a reference of the published cross-domain systems, in their experiments",
}
"""Why a preset stands in no default comparison."""


def test_every_preset_stands_in_a_default_comparison_of_its_kind_of_data_or_says_why_not() -> None:
    held = {name: read_yaml(path) for name, path in presets().items()}
    runs = {name: parse_config(values).protocol for name, values in held.items() if "protocol" in values}
    missing = set()
    for kind, comparisons in DEFAULT_COMPARISONS.items():
        listed = {*BASELINE_PRESETS[kind].values(), *INFORMED_BASELINES.values()} | {
            entry if isinstance(entry, str) else entry.get("preset", entry["name"])
            for name in comparisons
            for entry in held[name]["protocols"]
        }
        missing |= {name for name, protocol in runs.items() if protocol.facts.predicts == kind} - listed
    assert missing == set(ELSEWHERE)


def test_what_is_compared_on_a_file_holds_the_best_under_every_promise() -> None:
    trusts = ("local", "shuffle", "secure-aggregation", "central")
    whole = {f"best-{trust}-per-user" for trust in trusts}
    values = {f"best-local-per-{each}" for each in ("rating", "cell", "user-values")}
    both = whole | values
    for name, promised in (
        ("compare-systems", both),
        ("compare-answer", both),
        ("compare-pairs", whole),
        ("compare-answer-lists", whole),
    ):
        private = {
            cell.protocol: cell.config.protocol for cell in load_comparison(name).cells if cell.epsilon
        }
        assert {each for each in private if each.startswith("best-") and each != "best-server"} == promised
        assert {private[each].stated["trust"] for each in whole} == set(trusts)
        assert {private[each].stated["per"] for each in whole} == {"user"}


EVENTS = "customer_id,sku,event,ts\n" + "".join(
    f"{customer},{sku},{(customer * sku) % 3},2024-01-{sku + 1:02}\n"
    for customer in range(30)
    for sku in range(9)
)


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        (["dataset.rating_column=event"], "ratings"),
        (["dataset.rating_column=none"], "lists"),
        (["dataset.rating_column='none'"], "lists"),
        (["dataset.rating_column=event", 'dataset.positive=">= 2"'], "lists"),
    ],
)
def test_a_file_whose_ratings_are_left_out_or_cut_is_compared_by_lists(
    tmp_path: Path, overrides: list[str], kind: str
) -> None:
    file = tmp_path / "events.csv"
    file.write_text(EVENTS)
    cells = load_comparison(file, overrides).cells
    assert {cell.config.protocol.facts.predicts for cell in cells} == {kind}
