"""Microseconds per rating of every part of a one-shot run, beside what this machine could do, and of reports.

The run is that of `scale.py`: every user perturbs 20 ratings of 2,000 items (bounded Laplace, epsilon 1),
partition by partition, as nodes do; the server decodes the reports, charges them and fits factors. It all
runs in one thread. The limits, which stand as a peer, are measured as well:

- draw: four random words of NumPy's Philox per rating, two for the digest of the profile, two for the noise;
- encode, decode: two code words per rating, the gap to the item before and the symbol, at the speed of a
  compiled coder (zlib, Huffman codes only);
- move, account, arrange: what is read and written, at the speed of copying memory;
- sweep: the products and sums of both least-squares problems, at the speed of a matrix product (BLAS).

Reports of a package that only perturbs and adds up are beside ours drawn, encoded, decoded and charged.
"""

import pickle
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto
from measuring import DATA, Figures, Line, Peer, beside, job, main
from scale import EACH, EPSILON, RATINGS_PER_USER, population
from threadpoolctl import threadpool_limits

from dprec.accounting import PrivacyBudget
from dprec.arrays import Ints, Pieces, Uint16s, offsets
from dprec.completion import MatrixFactorization
from dprec.datasets import MovieLens100K
from dprec.exchange import REPLY, REPORT, Reports
from dprec.mechanisms import Mechanism, RandomizedResponse
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.observations import Observations
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings
from dprec.reports import CellFamily
from dprec.wire import DecodedReports, TrafficLedger
from strategies.roster import ArrivedReports
from strategies.rounds import RoundAccount, reply_message

PARTS = "draw", "encode", "move", "decode", "account", "arrange", "sweep"
USERS, PARTITION, RANK, SWEEPS = 1_000_000, 20_000, 5, 3
BYTES = 2.13
"""Of a rating in a report of bounded Laplace."""


def least(work: Callable[[], Any], times: int = 2) -> tuple[float, Any]:
    """Return the least processor time of some work, and its result."""
    seconds = []
    for _ in range(times):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return min(seconds), result


@dataclass(frozen=True, eq=False)
class Path:
    """The path of ratings from devices to factors, partition by partition, in parts that can be measured."""

    train: Ratings
    family: CellFamily

    @classmethod
    def of(cls, train: Ratings, mechanism: Mechanism) -> Self:
        """Return the path of ratings by a mechanism."""
        budget = PrivacyBudget(epsilon=EPSILON, per="rating")
        return cls(train, CellFamily(mechanism, budget, train.scale, train.n_items))

    @cached_property
    def partitions(self) -> list[tuple[slice, slice, Ints]]:
        """Users and ratings of each partition, and where each user's begin."""
        indptr, starts = self.train.indptr, [*range(0, self.train.n_users, PARTITION), self.train.n_users]
        return [
            (slice(first, last), slice(indptr[first], indptr[last]), indptr[first : last + 1] - indptr[first])
            for first, last in pairwise(starts)
        ]

    def draw(self, users: slice, cells: slice, bounds: Ints) -> Uint16s:
        """Draw the symbols of a partition as devices do, from words that depend on their profiles."""
        items, levels, counts = self.train.items[cells], self.train.levels[cells], np.diff(bounds)
        values = self.train.scale.values[levels - 1]
        draws = DeviceDraws.of(bytes(16), users.start, bounds, items, values, "report")
        return self.family.perturb(counts, levels, draws.per_cell(counts, items, 1))

    def account(self, reports: list[Pieces]) -> None:
        """Charge bytes and losses."""
        n_users = self.train.n_users
        account = RoundAccount(REPORT, "run", TrafficLedger(n_users))
        for (users, _, _), reported in zip(self.partitions, reports, strict=True):
            sent = np.ones(len(reported), dtype=np.bool_)
            account.charge_reports(ArrivedReports(np.arange(users.start, users.stop), sent, sent, reported))
        self.family.accountant(self.train.counts, np.ones(n_users, dtype=np.bool_))

    def arrange(self, decoded: list[DecodedReports]) -> Observations:
        """Read the symbols, and arrange the cells by user and by item as a completion needs them."""
        counts = np.concatenate([np.diff(own.indptr) for own in decoded])
        values = [self.family.read(np.diff(own.indptr), own.symbols) for own in decoded]
        items, shape = np.concatenate([own.items for own in decoded]), (counts.size, self.train.n_items)
        variance = self.family.noise_variance(counts)
        seen = Observations(offsets(counts), items, lambda: values, shape, self.train.scale, variance)
        _ = seen.by_user, seen.by_item
        return seen

    def reported(self) -> tuple[dict[str, float], list[DecodedReports]]:
        """Return the seconds of reports and what was decoded."""
        parts, codec, seconds = self.partitions, self.family.codec, dict[str, float]()
        seconds["draw"], symbols = least(lambda: [self.draw(*part) for part in parts])
        of_parts = [(bounds, self.train.items[cells]) for _, cells, bounds in parts]
        pairs = list(zip(of_parts, symbols, strict=True))
        seconds["encode"], reports = least(lambda: [codec.encode(*own, drawn) for own, drawn in pairs])
        starts = [users.start for users, _, _ in parts]
        seconds["move"], _ = least(lambda: [*map(moved, starts, reports)], 1)
        seconds["decode"], decoded = least(lambda: [codec.decode(own) for own in reports])
        seconds["account"], _ = least(lambda: self.account(reports))
        return seconds, decoded


