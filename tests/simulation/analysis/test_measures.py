"""Which columns are metrics, and which of them a summary shows."""

from simulation.analysis.vocabulary import METRICS, headlines, main_metric, metrics_in

RANKED = [f"ranking_{name}_at_{k}" for name in ("ndcg", "recall", "coverage") for k in (10, 20)]
COLUMNS = [
    "name",
    *RANKED,
    "sampled_ranking_ndcg_at_5",
    "ranking_users",
    "f_score_at_k",
    "recall_at_k",
    "rmse",
]


def test_rankings_are_metrics_after_the_others() -> None:
    metrics = metrics_in(COLUMNS)
    assert [metric.column for metric in metrics] == [
        *("rmse", "f_score_at_k", "recall_at_k"),
        *RANKED,
        "sampled_ranking_ndcg_at_5",
    ]
    assert (metrics[3].label, metrics[3].lower_is_better) == ("NDCG at 10, catalogue", False)
    assert metrics[-1].label == "NDCG at 5, sampled"
    assert main_metric(dict.fromkeys(RANKED, 0.5)) is None


def test_a_summary_shows_the_first_cutoff() -> None:
    assert [metric.column for metric in headlines(metrics_in(COLUMNS))] == [
        *("rmse", "f_score_at_k"),
        *("ranking_ndcg_at_10", "ranking_recall_at_10", "sampled_ranking_ndcg_at_5"),
    ]
    assert METRICS[0] in headlines(METRICS)


def test_what_only_looks_like_a_ranking_is_none() -> None:
    assert (
        metrics_in(["ranking_ndcg_at_0", "ranking_ndcg_at_x", "my_ranking_ndcg_at_1", "ranking_ndcg"]) == []
    )
