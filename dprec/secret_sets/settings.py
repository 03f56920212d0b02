"""What follows from public numbers: which sums are released, and what each of them spends.

tau is the standard deviation of a number's noise in a sum of unit contributions that has the whole budget,
over the number of users. benchmarks/choosing/settings.py chose the splits on validation ratings.
"""

Split = tuple[float, float, float, float, float, float, float, float]
"""Shares of counts and first residuals; of second residuals, residuals by feature, profiles and tastes; of
profiles and tastes in learned features.
"""

_SPLITS: tuple[tuple[float, Split], ...] = (
    (2e-3, (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0)),
    (3e-4, (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0)),
    (0.0, (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3)),
)
"""The least tau at which each is used."""


_SAMPLED = (0.2, 0.15, 0.65, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of sums of which devices say a few numbers: none of a number for each feature of an item."""


def split_at(tau: float, *, sampled: bool = False) -> Split:
    """Return what each sum spends."""
    if sampled:
        return _SAMPLED
    return next(split for least, split in _SPLITS if tau >= least)
