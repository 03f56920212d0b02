"""The contract of federated models: rules that each say what of a model is broken, and what to change.

They are tried on made-up users, among them one with a single rating, one with all items and one with
nothing, in rounds as they are run. A rule that finds nothing has proved nothing: it has tried some users.
"""

import gc
import hashlib
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import partial
from itertools import chain, combinations
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from dprec.arrays import AnyArray, Floats, offsets
from dprec.completion import Profiles
from dprec.components import import_folders, packed, reference_of, unpacked
from dprec.errors import InputError, SettingError, one_line, with_kind
from dprec.federated.alone import check_predictions, check_updates, precision_of, some_devices, some_keys
from dprec.federated.model import (
    Computed,
    Devices,
    FederatedModel,
    Parameters,
    arrays_of,
    as_array,
    one_by_one,
    read_only,
    shapes_of,
)
from dprec.federated.updates import LARGEST_CLIP, LEAST_CLIP, UpdateCode
from dprec.randomness import generator
from dprec.ratings import POSITIVE, RatingScale


class Broken(NamedTuple):
    """What of a model breaks a rule, and what to change."""

    found: str
    change: str


@dataclass(frozen=True, eq=False)
class Trial:
    """A model, and the made-up users that rules are tried on."""

    model: FederatedModel
    scale: RatingScale
    items: int = 24
    groups: tuple[int, ...] = (2, 3, 5, 65)
    """Numbers of users who are computed together."""
    pairs: int = 6
    """Pairs of users of a group, at most, who are computed alone."""
    rounds: int = 3
    clip: float = 1.0

    @classmethod
    def of(cls, model: FederatedModel, **sizes: Any) -> Self:
        """Return the trial of a model on ratings of what it predicts; ``sizes``: fields of the class."""
        return cls(model, POSITIVE if model.predicted == "lists" else RatingScale.evenly(1, 5, 1), **sizes)

    def start(self) -> Parameters:
        """Return the parameters of the first round."""
        parameters = self.model.start(self.items, self.scale, generator(0, "start"))
        return _sent(arrays_of(self.model, "start returned", parameters))

    def devices(self, users: int, seed: int = 0) -> Devices:
        """Return devices of made-up users, of which the last of four or more holds nothing."""
        devices = some_devices(self.model, users + (users < 4), self.items, self.scale, seed)
        return devices.of_users(np.arange(users))

    def extremes(self) -> Devices:
        """Return devices of users with every item, with one rating and with none."""
        items = np.append(np.arange(self.items), self.items // 2).astype(np.int32)
        values = np.full(items.size, np.nan if self.scale.implicit else self.scale.high)
        profiles = Profiles(offsets(np.array([self.items, 1, 0])), items, values, self.items)
        return replace(self.devices(3), profiles=profiles)

    def played(self, devices: Devices) -> Iterator[tuple[Parameters, Devices, Computed]]:
        """Yield the parameters of each round, the devices, and what they compute."""
        parameters, step = self.start(), self.model.steps()
        shapes = shapes_of(parameters)
        code = UpdateCode(self.model.sends(shapes), self.clip, 0.0)
        holds = np.diff(devices.profiles.indptr) > 0
        for number in range(1, self.rounds + 1):
            computed = self.model.computed(parameters, devices)
            yield parameters, devices, computed
            mean = code.mean(tuple(update[holds] for update in computed.updates))
            moved = arrays_of(self.model, "step returned", step(parameters, mean, number))
            _check_shapes("step", moved, shapes)
            parameters = _sent(moved)
            devices = replace(devices, state=computed.state, keys=some_keys(holds.size, number))

    def tried(self) -> Iterator[tuple[Parameters, Devices, Computed]]:
        """Yield the rounds of all groups."""
        for users in self.groups:
            yield from self.played(self.devices(users, seed=users))

    def code(self, computed: Computed) -> UpdateCode:
        """Return the code by which half of some updates are clipped, so that nothing hides behind it."""
        shapes = tuple(update.shape[1:] for update in computed.updates)
        norms = UpdateCode(shapes, 1.0, 0.0).norms(computed.updates)
        positive = norms[np.isfinite(norms) & (norms > 0)]
        clip = np.median(positive) if positive.size else self.clip
        return UpdateCode(shapes, float(np.clip(clip, LEAST_CLIP, LARGEST_CLIP)), 0.0)

    def predicted(self, parameters: Parameters, devices: Devices) -> Floats:
        """Return what devices predict of all items, shape (users, items)."""
        users, items = np.indices((devices.profiles.n_users, self.items))
        predict = self.model.predicting(parameters, devices)["predict"]
        cells = as_array(predict(users.ravel(), items.ravel()))
        _check_shapes("predictor", [cells], [(users.size,)])
        return cells.reshape(users.shape)

    def compared(self, code: UpdateCode, parameters: Parameters, devices: Devices) -> dict[str, Floats]:
        """Return updates in clips and predictions, a row for each user, in the precision of the model."""
        updates = self.model.computed(parameters, devices).updates
        rows = code.scaled(updates).astype(np.result_type(np.float16, *updates))
        return {"updates": rows, "predictions": self.predicted(parameters, devices)}

    def digests(self, seeds: Sequence[int]) -> dict[str, str]:
        """Return the digest of everything that is computed of some groups, one group after the other."""
        digests = {}
        for seed in seeds:
            for number, (parameters, devices, computed) in enumerate(self.played(self.devices(8, seed)), 1):
                predicted = self.predicted(parameters, devices)
                named = {"parameters": parameters, **computed._asdict(), "predictions": predicted}
                for name, arrays in named.items():
                    data = b"".join(array.tobytes() for array in arrays)
                    digests[f"{name} of round {number} of users {seed}"] = hashlib.sha256(data).hexdigest()
        return digests


_SEEDS = (1, 2)


def _other(digests: dict[str, str], others: dict[str, str]) -> str | None:
    """Return the first that has another digest, in words; None if nothing has."""
    return next((name.partition(" of users")[0] for name in digests if digests[name] != others[name]), None)


def _elsewhere(trial: Trial) -> dict[str, str]:
    """Return what a process of its own computes, of the same groups in the other order."""
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(import_folders()), "PYTHONHASHSEED": "random"}
    program = "from dprec.federated import contract; contract.answer()"
    sent = packed(trial, reference_of(type(trial.model)))
    finished = subprocess.run(
        [sys.executable, "-c", program], input=sent, capture_output=True, env=surroundings, check=False
    )
    if finished.returncode:
        last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        found = f"in a process of its own: {' '.join(last)}"
        accepted = "a class that any process can import and run"
        raise InputError(reference_of(type(trial.model)), found, accepted)
    digests: dict[str, str] = json.loads(finished.stdout.splitlines()[-1])
    return digests


