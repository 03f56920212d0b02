"""The privacy ledger of a device: ledger.jsonl, a line for each answer that cost something, and its limits.

A line is on disk before the answer that it is for leaves. Every line carries a digest of all lines up to it.
The memory of the device (`dprec_pilot.device.profile`), which is written just before, holds the last line
too: if the process or the machine dies while the line is written, it is written again from there, and counts.
It may then be for an answer that never left; a loss that was not suffered may be charged, but none that was
suffered is forgotten. A ledger that lacks more than its last line is not used at all.

Answers that every run repeats are charged when they are first given, and their line says which they are. So
what was answered is known from the ledger alone (`dprec_pilot.device.repeated`).
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clients.population import Partition
from clients.prices import PRICES, Price
from dprec import exchange
from dprec.accounting import Loss
from dprec.components import Options, as_values, from_json, option
from dprec.errors import InputError
from dprec_pilot.device.profile import emptied
from dprec_pilot.files import Chain


@dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """What any profile may lose at most; null for no limit, which has to be said of each epsilon."""

    per_rating: float | None = option("What one run may cost a rating.", ge=0)
    per_rating_lifetime: float | None = option("What all runs together may cost a rating.", ge=0)
    per_user: float | None = option("What one run may cost the whole profile.", ge=0)
    per_user_lifetime: float | None = option("What all runs together may cost the whole profile.", ge=0)
    delta_lifetime: float | None = option("What the deltas of all runs may add up to.", None, ge=0, le=1)
    runs: int | None = option("How many runs may cost anything.", ge=0)

    def exceeded(self, run: Sequence[Charge], lifetime: Sequence[Charge]) -> str | None:
        """Return which limit any profile could exceed by a run, or by all runs, in words; None if none.

        All runs that repeat the same answers are one: together they cost what one of them may.
        """
        if self.runs is not None and len({charge.memory or charge.run for charge in lifetime}) > self.runs:
            return f"a further run, the limit is {self.runs}"
        deltas = math.fsum(charge.delta for charge in lifetime)
        if self.delta_lifetime is not None and deltas > self.delta_lifetime:
            return f"delta {deltas:.4g} delta_lifetime, the limit is {self.delta_lifetime:g}"
        one_run, all_runs = most_lost(run), most_lost(lifetime)
        for name, total, limit in (
            ("per_rating", one_run.per_rating, self.per_rating),
            ("per_rating_lifetime", all_runs.per_rating, self.per_rating_lifetime),
            ("per_user", one_run.per_user, self.per_user),
            ("per_user_lifetime", all_runs.per_user, self.per_user_lifetime),
        ):
            if limit is not None and total > limit:
                return f"epsilon {total:.4g} {name}, the limit is {limit:g}"
        return None


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """How a device is enrolled, and what it may spend."""

    user: int = option("Number under which the server has enrolled the device.", ge=0, le=2**31 - 1)
    limits: Limits = option("What the device may spend.")
    classes: tuple[str, ...] = option("User-defined classes that may be imported, as module:Class.", ())


@dataclass(frozen=True, kw_only=True)
class Charge(Options):
    """What an answer cost; null where nothing was protected."""

    time: str = option("When, by the clock of the device.")
    run: str = option("The run key, which the server chose.")
    question: str = option("The type of the message that was answered.")
    round: int = option("The round that was answered.", ge=1)
    per_rating: float | None = option("Epsilon for the change of one rating.", ge=0)
    per_user: float | None = option("Epsilon for the change of the whole profile.", ge=0)
    most_per_rating: float | None = option("What a rating of any profile could lose.", ge=0)
    most_per_user: float | None = option("What any whole profile could lose.", ge=0)
    delta: float = option("Probability with which more is lost; 0 if these hold without.", 0.0, ge=0, le=1)
    protocol: str = option("Fingerprint of the protocol.")
    profile: str = option("Digest of the ratings.")
    memory: str = option("Digest of what repeated answers are bound to; empty if none are.", "")
    answered: tuple[tuple[str, int], ...] = option("Items and levels that were answered first.", ())

    @classmethod
    def of(
        cls, run: str, question: str, price: Price, protocol: str, profile: str, **repeated: Any
    ) -> Charge:
        """Return the charge for an answer that is given now; see the fields for the parameters."""
        paid, most = price.paid, price.most
        return cls(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            run=run,
            question=question,
            round=price.round_index,
            per_rating=_finite(paid.per_rating),
            per_user=_finite(paid.per_user),
            most_per_rating=_finite(most.per_rating),
            most_per_user=_finite(most.per_user),
            delta=price.delta,
            protocol=protocol,
            profile=profile,
            **repeated,
        )

    @property
    def loss(self) -> Loss:
        """What was lost, infinite where nothing was protected."""
        return _loss(self.per_rating, self.per_user)

    @property
    def most(self) -> Loss:
        """What any profile could have lost, infinite where nothing was protected."""
        return _loss(self.most_per_rating, self.most_per_user)


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


def _loss(per_rating: float | None, per_user: float | None) -> Loss:
    return Loss(*(math.inf if epsilon is None else epsilon for epsilon in (per_rating, per_user)))


def most_lost(charges: Iterable[Charge]) -> Loss:
    """Return what any profile could have lost by some answers; those of one memory are the same answers."""
    alone, repeated = list[Loss](), dict[str, list[Loss]]()
    for charge in charges:
        (repeated.setdefault(charge.memory, []) if charge.memory else alone).append(charge.most)
    once = (
        Loss(max(loss.per_rating for loss in losses), max(loss.per_user for loss in losses))
        for losses in repeated.values()
    )
    return Loss.composed([*alone, *once])


@dataclass(frozen=True, eq=False)
class Ledger:
    """What a device has spent."""

    lines: Chain
    charges: tuple[Charge, ...] = ()
    last: bytes = b""
    """The last line."""

    @classmethod
    def open(cls, path: Path, lines: int, last: bytes) -> Ledger:
        """Open a ledger of so many lines, after writing its last one again if that is missing or cut off.

        Further lines, which the device does not remember, count if they say themselves what was answered.
        Raises InputError when there are others, or a line is missing or damaged. Raises OSError when the last
        line cannot be written.
        """
        data = path.read_bytes() if path.exists() else b""
        ledger = cls(Chain(path))
        for number, line in enumerate(data.splitlines(keepends=True)):
            following = ledger._after(line)
            if following is None or (number >= lines and not following.charges[-1].memory):
                break
            ledger = following
        done = len(ledger.charges)
        if done < lines - 1:
            accepted = "the file as the device wrote it: without it, nobody knows what was spent"
            raise InputError(f"{path}:{done + 1}", "a line that is missing or damaged", accepted)
        if done == lines - 1:
            return ledger.append(last)
        if ledger.lines.size < len(data):
            found = "a line that the device does not remember"
            raise InputError(f"{path}:{done + 1}", found, "a ledger and a state of the same time")
        return ledger

    def line(self, charge: Charge) -> bytes:
        """Return the line to append for a charge, silent on a delta or repeated answers if there are none."""
        entries, seldom = as_values(charge).items(), ("delta", "memory", "answered")
        return self.lines.line({key: value for key, value in entries if value or key not in seldom})

    def append(self, line: bytes) -> Ledger:
        """Write a line to disk, and return the ledger with it; raises OSError when it cannot be."""
        following = self._after(line)
        assert following is not None, "a line that does not follow"
        self.lines.append(line)
        return following

    def of_run(self, run: str) -> Sequence[Charge]:
        """Return the charges for what is answered in one run alone: they pay for nothing that is repeated."""
        return [charge for charge in self.charges if charge.run == run and not charge.memory]

    def _after(self, line: bytes) -> Ledger | None:
        """Return the ledger with a line; None if the line is damaged or does not follow."""
        read = self.lines.after(line)
        if read is None:
            return None
        try:
            charge = from_json(Charge, json.dumps(read[0]), str(self.lines.path))
        except InputError:
            return None
        return Ledger(read[1], (*self.charges, charge), line)


LOG = logging.getLogger("dprec.device")


def price_of(
    kind: str, partition: Partition, record: exchange.Record, name: str, answered: Collection[int] = ()
) -> Price:
    """Return what an answer to a message of a kind costs the user of a partition; see `PriceOf`.

    Should a defect keep that from being known for some profiles, it must not be seen: the user is charged
    what the answer could cost any profile.
    """
    try:
        return PRICES[kind](partition, record, answered)
    except Exception:
        LOG.exception("%s: a defect; charged what the answer could cost any profile", name)
    price = PRICES[kind](emptied(partition), record, answered)
    return replace(price, paid=price.most)


CHARGED_WITH: Mapping[str, str] = {exchange.COUNT: exchange.REPORT}
"""Types of messages whose answer is paid in part with that to another one, which has to come first."""

LEADING_TO: Mapping[str, str] = {exchange.KEYS: exchange.STATISTICS}
"""Types of messages that are refused where a limit refuses the answer to another one, of the same round."""

DELIVERIES = frozenset({exchange.DELIVER, exchange.PERSONALIZE, exchange.RECOMMEND})
"""Types of messages from which a device predicts, once its answer is on its way."""

FREE = DELIVERIES | {exchange.IDENTIFY, exchange.KEYS, exchange.SHARES, exchange.UNMASK}
"""Types of messages whose answer says nothing about the profile. Other types are not answered.

What a secure sum needs besides contributions is drawn without the ratings (`dprec_pilot.masks.device`).
"""
