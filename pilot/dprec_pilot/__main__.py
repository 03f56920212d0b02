"""The command `dprec-pilot`: `python -m dprec_pilot` and the installed script start here."""

from __future__ import annotations

from dprec.__main__ import guarded


def main() -> None:
    """Run the command line and exit with its code."""
    guarded("dprec-pilot", "dprec_pilot.console")


if __name__ == "__main__":
    main()
