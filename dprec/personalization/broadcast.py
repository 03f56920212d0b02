"""What the server tells the devices of a completion, whether it has item factors or predictions alone.

**Refusals.** Item biases as those see them who have sent nothing: corrected where a kind of people refuses.

Reports show how a table's items are rated by those who send, and most of all by those with large epsilons. If
critics refuse, or ask for more noise, the table is too kind to everybody else. Three things are public:

- the level m_g of those at each epsilon, by which their ratings exceed what the item biases say: the most
  probable one given their reports, which noise makes less certain and not smaller;
- how many refuse. Users in the order of their epsilons are quantiles x of a normal distribution, on which m_g
  is regressed: refusals continue that line, as far as it is one;
- the public shares of the levels, for which latent ratings have mean 0 over everybody's ratings.

The level of all users together is a mean of that line's and the public one, by their precisions: the more
refuse, the less is known from reports. It moves the item biases. Choices are public, so that this costs no
privacy.
"""

from dataclasses import dataclass, replace

import numpy as np

from dprec import completion
from dprec.arrays import AnyInts, Floats, Int32s, Ints
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import SHRINKAGE
from dprec.components import Options, option
from dprec.observations import Observations, RatedSets
from dprec.ordinal import (
    INVERSE_SQRT_2_PI,
    Histogram,
    cut_points,
    expected_rating,
    level_probabilities,
    level_shares,
)
from dprec.ratings import Ratings, RatingScale
from dprec.wire import ItemTable

_SPREAD = 0.25
"""Variance of a user's level, as devices assume it."""

_PUBLIC, _OFF_THE_LINE, _SLOPE, _GROUP = 0.15, 0.3, 0.3, 0.03
"""Standard deviations on the latent rating: of the mean of everybody's ratings around the public one, of what
refusals are off the line, of its slope, and of a group around it. Round numbers, which
`choose_refusals` of benchmarks/choosing holds against others on train ratings.
"""

_STEPS = 8
"""Newton steps to the most probable level, about which the logarithm is nearly quadratic."""

_CELLS_AT_ONCE = 1 << 16

_FARTHEST = 2.0
"""Levels beyond are none of people who use the scale."""


def for_everybody(table: ItemTable, seen: Observations, numbers: Ints, *, public: bool) -> ItemTable:
    """Return a table for everybody, and not for those alone who send much.

    Parameters
    ----------
    table : ItemTable
        As it follows from the reports.
    seen : Observations
        With symbols.
    numbers : ndarray of int64, shape (users,)
        Of each user's budget, ascending with epsilon. Who has one for which there is no report refuses.
    public : bool
        Whether the table's cuts follow from public shares of the levels.
    """
    reports, of_cell, latent = seen.symbols, numbers[seen.users], table.means[seen.items]
    assert reports is not None, "reports without symbols"
    shares = np.bincount(numbers) / numbers.size
    cells = np.bincount(of_cell, minlength=shares.size).astype(np.float64)
    sending, refuse = np.flatnonzero(cells), shares * (cells == 0)
    if not sending.size:
        return table
    estimates, channels, columns = [], np.hstack(reports.channels).T, reports.columns
    for number in sending.tolist():
        of_budget = of_cell == number
        estimates.append(
            _level(latent[of_budget], table.cuts, channels, columns[of_budget], seen.users[of_budget])
        )
    means, variances = np.array(estimates).T
    scores, refusing = _scores(shares), float(refuse.sum())
    # A weighted regression whose slope is expected near 0: the middle and height of what it is fitted to.
    places, weights = scores[sending], 1 / (variances + _GROUP**2)
    middle, height = _mean(places, weights), _mean(means, weights)
    precision = float(weights @ (places - middle) ** 2) + 1 / _SLOPE**2
    slope = float(weights @ ((places - middle) * (means - height))) / precision
    # The line where everybody is, those who refuse beside those who send.
    beyond = (1 - refusing) * _mean(scores, cells) + float(scores @ refuse) - middle
    by_reports = height + slope * beyond
    variance = float(1 / weights.sum()) + 1 / precision * beyond**2 + (refusing * _OFF_THE_LINE) ** 2
    trust = variance / (variance + _PUBLIC**2) if public else 0.0
    level = by_reports + trust * (-float(latent.mean()) - by_reports)
    return replace(table, means=table.means + level)


