"""What the server does with the replies.

Protocols that run in rounds are Flower strategies (`IterativeFactorization`, `GradientPerturbation`);
what is asked only once is a query, not a strategy (`ReportCollection`, `ReplacementExchange`).
"""

from strategies.gradient_perturbation import GradientPerturbation
from strategies.iterative import IterativeFactorization
from strategies.replacement import ReplacementExchange
from strategies.report_collection import ReportCollection
from strategies.roster import Roster, identify
from strategies.rounds import RoundRecord
from strategies.sampling import SamplingOptions
from strategies.training import TrainingRounds

__all__ = [
    "GradientPerturbation",
    "IterativeFactorization",
    "ReplacementExchange",
    "ReportCollection",
    "Roster",
    "RoundRecord",
    "SamplingOptions",
    "TrainingRounds",
    "identify",
]
