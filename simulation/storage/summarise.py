"""Turns the outcome of a protocol into the summary of the run, simulated or deployed."""

import math
import platform
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import PrivacyAccountant, note_on_delta
from dprec.binarization import is_binary
from dprec.components import deviations, kind_of, reference_of, sources_of, user_defined_classes
from dprec.datasets import Dataset
from dprec.ratings import ColdRatings, Ratings, RatingScale, held_by_tested
from dprec.wire import NetworkOptions, TrafficLedger, network_bytes
from simulation.configuration.models import RunConfig
from simulation.protocols import Outcome
from simulation.protocols.base import declaring
from simulation.protocols.task import ServerOutcome
from simulation.storage.summary import (
    Accuracy,
    ClaimedLoss,
    DatasetSummary,
    DirectionSummary,
    DistanceSummary,
    GroupSummary,
    LossSpread,
    OwnCode,
    PrivacySummary,
    Summary,
    TimeSummary,
    TrafficSummary,
)


def summarise(
    config: RunConfig,
    train: Ratings,
    test: Ratings,
    outcome: Outcome,
    composed: NDArray[np.float64],
    accuracy: dict[str, Any],
    startup_seconds: float,
    total_seconds: float,
    nothing_sent: float | None = None,
    item_names: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Summary:
    """Return the summary of a run that is not stored yet."""
    summary = summary_of(
        config,
        _dataset(config, train, test),
        Accuracy.model_validate(accuracy),
        outcome,
        composed,
        (
            *_note_on_split(config, train, test),
            *_note_on_cold_users(test),
            *_notes_on_composition(config, train.n_users),
            *_note_on_signs(config, train),
            *_notes_on_lists(config, train),
            *_note_on_randomness(config),
        ),
        startup_seconds=startup_seconds,
        total_seconds=total_seconds,
    )
    influence = {"influence_of_one": config.protocol.influence_of_one(train)}
    added: dict[str, Any] = {"privacy": summary.privacy.model_copy(update=influence)}
    added |= {"nothing_sent": nothing_sent, "item_names": dict(item_names or {})}
    if groups:
        of_all = {name: tuple(map(GroupSummary.model_validate, own)) for name, own in groups.items()}
        added["groups"] = of_all
    return summary.model_copy(update=added)


def summary_of(
    config: RunConfig,
    dataset: DatasetSummary,
    accuracy: Accuracy,
    outcome: ServerOutcome,
    composed: NDArray[np.float64],
    notes: tuple[str, ...],
    *,
    startup_seconds: float,
    total_seconds: float,
) -> Summary:
    """Return the summary of a run, simulated or not.

    ``composed`` holds the users' losses by composition, shape (users,), and ``notes`` what comes between the
    words of the guarantee and the outcome's own notes.
    """
    # A user-defined class goes by its module and name, also where it gives itself a kind.
    protocol = config.protocol
    own = user_defined_classes(protocol) + user_defined_classes(protocol.picked)
    references = {kind_of(each): reference_of(each) for each in own}
    return Summary(
        name=config.name,
        protocol=references.get(protocol.kind, protocol.kind),
        mechanism=references.get(protocol.mechanism_name, protocol.mechanism_name),
        completion=references.get(protocol.completion_name, protocol.completion_name),
        beyond_the_paper=tuple(str(own) for own in deviations(config.protocol.picked)),
        dataset=dataset,
        accuracy=accuracy,
        privacy=_privacy(config, outcome, composed, notes),
        traffic=_traffic(outcome, dataset, config.simulation.network),
        distance=DistanceSummary.model_validate(outcome.distance),
        completion_diagnostics=outcome.diagnostics,
        **_drawn(outcome),
        time=TimeSummary(
            total_s=total_seconds,
            startup_s=startup_seconds,
            clients_s=outcome.clients_seconds,
            server_s=outcome.server_seconds,
        ),
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        environment={
            "python": platform.python_version(),
            "platform": platform.platform(),
            **_versions(),
            "simulation": asdict(config.simulation),
        },
    )


def _drawn(outcome: ServerOutcome) -> dict[str, Any]:
    """Return what the completion learned that pages draw; nothing of others."""
    drawn = {"mixture": outcome.mixture, "domains": outcome.domains}
    return {name: own for name, own in drawn.items() if own is not None}


@cache
def _versions() -> dict[str, str]:
    return {package: version(package) for package in ("dprec", "flwr", "ray", "numpy", "scipy")}


def _dataset(config: RunConfig, train: Ratings, test: Ratings) -> DatasetSummary:
    return DatasetSummary(
        kind=config.dataset.kind,
        notes=tuple(_notes_on_values(config, train, test)),
        users=train.n_users,
        represents=config.dataset.represented(train.n_users),
        items=train.n_items,
        train_ratings=train.count,
        test_ratings=test.count,
        **_of_scale(train.scale),
        scale_read_off=() if train.scale.implicit else config.dataset.read_off(),
        users_only_in_test=_users_only_in_test(train, test),
        items_only_in_test=_items_only_in_test(train, test),
    )


def _of_scale(scale: RatingScale) -> dict[str, Any]:
    """Return what a summary says of the scale; nothing of implicit data."""
    if scale.implicit:
        return {"scale": None, "levels": None, "binarized_above": None}
    levels = tuple(scale.values.tolist())
    return {"scale": (scale.low, scale.high), "levels": levels, "binarized_above": scale.cut}


def _users_only_in_test(train: Ratings, test: Ratings) -> int:
    tested = test.counts > 0
    return int((tested if isinstance(test, ColdRatings) else tested & (train.counts == 0)).sum())


def _items_only_in_test(train: Ratings, test: Ratings) -> int:
    rated = np.zeros((2, train.n_items), dtype=np.bool_)
    rated[0, train.items], rated[1, test.items] = True, True
    return int((rated[1] & ~rated[0]).sum())


def _privacy(
    config: RunConfig, outcome: ServerOutcome, composed: NDArray[np.float64], notes: tuple[str, ...]
) -> PrivacySummary:
    guarantee, accountant = outcome.guarantee, outcome.accountant
    return PrivacySummary(
        status=guarantee.status,
        declared_by=_declared_by(config) if guarantee.status == "declared" else (),
        trust=guarantee.trust,
        epsilon_per_rating=_largest(accountant.get_epsilon(per="rating")),
        epsilon_per_user=_spread(accountant.get_epsilon()),
        epsilon_composed=_spread(composed),
        epsilon_any_two=_any_two(outcome, config.protocol.delta),
        **_shuffled(outcome, config.protocol.delta),
        delta=config.protocol.delta,
        composition="pld" if accountant.composes else "sum",
        noise=outcome.noise,
        tau=outcome.tau,
        epsilon_claimed=_claimed(accountant.claimed),
        trusts_server=guarantee.trusts_server,
        hides_rated_items=guarantee.hides_rated_items,
        notes=(*guarantee.statements, *notes, *outcome.notes),
    )


def _declared_by(config: RunConfig) -> tuple[OwnCode, ...]:
    sources = sources_of(declaring(config.protocol, config.schedule))
    return tuple(OwnCode(component=name, source=source) for name, source in sources.items())


def _spread(losses: NDArray[np.float64]) -> LossSpread:
    return LossSpread(
        max=_finite(losses.max()), mean=_finite(losses.mean()), median=_finite(np.median(losses))
    )


def _shuffled(outcome: ServerOutcome, delta: float) -> dict[str, Any]:
    """Return what a summary says of reports that were shuffled one by one; nothing of others."""
    losses = outcome.accountant.per_report(delta)
    if losses is None:
        return {}
    return {"epsilon_per_rating_shuffled": _spread(losses), "unlinked": outcome.guarantee.unlinked}


def _any_two(outcome: ServerOutcome, delta: float) -> float | None:
    """Return the largest loss between any two profiles; None is proved where the item set is revealed."""
    if not outcome.guarantee.hides_rated_items:
        return None
    return _finite(outcome.accountant.between_profiles(delta).max())


def _claimed(accountant: PrivacyAccountant | None) -> ClaimedLoss:
    if accountant is None:
        return ClaimedLoss(per_rating=None, per_user=None)
    per_rating, per_user = accountant.get_epsilon(per="rating"), accountant.get_epsilon()
    return ClaimedLoss(per_rating=_largest(per_rating), per_user=_finite(per_user.max()))


def _notes_on_composition(config: RunConfig, users: int) -> tuple[str, ...]:
    """Note where what is asked for per user holds by composition, and whether its delta is too large."""
    privacy = config.protocol.privacy
    if privacy is None or not config.protocol.promise().delta:
        return ()
    shared = config.schedule is None or config.schedule.share(privacy, 2) != privacy
    where = "" if shared else " in each collection"
    holds = (
        f"Epsilon = {privacy.epsilon:g} per user holds with delta = {privacy.delta:g}{where}: it bounds the "
        "composed loss, not the sum."
    )
    too_large = note_on_delta(privacy.delta, users)
    return (holds,) if too_large is None else (holds, too_large)


def _note_on_cold_users(test: Ratings) -> tuple[str, ...]:
    """Note that those who are tested took no part, and at what price they predict."""
    if not isinstance(test, ColdRatings):
        return ()
    return (
        f"Accuracy is that of {int((test.counts > 0).sum()):,} users who took no part: they sent nothing to "
        f"learn from, their devices received what was learned, and predict from {test.given.count:,} items "
        "that are given. Bytes and losses are those of the users who took part.",
    )


def _note_on_signs(config: RunConfig, train: Ratings) -> tuple[str, ...]:
    """Note where ratings were cut into signs, and that the cut itself is not protected."""
    if config.binarization is None:
        return ()
    signs = f"A rating above {train.scale.cut:.6g} ({{}}) counts as +1, any other as -1"
    if config.binarization.kind == "mean":
        told = (
            "the cut is computed from everybody's ratings as they are, and told: losses are of signs, and no "
            "epsilon covers what the cut tells of a rating. A threshold that is configured is public."
        )
        return (f"{signs.format('the mean train rating')}; {told}",)
    return (f"{signs.format('as configured')}; the cut is taken to be public.",)


def _notes_on_lists(config: RunConfig, train: Ratings) -> tuple[str, ...]:
    """Note what the figures of lists mean."""
    if train.scale.implicit:
        return (
            "Lists rank all items that a user does not have in training by score; metrics are means over the "
            "users with a test item. An item that is not among the test items counts as not relevant, "
            "although the user may like it.",
            *_note_on_samples(config),
        )
    return *_note_on_test_lists(config, train), *_note_on_ranking(config, train), *_note_on_samples(config)


def _note_on_test_lists(config: RunConfig, train: Ratings) -> tuple[str, ...]:
    """Note where lists are not of test items alone, and what that does to precision and recall."""
    if config.evaluation.candidates == "test" or is_binary(train.scale):
        return ()
    return (
        "Precision, recall and F-score are of lists from all items that a user has not rated in training. An "
        "item without a test rating counts as not relevant, so they are lower than over test items alone.",
    )


def _note_on_ranking(config: RunConfig, train: Ratings) -> tuple[str, ...]:
    """Note what the figures of lists from the catalogue mean, where they were asked for."""
    ranking, bound = config.evaluation.ranking, config.evaluation.relevant_from
    if ranking is None:
        return ()
    mean = "of +1" if is_binary(train.scale) else "of at least the user's mean train rating"
    relevant = mean if bound is None or is_binary(train.scale) else f"of at least {bound:g}"
    return (
        f"Rankings: a test rating {relevant} makes an item relevant; an item without a test rating counts as "
        "not relevant. Lists are by predicted rating, which orders what a user would like after choosing it, "
        "not what the user would choose: low figures over a whole catalogue are usual.",
    )


def _note_on_samples(config: RunConfig) -> tuple[str, ...]:
    """Note that figures of samples compare with no others."""
    ranking = config.evaluation.ranking
    if ranking is None or ranking.negatives is None:
        return ()
    return (
        f"Sampled rankings are among {ranking.negatives:,} drawn items a user (seed {ranking.seed}): they "
        "compare with no other sample and no full ranking, and may order methods differently.",
    )


def _note_on_randomness(config: RunConfig) -> tuple[str, ...]:
    """Note what determinism means for secrecy, where noise protects anything."""
    if not config.protocol.draws_noise:
        return ()
    if config.simulation.seed == "os":
        return (
            "All noise was drawn from entropy of the operating system, which was not kept: it cannot be "
            "computed again, and no other run has the same bits.",
        )
    return (
        "All noise was drawn from the seed in config.yaml, so that the run can be repeated bit by bit: who "
        "knows or guesses the seed can remove the noise. A deployment needs secrets (simulation.seed: os).",
    )


def _traffic(outcome: ServerOutcome, dataset: DatasetSummary, network: NetworkOptions) -> TrafficSummary:
    traffic: TrafficLedger = outcome.traffic
    up, down = network_bytes(traffic, network.contacts(traffic.requests))
    carried = (up, down) if traffic.messages.any() else (None, None)
    return TrafficSummary(
        rounds=len(outcome.rounds),
        users=dataset.users,
        payload_bits_per_rating=(
            8 * int(traffic.uplink_payload.sum()) / dataset.train_ratings if dataset.train_ratings else None
        ),
        uplink=_direction(traffic.uplink_payload, traffic.uplink_message, carried[0]),
        downlink=_direction(traffic.downlink_payload, traffic.downlink_message, carried[1]),
    )


def _direction(
    payload: NDArray[np.int64], message: NDArray[np.int64], network: NDArray[np.int64] | None
) -> DirectionSummary:
    return DirectionSummary(
        payload_bytes=int(payload.sum()),
        message_bytes=int(message.sum()),
        payload_mean_per_user=float(payload.mean()),
        payload_max_per_user=int(payload.max()),
        message_mean_per_user=float(message.mean()),
        message_p95_per_user=float(np.percentile(message, 95)),
        message_max_per_user=int(message.max()),
        network_bytes=None if network is None else int(network.sum()),
        network_mean_per_user=None if network is None else float(network.mean()),
        network_max_per_user=None if network is None else int(network.max()),
    )


def _largest(per_rating: NDArray[np.float64]) -> float | None:
    """Return the largest loss of those who have one."""
    return _finite(np.nanmax(per_rating, initial=-math.inf))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


_LEDGERS = (
    "Deployed: losses are those that follow from what the server was sent. What a device has spent is in its "
    "own ledger, with answers that came to nothing."
)
_SECRETS = (
    "Every device drew its noise from a secret of its own, and the server from its key, which prepare took "
    "from the operating system: whoever has deployment.json can compute what the server drew."
)
_SEEDED = (
    "A test: devices and server drew from the seed of the configuration. All noise can be computed again, so "
    "it protects nobody."
)


def summarise_deployed(
    config: RunConfig,
    scale: RatingScale,
    n_items: int,
    outcome: ServerOutcome,
    composed: NDArray[np.float64],
    *,
    seeded: bool,
    total_seconds: float,
) -> Summary:
    """Return the summary of a deployed run that is not stored yet.

    ``composed``, shape (users,): the users' losses by composition.
    ``seeded``: whether devices and server drew from a seed.
    """
    dataset = DatasetSummary(
        kind="deployed",
        users=composed.size,
        items=n_items,
        train_ratings=None,
        test_ratings=None,
        **_of_scale(scale),
        users_only_in_test=None,
        items_only_in_test=None,
    )
    summary = summary_of(
        config,
        dataset,
        Accuracy.model_validate({"rmse": None, "mae": None}),
        outcome,
        composed,
        (_LEDGERS, _SEEDED if seeded else _SECRETS, *_notes_on_composition(config, composed.size)),
        startup_seconds=0.0,
        total_seconds=total_seconds,
    )
    return summary.model_copy(update={"devices": "deployed"})


_MANY = 0.4
"""Share of ratings of 0 or less, all of them alike, that suggests that they are none."""


def _note_on_split(config: RunConfig, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield how somebody's own ratings were divided; nothing of a data set that is public."""
    if not config.dataset.own:
        return
    chosen = [f"{name} {value}" for name, value in asdict(config.split).items() if name != "kind"]
    split = " ".join([config.split.kind, *chosen])
    given = held_by_tested(train, test)
    every = train.count + test.count + (0 if given is train else given.count)
    yield f"To test on: {test.count:,} of {every:,} ratings (split: {split})."


def _note_on_scale(dataset: Dataset, scale: RatingScale) -> str:
    """Say which scale it is, and where the ratings decided on it, what that reveals and how to avoid it."""
    words, found = scale.describe(), dataset.read_off()
    if not found:
        return f"Scale: {words} (as given)."
    levels = scale.values
    step = {} if scale.continuous else {"step": float(levels[-1] - levels[0]) / (levels.size - 1)}
    slider = {"continuous": True} if scale.continuous else {}
    settings = {"low": scale.low, "high": scale.high, **step, **slider}
    public = dataset.written(settings)
    return (
        f"Scale: {words}, read off the private ratings ({', '.join(found)}). No epsilon covers that: a "
        f"single rating can change the scale, which everybody sees. Given, it is public: {public}"
    )


def _notes_on_values(config: RunConfig, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield how somebody's own ratings were read, and what looks wrong: all alike, or mostly for none."""
    dataset = config.dataset
    if not dataset.own or train.scale.implicit:
        return
    if config.binarization is None:
        yield _note_on_scale(dataset, train.scale)
    values, scale = np.concatenate([train.values, test.values]), train.scale
    if not values.size:
        return
    if values.min() == values.max():
        yield (
            f"All ratings are the same, {values[0]:g}: there is nothing to predict, and what the figures of "
            "accuracy measure is noise."
        )
    share = float(np.mean(values == scale.low))
    if not is_binary(scale) and scale.low <= 0 and _MANY < share < 1:
        yield (
            f"Of all ratings, {share:.0%} are {scale.low:g}: if that means not rated, "
            f"{dataset.written({'missing': [scale.low]})} leaves them out."
        )
