"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from simulation.analysis.columns import (
    BUDGET,
    BYTES,
    BYTES_DOWN,
    BYTES_UP,
    LOSSES,
    MEDIAN_LOSS,
    NETWORK,
    ROUNDS,
    RUNS,
    SERVER_SEES,
    STATUS,
    TOTAL_BYTES,
    ResultColumn,
    accuracy_column,
    baseline_columns,
    best_columns,
    composed_column,
    figure_column,
    spread_column,
    trust_columns,
)
from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.gains import is_best, not_significant
from simulation.analysis.protocol_results import ProtocolResult, at_reference, frontier, metrics_of
from simulation.configuration.strict_yaml import at
from simulation.pages.comparison_tables import heading, named_cell, result_cell
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.page import Cell, Column, Section, number_cell, paragraph, table, text_cell


def best_table(part: EvaluationPart) -> Markup:
    """Return the most accurate setting of every budget, beside the cheapest on its frontier."""
    results, metric = part.results, part.metric
    accuracy, against = accuracy_column(metric), baseline_columns(metric, results)
    of_cheap = (accuracy, *against, BYTES, STATUS, *trust_columns(results))
    of_accurate = (*of_cheap, *LOSSES)
    # Baselines are what the others are compared with; they compete at no budget.
    competing = [result for result in results if result.baseline is None]
    given = sorted({result.budget for result in competing if result.budget is not None})
    without = [None] if any(result.budget is None for result in competing) else []
    tested = any(is_best(result) for result in competing)
    rows = []
    for budget in [*given, *without]:
        best = frontier([result for result in competing if result.budget == budget], metric)
        if not best:
            continue
        accurate, cheap = best[-1], best[0]
        rows.append(
            [
                Cell("none" if budget is None else f"ε {budget:g}", budget),
                named_cell(accurate, part.looks, part.links),
                *(result_cell(column, accurate) for column in of_accurate),
                *([text_cell(_alike(accurate, competing))] if tested else []),
                named_cell(cheap, part.looks, part.links),
                *(result_cell(column, cheap) for column in of_cheap),
            ]
        )
    columns = [
        Column("budget", numeric=False),
        Column("most accurate", numeric=False),
        *map(heading, of_accurate),
        *([Column("not told apart from it", numeric=False)] if tested else []),
        Column("fewest bytes", numeric=False),
        *map(heading, of_cheap),
    ]
    return table(
        "Most accurate, and fewest bytes on the frontier, at each budget",
        columns,
        rows,
    )


def _alike(best: ProtocolResult, results: Sequence[ProtocolResult]) -> str:
    return ", ".join(result.name for result in not_significant(best, results)) or "none"


def results_table(part: EvaluationPart) -> Markup:
    """Return every figure of every protocol, one line per budget."""
    results, metric = part.results, part.metric
    metrics = [metric, *(other for other in metrics_of(results) if other != metric)]
    main, *others = [spread_column(each, results, direction=True) for each in metrics]
    columns = [
        BUDGET,
        main,
        *baseline_columns(metric, results),
        *best_columns(metric, results),
        *others,
        STATUS,
        *trust_columns(results),
        *LOSSES,
        composed_column(results),
        MEDIAN_LOSS,
        SERVER_SEES,
        ROUNDS,
    ]
    columns += [*BYTES_UP, *BYTES_DOWN, *NETWORK, TOTAL_BYTES, *_timing_columns(part.files), RUNS]
    return table(
        "Means over seeds and folds; ε is the largest proved of any run",
        [_PROTOCOL, *map(heading, columns)],
        [
            [
                named_cell(result, part.looks, part.links),
                *(result_cell(column, result) for column in columns),
            ]
            for result in results
        ],
    )


_PROTOCOL = Column("protocol", numeric=False)


def _timing_columns(files: ComparisonFiles) -> list[ResultColumn]:
    """Return the seconds on devices and server, which come from timing.csv."""
    own = [timing for timing in files.timings if timing.population is None]
    timings = {(timing.name, timing.budget): timing for timing in own}

    def seconds(column: str, factor: float) -> Callable[[ProtocolResult], float | None]:
        def value(result: ProtocolResult) -> float | None:
            timing = timings.get((result.name, result.budget))
            mean = None if timing is None else timing.mean(column)
            return None if mean is None else factor * mean

        return value

    device, server = seconds("device_s_per_user", 1000), seconds("server_s", 1)
    return [
        figure_column("device", "ms per user", device, 3),
        figure_column("server", "s", server, 2),
    ]


def published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    measured = {result.name: result for result in at_reference(files.results)}
    columns = [
        Column("protocol", numeric=False),
        Column("published, up", "as printed", numeric=False),
        Column("measured, up", "payload bits per rating"),
        Column("measured, up", "payload bytes per user and round"),
        Column("measured, up", "message bytes per user and round"),
        Column("published, down", "as printed", numeric=False),
        Column("measured, down", "payload bytes per user and round"),
        Column("measured, down", "message bytes per user and round"),
        Column("rounds"),
        Column("source", numeric=False),
    ]
    rows = []
    for line in published:
        label, up, down, source = (at(line, key) for key in ("label", "up", "down", "source"))
        result = measured.get(str(label))
        rounds = result.mean("rounds") if result else None
        rows.append(
            [
                text_cell(label),
                text_cell(up),
                number_cell(_bits_per_rating(result), 2),
                *(number_cell(_a_round(result, f"uplink_{what}"), 0) for what in ("payload", "message")),
                text_cell(down),
                *(number_cell(_a_round(result, f"downlink_{what}"), 0) for what in ("payload", "message")),
                number_cell(rounds, 0),
                text_cell(source),
            ]
        )
    words = (
        "What the papers state for one round, beside what was counted here. A payload is the encoded report "
        "alone; a message is everything that is sent."
    )
    return [
        Section(
            "published",
            "Published costs beside measured ones",
            (paragraph(words), table("Cost of one round", columns, rows)),
        )
    ]


def _bits_per_rating(result: ProtocolResult | None) -> float | None:
    if result is None:
        return None
    sent, ratings, rounds = (result.mean(key) for key in ("uplink_payload_bytes", "train_ratings", "rounds"))
    return 8 * sent / ratings / rounds if sent is not None and ratings and rounds else None


def _a_round(result: ProtocolResult | None, what: str) -> float | None:
    if result is None:
        return None
    spent, rounds = result.mean(f"{what}_mean_per_user"), result.mean("rounds")
    return spent / rounds if spent is not None and rounds else None
