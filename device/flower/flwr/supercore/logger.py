"""Flower's logger, without its consoles, files and uploads."""

import logging

FLOWER_LOGGER = logging.getLogger("flwr")
log = FLOWER_LOGGER.log


def warn_deprecated_feature(name: str) -> None:
    """Say that something is deprecated."""
    log(logging.WARNING, "DEPRECATED FEATURE: %s", name)
