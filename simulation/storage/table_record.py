"""tables.json: rows and SHA-256 of a comparison's tables, so that one that was cut or changed is noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from dprec.errors import InputError
from simulation.storage.directories import TABLES
from simulation.storage.files import (
    Document,
    check_recorded,
    parse_document,
    read_text,
    write_atomically,
    write_recorded,
)
from simulation.storage.summary import FileSummary
from simulation.storage.tables import Row, csv_of_rows


class _Record(Document):
    files: dict[str, FileSummary] = Field(description="Every table, by the name of its file.")


def write_tables(directory: Path, tables: Mapping[str, Sequence[Row]]) -> None:
    """Write tables and the record of them.

    Parameters
    ----------
    tables : mapping from str to sequence of dict
        The rows of every table, by the name of its file.
    """
    # Without a record nothing is refused, should this end between the tables.
    (directory / TABLES).unlink(missing_ok=True)
    files = {
        name: write_recorded(directory / name, csv_of_rows(rows), len(rows)) for name, rows in tables.items()
    }
    write_atomically(directory / TABLES, _Record(files=files).model_dump_json(indent=2) + "\n")


def check_table(path: Path) -> None:
    """Refuse a table that is not the one that was written with the record beside it.

    A table without a record is accepted: it may come from anywhere.

    Raises
    ------
    InputError
        Naming the table, and its number of rows if that differs, or the record if that is damaged.
    """
    record = path.parent / TABLES
    if not record.is_file():
        return
    recorded = parse_document(_Record, read_text(record), str(record)).files.get(path.name)
    if recorded is None:
        return
    try:
        check_recorded(path, recorded)
    except InputError as error:
        accepted = f"the table that `dprec compare` wrote; --resume writes it again; or no {TABLES} beside it"
        raise InputError(error.where, error.found, accepted) from None
