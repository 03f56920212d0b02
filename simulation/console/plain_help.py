"""Help as it is read: with what arguments mean, and without backslashes for a renderer that is not in use."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, get_args, get_origin, get_type_hints

import click
from typer.core import TyperCommand
from typer.models import ArgumentInfo


class PlainHelp(TyperCommand):
    """A command whose help is printed as it is, and says what each argument means."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: Typer writes the arguments together with the options."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        # Click forgets what Typer's arguments say of themselves.
        for name, help_ in _help_of_arguments(self.callback):
            for parameter in self.params:
                if parameter.name == name:
                    parameter.help = help_
        return super().get_help(ctx).replace(r"\[", "[")


def _help_of_arguments(command: object) -> Iterator[tuple[str, str | None]]:
    if callable(command):
        for name, hint in get_type_hints(inspect.unwrap(command), include_extras=True).items():
            if get_origin(hint) is Annotated:
                yield from (
                    (name, argument.help) for argument in get_args(hint) if isinstance(argument, ArgumentInfo)
                )
