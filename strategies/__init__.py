"""What the server does with the replies.

Protocols that run in rounds are Flower strategies (`BroadcastRounds`, `RowRounds`, and `SumRounds` of
`strategies.sums`); what is asked only once is a query, not a strategy (`ReportCollection`,
`ReplacementExchange`).

Names are imported on first use: the configuration needs none of Flower.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strategies.participation import RoundRecord
    from strategies.report_collection import ReplacementExchange, ReportCollection
    from strategies.roster import Roster, identify
    from strategies.training import BroadcastRounds, RowRounds, TrainingRounds

__all__ = [
    "BroadcastRounds",
    "ReplacementExchange",
    "ReportCollection",
    "Roster",
    "RoundRecord",
    "RowRounds",
    "TrainingRounds",
    "identify",
]

_MODULES = {
    "BroadcastRounds": "training",
    "RowRounds": "training",
    "ReplacementExchange": "report_collection",
    "ReportCollection": "report_collection",
    "Roster": "roster",
    "identify": "roster",
    "RoundRecord": "participation",
    "TrainingRounds": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
