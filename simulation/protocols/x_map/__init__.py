"""X-Map: recommendation across domains, from replacements drawn on the devices (Guerraoui et al.)."""

from simulation.protocols.x_map.protocol import XMapProtocol

__all__ = ["XMapProtocol"]