def _mean(values: Floats, weights: Floats) -> float:
    return float(values @ weights / weights.sum())


def _scores(shares: Floats) -> Floats:
    """Return the mean of a normal distribution between the quantiles that each share reaches over."""
    from scipy.special import ndtri

    ends = ndtri(np.clip(np.concatenate([[0.0], np.cumsum(shares)]), 0, 1))
    densities = INVERSE_SQRT_2_PI * np.exp(-(ends**2) / 2)
    return -np.diff(densities) / np.where(shares > 0, shares, 1.0)


def _level(
    latent: Floats, cuts: Floats, channels: Floats, columns: AnyInts, users: Int32s
) -> tuple[float, float]:
    """Return the most probable level, expected within 1 of 0, and its variance: reports are by user.

    ``channels``: the likelihood of each level given what is in a column, shape (columns, levels).
    """
    spread, level = np.sqrt(1 + _SPREAD), 0.0
    scores, precision = np.zeros(latent.size), 1.0
    for _ in range(_STEPS):
        for start in range(0, latent.size, _CELLS_AT_ONCE):
            cells = slice(start, start + _CELLS_AT_ONCE)
            probabilities, slopes = level_probabilities((latent[cells] + level) / spread, cuts / spread)
            likelihood = channels[columns[cells]]
            scores[cells] = (slopes / spread * likelihood).sum(axis=1) / (probabilities * likelihood).sum(
                axis=1
            )
        precision = 1 + float(scores @ scores)
        level = float(np.clip(level + (scores.sum() - level) / precision, -_FARTHEST, _FARTHEST))
    by_user = np.bincount(users, weights=scores)
    return level, (1 + float(by_user @ by_user)) / precision**2


_REACH, _POINTS = 3.0, 601
"""The latent ratings that predictions are moved to: from -3 to 3, where a level is as good as certain."""

_LEAST_SPREAD = 1e-3
"""Directions in which users' mean embeddings spread less, relative to the widest, tell nothing of them."""

_SWEEPS = 10
"""Sweeps over items and users; two biases per rating settle within a few."""


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """What is assumed to derive a table of items from predicted ratings."""

    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest; by default equal. Not those of the protected ratings.",
        None,
    )
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)
    dimensions: int = option(
        "Dimensions of the item embeddings from item sets; 0 where these are hidden.",
        20,
        ge=0,
        le=64,
    )
    features: int = option("Dimensions, the first, on which biases are regressed.", 10, ge=0, le=64)

    def cuts(self, scale: RatingScale) -> Floats:
        """Return where latent ratings change level; SettingError for another number of levels."""
        return cut_points(level_shares(self.histogram, scale.levels), self.variance)


def derived_broadcast(
    completed: completion.Completed, observations: Observations, options: TableOptions, seed: int
) -> ItemTable:
    """Return what a completion's predictions of the reported cells say about items.

    ``observations``: what it was completed from; ``seed``: seed of the embeddings.

    Let m_ui be the prediction of a reported cell and g(theta) the expected rating at a latent rating
    (`expected_rating`, without variance). The latent prediction g^-1(m_ui) = c_i + b_u + rest is divided into
    biases of items and users, regressed on embeddings, counts and catalogue as in a calibrated completion, by
    alternating posterior means. Every cell weighs

        w = g'(theta_0)^2 / s^2,

    theta_0 the mean latent prediction and s^2 the variance of the reported values: a report with that spread
    says no more about a latent rating, whatever the completion made of it. So the variance of c_i is about
    1 / (n_i w + 1 / tau^2) after n_i reports, with the variance tau^2 around the regression learned from the
    biases themselves. The spread of the predictions would not do: those of one item share its error. Where
    a mechanism pulls the values that are read towards the middle, predictions are pulled with them, and
    biases and tau^2 are too small: devices then rely on their own ratings more than on the table.
    """
    cuts = options.cuts(observations.scale)
    grid = np.linspace(-_REACH, _REACH, _POINTS)
    ratings = expected_rating(grid, np.zeros(_POINTS), cuts, observations.scale.values)
    latent = np.interp(completed.predict(observations.users, observations.items), ratings, grid)
    slope = np.interp(latent.mean() if latent.size else 0.0, grid, np.gradient(ratings, grid))
    spread = float(observations.values.var()) if observations.values.size else 0.0
    weight = float(slope**2 / spread) if spread > 0 else 0.0
    rated = observations.item_sets
    embedding = completion.embedded(
        rated.users, rated.items, observations.shape, observations.embedding_release, options.dimensions, seed
    )
    users, items = completion.prior_biases(embedding, observations.catalogue, options.features)
    for _ in range(_SWEEPS):
        items = _solved(items, observations.items, weight, latent - users.biases[observations.users])
        users = _solved(users, observations.users, weight, latent - items.biases[observations.items])
    leaning = leanings(embedding.items, observations.item_sets, users.regressed)
    return _table(cuts, items, embedding, observations.catalogue, leaning)


