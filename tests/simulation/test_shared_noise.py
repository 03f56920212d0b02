"""No two runs share noise, and nothing that the server holds leads to the devices' noise."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from clients.population import Population, device_draws, open_population
from dprec.channel import Channel
from dprec.completion import ItemAverage, Observations
from dprec.datasets import Synthetic
from dprec.progress import Progress
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.session import open_overheard_session
from simulation.execution import run_in
from strategies.roster import arrivals_of

USERS, ITEMS, RATINGS, SEED, VICTIM = 60, 50, 1500, 987654321, 7

FALSE_ALARM = 1e-6
"""Of each test, by Hoeffding's inequality; the seeds are fixed."""

_LAST_RESORT = 1e-9
"""Weight of honest evidence, which decides where the attack finds nothing."""


def people() -> Ratings:
    return Synthetic(users=USERS, items=ITEMS, ratings=RATINGS).load()


def with_a_rating_changed(held: Ratings) -> Ratings:
    levels = held.levels.copy()
    levels[held.indptr[VICTIM]] = levels[held.indptr[VICTIM]] % 5 + 1
    return replace(held, levels=levels)


def with_a_rating_dropped(held: Ratings) -> Ratings:
    return held.select(np.arange(held.count) != held.indptr[VICTIM])


def configured(run_seed: int = SEED, epsilon: float = 1.0, **simulation: Any) -> RunConfig:
    return parse_config(
        {
            "name": "shared-noise",
            "seed": run_seed,
            "dataset": {"kind": "synthetic"},
            "split": {"kind": "holdout"},
            "protocol": {
                "kind": "one-shot",
                "privacy": {"epsilon": epsilon, "per": "rating"},
                "mechanism": {"kind": "bounded-laplace"},
                "completion": {"kind": "item-average"},
            },
            "simulation": {"backend": "local", "users_per_node": "all", **simulation},
        }
    )


class Sent(NamedTuple):
    """What a run's devices sent, the words they drew, and what is stored for them."""

    reports: list[bytes]
    symbols: NDArray[np.integer]
    words: NDArray[np.uint64]
    channel: Channel
    population: Population


def sent(config: RunConfig, held: Ratings) -> Sent:
    with open_overheard_session() as heard:
        session, replies = heard.session, heard.replies
        run_in(session, config, held, held)
        population = open_population(str(session.root / "00000001"))
        partition = population.partition(0)
        words = device_draws(partition, "report").per_cell(partition.counts, partition.items, 1)
    (arrived,) = (found for reply in replies if (found := arrivals_of(reply, 0, np.arange(USERS))))
    assert isinstance(config.protocol, OneShotProtocol)
    calibrated = config.protocol.mechanism.family(config.protocol.privacy, held.scale, ITEMS)
    channel, decoded = calibrated.reference_channel, calibrated.codec.decode(arrived.reports)
    # These are the words that were used.
    assert channel.sample(held.levels, words).tolist() == decoded.symbols.tolist()
    return Sent(list(arrived.reports), decoded.symbols, words, channel, population)


def tolerance(count: int, tests: int = 1) -> float:
    """Return how far a mean of numbers from 0 to 1 may be off, at the false alarm of all tests together."""
    return float(np.sqrt(np.log(2 * tests / FALSE_ALARM) / (2 * count)))


@pytest.mark.parametrize("change", [with_a_rating_changed, with_a_rating_dropped])
def test_a_changed_rating_changes_the_report_of_its_user_alone(change: Callable[[Ratings], Ratings]) -> None:
    before, after = sent(configured(), people()), sent(configured(), change(people()))
    differing = [one != other for one, other in zip(before.reports, after.reports, strict=True)]
    assert np.flatnonzero(differing).tolist() == [VICTIM]


def test_twenty_runs_share_no_noise() -> None:
    """Words of any two runs are independent, bit by bit, at the users that the runs differ in."""
    held = people()
    populations = [held, with_a_rating_changed(held)]
    runs = [
        ((seed, epsilon), sent(configured(seed, epsilon), populations[which]).words)
        for seed in range(5)
        for epsilon in (1.0, 1.5)
        for which in (0, 1)
    ]
    pairs = list(combinations(runs, 2))
    assert len(runs) == 20
    for (keys, one), (other_keys, other) in pairs:
        affected = (held.users == VICTIM) | (keys != other_keys)
        differing = np.bitwise_count(one[affected] ^ other[affected]) / 64
        assert abs(differing.mean() - 0.5) <= tolerance(64 * int(affected.sum()), len(pairs))
        # Words of 64 bits coincide by chance with probability 2e-14 in all.
        assert (one != other)[affected].all()
        assert (one == other)[~affected].all()


def best_guess(evidence: NDArray[np.float64], held: Ratings) -> NDArray[np.bool_]:
    """Return which ratings are recovered by guessing the level that the evidence favours."""
    shares = np.bincount(held.levels - 1, minlength=5) / held.count
    return np.argmax(evidence * shares, axis=1) + 1 == held.levels


def attainable(held: Ratings, *channels: Channel) -> float:
    """Return the share of ratings that the best guess recovers from symbols with independent noise."""
    shares = np.bincount(held.levels - 1, minlength=5) / held.count
    joint = channels[0].probabilities
    for channel in channels[1:]:
        joint = (joint[:, :, None] * channel.probabilities[:, None, :]).reshape(5, -1)
    return float((shares[:, None] * joint).max(axis=0).sum())


def test_what_the_server_holds_reveals_no_noise() -> None:
    held = people()
    run, keys = sent(configured(), held), RunKeys.derive(SEED, configured().protocol.drawn_by)
    assert run.population.keys == keys.installed
    installed = keys.installed
    bound = attainable(held, run.channel) + tolerance(held.count, 3)

    def recovered(master: bytes) -> float:
        stolen = replace(run.population, keys=replace(installed, devices=master.hex()))
        partition = stolen.partition(0)
        words = device_draws(partition, "report").per_cell(partition.counts, partition.items, 1)
        levels = np.arange(1, 6, dtype=np.uint8)
        fits = [run.channel.sample(np.full(words.size, level), words) == run.symbols for level in levels]
        likely = run.channel.probabilities[:, run.symbols].T
        return float(best_guess(np.stack(fits, axis=1) + _LAST_RESORT * likely, held).mean())

    for number in (keys.server, installed.public_seed, installed.network_seed):
        assert recovered(number.to_bytes(16, "big")) <= bound
    assert recovered(installed.master) > bound


def test_neither_devices_nor_server_hold_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    completed = ItemAverage.fit

    def fit(self: ItemAverage, observations: Observations, seed: int, progress: Progress) -> Any:
        given.append(seed)
        return completed(self, observations, seed, progress)

    monkeypatch.setattr(ItemAverage, "fit", fit)
    for faults in ({}, {"dropout": 0.1}):
        run = sent_description(configured(faults=faults))
        assert str(SEED) not in run
        assert f"{SEED:x}" not in run
    assert len(given) == 2
    assert SEED not in given


def sent_description(config: RunConfig) -> str:
    with open_overheard_session() as heard:
        session = heard.session
        run_in(session, config, people(), people())
        return (session.root / "00000001" / "population.json").read_text()


def test_entropy_of_the_system_makes_every_run_another() -> None:
    held = people()
    one, other = (sent(configured(seed="os"), held) for _ in range(2))
    assert (one.words != other.words).all()
    assert one.population.keys.public == other.population.keys.public
