"""What transcripts say: what the server of each protocol has seen of its users, and nothing else."""

from typing import Any

import numpy as np
import pytest

from dprec.attacks import Transcript
from dprec.attacks.shadow import held
from dprec.observations import RowReports
from dprec.protocols.silent import SilentProtocol
from simulation import run
from simulation.configuration.loading import load
from tests.simulation.attacking.games import SPYING, Spying
from tests.simulation.conftest import presets

QUICK = {
    *("sums-on-device", "fcf", "federated-mf", "gram-local", "gram-secagg", "nothing-sent"),
    *("one-bit-gradient", "pairs-in-blanket", "pg-mf", "randomized-sets", "weekly-fresh", "x-map"),
}
PRESETS = [
    pytest.param(values, id=name, marks=() if name in QUICK else pytest.mark.thorough)
    for name, values in presets().items()
]


def said_in(values: dict[str, Any]) -> Transcript:
    run({**values, "attacks": [{"kind": SPYING, "least": 0}]})
    return Spying.said[-1].transcript


def with_changes(name: str, **protocol: Any) -> dict[str, Any]:
    values = presets()[name]
    return {**values, "protocol": {**values["protocol"], **protocol}}


def of_single_users(said: Transcript) -> bool:
    """Return whether anything can be attributed to a user."""
    return bool(said.reports or said.uploads or said.vectors is not None)


@pytest.mark.parametrize("values", PRESETS)
def test_a_server_sees_single_users_where_it_is_sent_what_they_say(values: dict[str, Any]) -> None:
    said, config = said_in(values), load(values)
    trust = config.protocol.guarantee((said.n_users, said.n_items)).trust
    assert said.trusted == (trust == "central")
    if trust in ("secure-aggregation", "shuffle"):
        assert not of_single_users(said)
    if trust == "secure-aggregation":
        assert said.sums
    if trust == "local" and getattr(getattr(config.protocol, "gradient", None), "linked", True):
        assert of_single_users(said) != isinstance(config.protocol, SilentProtocol)
    for each in said.reports:
        assert each.shape == (said.n_users, said.n_items)
    if said.newcomer is not None:
        assert np.isfinite(said.newcomer(np.arange(said.n_items))).all()


def test_a_proxy_leaves_nobodys_gradients() -> None:
    gradient = presets()["fmf-ldp"]["protocol"]["gradient"]
    assert not of_single_users(said_in(presets()["fmf-ldp"]))
    said = said_in(with_changes("fmf-ldp", gradient={**gradient, "proxy": False}))
    assert said.vectors is not None
    for upload in said.uploads:
        users = np.concatenate([part.users for part in upload.read()])
        assert np.bincount(users).tolist() == [gradient["coordinates"]] * said.n_users


def test_slopes_are_read_with_the_entries_that_were_sent_down() -> None:
    """At a large epsilon, a symbol is likelier given the sign that is true."""
    said = said_in(with_changes("one-bit-gradient", rounds=3, privacy={"epsilon": 30.0, "per": "rating"}))
    truth = Spying.said[-1].truth
    channels = []
    for each in said.reports:
        reports = each.symbols
        assert reports is not None
        assert np.array_equal(each.items, truth.items)
        given = np.stack(reports.channels)[reports.channel_of, :, reports.symbols]
        right = given[np.arange(truth.count), truth.levels.astype(np.int64) - 1]
        assert (right > given.sum(axis=1) / 2).mean() > 0.95
        channels.append(len(reports.channels))
    assert channels[0] == 1 < min(channels[1:])
    assert said.lists is not None


def test_a_trusted_server_sees_updates_without_noise() -> None:
    """No deviate is beyond 6 deviations but with a probability of 1e-6, over 480 numbers."""
    central = said_in(with_changes("fcf", rounds=2))
    local = said_in(with_changes("fcf", rounds=2, trust="local"))
    assert central.trusted
    assert not local.trusted
    clear, noisy = (said.uploads[0].to_matrix().toarray() for said in (central, local))
    assert np.linalg.norm(clear, axis=1).max() <= 1
    assert np.linalg.norm(noisy, axis=1).min() > 10
    for said in (central, local):
        assert len(said.sums) == 2
        error = said.sums[0].released - clear.sum(axis=0)
        assert np.abs(error).max() < 6 * said.sums[0].deviation


def test_randomized_sets_are_reports_on_every_cell() -> None:
    """Shares of answers are within 5.5 deviations: a false alarm of 8e-8."""
    (observed,) = said_in(presets()["randomized-sets"]).reports
    reports = observed.evidence
    assert isinstance(reports, RowReports)
    assert reports.reported.all()
    yes = np.zeros(observed.shape, dtype=np.bool_)
    yes[observed.users, observed.items] = True
    rated = Spying.said[-1].truth.to_sets().toarray() > 0
    for share, cells in ((reports.channels[0][0, 1], yes[rated]), (reports.unrated[1], yes[~rated])):
        assert abs(cells.mean() - share) < 5.5 * np.sqrt(share * (1 - share) / cells.size)


@pytest.mark.parametrize("name", ["gram-central", "gram-secagg", "dp-item-effects", "sums-on-device"])
def test_a_sum_without_what_users_add_is_noise(name: str) -> None:
    """Mean squares of so many normal numbers are within a tenth, or six deviations, of their variance.

    A device's own rounding is far below the noise. False alarm below 1e-8 for each sum.
    """
    said, profiles = said_in(presets()[name]), held(Spying.said[-1].truth)
    assert said.parted_sums == said.sums != ()
    for each in said.sums:
        assert each.added is not None
        parts = each.added(profiles)
        assert parts.shape == (said.n_users, each.released.size)
        assert parts.power(2).sum(axis=1).max() <= 1 + 1e-6
        left = (each.released - parts.sum(axis=0)) / each.deviation
        margin = max(0.1, 6 * np.sqrt(2 / left.size))
        assert np.mean(left**2) == pytest.approx(1, abs=margin)
