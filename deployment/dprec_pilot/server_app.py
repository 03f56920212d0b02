"""The server: what dprec, installed beside the SuperLink, does."""

from simulation.deployment.server_folder import server_app

app = server_app()
