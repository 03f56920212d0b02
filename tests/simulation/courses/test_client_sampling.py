"""Clients that are drawn for a round, what that costs whom, clips that adapt, and what is resumed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dprec.accounting import (
    FixedSize,
    Poisson,
    gaussian_epsilon,
    largest_sampled_distance,
    sampled_gaussian_epsilon,
)
from dprec.errors import RunError
from dprec.federated import STEPS, AdaptiveClip, UpdateCode
from dprec.protocols.base import Public
from dprec.protocols.client_sampling import SampledClients
from dprec.protocols.federated import FederatedProtocol, ModelServer
from dprec.randomness import ReleaseDraws
from simulation import audit, load, run
from simulation.storage.run_directory import Checkpoints
from tests.make import ON_THIS_MACHINE, STARS, small_run
from tests.refusals import refused_at

BUDGET = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}
USERS, ROUNDS = 60, 4


def values(
    model: str = "OwnFactors", simulation: dict[str, Any] | None = None, **protocol: Any
) -> dict[str, Any]:
    name, _, most = model.partition(" ")
    own: dict[str, Any] = {"kind": f"tests.clients_of_models:{name}", **({"most": int(most)} if most else {})}
    made = {"kind": "federated", "model": own, "rounds": ROUNDS, **protocol}
    return small_run(made, USERS, 20, 700, simulation={**ON_THIS_MACHINE, **(simulation or {})})


def protocol_of(**options: Any) -> FederatedProtocol:
    loaded = load(values(**options)).protocol.suited(Public(USERS, 20, STARS))
    assert isinstance(loaded, FederatedProtocol)
    return loaded


# Who is drawn.


def test_clients_are_drawn_independently_with_their_rate() -> None:
    drawn = np.array([SampledClients(rate=0.2).draw(500, 3, number) for number in range(1, 201)])
    # All draws, those of a user, and users of two rounds; false alarms of 1e-7 each.
    for count, trials, rate in (
        (drawn.sum(), drawn.size, 0.2),
        *((own, 200, 0.2) for own in drawn.sum(axis=0)[:5]),
        ((drawn[:-1] & drawn[1:]).sum(), drawn[1:].size, 0.04),
    ):
        low, high = stats.binom.ppf([5e-8, 1 - 5e-8], trials, rate)
        assert low <= count <= high


def test_so_many_clients_are_drawn_each_equally_often() -> None:
    drawn = np.array([SampledClients(clients=30).draw(100, 3, number) for number in range(1, 401)])
    assert (drawn.sum(axis=1) == 30).all()
    low, high = stats.binom.ppf([5e-9, 1 - 5e-9], 400, 0.3)
    assert ((drawn.sum(axis=0) >= low) & (drawn.sum(axis=0) <= high)).all()


@pytest.mark.parametrize("sampling", [{"rate": 0.3}, {"clients": 20}])
@pytest.mark.parametrize("users_per_node", [7, 1])
def test_who_is_drawn_and_what_is_learned_is_the_same_for_any_nodes(
    sampling: Any, users_per_node: int
) -> None:
    whole = run(values(sampling=sampling), page=False)
    parts = run(values(sampling=sampling, simulation={"users_per_node": users_per_node}), page=False)
    assert whole.predictions["prediction"].tobytes() == parts.predictions["prediction"].tobytes()
    assert [each["observed"] for each in whole.rounds] == [each["observed"] for each in parts.rounds]
    asked = [each["replies"] for each in whole.rounds]
    assert len(set(asked)) > 1 if "rate" in sampling else set(asked) == {20}
    # Nobody else is asked anything but at the end.
    assert whole.traffic["messages"].sum() < USERS * ROUNDS * 2


def test_more_clients_than_users_are_refused() -> None:
    with refused_at("protocol.sampling.clients") as caught:
        run(values(sampling={"clients": USERS + 1}), page=False)
    assert caught.value.found == "61 of 60 users"


# What it costs.


@pytest.mark.parametrize(
    ("sampling", "adjacency", "drawn"),
    [
        ({"rate": 0.1}, "add-or-remove-one", Poisson(0.1)),
        ({"clients": 6}, "replace-one", FixedSize(6, USERS)),
    ],
)
def test_a_hidden_draw_amplifies_and_everybody_pays(sampling: Any, adjacency: Any, drawn: Any) -> None:
    protocol = protocol_of(sampling=sampling, adjacency=adjacency, privacy=BUDGET)
    assert protocol.multiplier == pytest.approx(
        1 / largest_sampled_distance(2.0, 1e-5, drawn, ROUNDS), rel=1e-8
    )
    assert protocol.multiplier < 0.6 * protocol_of(adjacency=adjacency, privacy=BUDGET).multiplier
    result = run(values("OfLength", sampling=sampling, adjacency=adjacency, privacy=BUDGET), page=False)
    spent = sampled_gaussian_epsilon(1 / protocol.multiplier, drawn, ROUNDS, 1e-5)
    assert result.traffic["epsilon_composed"] == pytest.approx(np.full(USERS, spent), rel=1e-3)
    assert 1.98 < spent <= 2.0


@pytest.mark.parametrize(
    ("sampling", "adjacency"), [({"rate": 0.1}, "replace-one"), ({"clients": 6}, "add-or-remove-one")]
)
def test_a_draw_that_nothing_is_proved_of_is_refused(sampling: Any, adjacency: str) -> None:
    with refused_at("protocol.adjacency"):
        run(values("OfLength", sampling=sampling, adjacency=adjacency, privacy=BUDGET), page=False)


def test_so_many_clients_with_a_memory_are_refused() -> None:
    """What others keep tells whether they were asked, and so whether somebody else was not."""
    with refused_at("protocol.sampling.clients"):
        run(
            values("OwnFactors", sampling={"clients": 6}, adjacency="replace-one", privacy=BUDGET), page=False
        )


def test_a_server_that_is_not_trusted_knows_whom_it_asks() -> None:
    """So nothing is amplified: the noise is made for all rounds, and who is asked in fewer loses less."""
    drawn = protocol_of(sampling={"rate": 0.5}, trust="local", privacy=BUDGET)
    assert drawn.multiplier == protocol_of(trust="local", privacy=BUDGET).multiplier
    result = run(values(sampling={"rate": 0.5}, trust="local", privacy=BUDGET), page=False)
    costs = [gaussian_epsilon(2 * math.sqrt(rounds) / drawn.multiplier, 1e-5) for rounds in range(ROUNDS + 1)]
    losses = np.unique(result.traffic["epsilon_composed"])
    assert losses.size > 2
    assert all(np.isclose(costs, loss, rtol=1e-6).any() for loss in losses)


def test_a_round_in_which_nobody_is_drawn_releases_noise_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is released must not tell that somebody was not drawn."""
    monkeypatch.setattr(SampledClients, "draw", lambda own, users, *_: np.zeros(users, dtype=np.bool_))
    config = values(sampling={"rate": 0.1}, privacy=BUDGET)
    released: list[float] = []
    learn = ModelServer.learn

    def learning(own: ModelServer, *arguments: Any) -> Any:
        summed = learn(own, *arguments)
        released.append(float(summed.released.std()))
        return summed

    monkeypatch.setattr(ModelServer, "learn", learning)
    result = run(config, page=False)
    assert [each["replies"] for each in result.rounds] == [0] * ROUNDS
    # 80 numbers; false alarms of 1e-6 at most.
    deviation = protocol_of(sampling={"rate": 0.1}, privacy=BUDGET).deviation
    assert released == pytest.approx([deviation] * ROUNDS, rel=0.42)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sampling", "adjacency"), [({"rate": 0.02}, "add-or-remove-one"), ({"clients": 1}, "replace-one")]
)
def test_audits_see_draws_that_are_not_those_that_are_charged(
    sampling: Any, adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = values("OfLength", sampling=sampling, adjacency=adjacency, privacy=BUDGET)
    assert audit(config, trials=20_000).holds
    honest = SampledClients.draw
    with monkeypatch.context() as everybody:
        everybody.setattr(
            SampledClients, "draw", lambda own, users, seed, number: np.ones(users, dtype=np.bool_)
        )
        assert not audit(config, trials=20_000).holds
    config["protocol"]["rounds"] = 40
    with monkeypatch.context() as the_same:
        the_same.setattr(SampledClients, "draw", lambda own, users, seed, number: honest(own, users, seed, 1))
        assert not audit(config, trials=20_000).holds


# Clips that adapt.


def test_the_number_that_says_who_is_short_is_part_of_what_the_noise_hides() -> None:
    for noise in (1.0, 3.0, 10.0):
        adaptive, z = AdaptiveClip(noise=noise), 1.7
        protocol_noise = z * math.hypot(1.0, adaptive.bit)
        # Andrew et al., Theorem 1: the multipliers of updates, and of a count that one moves by a half.
        assert protocol_noise == pytest.approx((z**-2 - (2 * noise * z) ** -2) ** -0.5)
        assert adaptive.bit * noise * z * 2 == pytest.approx(protocol_noise)
    plain, adapts = protocol_of(privacy=BUDGET), protocol_of(privacy=BUDGET, adaptive_clip={"noise": 2.0})
    assert adapts.multiplier == plain.multiplier
    assert adapts.deviation == pytest.approx(plain.deviation * math.sqrt(16 / 15))


def test_a_report_with_that_number_is_no_longer_than_is_charged() -> None:
    code = UpdateCode(((3,),), clip=2.0, deviation=0.0, bit=0.25)
    rows = (np.array([[9.0, 0.0, 0.0], [0.0, 1.0, 0.0], [np.nan, 0.0, 0.0], [1.0, 0.0, 0.0]]),)
    sent = code.clipped(rows, np.array([True, True, True, False]))
    np.testing.assert_allclose(
        sent, [[1, 0, 0, -0.25], [0, 0.5, 0, 0.25], [0, 0, 0, -0.25], [0] * 4], atol=2e-4
    )
    assert (np.linalg.norm(sent, axis=1) <= code.reach).all()
    reports = code.reports(code.steps(rows)[0], None)  # type: ignore[arg-type]
    valid, aggregate = code.decode(reports)
    assert valid.all()
    # Of four updates one is not short by half a count more than two of each.
    assert code.released(aggregate.total, 4, 0.0, ReleaseDraws(1, 1))[1] == pytest.approx(0.5)
    larger = np.frombuffer(reports[0], "<i2").copy()
    larger[-1] = STEPS
    assert code.decode([larger.tobytes()])[0].tolist() == [False]


@pytest.mark.parametrize("clip", [0.0, -1.0, math.nan, 1e12])
def test_devices_refuse_a_clip_that_no_server_sends(clip: float) -> None:
    code = UpdateCode(((2,),), clip=1.0, deviation=0.0, bit=0.25)
    received, (numbers,) = code.unpack(code.pack((np.array([1.0, 2.0]),)))
    assert (received.clip, numbers.tolist()) == (1.0, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"clip|finite"):
        code.unpack(np.array([1.0, 2.0, clip], dtype="<f4").tobytes())


@pytest.mark.parametrize("quantile", [0.25, 0.75])
def test_a_clip_that_adapts_finds_the_quantile_of_the_norms(quantile: float) -> None:
    adaptive = {"quantile": quantile, "step": 0.5}
    result = run(values("OfLength", clip=20.0, adaptive_clip=adaptive, rounds=40), page=False)
    counts, observed = result.traffic["ratings"], [each["observed"] for each in result.rounds]
    assert [observed[0]["clip"], observed[0]["norm"]] == [20.0, np.median(counts)]
    # 60 users' norms are whole numbers, so the clip stays about where the next user is short or not.
    low, high = np.quantile(counts, [quantile - 0.05, quantile + 0.05])
    assert low * 0.9 <= np.median([each["clip"] for each in observed[-10:]]) <= high * 1.1


# Updates that are not finite.


def test_updates_that_are_not_finite_are_counted_and_said() -> None:
    result = run(values("SometimesNaN 12"), page=False)
    many = int((result.traffic["ratings"] > 12).sum())
    assert 0 < many < USERS
    assert [each["observed"]["not_finite"] for each in result.rounds] == [many] * ROUNDS
    note = f"{many * ROUNDS} of {USERS * ROUNDS} updates were not finite; zeros were sent instead."
    assert note in result.summary["privacy"]["notes"]


def test_a_round_without_any_finite_update_fails() -> None:
    with pytest.raises(RunError, match="SometimesNaN: none of 60 updates of round 1 is finite"):
        run(values("SometimesNaN 0"), page=False)


def test_a_round_after_which_parameters_cannot_be_sent_fails() -> None:
    with pytest.raises(RunError, match="Runaway: parameters that are not finite after round 2"):
        run(values("Runaway"), page=False)


# Interruptions.


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("model", ["OwnFactors", "fcf"])
def test_an_interrupted_run_goes_on_with_what_devices_kept(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = values(privacy=BUDGET, adaptive_clip={}, sampling={"rate": 0.5})
    if model == "fcf":
        config["protocol"]["model"] = {"kind": "fcf"}
        config["dataset"]["positive"] = ">= 4"
    save = Checkpoints.save
    rounds: list[int] = []

    def dying(self: Any, state: Any) -> None:
        save(self, state)
        rounds.append(len(state.records))
        if len(rounds) == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", dying)
        with pytest.raises(Killed):
            run(config, tmp_path / "killed", page=False)
        run(config, tmp_path / "killed", resume=True, page=False)
    assert rounds == [1, 2, 3, 4]
    run(config, tmp_path / "whole", page=False)
    for name in ("predictions.csv.gz", "traffic.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
