"""The messages between server and devices: their types, the records they carry, replies and refusals.

Both ends build and read records with these classes, so every key is written once and every value is
checked once. Neither end trusts the other: these classes ensure the right types, and the reader checks
whether the values fit its own state. A refusal tells the server a code alone, since what went wrong in detail
can say something about the profile or the budget of the user; the reason is for the device's owner.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import IntEnum
from io import BytesIO
from typing import Any, Self, TypeGuard

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Ints, Pieces, offsets

IDENTIFY = "query.identify"
"""Which partition does this node host? Carries no record."""
REPORT = "query.report"
"""Send the perturbed profiles. Carries no record."""
COUNT = "query.count"
"""Count the ratings that the report left out: a `CountRequest`."""
TRAIN = "train"
"""Report on the gradient of the item factors: a `GradientRequest`."""
STATISTICS = "train.statistics"
"""Contribute to the statistics of the items: a `GradientRequest`."""
KEYS = "train.keys"
"""Send the public keys of a secure sum, with signatures: a `SecureSumRequest`."""
SHARES = "train.shares"
"""Given the neighbours' keys, send shares of two secrets, encrypted for them: a `SecureSumRequest`."""
UNMASK = "train.unmask"
"""Given which neighbours contributed, send a share of one secret of each: a `SecureSumRequest`."""
UPDATE = "train.update"
"""Send an update of a model: a `GradientRequest`."""
SLOPES = "train.slopes"
"""Report how the entries at the rated items should move: a `SlopesRequest`."""
DELIVER = "query.deliver"
"""Take the final item factors: a `FinalFactors`."""
PERSONALIZE = "query.personalize"
"""Take what is known of the items, and predict from the own ratings: a `Personalization`."""
RECOMMEND = "query.recommend"
"""Take the best items for the user, with their predicted ratings: `Recommendations`."""
REPLACE = "query.replace"
"""Replace the source items and send the AlterEgos: a `ReplacementRequest`."""

TELL = "query.tell"
"""Tell what the devices keep, and what they computed last: `Told`, in a simulation alone. Carries no record.
"""

MESSAGE_TYPES = frozenset(
    {
        *(IDENTIFY, REPORT, COUNT, REPLACE, DELIVER, PERSONALIZE, RECOMMEND),
        *(TRAIN, STATISTICS, KEYS, SHARES, UNMASK, UPDATE, SLOPES),
    }
)
"""All that a device can be sent."""

OF_SIMULATIONS = frozenset({TELL})
"""What the nodes of a simulation can be sent besides."""

REQUEST, REPLY, NODE = "request", "reply", "node"
"""Names of the records in a message: of a request, of reports, and of the answer to `IDENTIFY`."""

REPLACEMENT_ROUND = 2
"""The one round in which items are replaced; in the first, devices send their profiles."""

COUNT_ROUND = 2
"""The one round in which ratings are counted; in the first, devices send their reports."""

ROW_ENTRY = np.dtype("<f4")
"""How the entries in the rows of a `SlopesRequest` are sent."""

Record = Mapping[str, object]
Entries = dict[str, Any]


def action_of(message_type: str) -> str:
    """Return the action under which an app registers for messages of a type."""
    return message_type.partition(".")[2] or "default"


@dataclass(frozen=True)
class Request:
    """Base of the requests: each field is an entry of its record, but one that is None."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read the request; raises ValueError when it is malformed."""
        return cls(*(_READERS[field.type](record, _key(field.name)) for field in fields(cls)))

    def entries(self) -> Entries:
        """Return the entries of the request's record."""
        values = {_key(field.name): getattr(self, field.name) for field in fields(self)}
        return {key: value for key, value in values.items() if value is not None}


def _key(name: str) -> str:
    return "round" if name == "round_index" else name


@dataclass(frozen=True)
class GradientRequest(Request):
    """Take part in a round of an iterative protocol."""

    round_index: int
    factors: bytes
    """The broadcast item factors; see `dprec.wire.downlink`, `dprec.protocols.private_als` and
    `dprec.federated`.
    """
    asked: bytes | None = None
    """See `bitmap_of`."""
    shares: bytes | None = None
    """What neighbours in a secure sum have encrypted for the device, in the order of the graph."""


@dataclass(frozen=True)
class SecureSumRequest(Request):
    """Take a step in the secure sum of a round: `KEYS`, `SHARES` or `UNMASK`."""

    round_index: int
    told: bytes = b""
    """What neighbours have said before, in the order of the graph; see `dprec_pilot.masks`."""


