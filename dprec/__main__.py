"""The command `dprec`: `python -m dprec` and the installed script start here.

Only `sys` is imported outside the guard, so that an interrupt prints one line whenever it comes.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def guarded(name: str, *command_line: Any) -> None:
    """Run the command line of a command, as for `dprec.start.run_command_line`, and exit with its code."""
    line, code = "interrupted", 130
    try:
        from dprec.errors import InputError
        from dprec.start import run_command_line

        try:
            run_command_line(*command_line)
        except InputError as error:
            line, code = str(error), 2
    except KeyboardInterrupt:
        pass
    print(f"{name}: {line}", file=sys.stderr)
    sys.exit(code)


def main() -> None:
    """Run the command line of `dprec`, and exit with its code."""
    guarded("dprec")


if __name__ == "__main__":
    main()
