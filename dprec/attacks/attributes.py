"""Attributes: what is public of some users, such as gender and age, guessed of others from what they send.

Who likes what tells who somebody is (Kosinski, Stillwell and Graepel [kosinski2013]; from ratings of films,
Weinsberg et al. [weinsberg2012]). As in these, a regularised logistic regression learns from users whose
attribute is known, by the principal components of what was seen of everybody, and guesses the others'.

Bounds are `dprec.attacks.bounds.between_users`: of any attack that learns from the other folds, and knows
nothing of those it guesses but what they sent. Areas are "pairs", and right guesses "yes or no", of who has
the attribute and who has it not. Within a fold an area is a U-statistic of as many decisions as those of whom
there are fewer, and a share of right guesses one of as many pairs. Folds learn from each other, so that no
more than one of them counts for what chance adds to their mean. Where nothing is seen of single users, all
are guessed alike, and chance adds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import BeforeValidator, Field

from dprec.arrays import AnyArray, Bools, Float32s, Floats, Ints
from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.bounds import Roc, above_by_chance, between_users, on_bounds
from dprec.attacks.seen import Seen
from dprec.catalogue import UsersTable
from dprec.components import as_tuple, option
from dprec.errors import within
from dprec.randomness import generator

_COMPONENTS, _MORE, _PASSES = 100, 20, 2
"""Principal components; further ones that make these precise, and passes (Halko et al. [halko2011])."""

_MOST_ITEMS = 4096
"""The most popular items, which say most of what is seen; bounds the memory of many users."""


_STEPS, _CONVERGED = 25, 1e-6

_DEFAULT = "gender", "age"

Names = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], ...],
    Field(min_length=1),
    BeforeValidator(as_tuple),
]
"""Columns whose names can be those of figures."""


@dataclass(frozen=True, kw_only=True)
class Attributes(Attack):
    """Guess attributes of users from what is seen of them."""

    kind: Literal["attributes"] = "attributes"
    papers: ClassVar[tuple[str, ...]] = ("kosinski2013", "weinsberg2012")
    columns: Names | None = option(
        "Columns of the users' table; by default gender and age, as far as the data set has them.", None
    )
    above: float | None = option(
        "Least number that counts as high, in columns of numbers; by default what half of them reach.",
        None,
    )
    folds: int = option("Parts of the users, each guessed from all others.", 10, ge=2, le=100)
    people: int = option(
        "Most users who are looked at, drawn from those whose attribute is known.", 10000, ge=20
    )

    def figures(self) -> tuple[str, ...]:
        """Return the largest area under a curve, and area and share of right guesses for each attribute."""
        names = self.columns or _DEFAULT
        return (
            "attribute_auc",
            *(f"attribute_auc_{name}" for name in names),
            *(f"attribute_accuracy_{name}" for name in names),
        )

    def check(self, users: UsersTable | None) -> None:
        """Refuse columns that are not there."""
        list(self._columns(users))

    def perform(self, game: Game) -> Attacked:
        """Guess each attribute that at least as many users have, and have not, as there are folds."""
        known = {name: Attribute.of(values, self.above) for name, values in self._columns(game.users)}
        random = generator(game.seed, "attributes")
        of_some = np.any([np.zeros(game.truth.n_users), *(each.known for each in known.values())], axis=0)
        rows = np.sort(random.permutation(np.flatnonzero(of_some))[: self.people])
        some = (
            (name, Attribute(each.labels[rows], each.known[rows], each.text)) for name, each in known.items()
        )
        known = {name: each for name, each in some if each.fewest >= self.folds}
        if not known:
            return Attacked({}, ("Of no attribute is it public which users have it.",))
        seen = Seen.of(game.transcript, game.truth)
        features = _components(seen, game.transcript.vectors, rows, random)
        curve = between_users(game) if seen is None or seen.hides_items else None
        allowed: dict[str, tuple[float, float]] = {}
        areas, rights = {}, {}
        for name, each in known.items():
            area, right = self._guessed(features, each, random)
            figures = f"attribute_auc_{name}", f"attribute_accuracy_{name}"
            if curve is not None:
                allowed |= zip(figures, each.allowed(curve, self.folds, told=features.size > 0), strict=True)
            bounds = [allowed[figure][1] if figure in allowed else None for figure in figures]
            areas[figures[0]] = Figure(area, 0.5, bounds[0])
            rights[figures[1]] = Figure(right, each.majority, bounds[1])
        largest = max(areas.values(), key=lambda figure: figure.value or 0.0)
        notes = tuple(f"The attribute {name}: {each.text}." for name, each in known.items())
        return Attacked({"attribute_auc": largest, **areas, **rights}, (*notes, *on_bounds(allowed)))

    def _columns(self, users: UsersTable | None) -> Iterator[tuple[str, AnyArray]]:
        """Yield the columns; raises SettingError for one that was asked for and is not there."""
        table = users or UsersTable({}, 0)
        for name in self.columns or [name for name in _DEFAULT if name in table.columns]:
            with within("columns"):
                yield name, table.column(name)

    def _guessed(
        self, seen: Floats, attribute: Attribute, random: np.random.Generator
    ) -> tuple[float, float]:
        """Return the mean area under the folds' curves, and the share of right guesses."""
        features, labels = seen[attribute.known], attribute.labels[attribute.known]
        folds = np.empty(labels.size, dtype=np.int64)
        for label in (False, True):
            own = np.flatnonzero(labels == label)
            folds[random.permutation(own)] = np.arange(own.size) % self.folds
        areas, right = [], 0
        for fold in range(self.folds):
            held = folds == fold
            weights = learned(features[~held], labels[~held])
            scores = features[held] @ weights[:-1] + weights[-1]
            areas.append(Roc.of_scores(scores, labels[held], ~labels[held]).auc)
            right += int(np.count_nonzero((scores > 0) == labels[held]))
        return float(np.mean(areas)), right / labels.size


