"""A pilot of dprec with real devices: each trusts nobody but itself, and a server that sees no ratings."""
