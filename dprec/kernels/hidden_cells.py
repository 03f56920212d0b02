"""Loops over cells of which a symbol is known, and not whether they are rated."""

from dprec.arrays import Floats, Int32s, Ints, Uint8s
from dprec.kernels.compilation import Table, Written, compiled

_LEAST = 1e-300


@compiled
def count_symbols(
    counts: Written[Table[Floats]], owners: Int32s, others: Int32s, bin_of: Ints, symbols: Uint8s, kinds: int
) -> None:
    """Count the symbols of each owner by bin and kind of symbol, flat; all cells were of the first kind."""
    for cell in range(owners.size):
        first = bin_of[others[cell]] * kinds
        counts[owners[cell], first] -= 1.0
        counts[owners[cell], first + symbols[cell]] += 1.0


@compiled
def sum_evidence(
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
    """Write the slopes of owners' log likelihoods by propensity and latent rating, and Fisher's information.

    ``latent``: by bin; ``shares``: of rated cells, by bin and node, flat, and ``masses`` those of the nodes;
    ``counts``: as from `count_symbols`; ``likelihoods``, ``derivatives``: Pr(symbol | latent rating, rated)
    and its derivative on a grid from -``reach`` to ``reach``; ``information``: by propensity, both, latent
    rating.
    """
    last = likelihoods.shape[0] - 1
    step = 2 * reach / last
    for owner in range(latent.shape[0]):
        by_propensities, by_latents, propensities, both, latents = 0.0, 0.0, 0.0, 0.0, 0.0
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
                    by_propensities += weight * count * by_propensity
                    by_latents += weight * count * by_latent
                    weight *= sizes[bin]
                    propensities += weight * by_propensity * by_propensity
                    both += weight * by_propensity * by_latent
                    latents += weight * by_latent * by_latent
        slopes[owner, 0], slopes[owner, 1] = by_propensities, by_latents
        information[owner, 0], information[owner, 1], information[owner, 2] = propensities, both, latents