def answer() -> None:
    """Print the digests of a trial that is read from standard input; `_elsewhere` starts this."""
    trial = unpacked(sys.stdin.buffer.read(), "model")
    sys.stdout.write("\n" + json.dumps(trial.digests(_SEEDS[::-1])) + "\n")


def _sent(parameters: Parameters) -> Parameters:
    """Return parameters as they reach a device: in doubles, whatever a model returned."""
    return tuple(parameter.astype(np.float32).astype(np.float64) for parameter in parameters)


@dataclass(frozen=True)
class Rule:
    """Something that is asked of every model."""

    name: str
    asks: str
    check: Callable[[Trial], Broken | None]
    """Returns what is broken; raises InputError for the same, or whatever the model raises."""
    basis: bool = False
    """Whether what breaks this cannot be held to the rules after it."""
    change: str = "raise nothing for any user: with one rating, with every item, with none"
    """What to change where the model raises something."""

    def broken(self, trial: Trial) -> Broken | None:
        """Return what is broken, also where the model raises something."""
        try:
            return self.check(trial)
        except InputError as error:
            return Broken(error.found, f"to {error.accepted}")
        except Exception as error:  # whatever the code of a model raises
            file = getattr(sys.modules.get(type(trial.model).__module__), "__file__", None)
            frames = traceback.extract_tb(error.__traceback__)
            place = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
            found = f"{with_kind(error)} ({place.filename}:{place.lineno})"
            if isinstance(error, FrozenInstanceError):
                return Broken(found, _KEEP)
            return Broken(found, self.change)


