"""Answers about whole profiles, which hide how items were rated and which."""

from dprec.reports.profiles.code import ProfileCode
from dprec.reports.profiles.family import ProfileFamily

__all__ = ["ProfileCode", "ProfileFamily"]
