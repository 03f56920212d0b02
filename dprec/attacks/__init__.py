"""Attacks: what an attacker learns beside what epsilon allows, and what malicious users move."""

from dprec.attacks.attributes import Attributes
from dprec.attacks.base import Attack, Attacked, Figure, Game, Shown
from dprec.attacks.linkage import Linkage
from dprec.attacks.malicious import MaliciousUsers
from dprec.attacks.membership import Membership
from dprec.attacks.promotion import Damage, Promotion
from dprec.attacks.reconstruction import Reconstruction, recovered
from dprec.attacks.rounds import Rounds
from dprec.attacks.shadow import ShadowModels
from dprec.attacks.sums import SumsMembership
from dprec.attacks.transcript import Answered, Broadcast, ReleasedSum, Transcript, Upload
from dprec.components import Registry

ATTACKS: Registry[Attack] = Registry(
    "attack",
    Attack,
    [
        Attributes,
        Damage,
        Linkage,
        Membership,
        Promotion,
        Reconstruction,
        Rounds,
        ShadowModels,
        SumsMembership,
    ],
)

__all__ = [
    "ATTACKS",
    "Answered",
    "Attack",
    "Attacked",
    "Attributes",
    "Broadcast",
    "Damage",
    "Figure",
    "Game",
    "Linkage",
    "MaliciousUsers",
    "Membership",
    "Promotion",
    "Reconstruction",
    "ReleasedSum",
    "Rounds",
    "ShadowModels",
    "Shown",
    "SumsMembership",
    "Transcript",
    "Upload",
    "recovered",
]
