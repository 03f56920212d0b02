"""Microseconds per rating of every part of a one-shot run, beside the least that this machine could take.

    python benchmarks/profile_table.py [--users 1000000]

The run is that of `scale.py`: every user perturbs 20 ratings of 2,000 items (bounded Laplace, epsilon 1),
partition by partition, as nodes do; the server decodes the reports, charges them and fits factors. It all
runs in one thread of this process and is measured by its processor time, so that other processes do little
harm. The limits are measured in the same way, before and after, and the better one counts:

- draw: four random words of NumPy's Philox per rating, two for the digest of the profile, two for the noise;
- encode, decode: two code words per rating, the gap to the item before and the symbol, at the speed of a
  compiled coder (zlib, Huffman codes only);
- move, account, arrange: what is read and written, at the speed of copying memory;
- sweep: the products and sums of both least-squares problems, at the speed of a matrix product (BLAS).
"""

from __future__ import annotations

import argparse
import pickle
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto
from numpy.typing import NDArray
from scale import EPSILON, RATINGS_PER_USER, population
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.arrays import Pieces, offsets
from dprec.completion import MatrixFactorization
from dprec.exchange import REPLY, REPORT, Reports
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.observations import Observations
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from dprec.reports import CellFamily
from dprec.wire import DecodedReports, ReportCodec, TrafficLedger
from strategies.roster import Arrivals
from strategies.rounds import RoundAccount, reply_message

ITEMS, PARTITION, RANK, SWEEPS = 2_000, 20_000, 5, 3
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Machine:
    """What one core of this machine can do.

    Parameters
    ----------
    words, copied, coded, decoded, flops : float
        Random words, copied bytes, code words either way and floating-point operations per second.
    """

    words: float
    copied: float
    coded: float
    decoded: float
    flops: float

    @classmethod
    def measured(cls) -> Machine:
        """Measure it."""
        philox = np.random.Philox(key=np.zeros(2, dtype=np.uint64))
        count, size = 1 << 23, 512
        source, target = np.ones(count), np.ones(count)
        factor = np.ones((size, size))
        # Of as many values as there are symbols in the run, about as unequal as these are.
        data = np.random.default_rng(0).binomial(255, 0.5, 1 << 22).astype(np.uint8).tobytes()
        coding, coded = _seconds(lambda: _huffman(data))
        return cls(
            count / _seconds(lambda: philox.random_raw(count))[0],
            count * 8 / _seconds(lambda: np.copyto(target, source))[0],
            len(data) / coding,
            len(data) / _seconds(lambda: zlib.decompress(coded))[0],
            2 * size**3 / _seconds(lambda: factor @ factor)[0],
        )

    def or_better(self, other: Machine) -> Machine:
        """Return the better of both."""
        return Machine(*(max(pair) for pair in zip(vars(self).values(), vars(other).values(), strict=True)))


def _huffman(data: bytes) -> bytes:
    coder = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    return coder.compress(data) + coder.flush()


def _seconds(work: Callable[[], ResultT], times: int = 3) -> tuple[float, ResultT]:
    """Return the least processor time of some work, and its result."""
    best = float("inf")
    for _ in range(times):
        started = time.process_time()
        result = work()
        best = min(best, time.process_time() - started)
    return best, result


