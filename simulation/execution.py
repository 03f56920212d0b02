"""Runs one configuration: from its ratings, through its protocol, to the record of the run."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from clients.faults import Attendance
from dprec.binarization import Binarization
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import naming
from dprec.datasets import Dataset, copied, selected
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress, silent, unheard
from dprec.protocols.base import Protocol, Public, check_suits
from dprec.randomness import ENTROPY_BYTES, RunKeys
from dprec.ratings import ColdRatings, Ratings
from dprec.splits import Split
from simulation.attacking import Laboratory, check_attacks, check_users, perform
from simulation.configuration.models import EPSILON, RunConfig
from simulation.courses.base import course_of
from simulation.engine.choosing import choice, chosen
from simulation.engine.installing import Installer, run_protocol
from simulation.engine.memory import check_memory
from simulation.engine.session import Session, open_session
from simulation.evaluation import (
    Evaluator,
    Judged,
    check_evaluation,
)
from simulation.scheduled import KeysOf, check_kind, check_schedule, over_time
from simulation.storage.exchanges import attendance_in
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import (
    RunRecord,
    charged,
    ended_with,
    list_columns,
    messages_of,
    prediction_columns,
    shown_names,
    traffic_columns,
    user_columns,
)
from simulation.storage.summarise import summarise
from strategies.participation import RoundRecord

RoundEnded = Callable[[RoundRecord], None]
"""Called with the record of a round."""


def prepared_ratings(
    dataset: Dataset,
    split: Split,
    binarization: Binarization | None,
    seed: int,
    divided: Callable[[Ratings, Ratings], None] | None = None,
) -> tuple[Ratings, Ratings]:
    """Return the train and test ratings of a data set, as signs if a binarization is given.

    ``divided``: called with both as the split leaves them, before they are copied or become signs.
    """
    with naming(split, "a class that splits ratings"), naming(dataset, "a class that loads ratings"):
        train, test = split.split(selected(dataset), seed)
    if divided is not None:
        divided(train, test)
    if dataset.copies is not None and not dataset.represented(train.n_users):
        with within("dataset"):
            train, test = copied(train, test, dataset.copies, seed)
    if binarization is None:
        return train, test
    with within("binarization"):
        if train.scale.implicit:
            raise SettingError("", f"signs, of {train.scale.describe()}", "nothing, or data with ratings")
        if isinstance(test, ColdRatings):
            raise SettingError("", "signs, with cold users", "nothing, or another split")
        return binarization.apply(train, test)


def load_ratings(
    config: RunConfig,
    prepare: Callable[[Dataset, Split, Binarization | None, int], tuple[Ratings, Ratings]] = prepared_ratings,
) -> tuple[Ratings, Ratings]:
    """Return the train and test ratings of a configuration, checked against what else it reads and evaluates.

    ``prepare``: `prepared_ratings`, or a cached form of it.
    """
    with within("dataset"):
        size = config.dataset.known_size() if config.dataset.as_it_is else None
    if size is not None:
        _check_memory(config, *size)
    if config.protocol.remembers is not None:
        found = f"{config.protocol.remembers.kind!r}, in a configuration"
        raise SettingError("protocol.answers", found, "null: a schedule says what devices remember")
    if config.schedule is not None:
        check_schedule(config)
    if config.attacks:
        check_attacks(config)
    train, test = prepare(config.dataset, config.division, config.binarization, config.seed)
    if config.schedule is not None:
        check_kind(config.schedule, config.protocol.suited(Public.of(train)))
    if config.protocol.facts.told_tested and (config.schedule is not None or config.attacks):
        found = "devices that spare what they are tested on, with a schedule or attacks"
        raise SettingError("protocol", found, "a single collection, and no attacks")
    with within("dataset"):
        config.dataset.catalogue(train.item_ids)
        users = config.dataset.users_table(train.user_ids) if config.reads_users else None
    with within("protocol"):
        config.protocol.knowing_users(users)
    with within("evaluation"):
        check_evaluation(config.evaluation, train, test, _tested(users, test))
    if config.attacks:
        check_users(config.attacks, users)
    _attendance(config, train)  # what is no attendance is refused before anything is written
    return train, test


@dataclass(frozen=True, eq=False)
class SideData:
    """What a data set knows beside the ratings."""

    catalogue: Catalogue | None
    """Public data about the items."""
    truth: NDArray[np.float64] | None
    """The hidden matrix that the ratings were drawn from; shape (users, items)."""
    item_names: Mapping[str, str]
    """By identifier."""
    users: UsersTable | None = None
    """Public data about the users of the train ratings."""
    alone: NDArray[np.float64] | None = None
    """`Evaluator.alone` of the test ratings, where it is known."""

    @classmethod
    def of(cls, dataset: Dataset, train: Ratings, *, users: bool = False) -> SideData:
        """Read what a data set knows about the items of the train ratings, and about the users if asked.

        Raises InputError when the data cannot be read.
        """
        with within("dataset"):
            truth = dataset.hidden() if dataset.as_it_is else None
            table = dataset.users_table(train.user_ids) if users else None
            return cls(dataset.catalogue(train.item_ids), truth, dataset.item_names(), table)


def knowing_users(config: RunConfig, users: UsersTable | None) -> RunConfig:
    """Return a configuration with the epsilons that the users' table has, if it has them."""
    return config.model_copy(update={"protocol": config.protocol.knowing_users(users)})


