"""Attacks: what an attacker learns from what is sent, beside what epsilon allows, and what liars can move."""

from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.transcript import ReleasedSum, Transcript
from dprec.attacks.uploads import Answered, Upload
from dprec.components import Registry

ATTACKS: Registry[Attack] = Registry("attack", Attack, [])

__all__ = [
    "ATTACKS",
    "Answered",
    "Attack",
    "Attacked",
    "Figure",
    "Game",
    "ReleasedSum",
    "Transcript",
    "Upload",
]
