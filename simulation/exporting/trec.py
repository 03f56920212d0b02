"""Lists and test ratings of a run as the files that trec_eval, pytrec_eval and ranx read.

A line of a run is ``user Q0 item rank score name``, one of judgements ``user 0 item relevance``. Fields are
divided by white space, so that in an identifier it is written as in a URL, and so is its percent sign.
Judged users are those of whom metrics are means: all with a relevant test rating or, where it has levels,
with any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyArray, Floats, Ints
from dprec.binarization import is_binary
from dprec.errors import InputError
from dprec.ratings import RatingScale
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.directories import CONFIG, LISTS
from simulation.storage.files import Columns, csv_parts
from simulation.storage.run_files import RANK, RELEVANT, read_lists, read_predictions, writes_lists
from simulation.storage.summary import Summary

if TYPE_CHECKING:
    import polars


def trec(directory: Path, summary: Summary) -> dict[str, Iterator[bytes]]:
    """Return the lists of a run, and its judgements: by relevance, and by levels where there are ratings.

    Raises InputError when the run has no lists, or a file cannot be read.
    """
    if not writes_lists(read_yaml(directory / CONFIG), summary):
        accepted = "the directory of a run with lists, which --set evaluation.lists=20 writes"
        raise InputError(str(directory / LISTS), "no such file", accepted)
    lists, predictions = read_lists(directory), read_predictions(directory, summary, relevant=True)
    scores, relevant = falling(lists["score"], lists[RANK]), predictions[RELEVANT]
    further = {"rank": lists[RANK], "score": scores, "name": np.full(scores.size, summary.name)}
    files = {
        "run.trec": _lines(lists, "Q0", further),
        "qrels.trec": _judged(predictions, relevant == 1, np.ones(relevant.size, dtype=np.int64)),
    }
    levels = summary.dataset.levels
    if levels is not None and not is_binary(scale := RatingScale(np.array(levels))):
        judged = ~np.isnan(relevant)
        files["graded.trec"] = _judged(predictions, judged, scale.level_of(predictions["rating"]))
    return files


def falling(scores: Floats, ranks: Ints) -> NDArray[np.float32]:
    """Return the scores of lists in single precision, each below the one before in its list.

    That is how trec_eval reads them, and it orders by nothing else but identifiers. So a score that is not
    below becomes the next number that is.

    ``scores``, ``ranks``, shape (items,): list after list, by rank from 1.
    """
    bits = np.clip(scores, -3e38, 3e38).astype(np.float32).view(np.int32).astype(np.int64)
    # Numbers of single precision, in their order, as integers; the sign bit stands for 2^31.
    places = np.where(bits < 0, -(bits + (1 << 31)), bits)
    # What is lower by its rank is below what comes before, and no list reaches up to the one before it.
    lists = np.cumsum(ranks == 1) << 34
    places = np.minimum.accumulate(places + ranks - lists) - ranks + lists
    return np.where(places < 0, -places - (1 << 31), places).astype(np.int32).view(np.float32)


def _judged(predictions: Columns, selected: NDArray[np.bool_], relevance: AnyArray) -> Iterator[bytes]:
    pairs = {name: predictions[name][selected] for name in ("user", "item")}
    return _lines(pairs, "0", {"relevance": relevance[selected]})


def _lines(pairs: Columns, between: str, further: Columns) -> Iterator[bytes]:
    """Return lines of a user, a constant, an item, and further fields."""
    import polars

    user, item = (_fields(pairs[name]) for name in ("user", "item"))
    constant = np.full(user.len(), between)
    frame = polars.DataFrame({"user": user, "constant": constant, "item": item, **further})
    return csv_parts(frame.height, frame.slice, header=False, separator=" ", quote_style="never")


def _fields(identifiers: AnyArray) -> polars.Series:
    """Return identifiers as fields that hold no white space, and something."""
    import polars

    fields = polars.Series(identifiers)
    distinct = fields.unique()
    special = distinct.filter(distinct.str.contains(r"[\s%]|^$"))
    escaped = [re.sub(r"[\s%]", lambda mark: quote(mark[0]), identifier) or "%" for identifier in special]
    return fields.replace(special, escaped)