def verdicts(model: FederatedModel, **sizes: Any) -> Iterator[tuple[Rule, Broken | None]]:
    """Yield each of `RULES` with what is broken, up to a broken one on which those after it rest.

    ``sizes``: fields of `Trial`.
    """
    trial = Trial.of(model, **sizes)
    for rule in RULES:
        broken = rule.broken(trial)
        yield rule, broken
        if broken is not None and rule.basis:
            return


def _defined(trial: Trial) -> Broken | None:
    if trial.model.defines("update", "predict") or trial.model.defines("updates", "predictor"):
        return None
    change = "define update and predict, of one user, or updates and predictor, of a whole partition"
    return Broken("neither update and predict, nor updates and predictor", change)


def _starts(trial: Trial) -> None:
    trial.start()
    trial.devices(4)


_COPY = "copy first what you change, such as what is trained: array.copy(), or torch.tensor(array)"


def _untouched(trial: Trial) -> Broken | None:
    parameters, devices = trial.start(), trial.devices(4)
    arguments: dict[str, Sequence[AnyArray]] = {
        "parameters": parameters,
        "profiles": (devices.profiles.items, devices.profiles.values),
        "states": devices.state,
    }
    before = {name: [array.copy() for array in arrays] for name, arrays in arguments.items()}
    try:
        computed = trial.model.computed(parameters, devices)
        trial.predicted(parameters, devices)
        means = tuple(update.mean(axis=0) for update in computed.updates)
        trial.model.steps()(parameters, means, 1)
    except Exception as error:  # of any other, another rule tells
        if "read-only" in (raised := one_line(error)):
            return Broken(f"parameters, profile or state are changed in place ({raised})", _COPY)
    for name, arrays in arguments.items():
        if not all(map(_same, arrays, before[name])):
            return Broken(f"{name} are changed in place", _COPY)
    return None


def _same(first: AnyArray, second: AnyArray) -> bool:
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def _shapes(trial: Trial) -> Broken | None:
    for users in (1, *trial.groups):
        for parameters, devices, computed in trial.played(trial.devices(users)):
            sent = trial.model.sends(shapes_of(parameters))
            _check_shapes("updates", computed.updates, [(users, *shape) for shape in sent])
            trial.predicted(parameters, devices)
    return None


def _check_shapes(method: str, arrays: Sequence[Floats], expected: Sequence[tuple[int, ...]]) -> None:
    """Raise SettingError for arrays of other shapes than a method of a model should return."""
    shapes = [np.shape(array) for array in arrays]
    if shapes != list(expected):
        raise SettingError("", f"{method} of shapes {shapes}", f"{list(expected)}, whatever users hold")


_FINITE = (
    "keep divisors from 0, and logarithms and exponents in range, for one rating, for every item and for none"
)


def _finite(trial: Trial) -> Broken | None:
    for parameters, devices, computed in chain(trial.played(trial.extremes()), trial.tried()):
        if not all(np.isfinite(parameter).all() for parameter in parameters):
            return Broken("parameters are not finite after a step", _FINITE)
        counts = np.diff(devices.profiles.indptr)
        # Of who holds nothing, zeros are sent whatever is computed.
        updates = [np.where(counts > 0, update.T, 0.0).T for update in computed.updates]
        for name, arrays in (
            ("updates", updates),
            ("state", computed.state),
            ("predictions", [trial.predicted(parameters, devices)]),
        ):
            for array in arrays:
                lost = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
                if lost.any():
                    found = f"{name} of a user with {counts[lost][0]} of {trial.items} items are not finite"
                    return Broken(found, _FINITE)
    return None


def _kept_generators(trial: Trial) -> Broken | None:
    model, parameters = trial.model, read_only(trial.start())

    def update(random: np.random.Generator) -> None:
        for profile, _, state in trial.devices(3).each():
            model.update(parameters, profile, random, state)

    calls: dict[str, Callable[[np.random.Generator], Any]] = {
        "start": partial(model.start, trial.items, trial.scale),
        "begin": partial(model.begin, trial.items, trial.scale),
    }
    if model.defines("update"):
        calls["update"] = update
    for name, call in calls.items():
        random = generator(0, "own draws of a made-up user")
        before = _references(random)
        call(random)
        gc.collect()
        if _references(random) > before:
            change = "draw what is needed from `random` while it is given, and keep nothing but the state"
            return Broken(f"{name} keeps its generator", change)
    return None


