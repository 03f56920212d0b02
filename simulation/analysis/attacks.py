"""What is told of attacks: figures of what there is, although files have all."""

from collections.abc import Mapping

from dprec.attacks.promotion import DAMAGED
from simulation.storage.attacked import Reached


def told(reached: Mapping[str, Reached], accuracy: Mapping[str, float | None]) -> dict[str, Reached]:
    """Return the figures with something in them, and no damage to a metric that the data do not have.

    ``accuracy``: by metric, without those that were not measured or None for them.
    """
    return {
        name: figure
        for name, figure in reached.items()
        if any(value is not None for _, value in figure)
        and (name not in DAMAGED or accuracy.get(DAMAGED[name][0]) is not None)
    }
