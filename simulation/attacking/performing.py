"""Performs the attacks of a configuration on a run, and keeps what they reached."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict

from dprec.attacks import ATTACKS, Attack, Attacked, Figure, Game
from dprec.attacks.base import PlayedOnceError
from dprec.catalogue import UsersTable
from dprec.components import as_values, naming
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress
from simulation.configuration.models import RunConfig
from simulation.storage.attacked import AttackSummary, Performed, Reached
from simulation.storage.columns import COLUMNS

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
        known = COLUMNS.get(name)
        taken = known is not None and not (known.key or "").startswith("attacks.")
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