def _check_memory(
    config: RunConfig, users: int, items: int, ratings: int, public: Public | None = None
) -> None:
    """Refuse what does not fit; ``public``: None before ratings are loaded, which may be all too many."""
    with within("protocol"):
        simulation, attacked = chosen(config.simulation, users), bool(config.attacks)
        check_memory(config.protocol, (users, items, ratings), simulation, public, attacked=attacked)


def run_prepared(
    config: RunConfig,
    train: Ratings,
    test: Ratings,
    directory: RunDirectory | None,
    *,
    side: SideData | None = None,
    checked: bool = False,
    progress: Progress = silent,
    started: float | None = None,
    ended: RoundEnded = unheard,
) -> RunRecord:
    """Run a configuration in its own session, on ratings that are already loaded.

    ``directory``: where the state is kept between rounds and the result at the end.
    ``side``: by default, it is read.
    ``checked``: whether the protocol is known to suit the ratings, before it knows users' epsilons.
    ``started``: when the run began, on the clock of `time.perf_counter`; by default now.
    ``ended``: called with the record of every round of an iterative protocol as it ends.
    """
    from dprec.kernels.compilation import compiling_told, prepare

    began = time.perf_counter() if started is None else started
    side = side or SideData.of(config.dataset, train, users=config.reads_users)
    with within("protocol"):
        informed = knowing_users(config, side.users)
        if not checked or informed.protocol is not config.protocol:
            check_suits(informed.protocol, train, test)
    config = informed
    _check_memory(config, train.n_users, train.n_items, train.count, _public(config, train, side.catalogue))
    simulation = chosen(config.simulation, train.n_users)
    if simulation.backend == "ray":
        prepare(progress)
    progress("starting Flower", 0, 1)
    nodes = math.ceil(train.n_users / simulation.partition_size(train.n_users))
    with compiling_told(progress), open_session(simulation, nodes) as session:
        record = run_in(
            session, config, train, test, directory, side=side, progress=progress, started=began, ended=ended
        )
    return record if directory is None else directory.write(record)


def run_in(
    session: Session,
    config: RunConfig,
    train: Ratings,
    test: Ratings,
    directory: RunDirectory | None = None,
    *,
    side: SideData | None = None,
    progress: Progress = silent,
    started: float | None = None,
    ended: RoundEnded = unheard,
) -> RunRecord:
    """Run a configuration, with its users' epsilons, in an open session; see `run_prepared`."""
    began = time.perf_counter() if started is None else started
    side = side or SideData.of(config.dataset, train, users=config.reads_users)
    configured, public = config, _public(config, train, side.catalogue)
    config = config.model_copy(update={"protocol": _suited(config, public)})
    evaluator = _evaluator(config, train, test, side)
    attendance, drawn_by = _attendance(config, train), config.protocol.drawn_by
    installer = Installer(session, config, drawn_by, side.catalogue, progress, ended, attendance)
    keys = partial(RunKeys.derive, config.seed, entropy=_entropy(config, directory))
    # Sums in dense linear algebra depend on how many threads share the work, so there is one.
    with threadpool_limits(limits=1):
        judged = _judged(installer, evaluator, keys, directory).noted(configured.protocol.reasons(public))
        outcome, composed = judged.outcome, judged.outcome.accountant.get_epsilon(config.protocol.delta)
        traffic = traffic_columns(train.user_ids, train.counts, outcome, composed, config.simulation.network)
        grouped = evaluator.users_of_groups(judged.predictions, judged.lists, partial(charged, traffic))
        attacks, game = config.attacks, Laboratory(installer, keys, evaluator, side.users, judged)
        reached: dict[str, Any] = {"attacks": perform(attacks, game, progress)} if attacks else {}
    seconds = session.startup_seconds, time.perf_counter() - began
    names = shown_names(side.item_names, test, outcome.domains)
    group_figures = None if grouped is None else grouped.figures
    figures = judged.measured, seconds, judged.nothing_sent, names, group_figures
    summary = summarise(config, train, test, outcome, traffic, *figures)
    reached["environment"] = {**summary.environment, "backend": choice(config.simulation, train.n_users)}
    return RunRecord(
        config=configured.written_values(),
        summary=summary.model_copy(update=reached | {"protocol": configured.protocol.kind}),
        predictions=prediction_columns(test, judged.predictions, judged.ranks, judged.relevant),
        traffic=traffic,
        rounds=ended_with(outcome.rounds, composed),
        channel=outcome.channel,
        privacy=outcome.accountant,
        messages=messages_of(config.protocol, train, outcome, config.seed, config.dataset.kind),
        users=None if grouped is None else user_columns(test, grouped.groupings, grouped.columns),
        lists=list_columns(test, judged.lists, config.evaluation.lists),
    )