@dataclass(frozen=True)
class FinalFactors(Request):
    """Take the final item factors, from which a device makes its own predictions."""

    factors: bytes


@dataclass(frozen=True)
class Personalization(Request):
    """Take what is known of the items, from which a device makes its own predictions."""

    table: bytes
    """See `dprec.wire.downlink`; the same for everybody."""


@dataclass(frozen=True)
class Recommendations(Request):
    """Take the best items for the user, with their predicted ratings."""

    lists: list[bytes]
    """One per user of the partition; see `dprec.wire.downlink`."""


@dataclass(frozen=True)
class ReportRequest(Request):
    """Report, where only some users of a partition are asked; a request to all of them has no record."""

    asked: bytes | None = None
    """See `bitmap_of`."""


@dataclass(frozen=True)
class CountRequest(Request):
    """Count the ratings that the report left out, by groups of items."""

    groups: bytes
    """The group of every item; see `dprec.reports.counts`."""
    asked: bytes | None = None
    """See `bitmap_of`."""


@dataclass(frozen=True)
class SlopesRequest(Request):
    """Take part in a round of gradient perturbation."""

    round_index: int
    rows: list[bytes]
    """One per user of the partition: the entries at its rated items, empty if these are not known."""


@dataclass(frozen=True)
class ReplacementRequest(Request):
    """Replace what was rated outside the target domain."""

    round_index: int
    start: int
    stop: int
    """First item of the target domain, and the item after its last one."""
    rows: bytes
    """Candidates for source items; see `dprec.crossdomain.alter_egos.RowCodec`."""
    asked: bytes | None = None
    """See `bitmap_of`."""

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError("a request without a target domain")


@dataclass(frozen=True)
class Identity(Request):
    """The answer to `IDENTIFY`."""

    partition: int
    """Which partition the node hosts."""


def bitmap_of(asked: Bools) -> bytes | None:
    """Return how a request states who of a partition is asked, from shape (users,); None for everybody."""
    return None if asked.all() else np.packbits(asked).tobytes()


def asked_users(bitmap: bytes | None, users: int) -> Bools:
    """Return which users of a partition are asked, shape (users,); raises ValueError for another size."""
    if bitmap is None:
        return np.ones(users, dtype=np.bool_)
    if len(bitmap) != -(-users // 8):
        raise ValueError("a bitmap of another partition")
    return np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), count=users).astype(np.bool_)


def round_of(record: Record) -> int:
    """Return the round that a request is for; raises ValueError when it names none."""
    return _integer(record, "round")


_WITHOUT = {"partition": "a node without a partition"}
_WITHOUT |= dict.fromkeys(("start", "stop"), "a request without a target domain")


def _integer(record: Record, key: str) -> int:
    value = record.get(key)
    if not is_integer(value):
        raise ValueError(_WITHOUT.get(key, f"asked for {key} {value!r}"))
    return value


def _bytes(record: Record, key: str) -> bytes:
    value = record.get(key)
    if not isinstance(value, bytes):
        raise ValueError(f"a request without {key}")
    return value


def _list_of_bytes(record: Record, key: str) -> list[bytes]:
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, bytes) for entry in value):
        raise ValueError(f"a request without {key}")
    return value


_READERS: dict[Any, Callable[[Record, str], Any]] = {
    int: _integer,
    bytes: _bytes,
    bytes | None: lambda record, key: None if record.get(key) is None else _bytes(record, key),
    list[bytes]: _list_of_bytes,
}
"""What reads an entry, by the type of its field."""


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer but not a bool, which in Python is an int too."""
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class Reports:
    """The reply of a partition."""

    first: int
    """The first user of the partition."""
    reports: Sequence[bytes]
    """One per user who was asked; empty for one who did not answer. They are sent end to end, with sizes."""
    absent: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    """Places in the list of users who did not answer, or who answered after the round had ended: a simulation
    has no real time, so these marks replace it.
    """

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read the reply; raises ValueError when it is malformed."""
        first, buffers = record.get("first"), record.get("reports")
        if not is_integer(first):
            raise ValueError("a reply without a first user")
        if not isinstance(buffers, list) or [type(buffer) for buffer in buffers] not in (
            [bytes],
            [bytes, bytes],
        ):
            raise ValueError("a reply without reports")
        reports = Pieces.of(buffers[:1])
        if len(buffers) == 2:
            reports = Pieces(buffers[0], offsets(np.frombuffer(buffers[1], dtype=_PLACE)))
        if reports.bounds[-1] != len(reports.data):
            raise ValueError(f"{len(reports.data)} bytes with reports of {reports.bounds[-1]}")
        marks = (_places(record, name, len(reports)) for name in ("absent", "late"))
        return cls(first, reports, *marks)

    def entries(self) -> Entries:
        """Return the entries of the reply's record."""
        marks, reports = {"absent": self.absent, "late": self.late}, Pieces.of(self.reports)
        sizes = reports.sizes.astype(_PLACE).tobytes()
        return {
            "first": self.first,
            "reports": [reports.data] if len(reports) == 1 else [reports.data, sizes],
            **{name: list(places) for name, places in marks.items() if places},
        }


