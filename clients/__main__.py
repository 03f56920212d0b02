"""The command `dprec-device`: the installed script starts here."""

from __future__ import annotations

from dprec.__main__ import guarded


def main() -> None:
    """Run the command line and exit with its code."""
    guarded("dprec-device", "clients.device.command", ("clients", "dprec"))


if __name__ == "__main__":
    main()
