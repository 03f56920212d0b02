"""The traffic of a deployment, projected from a run or a comparison."""

from collections.abc import Sequence

from markupsafe import Markup

from simulation.analysis.populations import METHOD, Projection, project
from simulation.analysis.protocol_results import (
    ComparisonFiles,
    ProtocolResult,
    at_reference,
    reference_budget,
)
from simulation.analysis.vocabulary import size
from simulation.pages.page import Cell, Section, cell, rows_table
from simulation.pages.words import label_of
from simulation.storage.files import Columns
from simulation.storage.run_files import RunRecord, network_bytes_per_user, read_traffic

Traffic = Sequence[tuple[ProtocolResult, str, Columns]]
"""Results with their labels, and what was sent by each user."""

HOW_TO_PROJECT = Markup(
    "<p><code>dprec report DIR --population 10e6</code> adds the traffic of a deployment with as many "
    "users.</p>"
)
"""What a page without a projection says of it."""


def run_projections(run: RunRecord, population: float) -> list[tuple[str, Projection]]:
    """Project the traffic of a run to a population, by direction."""
    rows = [
        ("messages from the devices", run.traffic["uplink_message_bytes"]),
        ("messages to the devices", run.traffic["downlink_message_bytes"]),
    ]
    if run.summary.traffic.uplink.network_bytes is not None:
        rows += [
            ("network, from the devices", run.traffic["uplink_network_bytes"]),
            ("network, to the devices", run.traffic["downlink_network_bytes"]),
            ("network, both", network_bytes_per_user(run.traffic)),
        ]
    return [(label, project(spent, population)) for label, spent in rows]


def comparison_projections(traffic: Traffic, population: float) -> list[tuple[str, Projection]]:
    """Project what a network carries for every protocol to a population, both directions together."""
    return [(label, project(network_bytes_per_user(columns), population)) for _, label, columns in traffic]


def reference_traffic(files: ComparisonFiles) -> Traffic:
    """Return the result, label and traffic of one run per protocol, at the reference budget."""
    reference = reference_budget(files.results)
    return [
        (result, label_of(result, reference), read_traffic(cells[0], files.summary(cells[0])))
        for result in at_reference(files.results)
        if (cells := files.cells(result))
    ]


def projection_section(rows: Sequence[tuple[str, Projection]], population: float) -> Section:
    """Return the section on the projected traffic of a deployment."""
    words = (
        f"{population:,.0f} users a day, each taking part once, with as many bytes per user as the simulated "
        f"ones. {METHOD}. “Network” is what a network would carry for the same messages in a deployment: "
        "HTTP, TLS, object trees, polls and visits, by a model with measured constants (simulation.network "
        "says how devices connect)."
    )
    table: list[Sequence[Cell]] = [
        (
            label,
            *(cell(each, size) for each in (projection.total, projection.low, projection.high)),
            cell(projection.bits_per_second / 1e6, 2),
        )
        for label, projection in rows
    ]
    interval = "95 % interval"
    headings = "traffic", "per day", ("from", interval), ("to", interval), ("mean rate", "Mbit/s")
    projected = rows_table(f"Projected traffic of {population:,.0f} users a day", headings, table)
    return Section("projection", "Traffic of a deployment", (words, projected))
