"""Audits what devices send, or a trusted server releases: how reliably it distinguishes two neighbours.

Groups of people take part in the protocol in this process, as in a run. Everybody in a group has the same
small profile, and what the devices of two groups send is compared. What is promised is read from the
configuration, and what the run's ledger charges is compared with it too, so that defects in devices,
noise, wire format and ledger can show.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dprec import formats
from dprec.auditing import Sent
from dprec.components import sources_of
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress, silent
from dprec.protocols.base import Promise, check_suits, declaring
from dprec.protocols.findings import Complete, Finding, Moved, NoisySums, Sample
from dprec.ratings import Ratings, RatingScale
from simulation.auditing import listening
from simulation.auditing.experiments import (
    Audit,
    Experiment,
    exact,
    of_profiles,
    planned,
    planned_for_rounds,
    sampled,
)
from simulation.auditing.outputs import output_findings, release_findings
from simulation.auditing.sums import sum_findings
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import parse_yaml, presets
from simulation.courses.base import course_of
from simulation.engine.memory import check_memory_of_people
from simulation.execution import SideData, knowing_users, load_ratings
from simulation.pages.audit_page import audit_page, presets_page
from simulation.storage.directories import AUDIT, CONFIG, REPORT, check_unused
from simulation.storage.files import write_files

_GROUP_SIZES, _GROUPS = (2, 3, 4, 8, 16, 32, 64, 128, 256), 8
"""Sizes of groups in which a user moves others, and how many there are of each."""

_SEEN = 0.99
"""Probability with which what is said to be seen is seen."""

_LEAST_TRIALS = 100
_SUSPICIONS = 6
_LESS = 0.8


def audit(
    config: RunConfig,
    output: str | Path | None = None,
    *,
    trials: int = 100_000,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> Audit:
    """Audit the promise of a configuration's protocol; see `dprec.audit`."""
    check_options(trials, confidence)
    if seed is not None:
        config = config.model_copy(update={"seed": seed})
    folder = None if output is None else Path(output)
    if folder is not None:
        check_unused(folder)
    result = ProtocolAuditor.of(config, trials, confidence, progress).audit(config.name)
    if folder is not None:
        files = {CONFIG: config.to_yaml(), AUDIT: result.to_json(), REPORT: audit_page(result.values())}
        write_files(folder, files)
    return result


def check_options(trials: int, confidence: float) -> None:
    """Refuse options that are out of range."""
    if not isinstance(trials, int) or trials < _LEAST_TRIALS:
        raise InputError("trials", repr(trials), f"an integer, at least {_LEAST_TRIALS}")
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError("confidence", repr(confidence), "a number between 0 and 1")


