"""The server: what dprec-pilot does, which is installed where the SuperLink runs."""

try:
    from dprec_pilot.server.serving import server_app
except ModuleNotFoundError as error:
    if error.name != "dprec_pilot":
        raise
    raise ModuleNotFoundError("dprec-pilot is not installed where the SuperLink runs: README.md") from error

app = server_app()
