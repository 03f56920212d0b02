"""Directories of results: the names of their files, and how one begins, so that nothing is overwritten."""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dprec.accounting import PrivacyUnit
from dprec.catalogue import Catalogue, UsersTable
from dprec.errors import InputError
from dprec.ratings import ColdRatings, Ratings
from simulation.configuration import strict_yaml
from simulation.configuration.strict_yaml import flatten, parse_yaml, read_yaml
from simulation.storage.files import (
    MOST_ROWS_OF_CSV,
    UNFINISHED,
    Count,
    Document,
    Stamped,
    parse_document,
    table_name,
    unusable,
    write_atomically,
)

# A run.
CONFIG, SUMMARY, ROUNDS = strict_yaml.CONFIG, "summary.json", "rounds.jsonl"
TRAFFIC, PREDICTIONS, LISTS = "traffic.csv", "predictions.csv.gz", "lists.csv.gz"
"""Found by `table_in`, since large ones are Parquet."""
CHANNEL, LEDGER, MESSAGES = "channel.npz", "ledger.npz", "messages.json"
USERS, GROUPS, ATTACK = "users.csv", "groups.csv", "attack.json"

# What an unfinished run draws from, if that is not its seed.
ENTROPY = "entropy.hex"

# A comparison, with one run directory per cell.
COMPARISON, TABLE, TIMINGS, CELLS = strict_yaml.COMPARISON, "comparison.csv", "timing.csv", "cells"
NOISE = "noise.csv"

# A tuning, with the configurations that have the best settings.
TUNING = "tuning.yaml"

# An audit, beside its configuration.
AUDIT = "audit.json"
AUDITS = "audits"

# What the server of a pilot is given, beside a configuration that has the name of a run's.
DEPLOYMENT = "deployment.json"

# Whatever has a page.
REPORT, FIGURES, SINGLE_FILE = "report.html", "figures", "report-single-file.html"

_RESULTS = (
    *(CONFIG, SUMMARY, ROUNDS, CHANNEL, LEDGER, MESSAGES, USERS, GROUPS, ATTACK),
    *(table_name(table, n) for table in (TRAFFIC, PREDICTIONS, LISTS) for n in (0, MOST_ROWS_OF_CSV + 1)),
    *(COMPARISON, TABLE, TIMINGS, CELLS, AUDIT, REPORT, FIGURES),
)
"""What nothing interrupted leaves in a directory without a configuration of its kind."""

_HELD = {CONFIG: "an unfinished run", COMPARISON: "a comparison already", TUNING: "a tuning already"}
"""What a directory with such a configuration holds, for errors."""


def cell_key(
    name: str, epsilon: float | None, fold: object, seed: object, population: str | None = None
) -> str:
    """Return the name of a cell's directory."""
    parts = [name] if population is None else [name, f"users{population}"]
    parts += [] if epsilon is None else [f"eps{epsilon!r}"]
    parts += [] if fold is None else [f"fold{fold}"]
    return "-".join([*parts, f"seed{seed}"])


_COSMETIC = re.compile(
    r"(cells\..+-seed\d+\.)?(simulation\.(?!(?:faults|seed)\b)|dataset\.scale_given\b)"
    r"|(title|published|noise_samples)\b"
)
"""Keys that change no figure: how a run is simulated, except for faults and seed, and what a page says."""


def claim(
    path: str | Path, file: str, configuration: str, *, resume: bool = False, others: Sequence[str] = ()
) -> Path:
    """Create a directory and write a configuration to it, or take over one that has the same.

    ``file``: of the configuration, which is the first that is written.
    ``resume``: whether a directory in which the same was interrupted, or finished, may be taken over; the
    configuration of a finished run is left as it is, and a comparison may have more seeds and epsilons.
    ``others``: more files that nothing interrupted leaves in a directory without a configuration.
    Without it, so may a directory in which nothing of the same comparison is finished.
    Raises InputError when the directory cannot be written to, or holds something else.
    """
    folder = Path(path)
    config_path, finished = folder / file, file == CONFIG and (folder / SUMMARY).exists()
    check_claimable(folder, file, resume=resume, others=others)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if config_path.exists():
            before, now = read_yaml(config_path), parse_yaml(configuration, "configuration")
            accepted = "the configuration it began with, or a new directory"
            if file == COMPARISON:
                before, accepted = _grown(before, now), f"more seeds or epsilons, or {accepted}"
            check_same(config_path, mattering(before), mattering(now), accepted)
        if not finished:
            write_atomically(config_path, configuration)
        for unfinished in folder.glob(f"{UNFINISHED}*"):
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(folder, error) from None
    return folder


def check_claimable(path: str | Path, file: str, *, resume: bool = False, others: Sequence[str] = ()) -> None:
    """Refuse a directory that `claim` refuses whatever the configuration is; nothing is written.

    Raises InputError.
    """
    folder = Path(path)
    held, accepted = "", "a new directory"
    try:
        if (folder / DEPLOYMENT).exists():
            held = f"it is of a pilot's server ({DEPLOYMENT})"
        elif file == CONFIG and (folder / SUMMARY).exists():
            held = "" if resume else "it holds a finished run"
        elif (folder / file).exists():
            if not resume and not (file == COMPARISON and _nothing_compared(folder)):
                held, accepted = f"it holds {_HELD[file]}", "a new directory, or --resume"
        elif present := [name for name in (*_RESULTS, *others) if (folder / name).exists()]:
            held = f"it holds {present[0]} of something else"
    except OSError as error:
        raise unusable(folder, error) from None
    if held:
        raise InputError(str(folder), held, accepted)


