"""Sums of which a server sees the total only: masks, shares, whole numbers, noise, and the bytes of all."""
