"""The server: what dprec does, which is installed where the SuperLink runs."""

try:
    from simulation.deployment.serving import server_app
except ModuleNotFoundError as error:
    if error.name != "simulation":
        raise
    raise ModuleNotFoundError("dprec is not installed where the SuperLink runs: see README.md") from error

app = server_app()
