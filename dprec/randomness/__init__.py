"""Where every draw comes from: keys, counters, and the words of devices."""

from dprec.randomness.counters import (
    DRAW_BITS,
    DRAWS,
    categories,
    coins,
    even_share,
    fewest_draws,
    generator,
    integer_weights,
    loss_of_draws,
    most_draws,
    shuffled_within,
    subset,
    uniform_below,
    uniforms,
    words,
)
from dprec.randomness.devices import SECRET_BYTES, DeviceDraws, Draws, SecretDraws, threefry
from dprec.randomness.discrete_laplace import NoiseGrid
from dprec.randomness.keys import ENTROPY_BYTES, InstalledKeys, Key, Keys, ReleaseDraws, RunKeys, seed_for

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
    "NoiseGrid",
    "ReleaseDraws",
    "RunKeys",
    "SecretDraws",
    "categories",
    "coins",
    "even_share",
    "fewest_draws",
    "generator",
    "integer_weights",
    "loss_of_draws",
    "most_draws",
    "seed_for",
    "shuffled_within",
    "subset",
    "threefry",
    "uniform_below",
    "uniforms",
    "words",
]
