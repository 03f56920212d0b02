"""Where every draw comes from: keys, counters, and the words of devices."""

from dprec.randomness.counters import *
from dprec.randomness.keys import *

__all__ = [
    "DRAWS",
    "DRAW_BITS",
    "ENTROPY_BYTES",
    "SECRET_BYTES",
    "DeviceDraws",
    "Draws",
    "InstalledKeys",
    "Key",
    "Keys",
    "MemoisedDraws",
    "NoiseGrid",
    "ReleaseDraws",
    "RunKeys",
    "SecretDraws",
    "categories",
    "coins",
    "even_share",
    "fewest_draws",
    "fine_deviates",
    "generator",
    "integer_weights",
    "loss_of_draws",
    "most_draws",
    "normal_steps",
    "permutation",
    "public_words",
    "seed_for",
    "shuffled_within",
    "subset",
    "uniform_below",
    "uniforms",
    "words",
]
