"""Attacks: what an attacker learns from what is sent, beside what epsilon allows, and what liars can move."""

from dprec.attacks.base import Attack, Attacked, Figure, Game, Shown
from dprec.attacks.liars import Liars
from dprec.attacks.promotion import Promotion
from dprec.attacks.transcript import ReleasedSum, Transcript
from dprec.components import Registry

ATTACKS: Registry[Attack] = Registry("attack", Attack, [Promotion])

__all__ = [
    "ATTACKS",
    "Attack",
    "Attacked",
    "Figure",
    "Game",
    "Liars",
    "Promotion",
    "ReleasedSum",
    "Shown",
    "Transcript",
]
