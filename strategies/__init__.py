"""What the server does with the replies: Flower strategies that complete the rating matrix."""

from strategies.iterative import IterativeFactorization
from strategies.one_bit import SlopeRounds
from strategies.one_shot import OneShot
from strategies.x_map import ReplacementRound

__all__ = ["IterativeFactorization", "OneShot", "ReplacementRound", "SlopeRounds"]