def _places(record: Record, key: str, reports: int) -> tuple[int, ...]:
    places = record.get(key, [])
    if not isinstance(places, list) or not all(
        is_integer(place) and 0 <= place < reports for place in places
    ):
        raise ValueError(f"marks of {key} users that are not in the reply")
    return tuple(places)


@dataclass(frozen=True, eq=False)
class Told:
    """What the devices of a simulated partition keep, and computed in a round."""

    round_index: int
    """The last round that anybody of the partition answered; 0 for none."""
    kept: tuple[AnyArray, ...]
    """With the users first."""
    norms: Floats
    """Of the updates before clipping; infinite of those that are not finite, NaN of who was not asked."""
    losses: Floats
    """As models report them; NaN where there is none; shape (users,)."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read what a node of a simulation has told, or remembers."""
        arrays = [np.load(BytesIO(saved), allow_pickle=False) for saved in record["arrays"]]  # type: ignore[attr-defined]
        return cls(_integer(record, "round"), tuple(arrays[2:]), *arrays[:2])

    def entries(self) -> Entries:
        """Return the entries of a record."""
        arrays = self.norms, self.losses, *self.kept
        return {"round": self.round_index, "arrays": [_saved(array) for array in arrays]}


def _saved(array: AnyArray) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


class RefusalCode(IntEnum):
    """The codes, beyond those of Flower's own errors."""

    MALFORMED_REQUEST = 101
    """The request is of an unknown kind, or its contents cannot be read."""
    NOT_SET_UP = 102
    """Another protocol is installed on the device."""
    ROUND_ANSWERED = 103
    """A later round has been answered."""
    TOO_MANY_ROUNDS = 104
    """More rounds than the device has agreed to."""
    BUDGET_SPENT = 105
    """An answer would exceed what the device may spend."""
    CHANGED_REQUEST = 106
    """The round has been answered for another request."""
    CHANGED_SETUP = 107
    """Since the run began, what the device holds has changed: its profile or its protocol."""
    WRONG_USER = 108
    """The request is for another user."""
    INTERNAL_FAILURE = 109
    """The device failed."""
    OTHER_VERSION = 110
    """The dprec of the device computes otherwise than what was agreed on."""

    @property
    def words(self) -> str:
        """The name as files have it: in small letters, with hyphens."""
        return self.name.lower().replace("_", "-")


def words_of(code: int) -> str:
    """Return what files call the error of a device, whose code may be anything."""
    try:
        return RefusalCode(code).words
    except ValueError:
        return "other-failure"


class Refusal(ValueError):  # noqa: N818 (nothing went wrong)
    """A request that a device does not answer: a code for the server, a reason for the owner alone."""

    def __init__(self, code: RefusalCode, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return self.reason


@contextmanager
def refusing_malformed() -> Iterator[None]:
    """Raise Refusal in place of any other ValueError of the block, which reads a request."""
    try:
        yield
    except Refusal:
        raise
    except ValueError as error:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, str(error)) from error


_PLACE = np.dtype("<u4")
_NUMBER = np.dtype("<i8")


