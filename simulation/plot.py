"""The verb "plot": the figure of a channel or of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dprec.mechanisms.channel import Channel
    from dprec.privacy.device_channel import DeviceChannel
    from simulation.result import RunResult


def plot(what: Channel | DeviceChannel | RunResult) -> Figure:
    """Draw a channel, or the result of a run.

    Parameters
    ----------
    what : Channel, DeviceChannel or RunResult
        Of a channel, what it sends for every true rating is drawn, and the mean of that. The mathematics
        itself draws nothing, so a channel has no method for it.

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot; a notebook shows it, and `savefig` writes it.
    """
    from simulation.pages import plot_channel
    from simulation.result import RunResult

    return what.plot() if isinstance(what, RunResult) else plot_channel(what)
