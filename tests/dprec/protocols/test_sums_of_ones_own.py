"""A protocol of sums from a user's file goes wherever ours go, and what it adds is bounded here."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, largest_mu
from dprec.arrays import Floats
from dprec.completion import Profiles
from dprec.federated import ContractError
from dprec.protocols.base import Public
from dprec.sums import CentralAggregation, Release
from simulation import audit, compare, run
from tests import make
from tests.documents.pages import write_files
from tests.item_histogram import HistogramDevice, ItemHistogram
from tests.make import STARS, small_run
from tests.paths import ROOT
from tests.refusals import refused_at
from tests.summing import contributions, dense, played

OWN = "tests.item_histogram:ItemHistogram"
BUDGET = {"epsilon": 4.0, "per": "user", "composition": "pld", "delta": 1e-5}
VALUES: dict[str, Any] = small_run(
    {"kind": OWN, "privacy": BUDGET, "aggregation": {"kind": "secure-aggregation", "colluders": 1}},
    name="item-histogram",
)


def test_it_is_what_the_documentation_shows(tmp_path: Path) -> None:
    write_files("docs/methods.md", tmp_path)
    shown = (tmp_path / "item_histogram.py").read_text(encoding="utf-8")
    assert shown == f"# item_histogram.py\n{(ROOT / 'tests/item_histogram.py').read_text(encoding='utf-8')}"


def test_it_runs_and_what_it_promises_is_proved() -> None:
    found = run(
        {**VALUES, "attacks": [{"kind": kind} for kind in ("membership", "promotion", "reconstruction")]},
        page=False,
    )
    privacy = found.summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("proved", "secure-aggregation")
    assert privacy["epsilon_composed"]["max"] == pytest.approx(4.0, rel=0.02)
    reached = found.summary["attacks"]
    # Nobody reads single reports.
    assert reached["membership_auc"]["value"] == 0.5
    # Nothing bounds what one malicious user adds to a masked sum.
    assert reached["target_rank"]["value"] < reached["target_rank"]["baseline"]
    assert np.isfinite(found.predictions["prediction"]).all()


class Flat(HistogramDevice):
    """Predicts of items what it is to predict of each user."""

    def predictions(self, profiles: Profiles) -> Floats:
        return super().predictions(profiles)[0]


def test_predictions_of_another_shape_are_refused_by_the_name_of_the_class() -> None:
    ratings = make.random_ratings(6, 9)
    predicting = Flat(STARS, np.full(9, 3.0)).predicting(ratings)
    for asked in (
        lambda: predicting["predict"](np.array([0, 1]), np.array([2, 3])),
        lambda: predicting["predict_rows"](np.array([0, 1]), 9),
    ):
        with refused_at(f"{__name__}:Flat") as refused:
            asked()
        assert refused.value.found == "predictions of shape (9,)"
        assert refused.value.accepted == "one finite number for each cell, shape (2, 9)"


@pytest.mark.parametrize("aggregation", ["central", "secure-aggregation", "shuffle"])
def test_it_is_audited_whoever_adds_up(aggregation: str) -> None:
    found = audit(
        {**VALUES, "protocol": {**VALUES["protocol"], "aggregation": {"kind": aggregation}}}, trials=2000
    )
    assert found.holds
    exact = [finding for finding in found.findings if finding.exact]
    assert exact[0].at_least == pytest.approx(4.0, rel=0.01)
    assert not found.declared_by


def test_it_is_compared_beside_what_sends_nothing(tmp_path: Path) -> None:
    parts = {key: VALUES[key] for key in ("dataset", "split", "simulation")}
    mine = {"name": "mine", "protocol": VALUES["protocol"]}
    both = {"name": "both", **parts, "epsilons": [4.0], "protocols": [mine, "nothing-sent"]}
    rows = {row["name"]: row for row in compare(both, tmp_path / "out", page=False).rows}
    assert rows["mine"]["status"] == "proved"
    assert rows["mine"]["completion"] == "item-histogram"
    assert rows["mine"]["rmse"] == pytest.approx(1.158, abs=1e-3)
    assert rows["nothing-sent"]["rmse"] == pytest.approx(1.156, abs=1e-3)


@dataclass(frozen=True, eq=False)
class Loud(HistogramDevice):
    """Numbers of a norm of 10, every other of them negative."""

    def cells(self, profiles: Any, release: Any, words: Any) -> Any:
        indptr, rows, numbers = super().cells(profiles, release, words)
        return indptr, rows, 10 * numbers * np.where(rows % 2, 1, -1)


@dataclass(frozen=True, eq=False)
class Mixing(HistogramDevice):
    """Numbers that depend on who else is computed."""

    def cells(self, profiles: Any, release: Any, words: Any) -> Any:
        indptr, rows, numbers = super().cells(profiles, release, words)
        return indptr, rows, numbers / len(indptr)


class MixingHistogram(ItemHistogram):
    """A protocol whose devices mix users."""

    def device(self, received: bytes, n_items: int, scale: Any) -> Any:
        return Mixing(**vars(super().device(received, n_items, scale)))


@dataclass(frozen=True, eq=False)
class Repeating(HistogramDevice):
    """Numbers that all lie in one row, one cell for each rating: n of 1 / sqrt(n) add up to sqrt(n)."""

    def cells(self, profiles: Any, release: Any, words: Any) -> Any:
        indptr, rows, numbers = super().cells(profiles, release, words)
        return indptr, np.zeros_like(rows), numbers


class RepeatingHistogram(ItemHistogram):
    """A protocol whose devices name a row more than once."""

    def device(self, received: bytes, n_items: int, scale: Any) -> Any:
        return Repeating(**vars(super().device(received, n_items, scale)))


@dataclass(frozen=True, eq=False)
class Negative(HistogramDevice):
    """A release whose numbers may be negative."""

    def release(self, round_index: int) -> Release:
        return replace(super().release(round_index), negative=True)


class NegativeHistogram(ItemHistogram):
    """A protocol whose devices add negative numbers, which it denies."""

    def device(self, received: bytes, n_items: int, scale: Any) -> Any:
        return Negative(**vars(super().device(received, n_items, scale)))


class SignedHistogram(NegativeHistogram):
    """One that says so."""

    signed = True

    def begin(self, public: Public, catalogue: Any = None) -> Any:
        return Negative(**vars(super().begin(public)))


class DeniedHistogram(SignedHistogram):
    """One that begins with a release that it denies."""

    signed = False


@pytest.mark.parametrize("aggregation", ["central", "secure-aggregation", "shuffle"])
@pytest.mark.parametrize(
    ("protocol", "found"),
    [
        ("Mixing", ":Mixing: contributions of one user computed alone are"),
        (
            "Repeating",
            ":Repeating: contributions that are no vector of each user; accepted: rows of the release, asc",
        ),
    ],
)
def test_code_that_breaks_the_contract_ends_a_run_and_is_named(
    protocol: str, found: str, aggregation: str
) -> None:
    own = {"kind": f"{__name__}:{protocol}Histogram", "aggregation": {"kind": aggregation}}
    with pytest.raises(ContractError, match=found):
        run({**VALUES, "protocol": {**VALUES["protocol"], **own}}, page=False)


def test_between_two_users_negative_numbers_need_more_noise_by_the_root_of_two() -> None:
    budget = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-5)
    given: Any = {"privacy": budget, "adjacency": "replace-one", "aggregation": CentralAggregation()}
    public = Public(50, 12, STARS)
    own, signed = (each(**given).suited(public) for each in (ItemHistogram, SignedHistogram))
    for each, apart in ((own, 2**0.5), (signed, 2.0)):
        each.check(public)
        assert each.sensitivity == each.apart == apart
        assert each.multipliers[0] == pytest.approx(apart / largest_mu(1.0, 1e-5))
        assert each.accountant().get_epsilon(1e-5)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("spent", [(1.0, 1.0), (0.5, 0.4), (1.5, -0.5), (1.0, 0.0), (float("nan"),), ()])
def test_shares_that_are_no_parts_of_one_budget_are_refused(spent: tuple[float, ...]) -> None:
    class Spending(ItemHistogram):
        shares = spent  # type: ignore[assignment]

    with pytest.raises(ContractError, match=r"Spending: contributions in rounds with the shares .* up to 1"):
        Spending().check(Public(50, 12, STARS))


def test_what_checks_shares_and_signs_is_not_replaced_without_a_word() -> None:
    class Unchecked(ItemHistogram):
        def check(self, train: Any) -> None:
            pass

    assert Unchecked.declares_loss()
    assert not SignedHistogram.declares_loss()


LAST = 5 * 12 - 1
"""Row of the highest level of the last item."""


@pytest.mark.parametrize(
    "cells",
    [
        ([0, 1, 3], [LAST, 4, 4], [1.0, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4, 3], [1.0, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4, LAST + 1], [1.0, 0.5, 0.5]),
        ([0, 1, 3], [LAST, -1, 4], [1.0, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4.2, 4.4], [1.0, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4, 5], [np.nan, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4, 5], [np.inf, 0.5, 0.5]),
        ([0, 1, 3], [LAST, 4, 5], [[1.0], [0.5], [0.5]]),
        ([0, 1, 3], [LAST, 4], [1.0, 0.5]),
        ([0, 1, 2], [LAST, 4, 5], [1.0, 0.5, 0.5]),
        ([0, 4, 3], [LAST, 4, 5], [1.0, 0.5, 0.5]),
        ([1, 2, 3], [LAST, 4, 5], [1.0, 0.5, 0.5]),
        ([0, 3], [3, 4, 5], [1.0, 0.5, 0.5]),
        ([0.0, 1.0, 3.0], [LAST, 4, 5], [1.0, 0.5, 0.5]),
    ],
)
def test_cells_that_are_no_vectors_are_refused(cells: Any) -> None:
    @dataclass(frozen=True, eq=False)
    class Saying(HistogramDevice):
        said: Any = None

        def cells(self, profiles: Any, release: Any, words: Any) -> Any:
            return tuple(map(np.array, self.said))

    means = np.full(12, 3.0, dtype="<f4")
    people = make.profiles(make.ratings((0, 2, 5.0), (1, 3, 1.0), (1, 4, 2.0), users=2, items=12))
    saying = Saying(STARS, means, cells)
    with pytest.raises(
        ContractError, match="Saying: contributions that are no vector of each user; accepted: rows of"
    ):
        contributions(saying, people, saying.release(1)).vectors(saying.release(1))


def test_integers_whose_squares_wrap_around_are_bounded_as_others() -> None:
    @dataclass(frozen=True, eq=False)
    class Huge(HistogramDevice):
        def cells(self, profiles: Any, release: Any, words: Any) -> Any:
            return np.array([0, 2]), np.array([3, 7]), np.full(2, 1 << 32)

    people = make.profiles(make.ratings((0, 2, 5.0), users=1, items=12))
    huge = Huge(STARS, np.full(12, 3.0, dtype="<f4"))
    assert (np.full(2, 1 << 32) ** 2 == 0).all()
    rows = dense(contributions(huge, people, huge.release(1)), huge.release(1))
    np.testing.assert_allclose(rows[0, [3, 7]], np.sqrt(0.5), atol=1e-9)
    assert np.count_nonzero(rows) == 2


@pytest.mark.parametrize("mixed_in", [False, True])
@pytest.mark.parametrize("name", ["contributions", "taking_part"])
def test_no_device_from_outside_adds_anything_but_cells(name: str, mixed_in: bool) -> None:
    own: dict[str, Any] = {"__module__": __name__, name: lambda *_: None}
    bases = (type("Own", (), own), HistogramDevice) if mixed_in else (HistogramDevice,)
    with pytest.raises(TypeError, match=f":Device: {name} of its own; define cells, which are checked"):
        type("Device", bases, {"__module__": __name__} if mixed_in else own)


@pytest.mark.parametrize("users", [20, 100])
def test_what_others_than_the_largest_add_is_computed_alone_too(users: int) -> None:
    class Yielding(HistogramDevice):
        """All add half beside one who has more ratings."""

        def cells(self, profiles: Any, release: Any, words: Any) -> Any:
            indptr, rows, numbers = super().cells(profiles, release, words)
            beside = np.repeat(np.diff(profiles.indptr) < np.diff(profiles.indptr).max(), np.diff(indptr))
            return indptr, rows, np.where(beside, numbers / 2, numbers)

    people = make.profiles(make.random_ratings(users, 12))
    yielding = Yielding(STARS, np.full(12, 3.0, dtype="<f4"))
    with pytest.raises(ContractError, match="Yielding: contributions of one user computed alone are"):
        contributions(yielding, people, yielding.release(1)).vectors(yielding.release(1))


@pytest.mark.parametrize("negative", [False, True])
def test_what_is_too_long_or_has_a_forbidden_sign_is_cut_by_the_base(negative: bool) -> None:
    people = make.profiles(make.random_ratings(30, 12))
    loud = Loud(STARS, np.full(12, 3.0, dtype="<f4"))
    # Whatever the release says of them.
    layout = replace(loud.release(1), negative=negative, bounded=False)
    own = contributions(loud, people, layout)
    rows = dense(own, layout)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1, abs=1e-8)
    assert (rows**2).sum(axis=1).max() <= 1 + 1e-9
    assert bool(rows.min() < 0) is negative
    _, total = layout.added_up(own.encode(layout))
    np.testing.assert_allclose(total[:, 0] * 2.0**-36, rows.sum(axis=0), atol=1e-9)


def test_without_noise_the_means_are_those_of_the_ratings() -> None:
    ratings = make.random_ratings(200, 12)
    _, devices = played(ItemHistogram(prior=0.0), make.profiles(ratings))
    weights = 1 / np.sqrt(ratings.counts)[ratings.users]
    sums = np.bincount(ratings.items, weights * ratings.values) / np.bincount(ratings.items, weights)
    np.testing.assert_allclose(devices[-1].means, sums, atol=1e-5)
