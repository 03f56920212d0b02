"""Audits of small populations as catchers of mutants by which devices leak."""

import json

import clients.app  # noqa: F401 (so that mutants are planted in what an audit would import later)
import strategies.sums  # noqa: F401 (and a run)
from simulation.auditing import audit
from simulation.configuration.loading import load
from tests.mutants.catalogue import Audited

_SMALL = "dataset={{kind: synthetic, users: 20, items: 10, ratings: 100, positive: {positive}}}"


def defect_of(audited: Audited, seed: int) -> str:
    """Return the first defect that an audit finds, in words; empty if the promise stands.

    Parameters
    ----------
    audited : Audited
    seed : int
        Of the audit's runs.
    """
    positive = json.dumps(load(audited.preset).dataset.positive)
    config = load(audited.preset, [_SMALL.format(positive=positive), *audited.settings])
    findings = audit(config, trials=audited.people, seed=seed).findings
    return next((f"{finding.test}: {finding.defect}" for finding in findings if finding.defect), "")