@dataclass(frozen=True)
class ProtocolAuditor:
    """Performs the tests of `dprec.protocols.findings.AuditTests` on a protocol, reduced for an audit."""

    config: RunConfig
    """With as little work as possible, but the same reports."""
    promise: Promise
    scale: RatingScale
    """Rating scale of the configuration's data set."""
    fewest_items: int
    """Items of a catalogue about which devices report as they do about that of the data set."""
    trials: int
    """Number of people per profile."""
    confidence: float
    progress: Progress = silent

    @classmethod
    def of(
        cls, config: RunConfig, trials: int, confidence: float, progress: Progress = silent
    ) -> ProtocolAuditor:
        """Check a configuration as a run would, and reduce it."""
        if config.schedule is not None:
            accepted = "one collection: --set schedule=null --set 'split={kind: holdout}'"
            raise SettingError("schedule", repr(config.schedule.kind), accepted)
        with within("protocol"):
            listening.reduced(config)
        train, _ = load_ratings(config)
        side = SideData.of(config.dataset, train, users=config.reads_users)
        with within("protocol"):
            config = knowing_users(config, side.users)
            small = listening.reduced(config)
            check_suits(config.protocol, train)
        scale = replace(train.scale, continuous=False)
        symbols = small.protocol.installed.sent_symbols(train)
        items = 1 if symbols is None else symbols.fewest_items
        return cls(small, config.protocol.promise(), scale, items, trials, confidence, progress)

    @property
    def key(self) -> str:
        """Equal for configurations whose devices send the same."""
        protocol, scale = self.config.protocol, self.scale.values.tolist()
        return f"{self.seed} {scale} {self.fewest_items} {protocol!r}"

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        return self.config.seed

    @property
    def failure(self) -> float:
        """Probability with which any of the bounds may fail."""
        return 1 - self.confidence

    def audit(self, name: str) -> Audit:
        """Return what every test finds about a configuration of some name."""
        protocol = self.config.protocol
        return Audit(
            name,
            protocol.kind,
            protocol.facts.protects,
            self.trials,
            self.confidence,
            tuple(self.findings()),
            sources_of(declaring(protocol)),
        )

    def findings(self) -> Iterator[Finding]:
        """Yield what every test of the audit measures, of those that the protocol has it do.

        Where users choose their own epsilons, each is audited by itself, against its own promise.
        """
        protocol = self.config.protocol
        if protocol.privacy is None or not protocol.privacy.own:
            yield from protocol.audit(self)
            return
        for budget in protocol.privacy.alone():
            with_budget = replace(protocol, privacy=budget)
            config = self.config.model_copy(update={"protocol": with_budget})
            auditor = replace(self, config=config, promise=replace(self.promise, epsilon=budget.epsilon))
            for finding in with_budget.audit(auditor):
                yield replace(finding, test=f"epsilon {budget.epsilon:g}: {finding.test}")

    def of_releases(self, complete: Complete) -> Iterator[Finding]:
        """Compare what a trusted server releases of two small data sets, many times."""
        return release_findings(complete, self.promise, self.scale, self.trials, self.seed, self.failure)

    def of_groups(self, moved: Moved, loss: Callable[[float], float]) -> Iterator[Finding]:
        """Have users move others in groups of several sizes."""
        seeds = range(self.seed, self.seed + _GROUPS)
        cases = [(size, moved(size, self.scale, seed)) for size in _GROUP_SIZES for seed in seeds]
        tried = [(size, far) for size, far in cases if far is not None]
        largest, farthest = (max(column) for column in zip((0, 0.0), *tried, strict=True))
        number, share = len(tried), 1 - (1 - _SEEN) ** (1 / max(len(tried), 1))
        covers = (
            f"in {number} groups of up to {largest} made-up users: mixing in {share:.0%} of such "
            f"groups would be seen with probability {_SEEN:g}, mixing of others would not"
        )
        test = "one user beside others, whose updates must not move"
        yield exact(test, "user", self.promise.epsilon, loss(farthest), covers=covers)

    def of_samples(self, test: str, sample: Sample) -> Iterator[Finding]:
        """Compare what is seen with a user and without."""
        sides = [Sent.of_rounds([sample(there, self.trials, self.seed + there)]) for there in (True, False)]
        promise = self.promise
        yield sampled(test, "user", promise.epsilon, [(sides[0], sides[1])], self.failure, promise.delta)

    def of_sums(self, released: NoisySums) -> Iterator[Finding]:
        """Compare sums of contributions with noise."""
        return sum_findings(released, self.promise, self.trials, self.seed, self.failure)

    def of_outputs(self, protocol: Any) -> Iterator[Finding]:
        """Compare replacements, and the neighbours and similarities of predictions."""
        return output_findings(protocol, self.scale, self.trials, self.seed, self.failure)

    def of_devices(self) -> Iterator[Finding]:
        """Compare what the devices of people send whose profiles differ, in runs of the protocol."""
        protocol, promise, levels = self.config.protocol, self.promise, self.scale.levels
        ratings = course_of(protocol).held_ratings(self._people(of_profiles(1, levels), 1), 0)
        symbols = protocol.installed.sent_symbols(ratings)

        def worst(entries: int) -> tuple[int, int]:
            return (1, levels) if symbols is None else symbols.worst_levels(levels, entries)

        experiments = planned_for_rounds(1, levels)
        if not protocol.facts.starts_at_random:
            experiments = planned(levels, worst, hides=promise.hides_rated_items)
        check_memory_of_people(self.trials * max(len(experiment.profiles) for experiment in experiments))
        failure = self.failure / (sum(len(experiment.questions) for experiment in experiments) + _SUSPICIONS)
        # An exact loss that a class from outside declares is computed from nothing.
        if not promise.delta and not declaring(protocol):
            for test, entries, loss in protocol.installed.exact_losses(ratings):
                yield exact(test, promise.unit_of(entries), promise.loss(entries), loss)
        runs = len(experiments) + 1
        for done, experiment in enumerate(experiments):
            self.progress("auditing", done, runs)
            people = self._people(experiment, self.trials)
            overheard = listening.overhear(self.config, people, separating=experiment.separating)
            sent = overheard.by_profile(len(experiment.profiles))
            for question in experiment.questions:
                pairs, entries = [(sent[one], sent[other]) for one, other in question.pairs], question.entries
                # The ledger's sums are no bound on composed budgets.
                charged = None if promise.delta else overheard.charged["rating" if entries == 1 else "user"]
                about = question.test, promise.unit_of(entries), promise.loss(entries)
                yield sampled(*about, pairs, failure, promise.delta, charged)
        self.progress("auditing", runs - 1, runs)
        # With other parameters to start from, another run asks other questions.
        alike = not protocol.facts.starts_at_random
        suspected = listening.suspicions(*self._same_people(), symbols, alike=alike)
        yield from (suspicion.finding(failure) for suspicion in suspected)
        yield from listening.findings_of_questions(self.config, promise, self._people(experiments[1], 1))
        self.progress("auditing", runs, runs)

    def _people(self, experiment: Experiment, people: int) -> Ratings:
        return experiment.population(people, self.scale, self.fewest_items)

    def _same_people(self) -> tuple[list[listening.Overheard], dict[str, listening.Overheard]]:
        """Run people who all have one profile: with several seeds, another budget, and another rating."""
        config, levels, protocol = self.config, self.scale.levels, self.config.protocol
        privacy = protocol.privacy
        assert privacy is not None, "a protocol without a budget"
        less = config.model_copy(update={"protocol": replace(protocol, privacy=privacy.scaled(_LESS))})
        profile = (levels, 1) if protocol.facts.starts_at_random else (levels, levels, 1)
        # Of implicit data there is one level: an item is there or not.
        changed_profile = (*profile[:-1], levels if levels > 1 else 0)
        people, changed_people = (
            self._people(Experiment((shared,), ()), max(8, self.trials // listening.RUNS))
            for shared in (profile, changed_profile)
        )
        seeded = [config.model_copy(update={"seed": config.seed + run}) for run in range(listening.RUNS)]
        variants = {
            "noise at two budgets": listening.overhear(less, people),
            "noise before and after a changed rating": listening.overhear(config, changed_people),
        }
        return [listening.overhear(of_seed, people) for of_seed in seeded], variants


TRIALS = 20_000
"""Default, with which all presets take less than six minutes on two cores."""


@dataclass(frozen=True)
class PresetAudit:
    """What became of the audit of one preset."""

    name: str
    audit: Audit | None
    """None if it cannot be audited."""
    reason: str = ""
    """Why not; empty if it can."""
    same_as: str | None = None
    """The preset that sends the same reports, and whose findings these are."""
    seconds: float = 0.0

    def values(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        audit = None if self.audit is None else self.audit.values()
        return {"name": self.name, "audit": audit, "reason": self.reason, "same_as": self.same_as}


def audit_presets(
    *,
    trials: int = TRIALS,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> tuple[PresetAudit, ...]:
    """Audit every preset by name, or give the reason why it promises nothing; see `audit`."""
    check_options(trials, confidence)
    names = [
        name
        for name, path in presets().items()
        if "protocol" in parse_yaml(path.read_text(encoding="utf-8"), str(path))
    ]
    audited: dict[str, PresetAudit] = {}
    results = []
    for done, name in enumerate(names):
        progress("presets", done, len(names))
        started, config = time.perf_counter(), load(name)
        if seed is not None:
            config = config.model_copy(update={"seed": seed})
        try:
            auditor = ProtocolAuditor.of(config, trials, confidence)
        except InputError as error:
            results.append(PresetAudit(name, None, reason=str(error)))
            continue
        before = audited.get(auditor.key)
        if before is not None and before.audit is not None:
            results.append(PresetAudit(name, replace(before.audit, name=name), same_as=before.name))
            continue
        audited[auditor.key] = PresetAudit(
            name, auditor.audit(config.name), seconds=time.perf_counter() - started
        )
        results.append(audited[auditor.key])
    progress("presets", len(names), len(names))
    return tuple(results)


def audit_all(folder: Path, *, trials: int | None = None, **options: Any) -> tuple[PresetAudit, ...]:
    """Audit all presets, and write audit.json and report.html to a new or empty folder.

    ``trials``: by default as many as all presets allow in a few minutes.
    ``options``: as for `audit_presets`.
    """
    check_unused(folder)
    results = audit_presets(trials=TRIALS if trials is None else trials, **options)
    values = [preset.values() for preset in results]
    record = json.dumps({**formats.STAMP, "presets": values}, indent=2) + "\n"
    write_files(folder, {AUDIT: record, REPORT: presets_page(values)})
    return results
