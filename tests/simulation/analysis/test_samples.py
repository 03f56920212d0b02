"""What is said where a sample orders results otherwise than the catalogue."""

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.samples import reversed_by_samples


def _result(
    name: str, whole: float, sampled: float, budget: float | None = None, users: int = 6040
) -> ProtocolResult:
    row = {"ranking_ndcg_at_10": whole, "sampled_ranking_ndcg_at_10": sampled, "ranking_users": users}
    return ProtocolResult(name, budget, (row,))


def test_the_pair_with_the_widest_gap_is_named_with_its_figures() -> None:
    (note,) = reversed_by_samples(
        [_result("table", 0.068, 0.405, 1.0), _result("popular", 0.041, 0.46), _result("near", 0.040, 0.41)]
    )
    assert "2 of 3 pairs by NDCG at 10, 1 of them beyond chance (95 %): table at ε = 1" in note
    assert "0.0680 over the catalogue and 0.4050 in the sample" in note
    assert "popular 0.0410 and 0.4600" in note


def test_of_few_users_no_order_is_beyond_chance() -> None:
    # A difference of .027 has a standard error of sqrt((.068 * .932 + .041 * .959) / users) at most.
    for users, beyond in ((541, "none"), (542, "1")):
        pair = [_result("table", 0.068, 0.36, users=users), _result("popular", 0.041, 0.46, users=users)]
        (note,) = reversed_by_samples(pair)
        assert f"1 of 1 pairs by NDCG at 10, {beyond} of them beyond chance" in note


def test_nothing_is_said_of_the_same_order_of_ties_and_without_samples() -> None:
    assert reversed_by_samples([_result("one", 0.2, 0.5), _result("two", 0.1, 0.4)]) == []
    assert reversed_by_samples([_result("one", 0.2, 0.50001), _result("two", 0.1, 0.50002)]) == []
    plain = [ProtocolResult(name, None, ({"ranking_ndcg_at_10": 0.1},)) for name in ("one", "two")]
    assert reversed_by_samples(plain) == []


def test_recall_of_one_item_is_told_as_the_hit_rate_alone() -> None:
    def result(name: str, whole: float, sampled: float) -> ProtocolResult:
        figures = ("hit_rate_at_10", "recall_at_10")
        of_all = {f"ranking_{figure}": whole for figure in figures}
        return ProtocolResult(
            name, None, (of_all | {f"sampled_ranking_{each}": sampled for each in figures},)
        )

    (note,) = reversed_by_samples([result("one", 0.2, 0.4), result("two", 0.1, 0.5)])
    assert "by hit rate at 10" in note
