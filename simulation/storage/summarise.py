"""Turns the outcome of a protocol into the summary of the run."""

import math
import platform
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import note_on_delta
from dprec.binarization import is_binary
from dprec.components import deviations, kind_of, reference_of, sources_of, user_defined_classes
from dprec.datasets import Dataset
from dprec.errors import SettingError
from dprec.protocols.base import Protocol, declaring
from dprec.rating_rows import Reading
from dprec.ratings import ColdRatings, Ratings, RatingScale, held_by_tested
from dprec.schedules import RepeatedAnswers
from dprec.splits import validation_split
from simulation.configuration.models import RunConfig
from simulation.courses.task import Outcome, ServerOutcome
from simulation.storage.files import Columns
from simulation.storage.summary import (
    REPETITIONS,
    Accuracy,
    ClaimedLoss,
    DatasetSummary,
    DirectionSummary,
    DistanceSummary,
    GroupSummary,
    LossSpread,
    OwnCode,
    PrivacySummary,
    ReadSummary,
    Summary,
    Terms,
    TimeSummary,
    TrafficSummary,
)


def summarise(
    config: RunConfig,
    train: Ratings,
    test: Ratings,
    outcome: Outcome,
    traffic: Columns,
    accuracy: dict[str, Any],
    seconds: tuple[float, float],
    nothing_sent: float | None = None,
    item_names: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Summary:
    """Return the summary of a run that is not stored yet.

    ``traffic``: what each user is charged; see `simulation.storage.run_files.traffic_columns`.
    ``seconds``: of starting Flower, and of the whole run.
    """
    dataset, measured = _dataset(config, train, test), Accuracy.model_validate(accuracy)
    notes = tuple(_notes(config, train, test))
    summary = summary_of(config, dataset, measured, outcome, traffic, notes, seconds)
    influence = {"influence_of_one": config.protocol.influence_of_one(train)}
    added: dict[str, Any] = {"privacy": summary.privacy.model_copy(update=influence)}
    added |= {"nothing_sent": nothing_sent, "item_names": dict(item_names or {})}
    added["read"] = _read(config, train, test)
    if groups:
        of_all = {
            name: tuple(map(GroupSummary.model_validate, summaries)) for name, summaries in groups.items()
        }
        added["groups"] = of_all
    return summary.model_copy(update=added)


def summary_of(
    config: RunConfig,
    dataset: DatasetSummary,
    accuracy: Accuracy,
    outcome: ServerOutcome,
    traffic: Columns,
    notes: tuple[str, ...],
    seconds: tuple[float, float],
) -> Summary:
    """Return the summary of a run, simulated or not.

    ``traffic``: as for `summarise`.
    ``notes``: what comes between the words of the guarantee and the outcome's own notes.
    ``seconds``: of starting Flower, and of the whole run.
    """
    # A user-defined class goes by its module and name, also where it gives itself a kind.
    protocol, facts = config.protocol, config.protocol.facts
    classes = user_defined_classes(protocol)
    references = {kind_of(component): reference_of(component) for component in classes}
    optional = {"mixture": outcome.mixture, "domains": outcome.domains}
    packages = ("dprec", "flwr", "ray", "numpy", "scipy")
    return Summary(
        name=config.name,
        protocol=references.get(protocol.kind, protocol.kind),
        mechanism=references.get(facts.protects, facts.protects),
        completion=references.get(facts.learns, facts.learns),
        beyond_the_paper=tuple(map(str, deviations(protocol.picked))),
        dataset=dataset,
        accuracy=accuracy,
        privacy=_privacy(config, outcome, traffic, notes),
        terms=_terms(config, outcome, traffic),
        traffic=_traffic(outcome, dataset, traffic),
        distance=DistanceSummary.model_validate(outcome.distance),
        completion_diagnostics=outcome.diagnostics,
        **{name: learned for name, learned in optional.items() if learned is not None},  # type: ignore[arg-type]
        time=TimeSummary(
            total_s=seconds[1],
            startup_s=seconds[0],
            clients_s=outcome.clients_seconds,
            server_s=outcome.server_seconds,
        ),
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        environment={
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{package: _version(package) for package in packages},
            "simulation": asdict(config.simulation),
        },
    )


_version = cache(version)


def _dataset(config: RunConfig, train: Ratings, test: Ratings) -> DatasetSummary:
    tested = test.counts > 0
    only_tested = tested if isinstance(test, ColdRatings) else tested & (train.counts == 0)
    trained, wanted = np.zeros((2, train.n_items), dtype=np.bool_)
    trained[train.items], wanted[test.items] = True, True
    return DatasetSummary(
        kind=config.dataset.kind,
        notes=tuple(_notes_on_values(config, train, test)),
        users=train.n_users,
        represents=config.dataset.represented(train.n_users),
        items=train.n_items,
        train_ratings=train.count,
        test_ratings=test.count,
        **values_of_scale(train.scale),
        scale_read_off=() if train.scale.implicit else config.dataset.read_off(),
        users_only_in_test=int(only_tested.sum()),
        items_only_in_test=int((wanted & ~trained).sum()),
    )


def _count(config: RunConfig, train: Ratings, test: Ratings) -> int:
    """Return the number of ratings, each counted once; with a schedule, train ratings are tested on."""
    if config.schedule is not None:
        return train.count
    tested_profiles = held_by_tested(train, test)
    return train.count + test.count + (0 if tested_profiles is train else tested_profiles.count)


def _read(config: RunConfig, train: Ratings, test: Ratings) -> ReadSummary:
    dataset, scale = config.dataset, train.scale
    cold = test.n_users if isinstance(test, ColdRatings) else 0
    origin = "read off the ratings" if dataset.read_off() else "as given" if dataset.own else "as documented"
    reading = Reading.joined([train.reading, test.reading])
    columns = {} if reading is None else asdict(reading) | {"left_out": dict(reading.left_out)}
    return ReadSummary(
        **{"source": dataset.kind} | columns,
        scale="" if scale.implicit else f"{scale.describe()}, {origin}",
        counts=(train.n_users + cold, train.n_items, _count(config, train, test)),
    )


def values_of_scale(scale: RatingScale) -> dict[str, Any]:
    """Return what a summary says of the scale; nothing of implicit data."""
    if scale.implicit:
        return {"scale": None, "levels": None, "binarized_above": None}
    levels = tuple(scale.values.tolist())
    return {"scale": (scale.low, scale.high), "levels": levels, "binarized_above": scale.cut}


def _privacy(
    config: RunConfig, outcome: ServerOutcome, traffic: Columns, notes: tuple[str, ...]
) -> PrivacySummary:
    guarantee, accountant, delta = outcome.guarantee, outcome.accountant, config.protocol.delta
    declared = sources_of(declaring(config.protocol, config.schedule))
    claimed, reports = accountant.claimed, accountant.per_report(delta)
    shuffled: dict[str, Any] = {}
    if reports is not None:
        shuffled = {"epsilon_per_rating_shuffled": _spread(reports), "unlinked": guarantee.unlinked}
    any_two = accountant.between_profiles(delta).max() if guarantee.hides_rated_items else math.inf
    return PrivacySummary(
        status=guarantee.status,
        declared_by=tuple(
            OwnCode(component=name, source=source)
            for name, source in (declared if guarantee.status == "declared" else {}).items()
        ),
        trust=guarantee.trust,
        epsilon_per_rating=_largest(traffic["epsilon_per_rating"]),
        epsilon_per_user=_spread(traffic["epsilon_per_user"]),
        epsilon_composed=_spread(traffic["epsilon_composed"]),
        # None is proved where the item set is revealed.
        epsilon_any_two=_finite(any_two),
        **shuffled,
        delta=delta,
        composition="pld" if accountant.composes else "sum",
        noise=outcome.noise,
        tau=outcome.tau,
        epsilon_claimed=ClaimedLoss(
            per_rating=None if claimed is None else _largest(claimed.get_epsilon(per="rating")),
            per_user=None if claimed is None else _finite(claimed.get_epsilon().max()),
        ),
        trusts_server=guarantee.trusts_server,
        hides_rated_items=guarantee.hides_rated_items,
        notes=(*guarantee.statements, *notes, *outcome.notes),
    )


def _terms(config: RunConfig, outcome: ServerOutcome, traffic: Columns) -> Terms:
    assumed = asdict(outcome.guarantee.assumes)
    if config.schedule is not None:
        return Terms(**assumed, collections=-(-len(outcome.rounds) // config.schedule.periods_each))
    user = int(traffic["epsilon_composed"].argmax())
    again, delta = outcome.accountant.of_user(user, REPETITIONS), config.protocol.delta
    any_two = again.between_profiles(delta)[0] if outcome.guarantee.hides_rated_items else math.inf
    return Terms(
        **assumed,
        repetitions=REPETITIONS,
        increments=_increments(config.protocol),
        epsilon_repeated=_finite(again.get_epsilon(delta)[0]),
        any_two_repeated=_finite(any_two),
    )


def _increments(protocol: Protocol) -> bool:
    """Return whether a schedule may have everything answered once: whether its answers can be repeated."""
    one_shot = protocol.of_single_ratings
    if one_shot is None or one_shot.guard is not None:
        return False
    try:
        replace(one_shot, answers=RepeatedAnswers())
    except SettingError:
        return False
    return True


def _spread(losses: NDArray[np.float64]) -> LossSpread:
    return LossSpread(
        max=_finite(losses.max()), mean=_finite(losses.mean()), median=_finite(np.median(losses))
    )


def _largest(per_rating: NDArray[np.float64]) -> float | None:
    """Return the largest loss of those who have one."""
    return _finite(np.nanmax(per_rating, initial=-math.inf))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _traffic(outcome: ServerOutcome, dataset: DatasetSummary, traffic: Columns) -> TrafficSummary:
    bits = 8 * int(traffic["uplink_payload_bytes"].sum())
    return TrafficSummary(
        rounds=len(outcome.rounds),
        users=dataset.users,
        payload_bits_per_rating=bits / dataset.train_ratings if dataset.train_ratings else None,
        uplink=_direction("uplink", traffic),
        downlink=_direction("downlink", traffic),
    )


def _direction(way: str, traffic: Columns) -> DirectionSummary:
    payload, message, carried = (traffic[f"{way}_{what}_bytes"] for what in ("payload", "message", "network"))
    network = carried if traffic["messages"].any() else None
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


def _notes(config: RunConfig, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield what a reader of the figures must know beside the guarantee and what the outcome says."""
    if config.dataset.own:
        settings = asdict(config.split).items()
        chosen = [f"{name} {value}" for name, value in settings if name != "kind" and value is not None]
        chosen_by = f"split: {' '.join([config.split.kind, *chosen])}"
        if config.schedule is not None:
            chosen_by = "what users rate after their first period, each predicted before it is reported"
        what = "pairs" if train.scale.implicit else "ratings"
        yield f"To test on: {test.count:,} of {_count(config, train, test):,} {what} ({chosen_by})."
        if config.schedule is None and validation_split(config.dataset, config.split) is not None:
            yield "The validation part is in neither: only dprec tune reads it."
    if isinstance(test, ColdRatings):
        yield (
            f"Accuracy is that of {int((test.counts > 0).sum()):,} users who took no part: they sent nothing "
            "to learn from, their devices received what was learned, and predict from "
            f"{test.given.count:,} items that are given. Bytes and losses are those of the users who took "
            "part."
        )
    population = config.dataset.represented(train.n_users) or train.n_users
    yield from notes_on_composition(config, population)
    if config.binarization is not None:
        signs = f"A rating above {train.scale.cut:.6g} ({{}}) counts as +1, any other as -1"
        if config.binarization.kind == "mean":
            yield (
                f"{signs.format('the mean train rating')}; the cut is computed from everybody's ratings as "
                "they are, and told: losses are of signs, and no epsilon covers what the cut tells of a "
                "rating. A threshold that is configured is public."
            )
        else:
            yield f"{signs.format('as configured')}; the cut is taken to be public."
    yield from _notes_on_lists(config, train)
    if config.protocol.facts.draws_noise:
        yield _FROM_ENTROPY if config.simulation.seed == "os" else _FROM_SEED


_FROM_ENTROPY = (
    "All noise was drawn from entropy of the operating system, which was not kept: it cannot be computed "
    "again, and no other run has the same bits."
)
_FROM_SEED = (
    "All noise was drawn from the seed in config.yaml, so that the run can be repeated bit by bit: who knows "
    "or guesses the seed can remove the noise. A deployment needs secrets (simulation.seed: os)."
)


def notes_on_composition(config: RunConfig, users: int) -> tuple[str, ...]:
    """Note where what is asked for per user holds by composition, and whether its delta is too large.

    ``users``: how many the figures are about.
    """
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


def _notes_on_lists(config: RunConfig, train: Ratings) -> Iterator[str]:
    """Yield what the figures of lists mean, which compare with no others if they are of samples."""
    evaluation, binary = config.evaluation, is_binary(train.scale)
    ranking, bound = evaluation.ranking, evaluation.relevant_from
    if train.scale.implicit:
        yield (
            "Lists rank all items that a user does not have in training by score; metrics are means over the "
            "users with a test item. An item that is not among the test items counts as not relevant, "
            "although the user may like it."
        )
    elif evaluation.candidates != "test" and not binary:
        yield (
            "Precision, recall and F-score are of lists from all items that a user has not rated in "
            "training. An item without a test rating counts as not relevant, so they are lower than over "
            "test items alone."
        )
    if ranking is not None and not train.scale.implicit:
        mean = "of +1" if binary else "of at least the user's mean train rating"
        relevant = mean if bound is None or binary else f"of at least {bound:g}"
        yield (
            f"Rankings: a test rating {relevant} makes an item relevant; an item without a test rating "
            "counts as not relevant. Lists are by predicted rating, which orders what a user would like "
            "after choosing it, not what the user would choose: low figures over a whole catalogue are usual."
        )
    if ranking is not None and ranking.negatives is not None:
        is_sampled = isinstance(ranking.negatives, int)
        among = (
            f"{ranking.negatives:,} drawn items a user (seed {ranking.seed})" if is_sampled else "given items"
        )
        yield (
            f"Sampled rankings are among {among}: they compare with no other sample and no full ranking, and "
            "may order methods differently."
        )


_MANY = 0.4
"""Share of ratings of 0 or less, all of them alike, that suggests that they are none."""


def _notes_on_values(config: RunConfig, train: Ratings, test: Ratings) -> Iterator[str]:
    """Yield how somebody's own ratings were read, and what looks wrong: all alike, or mostly for none."""
    dataset, scale = config.dataset, train.scale
    if not dataset.own or scale.implicit:
        return
    if config.binarization is None and dataset.read_off():
        yield _note_on_scale(dataset, scale)
    values = np.concatenate([train.values, test.values])
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


def _note_on_scale(dataset: Dataset, scale: RatingScale) -> str:
    """Say which scale the ratings have decided on, what that reveals and how to avoid it."""
    words, read_off = scale.describe(), dataset.read_off()
    return (
        f"Scale: {words}, read off the private ratings ({', '.join(read_off)}). No epsilon covers that: a "
        "single rating can change the scale, which everybody sees. Given, it is public: "
        f"{given_scale(dataset, scale)}"
    )


def given_scale(dataset: Dataset, scale: RatingScale) -> str:
    """Return the settings that give a scale, as they are typed."""
    levels = scale.values
    step = {} if scale.continuous else {"step": float(levels[-1] - levels[0]) / (levels.size - 1)}
    slider = {"continuous": True} if scale.continuous else {}
    return dataset.written({"low": scale.low, "high": scale.high, **step, **slider})
