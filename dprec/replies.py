"""What devices reply: reports, or which partition a node hosts; see `dprec.exchange.messages`."""

from __future__ import annotations

from dataclasses import dataclass

from dprec.exchange import Entries, Record, is_integer


@dataclass(frozen=True)
class Reports:
    """The reply of a partition."""

    first: int
    """The first user of the partition."""
    reports: list[bytes]
    """One per user who was asked; empty for one who did not answer."""
    absent: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    """Places in the list of users who did not answer, or who answered after the round had ended: a simulation
    has no real time, so these marks replace it.
    """

    @classmethod
    def of(cls, record: Record) -> Reports:
        """Read the reply; raises ValueError when it is malformed."""
        first, reports = record.get("first"), record.get("reports")
        if not is_integer(first):
            raise ValueError("a reply without a first user")
        if not isinstance(reports, list) or not all(isinstance(report, bytes) for report in reports):
            raise ValueError("a reply without reports")
        marks = (_places(record, name, len(reports)) for name in ("absent", "late"))
        return cls(first, reports, *marks)

    def entries(self) -> Entries:
        """Return the entries of the reply's record."""
        marks = {"absent": self.absent, "late": self.late}
        return {
            "first": self.first,
            "reports": self.reports,
            **{name: list(places) for name, places in marks.items() if places},
        }


@dataclass(frozen=True)
class Identity:
    """The answer to `IDENTIFY`."""

    partition: int
    """Which partition the node hosts."""

    @classmethod
    def of(cls, record: Record) -> Identity:
        """Read the answer; raises ValueError when it is malformed."""
        partition = record.get("partition")
        if not is_integer(partition):
            raise ValueError("a node without a partition")
        return cls(partition)

    def entries(self) -> Entries:
        """Return the entries of the answer's record."""
        return {"partition": self.partition}


def _places(record: Record, key: str, reports: int) -> tuple[int, ...]:
    places = record.get(key, [])
    if not isinstance(places, list) or not all(
        is_integer(place) and 0 <= place < reports for place in places
    ):
        raise ValueError(f"marks of {key} users that are not in the reply")
    return tuple(places)
