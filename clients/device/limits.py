"""What a user allows a device to spend, and how the device is enrolled: the contents of device.json."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dprec.components import Options, option


@dataclass(frozen=True)
class Loss:
    """What an answer costs."""

    per_rating: float
    per_user: float
    """Epsilon for the change of one rating, and for that of the whole profile; infinite if nothing is
    protected. Per rating, 0 if there is no rating.
    """


@dataclass(frozen=True)
class Price:
    """What an answer costs a profile, and what it could cost any profile."""

    round_index: int
    """The round that is answered, from 1."""
    paid: Loss
    """What the user's own profile loses."""
    most: Loss
    """What no profile loses more of. Limits are held against this: it follows from the protocol alone, so
    whether an answer is refused says nothing about the profile.
    """


@dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """The largest epsilons that any profile may lose; null for no limit, which has to be said."""

    per_rating: float | None = option("What one run may cost a rating.", ge=0)
    per_rating_lifetime: float | None = option("What all runs together may cost a rating.", ge=0)
    per_user: float | None = option("What one run may cost the whole profile.", ge=0)
    per_user_lifetime: float | None = option("What all runs together may cost the whole profile.", ge=0)
    runs: int | None = option("How many runs may cost anything.", ge=0)

    def exceeded(self, run: Sequence[Loss], lifetime: Sequence[Loss], runs: int) -> str | None:
        """Return which limit some losses exceed, in words; None if they keep to all.

        Parameters
        ----------
        run, lifetime : sequence of Loss
            What any profile could lose by the answers of the run, and of all runs.
        runs : int
            How many runs these are.
        """
        if self.runs is not None and runs > self.runs:
            return f"a further run, the limit is {self.runs}"
        for name, losses, limit in (
            ("per_rating", [loss.per_rating for loss in run], self.per_rating),
            ("per_rating_lifetime", [loss.per_rating for loss in lifetime], self.per_rating_lifetime),
            ("per_user", [loss.per_user for loss in run], self.per_user),
            ("per_user_lifetime", [loss.per_user for loss in lifetime], self.per_user_lifetime),
        ):
            # Rounded once: shares of a limit never add up to more than it by rounding.
            if limit is not None and (total := math.fsum(losses)) > limit:
                return f"epsilon {total:.4g} {name}, the limit is {limit:g}"
        return None


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """How a device is enrolled, and what it may spend."""

    user: int = option("Number under which the server has enrolled the device.", ge=0, le=2**31 - 1)
    limits: Limits = option("What the device may spend.")
    classes: tuple[str, ...] = option(
        "User-defined classes that the protocol may name, each as module:Class; no others are imported.", ()
    )
