"""Help as it is read: Typer puts backslashes before brackets, for a renderer that is not in use."""

from __future__ import annotations

import click
from typer.core import TyperCommand


class PlainHelp(TyperCommand):
    """A command whose help is printed as it is."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help."""
        return super().get_help(ctx).replace(r"\[", "[")
