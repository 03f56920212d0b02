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
from dprec.auditing import Sent, measured
from dprec.components import sources_of
from dprec.errors import InputError, SettingError, within
from dprec.progress import Progress, silent
from dprec.protocols import findings
from dprec.protocols.base import Promise, Protocol, check_suits, declaring
from dprec.protocols.findings import CrossDomainOutputs, Finding, NoisySums
from dprec.ratings import Ratings, RatingScale
from dprec.sent_symbols import SentSymbols
from simulation.auditing import experiments, listening
from simulation.auditing.experiments import Audit, Experiment
from simulation.auditing.outputs import output_findings, release_findings
from simulation.auditing.sums import sum_findings
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import parse_yaml, presets
from simulation.execution import SideData, knowing_users, load_ratings
from simulation.pages.audit_page import audit_page, presets_page
from simulation.protocols.course import course_of
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
    result = audit_of(config, Auditor.of(config, trials, confidence), progress)
    if folder is not None:
        files = {CONFIG: config.to_yaml(), AUDIT: result.to_json(), REPORT: audit_page(result.values())}
        write_files(folder, files)
    return result


def audit_of(config: RunConfig, auditor: Auditor, progress: Progress) -> Audit:
    """Return what an auditor finds about a configuration."""
    protocol, findings = config.protocol, tuple(auditor.findings(progress))
    return Audit(
        config.name,
        protocol.kind,
        protocol.facts.protects,
        auditor.trials,
        auditor.confidence,
        findings,
        sources_of(declaring(protocol)),
    )


def check_options(trials: int, confidence: float) -> None:
    """Refuse options that are out of range."""
    if not isinstance(trials, int) or trials < _LEAST_TRIALS:
        raise InputError("trials", repr(trials), f"an integer, at least {_LEAST_TRIALS}")
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InputError("confidence", repr(confidence), "a number between 0 and 1")


@dataclass(frozen=True)
class Auditor:
    """A protocol, reduced for an audit."""

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

    @classmethod
    def of(cls, config: RunConfig, trials: int, confidence: float) -> Auditor:
        """Check a configuration as a run would, and reduce it."""
        if config.schedule is not None:
            accepted = "null, and a split: an audit tests one collection"
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
        symbols = small.protocol.setup().sent_symbols(train)
        items = 1 if symbols is None else symbols.fewest_items
        return cls(small, config.protocol.promise(), scale, items, trials, confidence)

    @property
    def key(self) -> str:
        """Equal for configurations whose devices send the same."""
        protocol, scale = self.config.protocol, self.scale.values.tolist()
        return f"{self.config.seed} {scale} {self.fewest_items} {protocol!r}"

    def findings(self, progress: Progress) -> Iterator[Finding]:
        """Yield what every test of the audit measures, of those that the protocol has it do.

        Where users choose their own epsilons, each is audited by itself, against its own promise.
        """
        protocol = self.config.protocol
        if protocol.privacy is None or not protocol.privacy.own:
            yield from protocol.audit(_Tests(self, progress))
            return
        for budget in protocol.privacy.alone():
            each = replace(protocol, privacy=budget)
            config = self.config.model_copy(update={"protocol": each})
            alone = replace(self, config=config, promise=replace(self.promise, epsilon=budget.epsilon))
            for finding in each.audit(_Tests(alone, progress)):
                yield replace(finding, test=f"epsilon {budget.epsilon:g}: {finding.test}")


