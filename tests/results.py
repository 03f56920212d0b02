"""Lines of comparison.csv, made up, and what they are read as."""

from typing import Any

from simulation.analysis.protocol_results import ProtocolResult


def row(name: str, epsilon: float | None = 1.0, **figures: Any) -> dict[str, Any]:
    """Return the line of a run that shows what is rated, and protects the values, if at all, locally."""
    return {
        "name": name,
        "epsilon": epsilon,
        "fold": None,
        "seed": 1,
        "dataset": "made-up",
        "items": 9,
        "status": "none" if epsilon is None else "proved",
        "trust": "central" if epsilon is None else "local",
        "hides_rated_items": False,
        "epsilon_per_rating": epsilon,
        "epsilon_per_user_max": epsilon,
        "uplink_message_mean_per_user": 300.0,
        "downlink_message_mean_per_user": 100.0,
        **figures,
    }


def result(
    name: str, spent: float, rmse: float, budget: float | None = 1.0, **figures: Any
) -> ProtocolResult:
    """Return a protocol with one run, which sends so many bytes and is sent none."""
    sizes = {"uplink_message_mean_per_user": spent, "downlink_message_mean_per_user": 0.0}
    return ProtocolResult(name, budget, (row(name, budget, rmse=rmse, **sizes, **figures),))
