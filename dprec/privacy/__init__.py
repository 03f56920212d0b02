"""Mechanisms at a budget."""

from dprec.privacy.calibration import CalibratedMechanism

__all__ = ["CalibratedMechanism"]
