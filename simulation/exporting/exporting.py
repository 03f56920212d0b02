"""Writes a result as other programs read it: what there is of a run or of a comparison, by format."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dprec.errors import InputError
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.strict_yaml import at, read_yaml
from simulation.exporting.citations import bibtex
from simulation.exporting.latex import latex
from simulation.exporting.tables import run_tables
from simulation.exporting.trec import trec
from simulation.storage.columns import parquet_of_rows, read_rows
from simulation.storage.directories import COMPARISON, CONFIG, TABLE
from simulation.storage.files import csv_of_rows, csv_parts, parquet_of, unusable, write_atomically
from simulation.storage.run_files import holds_comparison
from simulation.storage.summary import read_summary

FORMATS = ("trec", "csv", "parquet", "latex", "bibtex")

Files = Mapping[str, str | bytes | Iterable[bytes]]
"""The contents of files, by their names; what takes memory is made part by part."""

_FOLDER = "export"
"""Where files go by default, in the directory of the result."""

_RECORD = "exported.sha256"
"""What was written to a folder, in the form of sha256sum: such files may be replaced while they hold that."""


def export(directory: Path, form: str, output: Path | None = None) -> list[Path]:
    """Write a result in one of `FORMATS`; see `dprec.export`."""
    if form not in FORMATS:
        raise InputError("format", repr(form), ", ".join(FORMATS))
    compared = holds_comparison(directory)
    of_kind = _OF_COMPARISONS if compared else _OF_RUNS
    if form not in of_kind:
        kind, other_kind = ("a comparison", "run") if compared else ("a run", "comparison")
        found = f"{form!r}, of {directory}, which holds {kind}"
        raise InputError("format", found, f"{', '.join(of_kind)}; {form} of a {other_kind}")
    files = of_kind[form](directory)
    folder = directory / _FOLDER if output is None else output
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = _written(folder)
        for path in (folder / name for name in files):
            if path.exists() and (path.is_dir() or written.get(path.name) != _digest(path)):
                found = "a file that was not exported, or has changed since"
                raise InputError(str(path), found, "a folder without it, by -o FOLDER")
        for name, content in files.items():
            write_atomically(folder / name, content)
            written[name] = _digest(folder / name)
            write_atomically(
                folder / _RECORD, [f"{digest}  {file_name}\n" for file_name, digest in written.items()]
            )
    except OSError as error:
        raise unusable(folder, error) from None
    return [folder / name for name in files]


def _written(folder: Path) -> dict[str, str]:
    """Return the digests of what was exported to a folder before, by the names of the files."""
    record = folder / _RECORD
    lines = record.read_text(encoding="utf-8", errors="replace").splitlines() if record.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _trec(directory: Path) -> Files:
    return trec(directory, read_summary(directory))


def _run_as_csv(directory: Path) -> Files:
    tables = run_tables(directory, read_summary(directory))
    return {f"{name}.csv": csv_parts(frame.height, frame.slice) for name, frame in tables.items()}


def _run_as_parquet(directory: Path) -> Files:
    tables = run_tables(directory, read_summary(directory))
    return {f"{name}.parquet": parquet_of(frame) for name, frame in tables.items()}


def _configurations(directory: Path) -> Iterable[RunConfig]:
    """Yield the configuration of each protocol of a comparison, in its first cell."""
    path = directory / COMPARISON
    cells = at(read_yaml(path), "cells") or {}
    first = {at(cell, "name"): (key, cell) for key, cell in reversed(cells.items())}
    return [parse_config(cell, f"{path}: cells.{key}") for key, cell in first.values()]


_OF_RUNS: Mapping[str, Callable[[Path], Files]] = {
    "trec": _trec,
    "csv": _run_as_csv,
    "parquet": _run_as_parquet,
    "bibtex": lambda directory: {"run.bib": bibtex([load(directory / CONFIG)])},
}
_OF_COMPARISONS: Mapping[str, Callable[[Path], Files]] = {
    "csv": lambda directory: {"comparison.csv": csv_of_rows(read_rows(directory / TABLE))},
    "parquet": lambda directory: {"comparison.parquet": parquet_of_rows(read_rows(directory / TABLE))},
    "latex": lambda directory: {"comparison.tex": latex(directory)},
    "bibtex": lambda directory: {"comparison.bib": bibtex(_configurations(directory))},
}