def _references(random: np.random.Generator) -> int:
    return sys.getrefcount(random) + sys.getrefcount(random.bit_generator)


_FROM_RANDOM = (
    "draw from `random`, which start, begin and update are given; to seed a framework from it, put its own "
    "generator back afterwards, as torch.random.fork_rng() does"
)


_SHARED = {
    "random": attrgetter("getstate", "setstate", "seed"),
    "numpy.random": attrgetter("get_state", "set_state", "seed"),
    "torch": attrgetter("get_rng_state", "set_rng_state", "manual_seed"),
}
"""How the generator that all code of a process shares is read, set and seeded, by its module."""


def _draws(trial: Trial) -> Broken | None:
    loaded = [name for name in _SHARED if name in sys.modules]
    shared = {name: _SHARED[name](sys.modules[name]) for name in loaded}
    before = {name: get() for name, (get, _, _) in shared.items()}
    try:
        for _, _, seed in shared.values():
            seed(1)
        seeded = {name: _bytes(get()) for name, (get, _, _) in shared.items()}
        trial.digests(_SEEDS[:1])
        moved = [name for name, (get, _, _) in shared.items() if _bytes(get()) != seeded[name]]
    finally:
        for name, (_, restore, _) in shared.items():
            restore(before[name])
    if moved:
        return Broken(f"moves the generator of {moved[0]} that a whole process shares", _FROM_RANDOM)
    differing = _other(trial.digests(_SEEDS), trial.digests(_SEEDS))
    # Two new processes do the same in the same order: they agree on what follows from what came before.
    if differing is not None and _elsewhere(trial) != _elsewhere(trial):
        return Broken(f"{differing} are others each time", _FROM_RANDOM)
    return None


def _bytes(state: Any) -> bytes:
    return as_array(state).tobytes() if hasattr(state, "detach") else pickle.dumps(state)


_KEEP = "keep it in the state that update returns, not in the object, its class or its module"


def _remembers(trial: Trial) -> Broken | None:
    digests = trial.digests(_SEEDS)
    differing = _other(digests, trial.digests(_SEEDS)) or _other(digests, _elsewhere(trial))
    found = f"{differing} depend on what was computed before, or on the process"
    return None if differing is None else Broken(found, _KEEP)


def _travels(trial: Trial) -> Broken | None:
    name, model = reference_of(type(trial.model)), trial.model
    for when in ("", " after it has computed"):
        if unpacked(packed(model, name), name) != model:
            change = "have settings that are data: numbers, texts, or tuples of them"
            return Broken(f"another model is read{when} where it was pickled", change)
        trial.digests(_SEEDS[:1])
    return None


