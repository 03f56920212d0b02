"""The command line: commands, tables on the terminal, progress."""
