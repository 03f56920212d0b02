"""What the server asks around the reports of a release whose devices mask them.

Devices send the keys of this release, then shares of two secrets for their neighbours, with their report they
are sent what neighbours have shared with them, and at last they reveal of each neighbour a share of one
secret, from which the server computes the masks that do not cancel (`dprec_pilot.masks.masking`).

Who does not answer in time drops out of the release: without keys or shares, neighbours share no masks with
it; without a report, they reveal its mask key. The server asks nobody for anything further where too few are
left for a release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from flwr.app import RecordDict

from dprec.arrays import Bools, Uint64s
from dprec.exchange import KEYS, SHARES, UNMASK, GradientRequest, SecureSumRequest
from dprec.gradients import Aggregate
from dprec.secure_aggregation import MaskGraph, reduced
from dprec.secure_aggregation.messages import PUBLIC_BYTES, SEALED_BYTES, SECRET_BYTES, SIGNED_BYTES
from dprec.sums import Layout, SecureAggregation
from dprec_pilot.masks import masking as masks
from dprec_pilot.masks.directory import SumParties
from strategies.releases import OpenRelease, ReleaseExchange
from strategies.rounds import request_content

NOT_ASKED = "not-asked"
"""Why devices have not reported that were there, where too few of them were."""


@dataclass(eq=False)
class MaskedExchange(ReleaseExchange):
    """Devices that stand by themselves mask what they send."""

    parties: SumParties
    aggregation: SecureAggregation
    public_seed: int
    _graph: MaskGraph = field(init=False)
    _keys: dict[int, bytes] = field(init=False)
    _sealed: dict[int, bytes] = field(init=False)
    """By user: the signed keys, and the encrypted shares, of those who take part in the release."""

    def asking(self, release: OpenRelease, model: bytes) -> dict[int, RecordDict]:
        """Return requests for those who have sent keys and shares; for nobody if these are too few."""
        self._graph = self.aggregation.graph(release.round_index, self.public_seed)
        self._keys, self._sealed = {}, {}

        def signed(user: int, answer: bytes) -> bool:
            """Keep what devices have signed, of keys that agree on a secret with those of others."""
            keys = self.parties.keys_in(answer, user, release.round_index)
            both = () if keys is None else (keys[:PUBLIC_BYTES], keys[PUBLIC_BYTES:])
            return keys is not None and all(map(masks.is_public_key, both))

        def sealed(user: int, answer: bytes) -> bool:
            """Keep shares for all neighbours with keys, and for no others."""
            neighbours = self._graph.neighbours[user].tolist()
            if len(answer) != len(neighbours) * SEALED_BYTES:
                return False
            given = [any(block) for block in masks.pieces(answer, len(neighbours), SEALED_BYTES)]
            return given == [other in self._keys for other in neighbours]

        everybody = dict.fromkeys(range(release.roster.n_users), b"")
        self._keys = _said(release, KEYS, everybody, signed)
        if not self._enough(release, self._keys):
            return {}
        neighbours = {user: self._graph.neighbours[user].tolist() for user in self._keys}
        nothing = bytes(SIGNED_BYTES)
        asked = {
            user: b"".join(self._keys.get(other, nothing) for other in others)
            for user, others in neighbours.items()
        }
        self._sealed = _said(release, SHARES, asked, sealed)
        if not self._enough(release, self._sealed):
            return {}
        shares = {user: self._for_device(user) for user in self._sealed}
        contents = {
            user: request_content(GradientRequest(release.round_index, model, shares=sealed))
            for user, sealed in shares.items()
        }
        users, first = np.array(list(contents), dtype=np.int64), next(iter(contents))
        release.account.charge_request(users, contents[first], len(model) + len(shares[first]))
        return contents

    def unmasked(
        self, release: OpenRelease, total: Aggregate, present: Bools, layout: Layout, multiplier: float
    ) -> Aggregate | None:
        """Ask those who have reported for shares, and take off the total the masks that did not cancel."""
        graph, threshold = self._graph, self.aggregation.graph_size.threshold
        questions = {
            user: masks.pack_presence(present[graph.neighbours[user]])
            for user in np.flatnonzero(present).tolist()
        }
        revealed, known = self._revealed(_said(release, UNMASK, questions))
        masking = _flags(self._sealed, present.size)
        if (known[masking].sum(axis=1) < threshold).any():
            return None
        shares = masks.first_shares(revealed, known, threshold)
        public = [self._keys.get(user, b"")[:PUBLIC_BYTES] for user in range(present.size)]
        context = self.aggregation.sum_of(self.parties.identity(release.round_index), layout, multiplier)
        masked = total.total.astype(np.uint64)
        try:
            words = masks.unmasked_total(masked, masking, present, shares, graph, public, context)
        except masks.SpoiledSharesError:
            return None
        return Aggregate(reduced(words, context.bits).astype(np.int64), None, total.users)

    def _enough(self, release: OpenRelease, here: Mapping[int, bytes]) -> bool:
        """Return whether a release can succeed with those who are left; else note that they are not asked."""
        present = _flags(here, release.roster.n_users)
        enough = self.aggregation.can_release(present, len(here), release.round_index, self.public_seed)
        if not enough:
            release.account.causes[NOT_ASKED] += len(here)
        return enough

    def _for_device(self, user: int) -> bytes:
        """Return what neighbours have encrypted for a device, zeros of those who have not."""
        places = zip(self._graph.neighbours[user].tolist(), self._graph.reverse.tolist(), strict=True)
        nothing = bytes(SEALED_BYTES * self._graph.reverse.size)
        return b"".join(
            self._sealed.get(other, nothing)[place * SEALED_BYTES : (place + 1) * SEALED_BYTES]
            for other, place in places
        )

    def _revealed(self, answers: Mapping[int, bytes]) -> tuple[Uint64s, Bools]:
        """Return all shares that neighbours reveal, shape (users, degree, elements), and which are known."""
        users, degree = self._graph.neighbours.shape
        said = np.zeros((users, degree, masks.ELEMENTS), dtype=np.uint64)
        for user, answer in answers.items():
            if len(answer) == degree * SECRET_BYTES:
                try:
                    said[user] = masks.from_bytes(answer)
                except ValueError:
                    continue
        # What a device says of its neighbour number c is said of that one by its neighbour `reverse[c]`.
        revealed = said[self._graph.neighbours, self._graph.reverse]
        known: Bools = (revealed != 0).any(axis=2)
        return revealed, known


def _said(
    release: OpenRelease,
    message_type: str,
    questions: Mapping[int, bytes],
    valid: Callable[[int, bytes], bool] | None = None,
) -> dict[int, bytes]:
    """Ask some users a question each, of equal sizes; return the valid answers that come in time, by user.

    Why others failed is noted in the account of the round, but for the last question.
    """
    account, roster = release.account.of_further(message_type), release.roster
    contents = {
        user: request_content(SecureSumRequest(release.round_index, told)) for user, told in questions.items()
    }
    answers: dict[int, bytes] = {}
    if contents:
        users, first = np.array(list(contents), dtype=np.int64), next(iter(contents))
        account.charge_request(users, contents[first], len(questions[first]))
        replies = roster.ask(release.grid, message_type, contents, release.group)
        for arrivals in roster.arrivals(replies, _flags(contents, roster.n_users)):
            account.charge_reports(arrivals)
            answers |= dict(zip(arrivals.punctual_users.tolist(), arrivals.in_time(), strict=True))
    if valid is None:
        return answers
    kept = {user: answer for user, answer in answers.items() if valid(user, answer)}
    release.account.causes += account.causes + Counter(malformed=account.punctual - len(kept))
    return kept


def _flags(users: Mapping[int, object], n_users: int) -> Bools:
    flags = np.zeros(n_users, dtype=np.bool_)
    flags[list(users)] = True
    return flags
