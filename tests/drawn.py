"""Records every random word that is drawn, with the key and the place it has in the key's stream."""

import importlib
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dprec.randomness import DeviceDraws, SecretDraws
from dprec.randomness import counters as randomness
from dprec.randomness import keys as run_keys
from dprec.secure_aggregation import streams
from dprec.secure_aggregation.streams import PURPOSE_OF_SUMS
from tests.paths import ROOT

_PACKAGES = ("dprec", "clients", "strategies", "simulation.courses")
"""What draws when a protocol is run."""

_PURPOSES = {PURPOSE_OF_SUMS, b"report", b"sample", b"number of fakes", b"fakes"}
"""What devices ask themselves: no question of a server's, but the purposes of further words."""

Site = str
"""Where in the project words are drawn: path, function and place in its code."""


@dataclass
class Drawn:
    """What was drawn.

    Attributes
    ----------
    words : dict
        From a word, given by its key and its place in the key's stream, to where it was drawn, once for each
        time.
    keys : dict
        From a derived key to what it was derived from, once for each different one.
    """

    words: dict[Hashable, list[Site]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[bytes, set[Hashable]] = field(default_factory=lambda: defaultdict(set))

    def repeated(self) -> set[Site]:
        """Return where words were drawn that were drawn more than once."""
        return {site for sites in self.words.values() if len(sites) > 1 for site in sites}

    def shared_keys(self) -> list[set[Hashable]]:
        """Return what else a key was derived from, for keys that were derived from different things."""
        return [sources for sources in self.keys.values() if len(sources) > 1]


@contextmanager
def recording(
    *, ignored: Callable[[int], bool] = lambda seed: False, bound_to_data: bool = True
) -> Iterator[Drawn]:
    """Record what is drawn in this process.

    Parameters
    ----------
    ignored : callable
        Whether draws from a seed are left out: those that make the experiment, or that everybody knows.
    bound_to_data : bool
        Whether words change, as they do, with profiles, questions and what is released. If not, all that
        tells words apart is who draws them, for what, in which round and run.
    """
    drawn = Drawn()
    with pytest.MonkeyPatch.context() as patched:
        if not bound_to_data:
            _unbind(patched)
        _record_functions(patched, drawn, ignored)
        _record_devices(patched, drawn)
        yield drawn


def _unbind(patched: pytest.MonkeyPatch) -> None:
    """Let no draw change with data."""
    asked, seed_for = DeviceDraws.asked, run_keys.seed_for

    def asked_alike(self: DeviceDraws, question: bytes) -> DeviceDraws:
        return asked(self, question if question in _PURPOSES else b"")

    patched.setattr(DeviceDraws, "asked", asked_alike)
    patched.setattr(DeviceDraws, "given", lambda self, *_: self)
    _replace(patched, seed_for, lambda seed, *_: seed_for(seed))


def _record_functions(patched: pytest.MonkeyPatch, drawn: Drawn, ignored: Callable[[int], bool]) -> None:
    words, generator, noise = randomness.words, randomness.generator, randomness.discrete_laplace
    stream, derived_key = streams.stream, streams.derived_key

    def recorded_words(seed: int, purpose: str, start: int, count: int, *, round_index: int = 0) -> Any:
        if not ignored(seed):
            where = _site()
            for index in range(start, start + count):
                drawn.words["words", seed, purpose, round_index, index].append(where)
        return words(seed, purpose, start, count, round_index=round_index)

    def recorded_noise(seed: int, purpose: str, indices: Any, bits: int) -> Any:
        if not ignored(seed):
            where = _site()
            # Of the words of a draw, the first; the others have the same index, in later rounds.
            for index in indices.tolist():
                drawn.words["words", seed, purpose, 0, index].append(where)
        return noise(seed, purpose, indices, bits)

    def recorded_generator(seed: int, purpose: str) -> Any:
        if not ignored(seed):
            drawn.words["generator", seed, purpose].append(_site())
        return generator(seed, purpose)

    def recorded_stream(key: bytes, count: int, dtype: Any) -> Any:
        drawn.words["stream", key].append(_site())
        return stream(key, count, dtype)

    def recorded_key(secret: bytes, purpose: str, context: bytes = b"") -> bytes:
        key = derived_key(secret, purpose, context)
        drawn.keys[key].add((secret, purpose, context))
        return key

    for original, wrapper in (
        (words, recorded_words),
        (generator, recorded_generator),
        (noise, recorded_noise),
        (stream, recorded_stream),
        (derived_key, recorded_key),
    ):
        _replace(patched, original, wrapper)


def _replace(patched: pytest.MonkeyPatch, original: object, wrapper: object) -> None:
    """Put something else in the place of a function, wherever it was imported."""
    of_pilot = [module for name, module in sys.modules.items() if name.startswith("dprec_pilot.")]
    for module in (*_modules(), *of_pilot):
        for name in [name for name, value in vars(module).items() if value is original]:
            patched.setattr(module, name, wrapper)


@cache
def _modules() -> list[ModuleType]:
    """Return all modules in which something is drawn; what is imported later would not be recorded."""
    packages = [importlib.import_module(name) for name in _PACKAGES]
    names = [
        found.name
        for package in packages
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not found.name.endswith("__main__")
    ]
    return [*packages, *map(importlib.import_module, names)]


def _record_devices(patched: pytest.MonkeyPatch, drawn: Drawn) -> None:
    per_user, per_cell, stream = DeviceDraws.per_user, DeviceDraws.per_cell, SecretDraws._stream

    def record(keys: Any, indices: Any, round_index: int) -> None:
        where = _site()
        for low, high, index in zip(*keys.tolist(), indices, strict=True):
            drawn.words["device", low, high, index, round_index].append(where)

    def recorded_per_user(self: DeviceDraws, index: int, round_index: int) -> Any:
        record(self.keys, [index] * self.keys.shape[1], round_index)
        return per_user(self, index, round_index)

    def recorded_per_cell(self: DeviceDraws, counts: Any, items: Any, round_index: int) -> Any:
        record(np.repeat(self.keys, counts, axis=1), items.tolist(), round_index)
        return per_cell(self, counts, items, round_index)

    def recorded_stream(self: SecretDraws, kind: bytes, count: int, *numbers: int) -> Any:
        where = _site()
        for place in range(count):
            drawn.words["secret", self.key, kind, numbers, place].append(where)
        return stream(self, kind, count, *numbers)

    patched.setattr(DeviceDraws, "per_user", recorded_per_user)
    patched.setattr(DeviceDraws, "per_cell", recorded_per_cell)
    patched.setattr(SecretDraws, "_stream", recorded_stream)


def _site() -> Site:
    """Return where in the project, but for this file, words are drawn."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        assert frame.f_back is not None
        frame = frame.f_back
    name = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
    return f"{name} {frame.f_code.co_qualname}:{frame.f_lasti}"
