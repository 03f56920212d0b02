"""Deployments: the same protocols on a SuperLink, with devices that trust nobody; see docs/deployment.md."""
