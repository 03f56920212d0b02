"""Lists from item sets that nobody sees: what devices contribute, and what a server makes of the sums."""