def moved(start: int, reports: Pieces) -> Message:
    """Carry the reply of a partition as Ray and Flower do: by pickle, and to protobuf and back."""
    content = RecordDict({REPLY: ConfigRecord(Reports(start, reports).entries())})
    reply = pickle.loads(pickle.dumps(reply_message(REPORT, content, "run")))
    return message_from_proto(message_to_proto(reply))


def each(seconds: dict[str, float], ratings: int) -> Figures:
    return {f"{EACH}, {part}": 1e6 * spent / ratings for part, spent in seconds.items()}


def parts(users: int) -> Figures:
    with threadpool_limits(limits=1):
        path = Path.of(population(users), BoundedLaplace())
        seconds, decoded = path.reported()
        seconds["arrange"], observations = least(lambda: path.arrange(decoded), 1)

        def fitted(sweeps: int) -> float:
            completion = MatrixFactorization(rank=RANK, iterations=sweeps, tolerance=0.0)
            return least(lambda: completion.fit(observations, 0), 1)[0]

        # The first fit loads the compiled loops and claims the memory that all of them use.
        fitted(1 + SWEEPS)
        seconds["sweep"] = (fitted(1 + SWEEPS) - fitted(1)) / SWEEPS
    return each(seconds, path.train.count)


def limits(count: int) -> Figures:
    """Return the least that each part could take."""
    philox, size = np.random.Philox(key=np.zeros(2, dtype=np.uint64)), 512
    source, target, factor = np.ones(count), np.ones(count), np.ones((size, size))
    # Of as many values as there are symbols in the run, about as unequal as these are.
    data = np.random.default_rng(0).binomial(255, 0.5, count // 2).astype(np.uint8).tobytes()

    def huffman() -> bytes:
        coder = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
        return coder.compress(data) + coder.flush()

    with threadpool_limits(limits=1):
        word = least(lambda: philox.random_raw(count))[0] / count
        byte = least(lambda: np.copyto(target, source))[0] / count / 8
        coding, coded = least(huffman)
        decoding, _ = least(lambda: zlib.decompress(coded))
        operation = least(lambda: factor @ factor)[0] / (2 * size**3)
    seconds = {
        "draw": 4 * word,
        "encode": 2 * coding / len(data),
        "move": 2 * BYTES * byte,
        "decode": 2 * decoding / len(data),
        "account": 5 * 8 / RATINGS_PER_USER * byte,
        "arrange": 3 * (4 + 4 + 8) * byte,
        "sweep": 2 * (RANK * (RANK + 1) + 2 * RANK) * operation,
    }
    return each(seconds, 1)


def reported(train: Ratings, mechanism: Mechanism) -> Figures:
    path = Path.of(train, mechanism)
    path.reported()
    return {EACH: 1e6 * sum(path.reported()[0].values()) / train.count}


def laplace(users: int) -> Figures:
    return reported(population(users), BoundedLaplace())


def stars() -> Figures:
    return reported(MovieLens100K(path=str(DATA / "ml-100k")).load_fold("u1")[0], RandomizedResponse())


MACHINE = Peer("numpy", job(__file__, "limits", 1 << 23), here=True)
PFL = beside("pfl", "pfl_laplace", 100_000, RATINGS_PER_USER)
PURE_LDP = beside("pure-ldp", "pure_ldp_stars", EPSILON)
LIMITS = "beside the limits: random words, copies, zlib's Huffman codes, BLAS"
OF_PFL, OF_PURE_LDP = "its local mechanism and a sum", "direct encoding and a histogram"
UNITS, STARS = tuple(f"{EACH}, {part}" for part in PARTS), "five stars of MovieLens 100K"
LINES = (
    Line(f"one-shot run, {USERS:,} users", job(__file__, "parts", USERS), (), MACHINE, LIMITS, UNITS),
    Line("Laplace reports, generated", job(__file__, "laplace", 100_000), (), PFL, OF_PFL, (EACH,)),
    Line(f"randomised response, {STARS}", job(__file__, "stars"), (), PURE_LDP, OF_PURE_LDP, (EACH,)),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {work.__name__: work for work in (parts, limits, laplace, stars)})
