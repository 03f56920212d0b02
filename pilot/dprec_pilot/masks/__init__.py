"""Sums whose parts devices mask: keys, shares and masks, and what devices and server say about them."""