def _entropy(config: RunConfig, directory: RunDirectory | None) -> bytes | None:
    """Return what devices and server draw from, or None for the seed."""
    if config.simulation.seed == "run":
        return None
    return os.urandom(ENTROPY_BYTES) if directory is None else directory.entropy()


def _attendance(config: RunConfig, train: Ratings) -> Attendance | None:
    """Return who answers in which round, where a deployment says so."""
    deployed = config.simulation.faults.attendance
    if deployed is None:
        return None
    if config.schedule is not None or config.attacks:
        found = "attendance of a single collection, with a schedule or attacks"
        raise InputError("simulation.faults.attendance", found, "one collection, and no attacks")
    return attendance_in(Path(deployed), [str(user) for user in train.user_ids.tolist()])


def _evaluator(config: RunConfig, train: Ratings, test: Ratings, side: SideData) -> Evaluator:
    """Return what evaluates a run: where users choose their own epsilons, by these as well."""
    options, privacy = config.evaluation, config.protocol.privacy
    personalised = privacy is not None and privacy.own and config.binarization is None
    if personalised and EPSILON not in options.groups:
        options = replace(options, groups=(*options.groups, EPSILON))
    return Evaluator(train, test, options, side.truth, side.catalogue, _tested(side.users, test), side.alone)


def _tested(users: UsersTable | None, test: Ratings) -> UsersTable | None:
    """Return what is known of the users with test ratings; of cold users, nothing."""
    return None if isinstance(test, ColdRatings) else users


def _public(config: RunConfig, train: Ratings, catalogue: Catalogue | None) -> Public:
    """Return what is public of the train ratings, whose users may represent a population."""
    population = config.dataset.represented(train.n_users)
    return Public.of(train, content=catalogue is not None, population=population)


def check_scales(config: RunConfig, train: Ratings) -> None:
    """Refuse a protocol whose users cannot stand for a scaled population, where one is asked for.

    Raises
    ------
    SettingError
        When the protocol needs every user of the population.
    """
    if config.dataset.represented(train.n_users) is not None:
        _suited(config, _public(config, train, config.dataset.catalogue(train.item_ids)))


def _suited(config: RunConfig, public: Public) -> Protocol:
    """Return the protocol that is run; a population suits it that its users represent."""
    protocol, train = config.protocol, public.ratings
    if train is None or public.n_users == train.n_users:
        return protocol.suited(public)
    with within("protocol"):
        suited = protocol.suited(public)
        if suited.facts.private and not suited.scales:
            found = f"one that needs every user, where {train.n_users:,} simulated users stand for all"
            raise SettingError("kind", found, "a protocol of sums, or --set dataset.simulated_up_to=null")
        suited.check(public)
        return suited


_TOLD = (
    "Devices know which items they are tested on, and never draw them as negatives: a device that only "
    "counts what it drew finds these items without anybody's help (protocol counted-negatives), so that the "
    "accuracy compares with no other."
)


def _judged(
    installer: Installer, evaluator: Evaluator, keys: KeysOf, directory: RunDirectory | None
) -> Judged:
    """Run the protocol, once or as a schedule says, and judge its predictions."""
    config = installer.config
    if config.schedule is not None:
        judged = over_time(config.schedule, installer, evaluator, keys)
    else:
        train, protocol = evaluator.train, config.protocol
        task = installer.task(
            train,
            evaluator.profiles,
            evaluator,
            keys(installer.drawn_by),
            device_ratings=course_of(protocol).held_ratings(train, config.seed),
            tested=evaluator.test if protocol.facts.told_tested else None,
            protocol=protocol.installed,
            checkpoints=None if directory is None else directory.checkpoints(config, train, evaluator.test),
        )
        outcome = run_protocol(installer.session, protocol, task)
        lists = evaluator.longest_lists(*outcome.ranking, installer.progress)
        predictions, ranks, measured = evaluator.judged(
            outcome.predict, hidden=outcome.hidden, scores=outcome.scores, lists=lists
        )
        last = [replace(record, accuracy=measured) for record in outcome.rounds[-1:]]
        outcome = replace(outcome, rounds=(*outcome.rounds[:-1], *last))
        ranking = evaluator.ranking(outcome.ranking[0], lists, installer.progress)
        relevant = None if config.evaluation.lists is None else evaluator.relevant.astype(np.float64)
        nothing_sent = evaluator.nothing_sent()
        judged = Judged(outcome, predictions, ranks, measured | ranking, nothing_sent, lists, relevant)
        judged = judged.noted((_TOLD,) if protocol.facts.told_tested else ())
    with within("evaluation"):
        user_defined = evaluator.own(judged.predictions)
    return replace(judged, measured={**judged.measured, **user_defined})