@dataclass(frozen=True, eq=False)
class SummedReports:
    """What a partition's reports add up to, which saves carrying them through a simulation."""

    first: int
    """The first user of the partition."""
    absent: Bools
    late: Bools
    """Users who did not answer, or who answered after the round had ended; shape (asked,)."""
    sizes: Ints
    """Bytes of the report of each user; of no meaning for one who did not answer; shape (asked,)."""
    accepted: int
    """Number of reports in the sums: valid ones that arrived in time."""
    total: Ints
    """Sum of these reports, or its numbers at some places if all others are 0; shape (numbers,)."""
    raters: Ints | None = None
    """Number of users who reported on each item, if reports reveal it; shape (items,)."""
    undrawn: int = 0
    """See `dprec.gradients.Aggregate`."""
    places: AnyInts | None = None
    """Where the numbers stand in the sum, ascending; None if they are all of it."""

    @classmethod
    def of(cls, record: Record, n_asked: int, numbers: int, items: int | None) -> Self:
        """Read a reply of so many numbers about those who were asked; raises ValueError for any other."""
        if _count(record, "asked") != n_asked:
            raise ValueError("a reply for another number of users")
        total, places = _sparse(record, "total", numbers)
        return cls(
            _count(record, "first"),
            _bits(record, "absent", n_asked),
            _bits(record, "late", n_asked),
            _sizes(record, n_asked),
            _count(record, "accepted"),
            total,
            None if items is None else _dense(record, "raters", items),
            _count(record, "undrawn"),
            places,
        )

    def entries(self) -> Entries:
        """Return the entries of the reply's record; sums are sent without their zeros."""
        sizes, place_of = np.unique(self.sizes, return_inverse=True)
        marks = {"absent": self.absent, "late": self.late}
        places = {"size_of": place_of.astype(_place_type(sizes.size)).tobytes()} if sizes.size > 1 else {}
        raters = {} if self.raters is None else _without_zeros("raters", self.raters)
        return {
            "first": self.first,
            "asked": self.sizes.size,
            "accepted": self.accepted,
            "undrawn": self.undrawn,
            "sizes": sizes.tolist(),
            **places,
            **{name: np.packbits(mark).tobytes() for name, mark in marks.items() if mark.any()},
            **_without_zeros("total", self.total, self.places),
            **raters,
        }


def _without_zeros(name: str, numbers: Ints, places: AnyInts | None = None) -> Entries:
    nonzero = np.flatnonzero(numbers)
    return {
        name: numbers[nonzero].astype(_NUMBER).tobytes(),
        f"{name}_at": (nonzero if places is None else places[nonzero]).astype(_PLACE).tobytes(),
    }


def _sparse(record: Record, name: str, size: int) -> tuple[Ints, AnyInts]:
    """Read what `_without_zeros` returned, of so many numbers."""
    values, places = _array(record, name, _NUMBER), _array(record, f"{name}_at", _PLACE)
    ascending = bool((places[1:] > places[:-1]).all())
    if values.size != places.size or not ascending or (places.size and places[-1] >= size):
        raise ValueError(f"{name} with {values.size} numbers at {places.size} of {size} places")
    return values, places


def _dense(record: Record, name: str, size: int) -> Ints:
    values, places = _sparse(record, name, size)
    numbers = np.zeros(size, dtype=np.int64)
    numbers[places] = values
    return numbers


def _sizes(record: Record, n_asked: int) -> Ints:
    """Read the sizes that occur, and which of them is each user's."""
    sizes = record.get("sizes")
    if not isinstance(sizes, list) or not all(is_integer(size) and 0 <= size < 1 << 31 for size in sizes):
        raise ValueError("reports without sizes")
    if len(sizes) == 1:
        return np.full(n_asked, sizes[0], dtype=np.int64)
    places = _array(record, "size_of", _place_type(len(sizes)))
    if places.size != n_asked or (places >= len(sizes)).any():
        raise ValueError(f"sizes of {places.size} reports, of {n_asked} users")
    return np.array(sizes, dtype=np.int64)[places]


def _place_type(places: int) -> np.dtype[Any]:
    return np.dtype("u1") if places <= 1 << 8 else _PLACE


def _bits(record: Record, name: str, users: int) -> Bools:
    if record.get(name) is None:
        return np.zeros(users, dtype=np.bool_)
    packed = _array(record, name, np.dtype("u1"))
    if packed.size != -(-users // 8):
        raise ValueError(f"marks of {name} users of another partition")
    return np.unpackbits(packed, count=users).view(np.bool_)


def _array(record: Record, name: str, dtype: np.dtype[Any]) -> AnyArray:
    data = record.get(name)
    if not isinstance(data, bytes) or len(data) % dtype.itemsize:
        raise ValueError(f"a reply without {name}")
    return np.frombuffer(data, dtype=dtype)


def _count(record: Record, name: str) -> int:
    value = record.get(name)
    if not is_integer(value) or value < 0:
        raise ValueError(f"a reply without {name}")
    return value
