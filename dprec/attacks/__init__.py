"""Attacks: what an attacker learns from what is sent, beside what epsilon allows, and what liars can move."""

from dprec.attacks.attributes import Attributes
from dprec.attacks.base import Attack, Attacked, Figure, Game, Shown
from dprec.attacks.liars import Liars
from dprec.attacks.linkage import Linkage
from dprec.attacks.promotion import Promotion
from dprec.attacks.transcript import ReleasedSum, Transcript
from dprec.attacks.uploads import Answered, Upload
from dprec.components import Registry

ATTACKS: Registry[Attack] = Registry("attack", Attack, [Linkage, Attributes, Promotion])

__all__ = [
    "ATTACKS",
    "Answered",
    "Attack",
    "Attacked",
    "Attributes",
    "Figure",
    "Game",
    "Liars",
    "Linkage",
    "Promotion",
    "ReleasedSum",
    "Shown",
    "Transcript",
    "Upload",
]