def _alone(trial: Trial) -> Broken | None:
    for parameters, devices, computed in trial.tried():
        code, predicting = trial.code(computed), trial.model.predicting(parameters, devices)
        pairs = list(combinations(range(devices.profiles.n_users), 2))
        for pair in pairs[:: -(-len(pairs) // trial.pairs)]:
            check_updates(trial.model, code, parameters, devices, computed, np.array(pair))
            check_predictions(trial.model, parameters, devices, predicting, np.array(pair))
    return None


def _company(trial: Trial) -> Broken | None:
    change = "scale, centre and normalise each user's row by itself, not by what a batch holds"
    # Of two, the one that is changed often has what a batch is scaled by.
    for seed, users in enumerate((2, 2, 2, *trial.groups)):
        for parameters, devices, computed in trial.played(trial.devices(users, seed)):
            code, others = trial.code(computed), devices.of_users(np.arange(1, users))
            another = some_devices(trial.model, 1, trial.items, trial.scale, seed + 1)
            before = trial.compared(code, parameters, devices)
            for event, changed in (
                ("holds something else", Devices.joined([another, others])),
                ("is gone", others),
            ):
                after = trial.compared(code, parameters, changed)
                pairs = {name: (before[name][1:], after[name][1 - users :]) for name in before}
                if broken := _differing(pairs, f"move when another {event}", change):
                    return broken
    return None


def _order(trial: Trial) -> Broken | None:
    for parameters, devices, computed in trial.tried():
        code, turned = trial.code(computed), np.arange(devices.profiles.n_users)[::-1]
        expected = trial.compared(code, parameters, devices)
        reordered = trial.compared(code, parameters, devices.of_users(turned))
        pairs = {name: (expected[name][turned], reordered[name]) for name in expected}
        change = "let nothing depend on a user's place in a batch"
        if broken := _differing(pairs, "are others in another order of users", change):
            return broken
    return None


def _differing(pairs: Mapping[str, tuple[Floats, Floats]], difference: str, change: str) -> Broken | None:
    """Return what rows of users, by name, differ by more than rounding explains."""
    for name, (expected, actual) in pairs.items():
        tolerance = precision_of((expected, actual)) * max(1.0, float(np.abs(expected).max(initial=0.0)))
        if number := int((np.abs(expected - actual) > tolerance).any(axis=1).sum()):
            return Broken(f"{name} of {number} of {len(expected)} users {difference}", change)
    return None


def _clipped(trial: Trial) -> Broken | None:
    for parameters, devices, computed in trial.played(trial.devices(8)):
        holds = np.diff(devices.profiles.indptr) > 0
        for size, bit in ((1e-9, 0.0), (1.0, 0.0), (1.0, 0.05), (1e9, 0.05), (1e200, 0.0)):
            code = UpdateCode(trial.model.sends(shapes_of(parameters)), trial.clip, 0.0, bit)
            with np.errstate(over="ignore"):
                updates = tuple(update * np.float64(size) for update in computed.updates)
                sent = code.clipped(updates, holds)
                longest = np.linalg.norm(sent, axis=1).max()
            if longest > code.reach or sent[~holds].any():
                found = f"a report of {longest:.3g} clips, where {code.reach:.3g} are charged"
                change = "leave clipping to dprec.federated.UpdateCode, which all reports come from"
                return Broken(found, change)
    return None


def _forms(trial: Trial) -> Broken | None:
    model = trial.model
    for parameters, devices, computed in trial.played(trial.devices(5)):
        pairs, code = dict[str, tuple[Floats, Floats]](), trial.code(computed)
        whole = trial.compared(code, parameters, devices)
        if model.defines("update", "updates"):
            single = one_by_one(model, parameters, devices)
            if not all(map(_same, computed.state, single.state)):
                return Broken("update keeps a state, and updates none", "define one of the two")
            pairs["update and updates"] = whole["updates"], code.scaled(single.updates)
        if model.defines("predict", "predictor"):
            rows = [
                as_array(model.predict(parameters, profile, state)) for profile, _, state in devices.each()
            ]
            pairs["predict and predictor"] = whole["predictions"], np.array(rows)
        if broken := _differing(pairs, "differ", "let both compute the same, or define one"):
            return broken
    return None


RULES: tuple[Rule, ...] = (
    Rule("defined", "what a device computes and predicts is defined", _defined, True),
    Rule("starts", "start and begin return arrays", _starts, True, "raise nothing, whatever the catalogue"),
    Rule("untouched", "parameters, profiles and states stay as they are given", _untouched, True),
    Rule("shapes", "shapes are those that are sent, the same for every user", _shapes, True),
    Rule("finite", "all is finite, also for one rating and for every item", _finite),
    Rule("generator", "no generator is kept", _kept_generators, True),
    Rule("draws", "what is drawn is drawn from `random`", _draws, True),
    Rule("memory", "nothing is remembered but the state that update returns", _remembers, True),
    Rule("pickled", "a pickled model is the same", _travels),
    Rule("alone", "what is computed of a user is what is computed of it alone", _alone),
    Rule("company", "another user changes nothing", _company),
    Rule("order", "the order of users changes nothing", _order),
    Rule("clipped", "no report is longer than what is charged", _clipped),
    Rule("forms", "the form of one user and that of partitions agree", _forms),
)
"""What is asked of every model; each rule is named in one word."""

BEFORE_A_RUN = tuple(rule for rule in RULES if rule.name in ("defined", "untouched", "shapes", "alone"))
"""The rules that a run has time for before it starts."""
