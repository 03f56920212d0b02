"""Deployments: the same protocols on a SuperLink, in the local trust model; see docs/deployment.md."""
