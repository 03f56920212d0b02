"""A setting in a table: its name with the look of its lines, and what the columns of tables say of it."""

from __future__ import annotations

from markupsafe import Markup

from simulation.analysis.columns import SettingColumn
from simulation.analysis.settings import Setting
from simulation.pages.figures.colours import SERIES
from simulation.pages.figures.looks import Looks
from simulation.pages.markup import Cell, Column
from simulation.pages.run_links import RunLinks


def named_cell(setting: Setting, looks: Looks, links: RunLinks) -> Cell:
    """Return the name of a protocol, with the colour of its lines, as a link where its run has a page."""
    colour = looks[setting.name].colour
    look = str(SERIES.index(colour)) if colour in SERIES else "reference"
    address = links.get((setting.name, setting.budget))
    name = Markup('<a href="{}">{}</a>').format(address, setting.name) if address else setting.name
    chip = Markup('<span class="chip look-{}" aria-hidden="true"></span>{}')
    return Cell(chip.format(look, name), setting.name)


def heading(column: SettingColumn) -> Column:
    """Return the heading of a column."""
    return Column(column.title, column.hint, column.numeric)


def setting_cell(column: SettingColumn, setting: Setting) -> Cell:
    """Return what a column says of a setting."""
    return Cell(column.text(setting), column.value(setting))
