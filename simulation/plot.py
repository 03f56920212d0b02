"""The verb "plot": the figure of a channel, of a run or of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dprec.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dprec.channel import Channel
    from dprec.reports import DeviceChannel
    from simulation.comparison.running import ComparisonResult
    from simulation.result import RunResult


def plot(what: Channel | DeviceChannel | RunResult | ComparisonResult) -> Figure:
    """Draw a channel, or the result of a run or of a comparison.

    Parameters
    ----------
    what : Channel, DeviceChannel, RunResult or ComparisonResult
        Of a channel, what it sends for every true rating is drawn, and the mean of that. The mathematics
        itself draws nothing, so a channel has no method for it.

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot; a notebook shows it, and `savefig` writes it.

    Raises
    ------
    InputError
        When it is nothing that has a figure.
    """
    from dprec.channel import Channel
    from dprec.reports import DeviceChannel
    from simulation.comparison.running import ComparisonResult
    from simulation.pages import plot_channel
    from simulation.result import RunResult

    if isinstance(what, RunResult | ComparisonResult):
        return what.plot()
    if isinstance(what, Channel | DeviceChannel):
        return plot_channel(what)
    accepted = "a channel, or the result of run or compare; simulation.pages.report(DIR) draws a directory"
    raise InputError("plot", f"a value of type {type(what).__name__}", accepted)