@dataclass(frozen=True, eq=False)
class Path:
    """The path of ratings from devices to factors, in parts that can be measured.

    Parameters
    ----------
    train : Ratings
    calibrated : CellFamily
    codec : ReportCodec
    """

    train: Ratings
    calibrated: CellFamily
    codec: ReportCodec

    @classmethod
    def of(cls, users: int) -> Path:
        """Return the path of a population."""
        train = population(users, ITEMS)
        budget = PrivacyBudget(epsilon=EPSILON, per="rating")
        calibrated = CellFamily(BoundedLaplace(), budget, train.scale, train.n_items)
        return cls(train, calibrated, calibrated.codec)

    def partitions(self) -> list[tuple[slice, slice]]:
        """Return the users and the ratings of each partition."""
        starts = range(0, self.train.n_users, PARTITION)
        users = [slice(start, min(start + PARTITION, self.train.n_users)) for start in starts]
        return [(each, slice(*(RATINGS_PER_USER * end for end in (each.start, each.stop)))) for each in users]

    def draw(self) -> list[NDArray[np.uint16]]:
        """Draw the symbols as devices do, from words that depend on their profiles."""
        symbols = []
        for users, cells in self.partitions():
            items, levels = self.train.items[cells], self.train.levels[cells]
            bounds = np.arange(users.stop - users.start + 1) * RATINGS_PER_USER
            values = self.train.scale.values[levels - 1]
            draws = DeviceDraws.of(bytes(16), users.start, bounds, items, values, "report")
            counts = np.diff(bounds)
            words = draws.per_cell(counts, items, 1)
            symbols.append(self.calibrated.perturb(counts, levels, words))
        return symbols

    def encode(self, symbols: list[NDArray[np.uint16]]) -> list[Pieces]:
        """Encode the reports."""
        reports = []
        for (users, cells), own in zip(self.partitions(), symbols, strict=True):
            bounds = np.arange(users.stop - users.start + 1) * RATINGS_PER_USER
            reports.append(self.codec.encode(bounds, self.train.items[cells], own))
        return reports

    def move(self, reports: list[Pieces]) -> list[Message]:
        """Carry the replies as Ray and Flower do: by pickle, and from objects to protobuf and back."""
        arrived = []
        for (users, _), own in zip(self.partitions(), reports, strict=True):
            content = RecordDict({REPLY: ConfigRecord(Reports(users.start, own).entries())})
            reply = pickle.loads(pickle.dumps(reply_message(REPORT, content, "run")))
            arrived.append(message_from_proto(message_to_proto(reply)))
        return arrived

    def decode(self, reports: list[Pieces]) -> list[DecodedReports]:
        """Decode the reports."""
        return [self.codec.decode(own) for own in reports]

    def account(self, reports: list[Pieces]) -> None:
        """Charge bytes and losses."""
        n_users = self.train.n_users
        account = RoundAccount(REPORT, "run", TrafficLedger(n_users))
        for (users, _), own in zip(self.partitions(), reports, strict=True):
            everybody = np.ones(len(own), dtype=np.bool_)
            account.charge_reports(Arrivals(np.arange(users.start, users.stop), everybody, everybody, own))
        self.calibrated.accountant(self.train.counts, np.ones(n_users, dtype=np.bool_))

    def arrange(self, decoded: list[DecodedReports]) -> Observations:
        """Read the symbols, and arrange the cells by user and by item as a completion needs them."""
        counts = np.concatenate([np.diff(own.indptr) for own in decoded])
        values = [self.calibrated.read(np.diff(own.indptr), own.symbols) for own in decoded]
        observations = Observations(
            offsets(counts),
            np.concatenate([own.items for own in decoded]),
            lambda: values,
            (counts.size, self.train.n_items),
            self.train.scale,
            self.calibrated.noise_variance(counts),
        )
        _ = observations.by_user, observations.by_item
        return observations


def _fit(observations: Observations, sweeps: int) -> float:
    """Return the processor time of some sweeps, with what comes before and after them."""
    completion = MatrixFactorization(rank=RANK, iterations=sweeps, tolerance=0.0)
    return _seconds(lambda: completion.fit(observations, 0), times=1)[0]


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--users", type=int, default=1_000_000)
    chosen = arguments.parse_args()
    if chosen.users < 1:
        arguments.error("--users is at least 1")
    with threadpool_limits(limits=1):
        _profile(chosen.users)


def _profile(users: int) -> None:
    machine = Machine.measured()
    path = Path.of(users)
    ratings = path.train.count
    seconds: dict[str, float] = {}
    seconds["draw"], symbols = _seconds(path.draw, 2)
    seconds["encode"], reports = _seconds(lambda: path.encode(symbols), 2)
    seconds["move"], _ = _seconds(lambda: path.move(reports), 1)
    seconds["decode"], decoded = _seconds(lambda: path.decode(reports), 2)
    seconds["account"], _ = _seconds(lambda: path.account(reports), 2)
    seconds["arrange"], observations = _seconds(lambda: path.arrange(decoded), 1)
    # The first fit loads the compiled loops and claims the memory that all of them use.
    _fit(observations, 1 + SWEEPS)
    seconds["sweep"] = (_fit(observations, 1 + SWEEPS) - _fit(observations, 1)) / SWEEPS
    machine = machine.or_better(Machine.measured())
    payload = sum(len(own.data) for own in reports) / ratings
    limits = {
        "draw": 4 / machine.words,
        "encode": 2 / machine.coded,
        "move": 2 * payload / machine.copied,
        "decode": 2 / machine.decoded,
        "account": 5 * 8 / RATINGS_PER_USER / machine.copied,
        "arrange": 3 * (4 + 4 + 8) / machine.copied,
        "sweep": 2 * (RANK * (RANK + 1) + 2 * RANK) / machine.flops,
    }
    _print(ratings, machine, seconds, limits)


def _print(ratings: int, machine: Machine, seconds: dict[str, float], limits: dict[str, float]) -> None:
    print(
        f"{ratings:,} ratings. Per second: {machine.words / 1e6:.0f} million random words, "
        f"{machine.copied / 1e9:.1f} GB copied, {machine.coded / 1e6:.0f} million code words written and "
        f"{machine.decoded / 1e6:.0f} million read, {machine.flops / 1e9:.0f} billion operations."
    )
    print("\n| part | microseconds per rating | limit | times the limit |\n|---|---|---|---|")
    for name, spent in seconds.items():
        own, limit = 1e6 * spent / ratings, 1e6 * limits[name]
        print(f"| {name} | {own:.4f} | {limit:.4f} | {own / limit:.1f} |")
    print(f"| together | {1e6 * sum(seconds.values()) / ratings:.4f} | | |")


if __name__ == "__main__":
    main()
