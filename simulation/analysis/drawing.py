"""What leaves one user's device and what comes back, step by step in bytes: drawn on pages and as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dprec.accounting import Trust
from dprec.errors import plural
from simulation.analysis.protocol_results import result_of
from simulation.analysis.vocabulary import size
from simulation.storage.run_files import MessagesOfKind, RunRecord

_TITLES = {
    "query.report": ("request", "report"),
    "query.count": ("groups of items", "noisy counts"),
    "train": ("item factors", "report on their gradient"),
    "train.statistics": ("what is known of the items", "the user's part of the sums"),
    "train.update": ("model", "update of the model"),
    "train.slopes": ("entries at the rated items", "noisy slopes"),
    "query.deliver": ("final model", "receipt"),
    "query.personalize": ("table of all items", "receipt"),
    "query.recommend": ("list of recommendations", "receipt"),
    "query.replace": ("candidates for rated items", "AlterEgo"),
    "further": ("keys and shares of others", "keys and shares"),
    "item set": ("", "item set, linked to the user"),
}
"""What messages of each kind hold, to the device and from it."""

_BETWEEN: dict[tuple[Trust, str], str] = {
    ("shuffle", "query.report"): "shufflers mix the messages of all users",
    ("secure-aggregation", "train"): "masks cancel in the sum over users",
    ("secure-aggregation", "train.statistics"): "masks cancel in the sum over users",
    ("secure-aggregation", "train.update"): "masks cancel in the sum over users",
}
"""Who stands between devices and server, for what kind of report."""


class Step(NamedTuple):
    """Messages of one kind, one way."""

    up: bool
    title: str
    lines: tuple[str, ...]
    """What is said below its title: bytes of the payload and of the messages that carry it, its parts, its
    first bytes in hexadecimal, and who stands between device and server.
    """


@dataclass(frozen=True)
class Drawing:
    """The messages of one user with the server."""

    user: str
    steps: Sequence[Step]
    totals: tuple[str, str]
    """In all, from the device and to it."""
    server_sees: str

    @property
    def text(self) -> str:
        """The drawing for a terminal."""
        lines = [f"{self.user:<62}server"]
        for step in self.steps:
            shaft = f" {step.title} "
            lines += ["", f"  |{shaft:-^60}>|" if step.up else f"  |<{shaft:-^60}|"]
            lines += [f"  |   {line:<58}|" for line in step.lines]
        return "\n".join([*lines, "", *self.totals, f"the server sees: {self.server_sees}"])


def drawing_of(run: RunRecord) -> Drawing | None:
    """Return the drawing of a run; None if nothing is sent, or devices are deployed."""
    user_messages = run.messages
    if user_messages is None:
        return None

    def total(way: str) -> str:
        one_way = [of_kind for of_kind in user_messages.messages if of_kind.up is (way == "up")]
        payload = sum(of_kind.payload_bytes for of_kind in one_way)
        message = sum(of_kind.message_bytes for of_kind in one_way)
        network = size(float(run.traffic[f"{way}link_network_bytes"][0]))
        return f"{way}: {payload:,} bytes, {message:,} in messages, {network} on the network"

    what = "rating" if run.summary.dataset.scale else "item"
    user = f"user {user_messages.user}" if run.made_up else "one user"
    return Drawing(
        user=f"{user}, {plural(user_messages.ratings, what)}",
        steps=[_step(of_kind, run.summary.privacy.trust) for of_kind in user_messages.messages],
        totals=(total("up"), total("down")),
        server_sees=result_of(run.summary).server_sees,
    )


def _step(of_kind: MessagesOfKind, trust: Trust) -> Step:
    title = _TITLES.get(of_kind.kind, (of_kind.kind, of_kind.kind))[of_kind.up]
    several = of_kind.messages > 1
    uneven = of_kind.payload_bytes % of_kind.messages or of_kind.message_bytes % of_kind.messages
    mean = " on average" if uneven else ""
    payload = of_kind.payload_bytes / of_kind.messages
    counted = f"{payload:,.0f}" if payload >= 1 else f"{payload:.1g}"
    contents = f"{counted} {'byte' if counted == '1' else 'bytes'} in a" if payload else "nothing, in a"
    parts = ", ".join(f"{name} {plural(bits, 'bit')}" for name, bits in of_kind.bits.items())
    lines = (
        f"{contents} {of_kind.message_bytes / of_kind.messages:,.0f}-byte message{mean}",
        f"the first: {parts}" if several and parts else parts,
        f"begins {bytes.fromhex(of_kind.begins).hex(' ')}" if of_kind.begins else "",
        _BETWEEN.get((trust, of_kind.kind), "") if of_kind.up else "",
    )
    named = f"{title}, {of_kind.messages:,} times" if several else title
    return Step(of_kind.up, named, tuple(filter(None, lines)))
