"""Ratings predicted on the device, from a table that was learned from sums of whole, hidden profiles."""

from dprec.secret_sets.method import ProfileDevice, SecretSetOptions, SecretSets

__all__ = ["ProfileDevice", "SecretSetOptions", "SecretSets"]
