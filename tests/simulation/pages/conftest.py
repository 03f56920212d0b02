"""Run and comparison directories, written as `dprec` writes them but without running anything."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dprec.accounting import Guarantee, PrivacyAccountant, Trust
from dprec.completion import FittedMixture
from dprec.groups import MEANS, SUMS
from dprec.protocols.one_shot import OneShotProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.wire import TrafficLedger
from simulation.analysis.protocol_results import read_comparison
from simulation.comparison.tabulation import table_rows
from simulation.comparison.templates import Cell
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.strict_yaml import replace_value
from simulation.courses.task import Outcome
from simulation.pages.comparison_page import comparison_page
from simulation.pages.drawing import Plot, Rendered
from simulation.pages.run_page import run_page
from simulation.storage.columns import read_rows
from simulation.storage.directories import CELLS, COMPARISON, SUMMARY, TABLE, TIMINGS, cell_key, claim
from simulation.storage.files import csv_of_rows, write_table
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import (
    GROUP,
    RunRecord,
    holds_comparison,
    prediction_columns,
    read_run,
    traffic_columns,
)
from simulation.storage.summarise import summarise
from strategies.participation import RoundRecord
from tests.make import STARS, rated
from tests.simulation.pages.browser import Browser, chromium

USERS, ITEMS, TEST_RATINGS = 120, 200, 400
SIGNS = RatingScale(np.array([-1.0, 1.0]), cut=3.5)
HOSTILE = "<script>alert('x')</script>&\"$x_$"

Directories = Callable[..., Path]


def write_run(
    directory: Path,
    *,
    name: str = "blp-mog-mf",
    protocol: str = "one-shot",
    mechanism: str = "bounded-laplace",
    completion: str = "mog-mf",
    epsilon: float | None = 1.0,
    per: str = "rating",
    rmse: float = 1.1,
    rounds: int = 1,
    seed: int = 1,
    notes: Sequence[str] = ("Which items a user rated is not hidden.",),
    metric: str = "rmse",
    downlink: int = 110,
    hides: bool = False,
    trust: Trust | None = None,
    altered: Mapping[str, Any] | None = None,
) -> Path:
    """Write a run directory whose figures are made up, with the writer of real ones.

    Parameters
    ----------
    altered : mapping, optional
        What the summary is changed to afterwards, by dotted key, as a hand might change it.
    """
    private = epsilon is not None
    values: dict[str, Any] = {
        "name": name,
        "seed": seed,
        "dataset": {"kind": "synthetic"},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {"kind": protocol},
    }
    if private:
        values["protocol"]["privacy"] = {"epsilon": epsilon, "per": "cell" if hides else per}
    if protocol == "one-shot":
        values["protocol"] |= {"mechanism": {"kind": mechanism}, "completion": {"kind": completion}}
    else:
        values["protocol"] |= {"gradient": {"kind": "one-bit"}, "rounds": rounds}
    if metric == "sign_accuracy":
        values["binarization"] = {"kind": "threshold", "above": 3.5}
    config = parse_config(values)
    train, test = _ratings(seed, STARS if metric == "rmse" else SIGNS)
    accuracy: dict[str, float | None] = {"sign_accuracy": rmse, "relative_error": None}
    if metric == "rmse":
        ranking = {"precision_at_k": 0.6, "recall_at_k": 0.7, "f_score_at_k": 0.65, "k": 10}
        accuracy = {"rmse": rmse, "mae": 0.8 * rmse, **ranking}
    sent = np.full(USERS, ITEMS) if hides else train.counts
    traffic = TrafficLedger(USERS)
    traffic.uplink_payload[:] = rounds * (20 + sent * 2)
    traffic.uplink_message[:] = traffic.uplink_payload + rounds * 195
    traffic.downlink_message[:] = rounds * downlink
    traffic.messages[:] = 2 * rounds
    loss = np.inf if epsilon is None else epsilon
    accountant = PrivacyAccountant(np.ones(USERS, dtype=np.bool_))
    accountant.step(1, np.ones(USERS, dtype=np.bool_), loss, loss * (sent if per == "rating" else 1.0))
    status: Any = "proved" if private else "none"
    trust = trust or ("local" if private else "central")
    outcome = Outcome(
        predict=lambda users, items: np.zeros(users.size),
        traffic=traffic,
        accountant=accountant,
        guarantee=Guarantee(status, trust, hides, "as made up.", tuple(notes)),
        rounds=_rounds(rounds, metric, accuracy, traffic),
        seconds=1.2,
        channel=None,
        diagnostics={"steps": 30},
        mixture=_MIXTURE,
    )
    composed = accountant.get_epsilon() / 4
    columns = traffic_columns(train.user_ids, train.counts, outcome, composed, config.simulation.network)
    noise = np.random.default_rng(seed).normal(0, 0.5, test.count)
    predictions = np.clip(3 + 0.4 * (test.values - 3) + noise, test.scale.low, test.scale.high)
    record = RunRecord(
        config=config.plain_values(),
        summary=summarise(config, train, test, outcome, columns, accuracy, (0.2, 1.5), 1.0634),
        predictions=prediction_columns(test, predictions),
        traffic=columns,
        rounds=outcome.rounds,
        channel=_channel(config, train),
        privacy=accountant,
    )
    RunDirectory.claim(directory, config).write(record)
    if altered:
        alter_summary(directory, altered)
        if "groups" in altered:
            users = {"user": test.user_ids, **{f"{GROUP}{name}": test.user_ids for name in altered["groups"]}}
            zeros = dict.fromkeys((*SUMS, *MEANS), np.zeros(test.n_users))
            write_table(directory / "users.csv", users | zeros)
    return directory


_LIKELIHOOD = tuple((-9000 - 3000 * 0.8 ** np.arange(30)).tolist())
_MIXTURE = FittedMixture(pi=(0.2, 0.5, 0.3), sigma=(0.4, 0.9, 1.6), log_likelihood=_LIKELIHOOD)


def _ratings(seed: int, scale: RatingScale) -> tuple[Ratings, Ratings]:
    """Return train ratings of users who rate more or less, and test ratings of all of them."""
    draw = np.random.default_rng(seed)
    counts = np.clip(draw.lognormal(3.4, 0.8, USERS), 1, ITEMS).astype(int)
    tested = np.bincount(np.arange(TEST_RATINGS) % USERS, minlength=USERS)
    train, test = (np.arange(ITEMS) < own[:, None] for own in (counts, tested))
    levels = [draw.integers(0, scale.levels, int(cells.sum())) for cells in (train, test)]
    return rated(train, scale.values[levels[0]], scale), rated(test, scale.values[levels[1]], scale)


def _rounds(
    rounds: int, metric: str, accuracy: Mapping[str, float | None], traffic: TrafficLedger
) -> tuple[RoundRecord, ...]:
    """Return rounds after each of which accuracy is better, down to what it is in the end."""
    last = accuracy[metric]
    assert last is not None
    values = last + 1.2 / np.arange(1, rounds + 1) - 1.2 / rounds
    up, down = (int(own.sum() / rounds) for own in (traffic.uplink_message, traffic.downlink_message))
    observed = [{"norm": 2 / place, "clip": 1.0, "loss": 0.5 + 0.1 / place} for place in range(1, rounds + 1)]
    return tuple(
        RoundRecord(
            number, USERS, 0, {**accuracy, metric: float(value)}, 0, up, 0, down, 0.25,
            epsilon=number / rounds, observed=observed[number - 1] if rounds > 1 else {},
        )
        for number, value in enumerate(values, start=1)
    )  # fmt: skip


def _channel(config: RunConfig, train: Ratings) -> Any:
    protocol = config.protocol
    if not isinstance(protocol, OneShotProtocol):
        return None
    calibrated = protocol.mechanism.family(protocol.privacy, train.scale, train.n_items)
    return calibrated.device_channel(train.counts)


def alter_summary(directory: Path, altered: Mapping[str, Any]) -> None:
    """Change what a summary says, by dotted key."""
    path = directory / SUMMARY
    summary = json.loads(path.read_text())
    for key, value in altered.items():
        replace_value(summary, key, value, "test")
    path.write_text(json.dumps(summary))


def _layers(*counts: int) -> dict[str, int]:
    names = "bridges", "next_to_bridges", "away_from_bridges", "edges_to_bridges", "edges_from_away"
    return dict(zip(names, counts, strict=True))


CROSS_DOMAIN = {
    "source": {"name": "A", **_layers(90, 9, 1, 40, 2)},
    "target": {"name": "B", **_layers(80, 4, 2, 30, 1)},
    "edges_between": 400,
    "alter_ego": {
        "user": "7",
        "scale": [1.0, 5.0],
        "source_ratings": 20,
        "items": 18,
        "before": [["A:1", 2.0], ["A:2", 4.0]],
        "after": [["B:3", 5.0], ["B:4", 3.0]],
    },
}


def write_comparison(
    directory: Path,
    protocols: Sequence[dict[str, Any]] | None = None,
    *,
    epsilons: Sequence[float] = (0.5, 1.0, 3.0),
    seeds: Sequence[int] = (1, 2),
    **config: Any,
) -> Path:
    """Write a comparison directory; a protocol's rmse is that at the largest epsilon."""
    cells: dict[str, tuple[Cell, dict[str, Any]]] = {}
    for protocol in PROTOCOLS if protocols is None else protocols:
        private = protocol.get("epsilon", 1.0) is not None
        for epsilon in epsilons if private else [None]:
            for seed in seeds:
                key = cell_key(protocol["name"], epsilon, None, seed)
                results = {**protocol, "name": "cell", "epsilon": epsilon, "seed": seed}
                results["rmse"] = protocol["rmse"] + 0.01 * seed + (0.2 / epsilon if epsilon else 0)
                cell = Cell(key, protocol["name"], epsilon, None, seed, None)  # type: ignore[arg-type]
                cells[key] = cell, results
    values = {
        "name": "study",
        "match": {"epsilon": "per-rating"},
        **config,
        "cells": {key: {} for key in cells},
    }
    claim(directory, COMPARISON, yaml.safe_dump(values, sort_keys=False))
    for key, (_, results) in cells.items():
        write_run(directory / CELLS / key, **results)
    both = [table_rows(cell, directory / CELLS) for cell, _ in cells.values()]
    (directory / TABLE).write_text(csv_of_rows([row for row, _ in both]))
    (directory / TIMINGS).write_text(csv_of_rows([row for _, row in both]))
    return directory