@dataclass(frozen=True, eq=False)
class Attribute:
    """What users have or have not."""

    labels: Bools
    """Shape (users,); of those of whom it is not known, False."""
    known: Bools
    """Shape (users,)."""
    text: str
    """What it is, in words."""

    @classmethod
    def of(cls, values: AnyArray, above: float | None) -> Self:
        """Return the high numbers of a column, or its most frequent text against all others."""
        if values.dtype.kind == "f":
            known = ~np.isnan(values)
            least = above
            if least is None:
                # What as nearly as possible half of the known values reach.
                numbers, counts = np.unique(values[known], return_counts=True)
                reach = known.sum() - np.cumsum(counts) + counts
                least = float(numbers[np.abs(2 * reach - known.sum()).argmin()]) if numbers.size else 0.0
            return cls(known & (np.nan_to_num(values) >= least), known, f"{least:g} or more")
        texts, counts = np.unique(values[values != ""], return_counts=True)
        most = str(texts[counts.argmax()]) if texts.size else ""
        return cls((values == most) & (values != ""), values != "", most)

    @property
    def fewest(self) -> int:
        """How many have it, or have it not, whichever are fewer."""
        have = int(np.count_nonzero(self.labels))
        return min(have, int(np.count_nonzero(self.known)) - have)

    @property
    def majority(self) -> float:
        """Share of right guesses if all are guessed alike."""
        return 1 - self.fewest / int(np.count_nonzero(self.known))

    def allowed(
        self, curve: Roc, folds: int, *, told: bool
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the largest area, and share of right guesses, in the mean and with chance; see the module.

        ``curve``: what is allowed of two users; ``told``: whether anything is seen of single ones.
        """
        have = int(np.count_nonzero(self.labels))
        sizes = np.array([have, int(np.count_nonzero(self.known)) - have])
        # Of those who have it, and have it not, in each fold.
        parts = sizes[:, None] // folds + (np.arange(folds) < sizes[:, None] % folds)
        weights = parts.sum(axis=0) / sizes.sum()
        rights = np.array([curve.right_of(float(one)) for one in parts[0] / parts.sum(axis=0)])
        pairs, right = float(parts.min()) if told else math.inf, float(weights @ rights)
        return (
            (curve.auc, above_by_chance(curve.auc, pairs)),
            (right, above_by_chance(float(rights.max()), pairs)),
        )


def learned(features: Floats, labels: Bools) -> Floats:
    """Return the weights of a logistic regression, the intercept last; shape (features + 1,).

    The ridge is the one with the least deviance when each user is left out, approximately, by one Newton
    step from the weights of all (Rad and Maleki [rad2020], section 3).
    """
    design = np.column_stack([features, np.ones(len(features))])
    weights, chosen, least = np.zeros(design.shape[1]), np.zeros(design.shape[1]), np.inf
    # Of half the squared weights, descending.
    for ridge in (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1):
        penalty = np.append(np.full(features.shape[1], ridge), 1e-9)
        for _ in range(_STEPS):
            chances = scipy.special.expit(design @ weights)
            spreads = chances * (1 - chances)
            curvature = (design * spreads[:, None]).T @ design + np.diag(penalty)
            step = np.linalg.solve(curvature, design.T @ (labels - chances) - penalty * weights)
            weights = weights + step
            if np.abs(step).max() < _CONVERGED:
                break
        leverage = np.einsum("ij,ji->i", design, np.linalg.solve(curvature, design.T))
        left_out = design @ weights - leverage * (labels - chances) / np.maximum(1 - leverage * spreads, 1e-3)
        deviance = float(np.logaddexp(0.0, np.where(labels, -left_out, left_out)).mean())
        if deviance < least:
            chosen, least = weights, deviance
    return chosen


def _components(
    seen: Seen | None,
    vectors: scipy.sparse.csr_array | Floats | None,
    rows: Ints,
    random: np.random.Generator,
) -> Floats:
    """Return what was seen of some users in numbers, shape (users, numbers); none if nothing was."""
    parts = [np.zeros((rows.size, 0))]
    if seen is not None:
        # How likely some users rated each of the most popular items, shape (users, items).
        items = np.argsort(-seen.background.popularity, kind="stable")[:_MOST_ITEMS]
        rated = np.empty((rows.size, items.size), dtype=np.float32)
        for weighed in seen.weighed():
            own = slice(*np.searchsorted(rows, [weighed.users.start, weighed.users.stop]))
            rated[own] = weighed.rated[np.ix_(rows[own] - weighed.users.start, items)]
        parts.append(principal(rated, random))
    if vectors is not None:
        parts.append(principal(vectors[rows], random))
    return np.hstack(parts)


def principal(seen: scipy.sparse.csr_array | Floats | Float32s, random: np.random.Generator) -> Floats:
    """Return the first principal components of what was seen, shape (users, components).

    Their squares add up to 1 in the mean. Columns are divided by the root of their deviation, which is
    halfway to equal ones: rare items count more than as they come, and do not drown the others. By subspace
    iteration (Halko et al. [halko2011], Algorithm 4.4).
    """
    users, columns = seen.shape
    mean = np.asarray(seen.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray((seen * seen).mean(axis=0)).ravel() - mean**2, 0.0))
    scale = np.where(spread > 0, 1 / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)[:, None]

    def across(basis: Floats) -> Floats:
        weights = (scale * basis).astype(seen.dtype)
        return np.asarray(seen @ weights - mean @ weights, dtype=np.float64)

    def back(basis: Floats) -> Floats:
        own = basis.astype(seen.dtype)
        return np.asarray(scale * (seen.T @ own - np.outer(mean, own.sum(axis=0))), dtype=np.float64)

    basis = random.standard_normal((columns, min(_COMPONENTS + _MORE, users, columns)))
    for _ in range(_PASSES):
        basis = np.linalg.qr(back(np.linalg.qr(across(basis))[0]))[0]
    left = np.linalg.qr(across(basis))[0]
    turned, values, _ = np.linalg.svd(back(left).T, full_matrices=False)
    components = left @ (turned * values)
    size = math.sqrt(max(float(spread.sum()), np.finfo(float).tiny))
    return components[:, :_COMPONENTS] / size