def _nothing_compared(folder: Path) -> bool:
    """Return whether no run of a comparison is finished."""
    return not (folder / TABLE).exists() and not any((folder / CELLS).glob(f"*/{SUMMARY}"))


@contextmanager
def alone(path: str | Path | None) -> Iterator[None]:
    """Keep other processes out of a directory that is written to; do nothing where it is None.

    Raises InputError when another process writes to it, or it cannot be made.
    """
    if path is None:
        yield
        return
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unusable(folder, error) from None
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(str(folder), "another process writes to it", "a new directory") from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(opened)


def check_unused(folder: Path) -> None:
    """Refuse a directory that holds anything, for what is written at once and cannot be resumed.

    Raises InputError.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(str(folder), "something else", "a new or empty directory")


def _grown(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a comparison with the seeds, budgets and cells that are added to it."""
    grown = dict(before)
    for key in ("seeds", "epsilons"):
        began, wanted = before.get(key), now.get(key)
        if isinstance(began, list) and isinstance(wanted, list) and all(entry in wanted for entry in began):
            grown[key] = wanted
    if isinstance(before.get("cells"), dict):
        grown["cells"] = {**now["cells"], **before["cells"]}
    return grown


def check_same(where: Path, before: Mapping[str, Any], now: Mapping[str, Any], accepted: str) -> None:
    """Refuse to continue what another configuration began.

    ``before``, ``now``: what figures depend on, by dotted key, as it is kept in a file and as it is now.
    Raises InputError naming the first key that differs.
    """
    for key in {**now, **before}:
        if before.get(key) != now.get(key):
            difference = f"{before.get(key)!r} there and {now.get(key)!r} now"
            raise InputError(f"{where}: {key}", difference, accepted)


def mattering(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what figures depend on in a configuration, by dotted key."""
    return {key: value for key, value in flatten(dict(values)).items() if matters(key)}


def matters(key: str) -> bool:
    """Return whether any figure depends on a key."""
    return _COSMETIC.match(key) is None


def fingerprint(*parts: Ratings | Catalogue | UsersTable | None) -> str:
    """Return a digest that identifies ratings and data about items and users, whatever file they come from.

    What is None does not count.
    """
    digest = hashlib.sha256()
    for part in parts:
        for column in () if part is None else _columns(part):
            digest.update(str((column.dtype, column.shape)).encode())
            digest.update(column.tobytes())
    return digest.hexdigest()[:16]


def _columns(part: Ratings | Catalogue | UsersTable) -> tuple[NDArray[Any], ...]:
    """Return all that a part holds."""
    if isinstance(part, UsersTable):
        return np.array(list(part.columns), dtype=np.str_), *part.columns.values()
    if isinstance(part, Catalogue):
        names = np.array(part.number_names, dtype=np.str_), np.array(part.category_names, dtype=np.str_)
        return part.numbers, part.categories, *names
    exact = part.scale.values if part.exact is None else part.exact
    given_columns = _columns(part.given) if isinstance(part, ColdRatings) else ()
    return part.user_ids, part.item_ids, part.indptr, part.items, part.levels, exact, *given_columns


_Loss = Annotated[float, Field(ge=0, allow_inf_nan=True)]
"""A loss that was computed may be infinite."""

_Probability = Annotated[float, Field(ge=0, le=1)]


class _FindingRecord(Document):
    test: str = Field(description="What was compared.")
    unit: PrivacyUnit = Field(description="Unit of the promise.")
    promised: _Loss = Field(description="The promised ε; 0 for reports that must not depend on each other.")
    at_least: _Loss = Field(description="Lower bound on ε; the loss itself if exact.")
    charged: _Loss | None = Field(description="What the run's ledger charges.")
    exact: bool = Field(description="Whether it is computed from a matrix, not bounded by samples.")
    power: _Probability = Field(description="Probability with which a leak would have been detected.")
    holds: bool = Field(description="Whether the promise stands.")
    defect: str | None = Field(description="What contradicts it.")
    strength: str = Field(description="How reliably a leak would have been detected, in words.")


class AuditRecord(Stamped):
    """The audit of one configuration."""

    name: str = Field(description="Name of the configuration.")
    protocol: str = Field(description="Kind of its protocol.")
    mechanism: str = Field(description="What protects the users.")
    trials: Count = Field(description="People per profile.")
    confidence: _Probability = Field(description="With which all lower bounds hold together.")
    findings: tuple[_FindingRecord, ...] = Field(min_length=1, description="The tests, in order.")
    declared_by: dict[str, str] = Field(
        description="User-defined classes that declare the promise, with a digest of their code."
    )
    holds: bool = Field(description="Whether nothing contradicts the promise.")
    promised: _Loss = Field(description="The promised ε of the finding that matters most.")
    lower_bound: _Loss = Field(description="Lower bound on ε of that finding.")
    power: _Probability = Field(
        description="Probability with which a leak of twice the promise would have been detected."
    )
    verdict: str = Field(description="The conclusion, in words.")


class PresetRecord(Document):
    """What became of the audit of one preset."""

    name: str
    audit: AuditRecord | None
    reason: str
    same_as: str | None


class PresetsRecord(Stamped):
    """The audits of all presets."""

    presets: tuple[PresetRecord, ...] = Field(min_length=1)

    @property
    def audits(self) -> Sequence[AuditRecord]:
        """Those that there are."""
        return [preset.audit for preset in self.presets if preset.audit is not None]


def parse_audit(text: str, where: str) -> AuditRecord | PresetsRecord:
    """Parse the contents of audit.json.

    Raises InputError naming the first key that is missing, unknown or of another type.
    """
    if '"presets"' in text:
        return parse_document(PresetsRecord, text, where)
    return parse_document(AuditRecord, text, where)
