"""The server: what dprec, installed beside the SuperLink, does."""

from simulation.deployment.serving import server_app

app = server_app()
