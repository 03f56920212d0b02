"""Attacks on a run: what they are given, and what is kept of what they reach.

They are given what was said in the run, the truth, and runs like it with other noise.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from dprec.accounting import PrivacyAccountant
from dprec.arrays import Bools
from dprec.attacks import ATTACKS, Attack, Attacked, Figure, Game, MaliciousUsers, Shown, Transcript
from dprec.attacks.base import PlayedOnceError
from dprec.catalogue import UsersTable
from dprec.components import as_values, naming
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress, silent, unheard
from dprec.protocols.base import Public
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig
from simulation.courses.base import course_of
from simulation.courses.task import Outcome
from simulation.engine.installing import Installer, run_protocol
from simulation.evaluation import Evaluator, Judged, unmeasured
from simulation.scheduled import KeysOf
from simulation.storage.attacked import AttackSummary, Performed, Reached
from simulation.storage.columns import COLUMNS


@dataclass(frozen=True, eq=False)
class Laboratory:
    """The `dprec.attacks.Game` of a run, in whose session others can follow."""

    installer: Installer
    keys: KeysOf
    """Derives the keys of the run, and of others."""
    evaluator: Evaluator
    """Knows the ratings that devices hold, and judges what their users are shown."""
    users: UsersTable | None
    """What is public of them."""
    judged: Judged
    """What came of the run, and how good it was."""

    @property
    def truth(self) -> Ratings:
        """The train ratings."""
        return self.evaluator.train

    @property
    def outcome(self) -> Outcome:
        """What came of the run."""
        return self.judged.outcome

    @property
    def shown(self) -> Shown:
        """What its users are shown."""
        outcome = self.outcome
        return Shown(outcome.predict, outcome.predict_rows, lambda: self.judged.measured, outcome.scores)

    def with_malicious_users(self, malicious: MaliciousUsers) -> Shown:
        """Return what they are shown when malicious users take part after them, with the same draws.

        Raises PlayedOnceError under a schedule.
        """
        self._check_runs_again()
        keys = self.keys(self.installer.drawn_by)
        outcome = outcome_with_malicious_users(self._quiet, self.evaluator, keys, malicious)
        predict, rows, scores = outcome.predict, outcome.predict_rows, outcome.scores
        judged, hidden = self.evaluator.judged, outcome.hidden
        return Shown(predict, rows, lambda: judged(predict, rows, hidden, scores=scores)[2], scores)

    @property
    def transcript(self) -> Transcript:
        """What the server of the run has seen; of a protocol that tells nothing of it, nothing."""
        return self._transcript_of(self.outcome)

    @property
    def accountant(self) -> PrivacyAccountant:
        """The losses that are proved."""
        return self.outcome.accountant

    @property
    def hides_item_sets(self) -> bool:
        """Whether the losses hold for which items a user rated, too."""
        return self.outcome.guarantee.hides_rated_items

    @property
    def delta(self) -> float:
        """Delta at which losses are composed."""
        return self.installer.config.protocol.delta

    @property
    def seed(self) -> int:
        """Of what attacks draw."""
        return self.installer.config.seed

    def again(self, present: Bools, number: int) -> Transcript:
        """Return the transcript of another run, in which who is not present has rated nothing.

        Where item sets are hidden, or masks hide who sent what, such a device takes part all the same, as
        losses compare profiles; where they are seen, it is silent. The bits of the run follow from the
        configuration, the seed, who is present and the number.

        Raises PlayedOnceError under a schedule.
        """
        self._check_runs_again()
        train = self.truth.select(present[self.truth.users])
        identity = f"{self.installer.drawn_by} attacked {number}"
        takes_part = self.hides_item_sets or self.installer.config.protocol.masks
        return self._transcript_of(self._run(train, identity, None if takes_part else ~present))

    def _run(self, train: Ratings, identity: str, absent: Bools | None) -> Outcome:
        """Run the protocol on some ratings; what is drawn follows from the text of its identity."""
        config = self.installer.config
        task = self._quiet.task(
            train,
            train,
            unmeasured,
            self.keys(identity),
            device_ratings=course_of(config.protocol).held_ratings(train, config.seed),
            protocol=config.protocol.installed,
            absent=absent,
        )
        return run_protocol(self._quiet.session, config.protocol, task)

    def _check_runs_again(self) -> None:
        if self.installer.config.schedule is not None:
            raise PlayedOnceError("Runs of several collections over time are not run again for this attack.")

    @cached_property
    def _quiet(self) -> Installer:
        # The folder of a population that lasts holds the ratings of the run itself.
        session = replace(self.installer.session, shards=None)
        return replace(self.installer, session=session, progress=silent, ended=unheard)

    def _transcript_of(self, outcome: Outcome) -> Transcript:
        truth, trusted = self.truth, outcome.guarantee.trusts_server
        nothing = Transcript(n_users=truth.n_users, n_items=truth.n_items, scale=truth.scale, trusted=trusted)
        return outcome.transcript or nothing


def outcome_with_malicious_users(
    installer: Installer, evaluator: Evaluator, keys: RunKeys, malicious: MaliciousUsers
) -> Outcome:
    """Run a protocol in which malicious users take part, after honest users, whose reports stay as they are.

    ``evaluator``, ``keys``: of the run without them. No round is evaluated.
    """
    honest, config = evaluator.train, installer.config
    train = malicious.joining(honest)
    protocol = config.protocol.suited(Public.of(train, joined=train.n_users - honest.n_users))
    task = installer.task(
        train,
        train if evaluator.profiles is honest else evaluator.profiles,
        unmeasured,
        keys,
        device_ratings=course_of(protocol).held_ratings(train, config.seed),
        protocol=protocol.installed,
        malicious=malicious,
    )
    return run_protocol(installer.session, protocol, replace(task, attacked=False))


_PERFORMS = "a class that performs an attack"


def asking_for(kinds: Sequence[str]) -> str:
    """Return what sets the attacks of a configuration to some kinds, with their defaults; by default to all.

    Raises InputError for a kind that there is not.
    """
    try:
        for kind in kinds:
            ATTACKS.find(kind)
    except SettingError as error:
        raise InputError("kinds", error.found, error.accepted) from None
    return f"attacks={json.dumps([{'kind': kind} for kind in kinds or ATTACKS.kinds])}"


def check_attacks(config: RunConfig) -> None:
    """Refuse figures that two attacks share; raises SettingError."""
    names = [name for place, attack in enumerate(config.attacks) for name in _names(attack, place)]
    for name in names:
        if names.count(name) > 1:
            raise SettingError("attacks", f"two that say {name}", "each kind, and each number in it, once")
        column = COLUMNS.get(name)
        taken = column is not None and not (column.key or "").startswith("attacks.")
        if (
            taken
            or name in ("attacks", "epsilon_per_user", "schema")
            or not re.fullmatch(r"[a-z][a-z0-9_]*(?<!_baseline)(?<!_bound)", name)
        ):
            accepted = (
                "small letters, digits and _, no other column's name, and no end in _baseline or _bound"
            )
            raise SettingError("attacks", f"a figure named {name!r}", accepted)


def check_users(attacks: Sequence[Attack], users: UsersTable | None) -> None:
    """Refuse settings that do not suit what is public of the users; raises SettingError."""
    for place, attack in enumerate(attacks):
        with within(f"attacks[{place}]"), naming(attack, _PERFORMS):
            attack.check(users)


def _names(attack: Attack, place: int) -> tuple[str, ...]:
    """Return the names of an attack's figures; one from outside may return anything."""
    with within(f"attacks[{place}]"), naming(attack, _PERFORMS):
        names = attack.figures()
        if not (isinstance(names, tuple) and all(isinstance(name, str) for name in names)):
            raise SettingError("", f"figures that are {names!r}", "a tuple of names")
    return names


def perform(attacks: Sequence[Attack], game: Game, progress: Progress) -> AttackSummary:
    """Perform attacks on a run, one after the other.

    Raises SettingError naming an attack's key, where its settings do not suit the data.
    """
    figures: dict[str, Reached] = {}
    performed = []
    for place, attack in enumerate(attacks):
        progress(f"attack {attack.kind}", place, len(attacks))
        with within(f"attacks[{place}]"), naming(attack, _PERFORMS):
            names = attack.figures()
            try:
                attacked = attack.perform(game)
            except PlayedOnceError as once:
                # One that the run cannot be run again for has no figures.
                attacked = Attacked({}, (str(once),))
            for name in names:
                reached = asdict(attacked.figures.get(name, Figure(None)))
                numbers = {
                    key: None if number is None or not math.isfinite(number) else float(number)
                    for key, number in reached.items()
                }
                figures[name] = Reached(**numbers)
            performed.append(Performed(settings=as_values(attack), figures=names, notes=attacked.notes))
    return AttackSummary.of(figures, tuple(performed))
