"""The decision rule: of what is within limits, what the lines of a table alone say is to be taken."""

from itertools import product
from typing import Any

import numpy as np

from dprec.accounting import LEAST_TRUST_FIRST
from simulation.analysis.decision import Candidate, Limits, candidates, decide
from simulation.analysis.protocol_results import results_of
from simulation.analysis.vocabulary import METRICS
from tests.results import row

RMSE = METRICS[0]


def drawn_lines() -> list[dict[str, Any]]:
    """Return lines whose trust, protection, losses, bytes and gains are drawn at random, and nothing sent."""
    draw, lines = np.random.default_rng(3), []
    for place, budget in product(range(28), (0.5, 1.0, 4.0)):
        rmse = draw.uniform(0.8, 1.2) - 0.02 * budget
        gained = {"against": "nothing-sent", "rmse_gain_low": 0.9 - rmse, "rmse_gain_high": 1.1 - rmse}
        lines.append(
            row(
                f"protocol-{place}",
                budget,
                trust=LEAST_TRUST_FIRST[place % 4],
                hides_rated_items=place % 3 == 0,
                status="claimed" if place == 7 else "proved",
                epsilon_per_rating=budget / 10 if place != 3 else None,
                epsilon_per_user_max=budget * draw.uniform(0.5, 40),
                epsilon_composed_max=budget,
                delta=1e-6,
                rmse=rmse,
                **gained,
                uplink_message_mean_per_user=float(draw.integers(100, 10_000)),
                downlink_message_mean_per_user=float(draw.integers(0, 10_000)),
                uplink_network_mean_per_user=float(draw.integers(20_000, 90_000)),
                downlink_network_mean_per_user=float(draw.integers(20_000, 90_000)),
            )
        )
    free = {key: 0.0 for key in lines[0] if key.endswith("_per_user")}
    return [*lines, row("nothing-sent", None, **free, baseline="nothing-sent", rmse=1.0)]


def taken(every: list[Candidate], limits: Limits, *, hides: bool) -> tuple[str, float | None] | None:
    """Return what is to be taken, from the lines of a table alone."""
    worth = []
    for each in every:
        line = each.result.rows[0]
        whole = ["epsilon_per_user_max", "epsilon_composed_max"]
        losses = [line[name] for name in (whole if limits.unit == "user" else ["epsilon_per_rating"])]
        messages, network = (
            sum(line[f"{way}link_{what}_mean_per_user"] for way in ("up", "down"))
            for what in ("message", "network")
        )
        trusted = LEAST_TRUST_FIRST.index(line["trust"]) <= LEAST_TRUST_FIRST.index(limits.trust)
        kept = any(own is not None and own <= limits.epsilon for own in losses)
        most = limits.max_bytes, limits.max_bytes_up, limits.max_bytes_down, limits.max_network_bytes
        ways = (line[f"{way}link_message_mean_per_user"] for way in ("up", "down"))
        carried = all(spent <= limit for spent, limit in zip((messages, *ways, network), most, strict=True))
        protects = line["status"] == "proved" and line["hides_rated_items"] == hides
        if kept and trusted and carried and protects and each.better:
            worth.append((each.accuracy, (each.result.name, each.result.budget)))
    return min(worth)[1] if worth else None


def test_what_is_taken_is_what_the_table_says() -> None:
    results, seen = results_of(drawn_lines()), set()
    competing = [each for each in candidates(results, RMSE) if each.result.baseline is None]
    asked = product(
        LEAST_TRUST_FIRST, ("rating", "user"), (False, True), (0.05, 0.5, 1.0, 4.0, 10.0),
        ({}, {"max_bytes": 4e3}, {"max_bytes": 1e4}, {"max_network_bytes": 8e4}, {"max_bytes_up": 2e3},
         {"max_bytes_down": 2e3}),
    )  # fmt: skip
    for trust, unit, hides, epsilon, most in asked:
        limits = Limits(epsilon, unit, trust=trust, delta=1e-6, **most)  # type: ignore[arg-type]
        inside = decide([each for each in competing if each.result.hides == hides], limits)
        best = next(iter(inside), None)
        expected = taken(competing, limits, hides=hides)
        seen.add(expected)
        if expected is None:
            assert best is None or not best.better
        else:
            assert best is not None
            assert (best.result.name, best.result.budget) == expected
    assert len(seen) > 15
