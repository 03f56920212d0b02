"""The tables of the documents, from committed summaries of comparisons and from the presets."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] | None = None) -> str:
    """Return a table.

    Parameters
    ----------
    heads : sequence of str
    rows : sequence of sequences of str
        As many cells each as there are heads.
    numeric : sequence of bool, optional
        Which columns are aligned to the right; none by default.
    """
    rule = ["--:" if right else "---" for right in numeric or [False] * len(heads)]
    return "\n".join(f"| {' | '.join(map(_escaped, cells))} |" for cells in (heads, rule, *rows))


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
