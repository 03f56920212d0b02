"""Audits what devices send, or a trusted server releases: how reliably it distinguishes two neighbours.

Groups of people take part in the protocol in this process, as in a run. Everybody in a group has the same
small profile, and what the devices of two groups send is compared. What is promised is read from the
configuration, and what the run's ledger charges is compared with it too, so that defects in devices,
noise, wire format and ledger can show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.auditing import measured
from dprec.components import sources_of
from dprec.errors import InputError, within
from dprec.progress import Progress, silent
from dprec.ratings import Ratings, RatingScale
from simulation.auditing import experiments
from simulation.auditing.decoding import fewest_items, reports_of
from simulation.auditing.exact import exact_findings, worst_levels
from simulation.auditing.experiments import Experiment, Profile, Question
from simulation.auditing.listening import Overheard, overhear, reduced
from simulation.auditing.outputs import output_findings
from simulation.auditing.promise import Promise, promise_of
from simulation.auditing.questions import findings_of_questions
from simulation.auditing.releases import release_findings
from simulation.auditing.result import Audit, Finding
from simulation.auditing.reuse import RUNS, suspicions
from simulation.auditing.totals import total_findings
from simulation.configuration.models import RunConfig
from simulation.execution import load_ratings
from simulation.pages.audit_page import audit_page
from simulation.protocols.declared import declaring
from simulation.protocols.iterative import IterativeProtocol
from simulation.protocols.private_als import PrivateAlsProtocol
from simulation.protocols.trusted_server import TrustedServerProtocol
from simulation.protocols.x_map import XMapProtocol
from simulation.storage.directories import AUDIT, CONFIG, REPORT, check_unused
from simulation.storage.files import write_files

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
    """Audit the promise of a configuration's protocol.

    Parameters
    ----------
    output : str or Path, optional
        Directory for config.yaml, audit.json and report.html.
    trials : int
        Number of people per profile, at least 100.
    seed : int, optional
        Seed of the audit's runs; by default, that of the configuration.
    confidence : float
        Probability with which all lower bounds hold together.

    Raises
    ------
    InputError
        When the protocol's devices promise nothing, or an argument is out of range.
    """
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
        protocol.mechanism_name,
        auditor.trials,
        auditor.confidence,
        findings,
        sources_of(declaring(protocol)),
    )


def check_options(trials: int, confidence: float) -> None:
    """Refuse options that are out of range.

    Raises
    ------
    InputError
    """
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
        with within("protocol"):
            small = reduced(config)
        train, _ = load_ratings(config)
        with within("protocol"):
            config.protocol.check(train)
        scale = replace(train.scale, continuous=False)
        items = fewest_items(small.protocol, train)
        return cls(small, promise_of(config.protocol), scale, items, trials, confidence)

    @property
    def key(self) -> str:
        """Equal for configurations whose devices send the same."""
        protocol, scale = self.config.protocol, self.scale.values.tolist()
        return f"{self.config.seed} {scale} {self.fewest_items} {protocol!r}"

    def findings(self, progress: Progress) -> Iterator[Finding]:
        """Yield what every test of the audit measures."""
        protocol = self.config.protocol
        if isinstance(protocol, TrustedServerProtocol):
            failure = 1 - self.confidence
            yield from release_findings(
                protocol, self.promise, self.scale, self.trials, self.config.seed, failure
            )
        elif isinstance(protocol, PrivateAlsProtocol):
            failure = 1 - self.confidence
            yield from total_findings(protocol, self.promise, self.trials, self.config.seed, failure)
        elif isinstance(protocol, XMapProtocol):
            yield from output_findings(
                protocol, self.scale, self.trials, self.config.seed, 1 - self.confidence
            )
        else:
            yield from self._of_devices(progress)

    def _of_devices(self, progress: Progress) -> Iterator[Finding]:
        planned = self._experiments()
        runs = len(planned) + 1
        tests = sum(len(each.questions) for each in planned) + _SUSPICIONS
        failure = (1 - self.confidence) / tests
        if not self.promise.delta:
            yield from exact_findings(self.config.protocol, self.promise, self.scale, self.fewest_items)
        for done, experiment in enumerate(planned):
            progress("auditing", done, runs)
            overheard = overhear(self._asking(experiment), self._people(experiment, self.trials))
            sent = overheard.by_profile(len(experiment.profiles))
            for question in experiment.questions:
                pairs = [(sent[one], sent[other]) for one, other in question.pairs]
                result = measured(pairs, failure, self.promise.delta)
                promised = self.promise.loss(question.entries)
                yield Finding(
                    test=question.test,
                    unit=self.promise.unit_of(question.entries),
                    promised=promised,
                    at_least=result.at_least,
                    charged=self._charged(overheard, question),
                    exact=False,
                    power=result.power(promised),
                )
        progress("auditing", runs - 1, runs)
        # With other starting factors, another run asks other questions.
        alike = not isinstance(self.config.protocol, IterativeProtocol)
        reports = reports_of(self.config.protocol)
        drawn = reports is not None and not reports.by_cell
        linked = reports is not None and reports.asks_further
        suspected = suspicions(*self._same_people(), alike=alike, drawn=drawn, linked=linked)
        yield from (suspicion.finding(failure) for suspicion in suspected)
        yield from findings_of_questions(self.config, self.promise, self._people(planned[1], 1))
        progress("auditing", runs, runs)

    def _asking(self, experiment: Experiment) -> RunConfig:
        """Return the configuration with the item factors that an experiment starts from."""
        protocol = self.config.protocol
        if not (experiment.from_level and isinstance(protocol, IterativeProtocol)):
            return self.config
        protocol = replace(protocol, step=replace(protocol.step, start="level"))
        return self.config.model_copy(update={"protocol": protocol})

    def _charged(self, overheard: Overheard, question: Question) -> float | None:
        """Return what the ledger charges for a difference; its sums are no bound on composed budgets."""
        if self.promise.delta:
            return None
        return overheard.charged["rating" if question.entries == 1 else "user"]

    def _experiments(self) -> list[Experiment]:
        """Return what is compared for the kind of protocol."""
        protocol, levels = self.config.protocol, self.scale.levels
        if isinstance(protocol, IterativeProtocol):
            return [experiments.of_factors(1, levels), experiments.of_canaries(1, levels)]
        hides = self.promise.hides_rated_items
        planned = [
            experiments.of_one_rating(levels, self._worst_levels(1), hides=hides),
            experiments.of_profiles(self._worst_levels(3)),
        ]
        return [*planned, experiments.of_item_sets(levels)] if hides else planned

    def _worst_levels(self, entries: int) -> tuple[int, int]:
        return worst_levels(self.config.protocol, self.scale, entries, self.fewest_items)

    def _people(self, experiment: Experiment, people: int) -> Ratings:
        return experiment.population(people, self.scale, self.fewest_items)

    def _same_people(self) -> tuple[list[Overheard], dict[str, Overheard]]:
        """Run people who all have one profile: with several seeds, another budget, and another rating."""
        config, levels = self.config, self.scale.levels
        iterative = isinstance(config.protocol, IterativeProtocol)
        profile, changed = (
            ((levels, 1), (levels, levels)) if iterative else ((levels, levels, 1), (levels, levels, levels))
        )
        people, others = (
            self._people(Experiment((Profile(own),), ()), max(8, self.trials // RUNS))
            for own in (profile, changed)
        )
        seeds = [config.model_copy(update={"seed": config.seed + run}) for run in range(RUNS)]
        variants = {
            "noise at two budgets": overhear(self._at_less_budget(), people),
            "noise before and after a changed rating": overhear(config, others),
        }
        return [overhear(each, people) for each in seeds], variants

    def _at_less_budget(self) -> RunConfig:
        protocol = self.config.protocol
        assert protocol.privacy is not None, "a protocol without a budget"
        less = replace(protocol.privacy, epsilon=_LESS * protocol.privacy.epsilon)
        return self.config.model_copy(update={"protocol": replace(protocol, privacy=less)})