def _table(
    cuts: Floats,
    items: completion.Regressed,
    embedding: completion.ItemSetEmbedding,
    catalogue: Catalogue | None,
    leaning: Floats,
) -> ItemTable:
    """Return a table of what is known of the items, and of the catalogue; without factors."""
    numbers, categories = embedding.popularity[:, None], np.zeros((len(items.means), 0), dtype=np.bool_)
    if catalogue is not None:
        numbers, categories = np.column_stack([numbers, catalogue.numbers]), catalogue.categories
    return ItemTable(
        cuts,
        items.biases,
        np.sqrt(items.variances),
        embedding.items,
        np.zeros((len(items.means), 0)),
        numbers,
        categories,
        leaning,
    )


def _solved(
    side: completion.Regressed, owners: Int32s, weight: float, residuals: Floats
) -> completion.Regressed:
    """Solve one side given each cell's observation of its bias."""
    counts = np.bincount(owners, minlength=len(side.means)).astype(np.float64)
    sums = np.bincount(owners, weights=residuals, minlength=len(side.means)).astype(np.float64)
    return side.solved((weight * counts)[:, None, None], (weight * sums)[:, None])


def calibrated_broadcast(model: completion.CalibratedModel, rated: RatedSets | Ratings) -> ItemTable:
    """Return what a calibrated model knows that devices need.

    ``rated``: which items each user is known to have rated.

    Users' factors are brought to variance 1 around their priors; what is not known of an item's factors is
    added to the uncertainty of its bias.
    """
    latent = model.latent
    spreads = latent.user_factors.spreads
    unknown = np.diagonal(latent.item_factors.covariances, axis1=1, axis2=2) @ spreads
    units = np.sqrt(spreads)
    expected = np.column_stack([latent.users.regressed[:, -1], latent.user_factors.regressed / units])
    leaning = leanings(model.embedding.items, rated, expected)
    table = _table(model.cuts, latent.items, model.embedding, model.catalogue, leaning)
    deviations = np.sqrt(latent.items.variances + unknown)
    return replace(table, deviations=deviations, item_factors=latent.item_factors.means * units)


def leanings(embeddings: Floats, rated: RatedSets | Ratings, expected: Floats) -> Floats:
    """Return what the mean embedding of a user's items says of its level and factors; see `ItemTable`.

    ``expected``: what the server makes of each user's items, shape (users, 1 + factors). A device makes the
    same of its own, by least squares, if its user has sent nothing, too, or these are its first ratings.
    """
    import scipy.sparse as sp

    if not (embeddings.shape[1] and expected.any()):
        return np.zeros((0, expected.shape[1]))
    shape = len(expected), len(embeddings)
    by_user = sp.csr_array((np.ones(rated.items.size), (rated.users, rated.items)), shape=shape)
    sizes = np.bincount(rated.users, minlength=len(expected))
    means = (by_user @ embeddings) / (sizes + SHRINKAGE)[:, None]
    return np.linalg.lstsq(means, expected, rcond=_LEAST_SPREAD)[0]


def broadcast_of(
    completed: completion.Completed, observations: Observations, options: TableOptions, seed: int
) -> ItemTable:
    """Return what devices are sent: a model's own biases, or what predictions say of them."""
    if isinstance(completed, completion.CalibratedModel):
        return calibrated_broadcast(completed, observations.item_sets)
    if isinstance(completed, completion.ItemBiasesModel):
        # No user's leaning is known.
        no_leanings = np.zeros((0, 1))
        return _table(completed.cuts, completed.biases, completed.embedding, completed.catalogue, no_leanings)
    return derived_broadcast(completed, observations, options, seed)
