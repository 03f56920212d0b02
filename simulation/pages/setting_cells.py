"""A setting in a table: its name with the look of its lines, and what the columns of tables say of it."""

from __future__ import annotations

from markupsafe import Markup

from simulation.analysis.columns import ResultColumn
from simulation.analysis.protocol_results import ProtocolResult
from simulation.pages.evaluation_parts import RunLinks
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.panels import SERIES
from simulation.pages.page import Cell, Column


def named_cell(result: ProtocolResult, looks: Looks, links: RunLinks) -> Cell:
    """Return the name of a protocol, with the colour of its lines, as a link where its run has a page."""
    colour = looks[result.name].colour
    look = str(SERIES.index(colour)) if colour in SERIES else "reference"
    address = links.get((result.name, result.budget))
    name = Markup('<a href="{}">{}</a>').format(address, result.name) if address else result.name
    chip = Markup('<span class="chip look-{}" aria-hidden="true"></span>{}')
    return Cell(chip.format(look, name), result.name)


def heading(column: ResultColumn) -> Column:
    """Return the heading of a column."""
    return Column(column.title, column.hint, column.numeric)


def result_cell(column: ResultColumn, result: ProtocolResult) -> Cell:
    """Return what a column says of a setting."""
    return Cell(column.text(result), column.value(result))
