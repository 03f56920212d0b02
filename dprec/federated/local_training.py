"""What models share that train on the device: federated averaging, batches, items a user does not have."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints
from dprec.components import option
from dprec.federated.model import FederatedModel, Parameters, Profile, positive


@dataclass(frozen=True, kw_only=True)
class LocallyTrained(FederatedModel):
    """A model that devices train on what they hold; they send by how much they moved it.

    The server adds the mean of all changes: federated averaging (McMahan et al. [mcmahan2017], Algorithm 1),
    in which every device counts alike here, since none may count by how much it holds. Devices move only the
    items that they train on, so that the mean moves an item the less, the fewer have it; a public rate makes
    up for that. Clipping and noise are ours.
    """

    papers: ClassVar[tuple[str, ...]] = ("mcmahan2017",)
    of_items: ClassVar[int] = 1
    """How many parameters, the first, have a row per item."""
    epochs: int = option("E: passes of a device over what it holds, in a round.", 3, ge=1)
    batch: int = option("B: most examples in a step of a device.", 20, ge=1)
    rate: float = positive("eta: step of a device, for each example.", 0.02)
    item_rate: float = positive(
        "By what the server multiplies the mean change of items' parameters.",
        1.0,
        published=1.0,
        source="mcmahan2017, Algorithm 1",
    )

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Add the mean changes, those of items times their rate."""
        rates = np.ones(len(parameters))
        rates[: self.of_items] = self.item_rate
        return tuple(old + rate * change for old, rate, change in zip(parameters, rates, update, strict=True))


@dataclass(frozen=True, kw_only=True)
class DrawsNegatives(FederatedModel):
    """Base of the models of lists whose devices draw items that their users do not have."""

    predicted: ClassVar[Literal["ratings", "lists"]] = "lists"
    spares_tested: bool = option(
        "Whether devices know the items that their users are tested on, and never draw these in a round. "
        "Published code does so [zhang2023]; it tells devices the answer, so that figures compare with no "
        "others.",
        False,
    )

    @property
    def told_tested(self) -> bool:
        """Whether negatives spare what users are tested on."""
        return self.spares_tested


def batches(count: int, size: int, random: np.random.Generator | None = None) -> Iterator[Ints]:
    """Yield the places of so many examples, each once, in batches of a size at most; shuffled, if random."""
    order = np.arange(count) if random is None else random.permutation(count)
    return (order[start : start + size] for start in range(0, count, size))


def others(random: np.random.Generator, profile: Profile, count: int) -> Ints:
    """Return items that a user does not have, evenly drawn with replacement, shape (count,).

    None where the user has all, or the device spares the rest.
    """
    excluded = np.union1d(profile.items, profile.spared) if profile.spared.size else profile.items
    n_candidates = profile.n_items - excluded.size
    if not n_candidates:
        return np.zeros(0, dtype=np.int64)
    ranks = random.integers(n_candidates, size=count)
    # The item with so many before it that can be drawn.
    skipped = np.searchsorted(excluded - np.arange(excluded.size), ranks, side="right")
    return ranks + skipped


def scattered(rows: Floats, items: AnyInts, n_items: int) -> Floats:
    """Return rows at their items, each item once, and zeros elsewhere, shape (n_items, ...)."""
    scattered_rows = np.zeros((n_items, *rows.shape[1:]))
    scattered_rows[items] = rows
    return scattered_rows


def examples(random: np.random.Generator, profile: Profile, negatives: int) -> tuple[Ints, Floats]:
    """Return a user's items, then drawn ones, so many for each; and their labels, 1 or 0 of those drawn."""
    drawn_items = others(random, profile, negatives * profile.items.size)
    labels = np.repeat([1.0, 0.0], [profile.items.size, drawn_items.size])
    return np.concatenate([profile.items, drawn_items]), labels


def chances(scores: Floats) -> Floats:
    """Return 1 / (1 + exp(-score)), for scores of any size."""
    return 0.5 * (1 + np.tanh(scores / 2))


def cross_entropy(scores: Floats, labels: Floats) -> float:
    """Return the mean binary cross-entropy of scores that are logits; NaN of none."""
    return float(np.mean(np.logaddexp(0.0, scores) - labels * scores)) if scores.size else np.nan