def add_baseline(directory: Path, rmse: float, baseline: str = "nothing-sent") -> Path:
    """Add a baseline to a comparison's table, on the seeds that the others have; its runs are not there."""
    table = directory / TABLE
    rows = read_rows(table)
    silent = {key: 0.0 for key in rows[0] if key.startswith(("uplink", "downlink", "total_message"))}
    losses = {"epsilon": None, "epsilon_per_rating": 0.0, "epsilon_per_user_max": 0.0}
    named = {"name": baseline, "baseline": baseline, "rmse": rmse, "trusts_server": "False"}
    own = [{**row, **losses, **silent, **named} for row in {row["seed"]: row for row in rows}.values()]
    table.write_text("".join(csv_of_rows([*rows, *own])))
    return directory


RANDOMIZED = {"mechanism": "zheng-randomized-response", "completion": "mf", "hides": True}
PROTOCOLS: list[dict[str, Any]] = [
    {"name": "plain-mf", "mechanism": "none", "epsilon": None, "rmse": 0.93},
    {"name": "blp-mog-mf", "rmse": 1.05},
    {"name": "isgd", "mechanism": "clamped-laplace", "completion": "mf", "rmse": 1.0},
    {"name": "zheng-rr", "rmse": 1.3, **RANDOMIZED},
    {"name": "pg-mf", "protocol": "iterative", "per": "user", "rounds": 10, "rmse": 1.35, "downlink": 68_000},
]


@pytest.fixture
def run_directory(tmp_path: Path) -> Directories:
    return partial(write_run, tmp_path / "run")


@pytest.fixture
def comparison_directory(tmp_path: Path) -> Directories:
    return partial(write_comparison, tmp_path / "comparison")


def words_of(
    directory: Path, population: float | None = None, *, examples: bool = False
) -> tuple[str, dict[str, Plot]]:
    """Return a page whose figures are left blank, which takes no time to draw; and these figures."""
    plots: dict[str, Plot] = {}

    def blank(plot: Plot) -> Rendered:
        plots[plot.name] = plot
        return Rendered(plot, "<svg/>", "<svg/>")

    if holds_comparison(directory):
        return comparison_page(read_comparison(directory), population, blank), plots
    return run_page(read_run(directory), "", population, blank, examples=examples), plots


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a page in headless Chromium."""
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