@dataclass(frozen=True)
class _Tests:
    """The tests that a protocol can ask for; see `simulation.protocols.base.Auditor`."""

    auditor: Auditor
    progress: Progress

    def of_releases(self, complete: findings.Complete) -> Iterator[Finding]:
        """Compare what a trusted server releases of two small data sets, many times."""
        own = self.auditor
        return release_findings(complete, own.promise, own.scale, own.trials, self._seed, self._failure)

    def of_groups(self, moved: findings.Moved, loss: Callable[[float], float]) -> Iterator[Finding]:
        """Have users move others in groups of several sizes."""
        promise, seeds = self.auditor.promise, range(self._seed, self._seed + _GROUPS)
        cases = [(size, moved(size, self.auditor.scale, seed)) for size in _GROUP_SIZES for seed in seeds]
        tried = [(size, far) for size, far in cases if far is not None]
        most, farthest = (max(column) for column in zip((0, 0.0), *tried, strict=True))
        number, share = len(tried), 1 - (1 - _SEEN) ** (1 / max(len(tried), 1))
        covers = (
            f"in {number} groups of up to {most} made-up users: mixing in {share:.0%} of such "
            f"groups would be seen with probability {_SEEN:g}, mixing of others would not"
        )
        test = "one user beside others, whose updates must not move"
        yield Finding(test, "user", promise.epsilon, loss(farthest), None, True, 1.0, covers)

    def of_samples(self, test: str, sample: findings.Sample) -> Iterator[Finding]:
        """Compare what is seen with a user and without."""
        promise, trials = self.auditor.promise, self.auditor.trials
        sides = [Sent.of_rounds([sample(present, trials, self._seed + present)]) for present in (True, False)]
        result = measured([(sides[0], sides[1])], self._failure, promise.delta)
        power = result.power(promise.epsilon)
        yield Finding(test, "user", promise.epsilon, result.at_least, None, exact=False, power=power)

    def of_sums(self, released: NoisySums) -> Iterator[Finding]:
        """Compare sums of contributions with noise."""
        own = self.auditor
        return sum_findings(released, own.promise, own.trials, self._seed, self._failure)

    def of_outputs(self, given: CrossDomainOutputs) -> Iterator[Finding]:
        """Compare replacements, and the neighbours and similarities of predictions."""
        own = self.auditor
        return output_findings(given, own.scale, own.trials, self._seed, self._failure)

    def of_devices(self) -> Iterator[Finding]:
        """Compare what the devices of people send whose profiles differ, in runs of the protocol."""
        planned, promise = self._experiments(), self.auditor.promise
        runs = len(planned) + 1
        tests = sum(len(each.questions) for each in planned) + _SUSPICIONS
        failure = self._failure / tests
        # An exact loss that a class from outside declares is computed from nothing.
        if not promise.delta and not declaring(self._protocol):
            for test, entries, loss in self._protocol.setup().exact_losses(self._held):
                promised, unit = promise.loss(entries), promise.unit_of(entries)
                yield Finding(test, unit, promised, loss, None, exact=True, power=1.0)
        for done, experiment in enumerate(planned):
            self.progress("auditing", done, runs)
            people = self._people(experiment, self.auditor.trials)
            overheard = listening.overhear(self._config, people, separating=experiment.separating)
            sent = overheard.by_profile(len(experiment.profiles))
            for question in experiment.questions:
                pairs = [(sent[one], sent[other]) for one, other in question.pairs]
                result = measured(pairs, failure, promise.delta)
                promised = promise.loss(question.entries)
                # The ledger's sums are no bound on composed budgets.
                unit = "rating" if question.entries == 1 else "user"
                yield Finding(
                    test=question.test,
                    unit=promise.unit_of(question.entries),
                    promised=promised,
                    at_least=result.at_least,
                    charged=None if promise.delta else overheard.charged[unit],
                    exact=False,
                    power=result.power(promised),
                )
        self.progress("auditing", runs - 1, runs)
        # With other parameters to start from, another run asks other questions.
        alike = not self._protocol.facts.starts_at_random
        suspected = listening.suspicions(*self._same_people(), self._symbols, alike=alike)
        yield from (suspicion.finding(failure) for suspicion in suspected)
        yield from listening.findings_of_questions(self._config, promise, self._people(planned[1], 1))
        self.progress("auditing", runs, runs)

    @property
    def _config(self) -> RunConfig:
        return self.auditor.config

    @property
    def _protocol(self) -> Protocol:
        return self._config.protocol

    @property
    def _seed(self) -> int:
        return self._config.seed

    @property
    def _failure(self) -> float:
        return 1 - self.auditor.confidence

    @property
    def _held(self) -> Ratings:
        people = self._people(experiments.of_profiles((1, self.auditor.scale.levels)), 1)
        return course_of(self._protocol).held_ratings(people, 0)

    @property
    def _symbols(self) -> SentSymbols | None:
        return self._protocol.setup().sent_symbols(self._held)

    def _experiments(self) -> list[Experiment]:
        levels, hides = self.auditor.scale.levels, self.auditor.promise.hides_rated_items
        if self._protocol.facts.starts_at_random:
            return [experiments.of_factors(1, levels), experiments.of_canaries(1, levels)]
        symbols = self._symbols
        of_one, of_three = (
            (1, levels) if symbols is None else symbols.worst_levels(levels, entries) for entries in (1, 3)
        )
        planned = [experiments.of_one_rating(levels, of_one, hides=hides), experiments.of_profiles(of_three)]
        return [*planned, experiments.of_item_sets(levels)] if hides else planned

    def _people(self, experiment: Experiment, people: int) -> Ratings:
        return experiment.population(people, self.auditor.scale, self.auditor.fewest_items)

    def _same_people(self) -> tuple[list[listening.Overheard], dict[str, listening.Overheard]]:
        """Run people who all have one profile: with several seeds, another budget, and another rating."""
        config, levels = self._config, self.auditor.scale.levels
        privacy = self._protocol.privacy
        assert privacy is not None, "a protocol without a budget"
        protocol = replace(self._protocol, privacy=privacy.scaled(_LESS))
        less = config.model_copy(update={"protocol": protocol})
        own = (levels, 1) if self._protocol.facts.starts_at_random else (levels, levels, 1)
        # Of implicit data there is one level: an item is there or not.
        profile, changed = own, (*own[:-1], levels if levels > 1 else 0)
        people, others = (
            self._people(Experiment((each,), ()), max(8, self.auditor.trials // listening.RUNS))
            for each in (profile, changed)
        )
        seeds = [config.model_copy(update={"seed": config.seed + run}) for run in range(listening.RUNS)]
        variants = {
            "noise at two budgets": listening.overhear(less, people),
            "noise before and after a changed rating": listening.overhear(config, others),
        }
        return [listening.overhear(each, people) for each in seeds], variants


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
    known: dict[str, PresetAudit] = {}
    results = []
    for done, name in enumerate(names):
        progress("presets", done, len(names))
        started, config = time.perf_counter(), load(name)
        if seed is not None:
            config = config.model_copy(update={"seed": seed})
        try:
            auditor = Auditor.of(config, trials, confidence)
        except InputError as error:
            results.append(PresetAudit(name, None, reason=str(error)))
            continue
        before = known.get(auditor.key)
        if before is not None and before.audit is not None:
            results.append(PresetAudit(name, replace(before.audit, name=name), same_as=before.name))
            continue
        found = audit_of(config, auditor, silent)
        known[auditor.key] = PresetAudit(name, found, seconds=time.perf_counter() - started)
        results.append(known[auditor.key])
    progress("presets", len(names), len(names))
    return tuple(results)


def audit_all(folder: Path, *, trials: int | None = None, **options: Any) -> tuple[PresetAudit, ...]:
    """Audit all presets, and write audit.json and report.html to a new or empty folder.

    ``trials``: by default as many as all presets allow in a few minutes.
    ``options``: as for `audit_presets`.
    """
    check_unused(folder)
    results = audit_presets(trials=TRIALS if trials is None else trials, **options)
    values = [each.values() for each in results]
    record = json.dumps({**formats.STAMP, "presets": values}, indent=2) + "\n"
    write_files(folder, {AUDIT: record, REPORT: presets_page(values)})
    return results
