"""The verb "deploy": prepares a pilot on a SuperLink, and enrols its devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulation.configuration.models import RunConfig
    from simulation.deployment.server_folder import ServerFolder


def prepare(
    config: RunConfig | Mapping[str, Any] | str | Path,
    folder: str | Path,
    *,
    overrides: Sequence[str] = (),
    progress: Progress = silent,
    **options: Any,
) -> ServerFolder:
    """Prepare a pilot of a configuration: keys, certificates, the server's folder and those of devices.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        As `simulation.load` takes it.
    folder : str or Path
        A new directory.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    **options
        See `simulation.deployment.preparing.PilotOptions`.

    Returns
    -------
    ServerFolder
        What the server is given.

    Raises
    ------
    InputError
        When the protocol does not deploy, something cannot be used, or the directory exists.
    """
    from simulation.configuration.loading import load
    from simulation.deployment.preparing import PilotOptions, prepare

    return prepare(load(config, overrides), Path(folder), PilotOptions(**options), progress)


def enrol(server: str | Path, superlink: str) -> int:
    """Register the devices of a pilot with its SuperLink; return how many are.

    Parameters
    ----------
    server : str or Path
        The folder of the server.
    superlink : str
        Host and port of the SuperLink; its control API has to be reached, which devices do not.

    Raises
    ------
    InputError, RunError
        When the enrolment list is damaged; when the SuperLink refuses or is not there.
    """
    from simulation.deployment.keys import registered_nodes
    from simulation.deployment.server_folder import ServerFolder, with_nodes, write_enrolment

    folder = ServerFolder(Path(server))
    enrolled = folder.enrolled()
    keys = [each.public_key for each in enrolled if each.public_key is not None]
    nodes = registered_nodes(superlink, folder.certificate, keys)
    write_enrolment(folder.enrolment_file, with_nodes(enrolled, nodes))
    return len(nodes)
