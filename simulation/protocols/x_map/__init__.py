"""X-Map: recommendation across domains, replacements drawn on devices (Guerraoui et al. [guerraoui2017])."""

from simulation.protocols.x_map.protocol import XMapProtocol

__all__ = ["XMapProtocol"]
