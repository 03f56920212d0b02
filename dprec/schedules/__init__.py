"""Schedules: when devices are asked in the course of time, about which ratings, and at what price."""

from dprec.components import Registry
from dprec.schedules.answers import Answers, PermanentAnswers, RepeatedAnswers
from dprec.schedules.base import Collection, Held, Schedule
from dprec.schedules.periods import ByPeriod, Periods
from dprec.schedules.policies import DBitFlip, Fresh, Increments, Layered, Loloha, TwoLayered

SCHEDULES: Registry[Schedule] = Registry(
    "schedule", Schedule, [Increments, Fresh, TwoLayered, Loloha, DBitFlip]
)

__all__ = [
    "SCHEDULES",
    "Answers",
    "ByPeriod",
    "Collection",
    "DBitFlip",
    "Fresh",
    "Held",
    "Increments",
    "Layered",
    "Loloha",
    "Periods",
    "PermanentAnswers",
    "RepeatedAnswers",
    "Schedule",
    "TwoLayered",
]
