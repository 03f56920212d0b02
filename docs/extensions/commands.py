"""The reference of the command line: the help of every command, as the terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator

import click
from typer.main import get_command

from simulation.console.command_line import app

_WIDTH = 100


def command_reference() -> str:
    """Return the help of all commands as Markdown, a section for each."""
    return "\n\n".join(_sections(get_command(app), "dprec", None))


def _sections(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, parent, info_name=name, max_content_width=_WIDTH, terminal_width=_WIDTH)
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None and not found.hidden:
                yield from _sections(found, below, context)
