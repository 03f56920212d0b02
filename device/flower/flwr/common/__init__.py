"""What other parts of Flower import from here; its telemetry, its loggers and gRPC are left out."""

from ..compat.common.typing import *  # noqa: F403
