"""Tables of what the programs of benchmarks/ measured, from docs/results/benchmarks."""

from __future__ import annotations

import csv
from math import floor, log10

from docs.tables import table
from docs.tables.results import RESULTS

MEASURED = RESULTS / "benchmarks"
_FIGURES = "before", "after", "peer"
_WORDS = {"beside": "the peer", "bits": "bits", "settings": "settings"}


def benchmark(program: str) -> str:
    """Return a row for each figure of a program, in the columns that apply to any of them."""
    rows, above = [], ""
    for line in _lines(program):
        what, *words = [line[key] if line["what"] != above else "" for key in ("what", *_WORDS)]
        rows.append([what, line["unit"], *(_figure(line[key]) for key in _FIGURES), *words])
        above = line["what"]
    if not rows:
        return f"No figures are kept: `python benchmarks/{program}.py` prints them."
    heads = ["measured", "unit", *_FIGURES, *_WORDS.values()]
    shown = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    titles = [heads[place] for place in shown]
    numeric = [title in _FIGURES for title in titles]
    shortened = ([row[place] for place in shown] for row in rows)
    measured_by = f"Measured by `python benchmarks/{program}.py`."
    return f"{table(titles, shortened, numeric)}\n\n{measured_by}"


def measured_at() -> str:
    """Return which versions were measured, when and on what, and by which programs."""
    programs: dict[str, list[str]] = {}
    for path in sorted(MEASURED.glob("*.csv")):
        for made in dict.fromkeys(line["made"] for line in _lines(path.stem)):
            programs.setdefault(made, []).append(f"`{path.stem}`")
    return "\n".join(f"- {', '.join(names)}: {made}" for made, names in programs.items())


def _lines(program: str) -> list[dict[str, str]]:
    path = MEASURED / f"{program}.csv"
    return [*csv.DictReader(path.read_text(encoding="utf-8").splitlines())] if path.is_file() else []


def _figure(text: str) -> str:
    """Return a figure to three digits, with all those before the point."""
    value = float(text or 0)
    decimals = max(0, 2 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}" if text else ""
