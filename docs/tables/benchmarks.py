"""Tables of what the programs of benchmarks/ measured, from docs/results/benchmarks."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from math import floor, log10
from pathlib import Path

from docs.tables import table
from docs.tables.results import RESULTS

MEASURED = RESULTS / "benchmarks"
_FIGURES = "before", "after", "peer"
_WORDS = {"beside": "the peer", "bits": "bits", "settings": "settings"}
_OTHER = "other"


def benchmark(program: str) -> str:
    """Return a row for each figure of a program, in the columns that apply to any of them.

    Words that are the same in all rows stand once, below the table. A dagger marks results whose bits differ.
    """
    kept = _lines(program)
    lines, rows, above = [*map(_marked, kept)], [], ""
    reasons = dict.fromkeys(line["settings"] for line in kept if line["bits"] == _OTHER)
    alike = [key for key in _WORDS if len({line[key] for line in lines}) == 1]
    for line in lines:
        what, *words = [
            "" if line["what"] == above or key in alike else line[key] for key in ("what", *_WORDS)
        ]
        rows.append([what, line["unit"], *(_figure(line[key]) for key in _FIGURES), *words])
        above = line["what"]
    if not rows:
        return f"No figures are kept: `python benchmarks/{program}.py` prints them."
    heads = ["measured", "unit", *_FIGURES, *_WORDS.values()]
    shown = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    titles = [heads[place] for place in shown]
    numeric = [title in _FIGURES for title in titles]
    if "before" not in titles:
        titles = ["dprec" if title == "after" else title for title in titles]
    shortened = ([row[place] for place in shown] for row in rows)
    once = "".join(f"; {_WORDS[key]}: {lines[0][key]}" for key in alike if lines[0][key])
    once += "; †: other bits" * bool(reasons) + "".join(f" ({reason})" for reason in reasons if reason)
    return f"{table(titles, shortened, numeric)}\n\nMeasured by `python benchmarks/{program}.py`{once}."


def _marked(line: dict[str, str]) -> dict[str, str]:
    """Return a line with a dagger in place of bits that differ, and of the reason."""
    if line["bits"] != _OTHER:
        return line
    return {**line, "what": f"{line['what']} †", "bits": "", "settings": ""}


def tables_of_lines() -> list[Path]:
    """Return the tables of programs that measure lines; memory.csv is of presets."""
    return sorted({*MEASURED.glob("*.csv")} - {MEASURED / "memory.csv"})


def announced() -> str:
    """Return how far the memory that is announced before a run is from the most that it holds.

    A run that was stopped might have come to hold more.
    """
    ended, stopped = ([each for each in _lines("memory") if each["ended"] == end] for end in ("yes", "no"))
    ratios, of_stopped = (sorted(float(each["ratio"]) for each in runs) for runs in (ended, stopped))
    presets, users = len({each["preset"] for each in ended}), max(int(each["users"]) for each in ended)
    told = f"In {len(ratios)} runs of {presets} presets with up to {users:,} users, what is announced is "
    told += f"{ratios[0]:.2f} to {ratios[-1]:.2f} times the most that is held"
    if of_stopped:
        least = f"at least {of_stopped[0]:.2f} times what was held by then"
        told += f"; in {len(of_stopped)} more that were stopped early, {least}"
    return f"{told} (`benchmarks/memory_model.py`)."


def measured_at() -> str:
    """Return when and on what was measured, and which versions, by which programs."""
    machines: dict[str, dict[str, list[str]]] = {}
    for path in tables_of_lines():
        for made in dict.fromkeys(line["made"] for line in _lines(path.stem)):
            versions, *machine = made.rsplit("; ", 3)
            machines.setdefault(", ".join(machine), {}).setdefault(versions, []).append(f"`{path.stem}`")
    return "\n".join(
        f"- {machine}: {'; '.join(_of_versions(*each) for each in programs.items())}"
        for machine, programs in machines.items()
    )


def _of_versions(versions: str, programs: Sequence[str]) -> str:
    return f"{', '.join(programs)} {versions.replace('; ', ', ')}"


def _lines(program: str) -> list[dict[str, str]]:
    path = MEASURED / f"{program}.csv"
    return [*csv.DictReader(path.read_text(encoding="utf-8").splitlines())] if path.is_file() else []


def _figure(text: str) -> str:
    """Return a figure to three digits, with all those before the point."""
    value = float(text or 0)
    decimals = max(0, 2 - floor(log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}" if text else ""
