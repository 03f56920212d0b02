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
from dprec.attacks.seen import ServerView
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
        attributes = {name: Attribute.of(values, self.above) for name, values in self._columns(game.users)}
        random = generator(game.seed, "attributes")
        of_some = np.any(
            [np.zeros(game.truth.n_users), *(attribute.known for attribute in attributes.values())], axis=0
        )
        rows = np.sort(random.permutation(np.flatnonzero(of_some))[: self.people])
        of_rows = (
            (name, Attribute(attribute.labels[rows], attribute.known[rows], attribute.text))
            for name, attribute in attributes.items()
        )
        attributes = {name: attribute for name, attribute in of_rows if attribute.fewest >= self.folds}
        if not attributes:
            return Attacked({}, ("Of no attribute is it public which users have it.",))
        view = ServerView.of(game.transcript, game.truth)
        features = _components(view, game.transcript.vectors, rows, random)
        curve = between_users(game) if view is None or view.hides_items else None
        allowed: dict[str, tuple[float, float]] = {}
        areas, rights = {}, {}
        for name, attribute in attributes.items():
            area, right = self._guessed(features, attribute, random)
            figures = f"attribute_auc_{name}", f"attribute_accuracy_{name}"
            if curve is not None:
                allowed |= zip(
                    figures, attribute.allowed(curve, self.folds, users_seen=features.size > 0), strict=True
                )
            bounds = [allowed[figure][1] if figure in allowed else None for figure in figures]
            areas[figures[0]] = Figure(area, 0.5, bounds[0])
            rights[figures[1]] = Figure(right, attribute.majority, bounds[1])
        largest = max(areas.values(), key=lambda figure: figure.value or 0.0)
        notes = tuple(f"The attribute {name}: {attribute.text}." for name, attribute in attributes.items())
        return Attacked({"attribute_auc": largest, **areas, **rights}, (*notes, *on_bounds(allowed)))

    def _columns(self, users: UsersTable | None) -> Iterator[tuple[str, AnyArray]]:
        """Yield the columns; raises SettingError for one that was asked for and is not there."""
        table = users or UsersTable({}, 0)
        for name in self.columns or [name for name in _DEFAULT if name in table.columns]:
            with within("columns"):
                yield name, table.column(name)

    def _guessed(
        self, user_features: Floats, attribute: Attribute, random: np.random.Generator
    ) -> tuple[float, float]:
        """Return the mean area under the folds' curves, and the share of right guesses."""
        features, labels = user_features[attribute.known], attribute.labels[attribute.known]
        folds = np.empty(labels.size, dtype=np.int64)
        for label in (False, True):
            with_label = np.flatnonzero(labels == label)
            folds[random.permutation(with_label)] = np.arange(with_label.size) % self.folds
        areas, right = [], 0
        for fold in range(self.folds):
            held_out = folds == fold
            weights = learned(features[~held_out], labels[~held_out])
            scores = features[held_out] @ weights[:-1] + weights[-1]
            areas.append(Roc.of_scores(scores, labels[held_out], ~labels[held_out]).auc)
            right += int(np.count_nonzero((scores > 0) == labels[held_out]))
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
        most_frequent = str(texts[counts.argmax()]) if texts.size else ""
        return cls((values == most_frequent) & (values != ""), values != "", most_frequent)

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
        self, curve: Roc, folds: int, *, users_seen: bool
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the largest area, and share of right guesses, in the mean and with chance; see the module.

        ``curve``: what is allowed of two users; ``users_seen``: whether anything is seen of single ones.
        """
        have = int(np.count_nonzero(self.labels))
        sizes = np.array([have, int(np.count_nonzero(self.known)) - have])
        # Of those who have it, and have it not, in each fold.
        parts = sizes[:, None] // folds + (np.arange(folds) < sizes[:, None] % folds)
        weights = parts.sum(axis=0) / sizes.sum()
        rights = np.array([curve.right_of(float(share)) for share in parts[0] / parts.sum(axis=0)])
        pairs, right = float(parts.min()) if users_seen else math.inf, float(weights @ rights)
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
    weights, best, least = np.zeros(design.shape[1]), np.zeros(design.shape[1]), np.inf
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
            best, least = weights, deviance
    return best


def _components(
    view: ServerView | None,
    vectors: scipy.sparse.csr_array | Floats | None,
    rows: Ints,
    random: np.random.Generator,
) -> Floats:
    """Return what was seen of some users in numbers, shape (users, numbers); none if nothing was."""
    parts = [np.zeros((rows.size, 0))]
    if view is not None:
        # How likely some users rated each of the most popular items, shape (users, items).
        items = np.argsort(-view.background.popularity, kind="stable")[:_MOST_ITEMS]
        rated = np.empty((rows.size, items.size), dtype=np.float32)
        for weighed in view.weighed():
            block = slice(*np.searchsorted(rows, [weighed.users.start, weighed.users.stop]))
            rated[block] = weighed.rated[np.ix_(rows[block] - weighed.users.start, items)]
        parts.append(principal(rated, random))
    if vectors is not None:
        parts.append(principal(vectors[rows], random))
    return np.hstack(parts)


def principal(vectors: scipy.sparse.csr_array | Floats | Float32s, random: np.random.Generator) -> Floats:
    """Return the first principal components of what was seen, shape (users, components).

    Their squares add up to 1 in the mean. Columns are divided by the root of their deviation, which is
    halfway to equal ones: rare items count more than as they come, and do not drown the others. By subspace
    iteration (Halko et al. [halko2011], Algorithm 4.4).
    """
    users, columns = vectors.shape
    mean = np.asarray(vectors.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray((vectors * vectors).mean(axis=0)).ravel() - mean**2, 0.0))
    scale = np.where(spread > 0, 1 / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)[:, None]

    def across(basis: Floats) -> Floats:
        weights = (scale * basis).astype(vectors.dtype)
        return np.asarray(vectors @ weights - mean @ weights, dtype=np.float64)

    def back(basis: Floats) -> Floats:
        weights = basis.astype(vectors.dtype)
        return np.asarray(
            scale * (vectors.T @ weights - np.outer(mean, weights.sum(axis=0))), dtype=np.float64
        )

    basis = random.standard_normal((columns, min(_COMPONENTS + _MORE, users, columns)))
    for _ in range(_PASSES):
        basis = np.linalg.qr(back(np.linalg.qr(across(basis))[0]))[0]
    user_basis = np.linalg.qr(across(basis))[0]
    rotation, singular_values, _ = np.linalg.svd(back(user_basis).T, full_matrices=False)
    components = user_basis @ (rotation * singular_values)
    size = math.sqrt(max(float(spread.sum()), np.finfo(float).tiny))
    return components[:, :_COMPONENTS] / size
