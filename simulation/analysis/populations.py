"""How many users a protocol needs to beat a baseline, and the traffic of as many as one likes.

In a projection, every simulated user is a random draw from all people. The mean over the simulated users
carries over to N others with an uncertainty from two sources: only n users were simulated, and the N who
take part are a random draw too.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from dprec.accounting import note_on_delta
from dprec.errors import InputError
from simulation.analysis.gains import Gain, gain, to_beat
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    by_evaluation,
    reference_budget,
)
from simulation.analysis.vocabulary import Metric, grouped_by, short
from simulation.storage.files import Columns
from simulation.storage.run_files import RunRecord, network_bytes_per_user, read_traffic

_DRAWN = "synthetic"
"""Kind of the data set whose users are drawn, as many as one likes."""


@dataclass(frozen=True)
class Point:
    """A protocol at one number of users."""

    users: float
    result: ProtocolResult
    accuracy: float
    against: Gain
    """How much better it is than what is to be beaten."""


@dataclass(frozen=True)
class PopulationCourse:
    """A protocol at one budget, by the number of users."""

    name: str
    budget: float | None
    ratings: str
    """Whether users are drawn, or each number is that of a data set."""
    base: str
    """What is to be beaten: nothing sent, or a protocol."""
    points: tuple[Point, ...]
    """By ascending number of users."""

    @property
    def crossing(self) -> float | None:
        """The number of users from which on it beats the base by more than the uncertainty.

        Interpolated between two numbers of users on a logarithmic axis; 0 if it does at all of them, None if
        it does not at the largest.
        """
        if not self.points[-1].against.better:
            return None
        for before, after in reversed(list(pairwise(self.points))):
            low, high = before.against.least, after.against.least
            if not before.against.better:
                share = max(0.0, -low) / (high - low)
                return math.exp(math.log(before.users) + share * math.log(after.users / before.users))
        return 0.0

    @property
    def users_needed(self) -> str:
        """The crossing in words: at most the least that was tried, about so many, or more than the most."""
        least, most = self.points[0].users, self.points[-1].users
        if self.crossing is None:
            return f"more than {_users(most)}"
        return f"about {_users(self.crossing)}" if self.crossing else f"at most {_users(least)}"


def _users(count: float) -> str:
    """Write a number of users; of one that is interpolated, two digits are worth showing."""
    rounded = float(f"{count:.2g}") if count != round(count) else count
    return short(rounded) if rounded >= 1e6 else f"{rounded:,.0f}"


def courses(results: Sequence[ProtocolResult], metric: Metric) -> list[PopulationCourse]:
    """Return the course of every private protocol and budget with several numbers of users."""
    points: list[tuple[tuple[str, float | None, str], Point]] = []
    for evaluation, group in by_evaluation(results).items():
        baseline = to_beat(group)
        if evaluation.metric != metric or baseline is None:
            continue
        kind = evaluation.dataset if evaluation.dataset == _DRAWN else "given"
        for result in group:
            against = None if result.baseline or result.budget is None else gain(result, baseline, metric)
            users, accuracy = result.users, result.mean(metric.column)
            if against and users and accuracy is not None:
                key = result.name, result.budget, kind
                points.append((key, Point(users, result, accuracy, against)))
    by_users = grouped_by(sorted(points, key=lambda entry: entry[1].users))
    ordered = {key: by_users[key] for key, _ in points}
    # Which form of a baseline is the strongest may change with users; that with the most of them is named.
    return [
        PopulationCourse(*key, course_points[-1].against.base, tuple(course_points))
        for key, course_points in ordered.items()
        if len(course_points) > 1
    ]


def course_of(all_courses: Sequence[PopulationCourse], result: ProtocolResult) -> PopulationCourse | None:
    """Return the longest course of a result's protocol at its budget; None if there is none."""
    of_result = [
        course for course in all_courses if (course.name, course.budget) == (result.name, result.budget)
    ]
    return max(of_result, key=lambda course: len(course.points), default=None)


def users_needed(all_courses: Sequence[PopulationCourse], result: ProtocolResult) -> str | None:
    """Return how many users a result's protocol needs at its budget; None if that was not tried."""
    course = course_of(all_courses, result)
    return None if course is None else course.users_needed


def notes_on_delta(delta: float, results: Sequence[ProtocolResult]) -> Iterator[str]:
    """Warn where the delta of a comparison is above one in the number of users of its largest population."""
    users = max((result.users or 0.0 for result in results), default=0.0)
    if note := note_on_delta(delta, round(users)):
        yield note


_CONFIDENCE = 0.95
METHOD = (
    "95 % interval by normal theory (Student's t for the mean per user), allowing for chance in both who "
    "was simulated and who takes part"
)
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Projection:
    """Bytes that a population moves in a day in which everybody takes part once."""

    population: float
    total: float
    """Expected bytes."""
    low: float | None
    high: float | None
    """Ends of the interval; None if only one user was simulated."""

    @property
    def bits_per_second(self) -> float:
        """The mean rate over the day."""
        return 8 * self.total / _SECONDS_A_DAY


def project(bytes_per_user: NDArray[np.float64], population: float) -> Projection:
    """Extrapolate the bytes of simulated users to a population.

    Parameters
    ----------
    population : float
        Users a day.

    Returns
    -------
    Projection
        ``total = N mean``, with the interval ``total +- t s sqrt(N^2 / n + N)``, s the standard
        deviation over the n users and t the quantile of Student's distribution.
    """
    users = bytes_per_user.size
    total = population * float(bytes_per_user.mean())
    if users < 2:
        return Projection(population, total, None, None)
    quantile = float(scipy.special.stdtrit(users - 1, (1 + _CONFIDENCE) / 2))
    spread = float(bytes_per_user.std(ddof=1)) * math.sqrt(population**2 / users + population)
    return Projection(population, total, max(0.0, total - quantile * spread), total + quantile * spread)


def run_projections(run: RunRecord, population: float) -> list[tuple[str, Projection]]:
    """Project the traffic of a run to a population, by direction."""
    traffic = run.traffic
    rows = {
        "messages from the devices": traffic["uplink_message_bytes"],
        "messages to the devices": traffic["downlink_message_bytes"],
    }
    if run.summary.traffic.uplink.network_bytes is not None:
        rows |= {
            "network, from the devices": traffic["uplink_network_bytes"],
            "network, to the devices": traffic["downlink_network_bytes"],
            "network, both": network_bytes_per_user(traffic),
        }
    return [(label, project(spent, population)) for label, spent in rows.items()]


Traffic = Sequence[tuple[ProtocolResult, str, Columns]]
"""Results with their labels, and what was sent by each user."""


def reference_traffic(files: ComparisonFiles) -> Traffic:
    """Return the result, label and traffic of one run per protocol, at the reference budget."""
    reference = reference_budget(files.results)
    return [
        (result, result.label(reference), read_traffic(cells[0], files.summary(cells[0])))
        for result in at_reference(files.results)
        if (cells := files.cells(result))
    ]


def comparison_projections(traffic: Traffic, population: float) -> list[tuple[str, Projection]]:
    """Project what a network carries for every protocol to a population, both directions together."""
    return [(label, project(network_bytes_per_user(columns), population)) for _, label, columns in traffic]


_LARGEST_POPULATION = 1e12


def check_population(population: float | None) -> None:
    """Refuse a population that is not a number of users."""
    if population is not None and not 1 <= population <= _LARGEST_POPULATION:
        accepted = f"a number of users from 1 to {_LARGEST_POPULATION:g}"
        raise InputError("users_a_day", repr(population), accepted)
