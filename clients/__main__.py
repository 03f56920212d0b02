"""The command `dprec-device`: the installed script starts here.

Only `sys` is imported outside the guard, so that an interrupt prints one line whenever it comes.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    line, code = "interrupted", 130
    try:
        from dprec.errors import InputError
        from dprec.start import run_command_line

        try:
            run_command_line("clients.device.command", ("clients", "dprec"))
        except InputError as error:
            line, code = str(error), 2
    except KeyboardInterrupt:
        pass
    print(f"dprec-device: {line}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
