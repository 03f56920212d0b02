"""Sums of which a server sees the total only: masks, shares, integers, noise, and the bytes of all."""
