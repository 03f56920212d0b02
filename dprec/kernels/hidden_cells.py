"""Loops over cells of which a symbol is known, and not whether they are rated."""

from dprec.arrays import Floats, Int32s, Ints, Uint8s
from dprec.kernels.compilation import Table, Written, compiled

_LEAST = 1e-300


@compiled
def count_symbols(
    counts: Written[Table[Floats]], owners: Int32s, others: Int32s, bin_of: Ints, symbols: Uint8s, kinds: int
) -> None:
    """Count the symbols of each owner by bin and kind of symbol, flat."""
    for cell in range(owners.size):
        counts[owners[cell], bin_of[others[cell]] * kinds + symbols[cell]] += 1.0


@compiled
def add_evidence(
    slopes: Written[Table[Floats]],
    information: Written[Table[Floats]],
    latent: Table[Floats],
    shares: Table[Floats],
    masses: Floats,
    counts: Table[Floats],
    sizes: Floats,
    unrated: Floats,
    likelihoods: Table[Floats],
    derivatives: Table[Floats],
    reach: float,
) -> None:
    """Add the slopes of owners' log likelihoods by propensity and latent rating, and Fisher's information.

    ``latent``: by bin; ``shares``: of rated cells, by bin and node, flat, and ``masses`` those of the nodes;
    ``counts``: as from `count_symbols`; ``likelihoods``, ``derivatives``: Pr(symbol | latent rating, rated)
    and its derivative on a grid from -``reach`` to ``reach``; ``information``: by propensity, both, latent
    rating.
    """
    last = likelihoods.shape[0] - 1
    step = 2 * reach / last
    for owner in range(latent.shape[0]):
        for bin in range(sizes.size):
            place = (latent[owner, bin] + reach) / step
            if not place > 0.0:  # nor is what is no number
                place = 0.0
            elif place > last - 0.001:
                place = last - 0.001
            below = int(place)
            part = place - below
            for symbol in range(unrated.size):
                count = counts[owner, bin * unrated.size + symbol]
                before = derivatives[below, symbol]
                slope = before + part * (derivatives[below + 1, symbol] - before)
                # The integral of the slopes in between.
                rise = likelihoods[below, symbol] + part * step * (before + slope) / 2 - unrated[symbol]
                for node in range(masses.size):
                    share = shares[owner, bin * masses.size + node]
                    weight = masses[node] / max(unrated[symbol] + share * rise, _LEAST)
                    by_propensity, by_latent = share * (1 - share) * rise, share * slope
                    slopes[owner, 0] += weight * count * by_propensity
                    slopes[owner, 1] += weight * count * by_latent
                    weight *= sizes[bin]
                    information[owner, 0] += weight * by_propensity * by_propensity
                    information[owner, 1] += weight * by_propensity * by_latent
                    information[owner, 2] += weight * by_latent * by_latent
