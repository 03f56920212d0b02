"""What a device has agreed to: its own copy of the protocol, whatever a server says.

Both sides know the protocol by its fingerprint. A device answers a run only under the fingerprint of its
own copy, and takes every setting from the copy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dprec.errors import InputError
from dprec.options import Options, as_values, option, own_classes
from dprec.own_classes import importing_only, is_importable, reference_of
from dprec.personalization.ordinal_process import OrdinalProcess
from dprec.ratings import RatingScale
from dprec.run_keys import Key
from dprec.setups import AnySetup, Setup, from_json, is_told_by_its_settings

_GROUP_DIGITS = 8
"""Digits of a fingerprint that every message carries: as many as the run key of a simulation has."""

_OPEN = 16
"""Agreements that a process holds: devices that agreed to the same share one."""


@dataclass(frozen=True, kw_only=True)
class Agreement(Options):
    """The protocol as a device knows it; the contents of protocol.json."""

    setup: AnySetup = option("What the device does: mechanism, budget, rounds.")
    levels: tuple[float, ...] = option("Levels of the rating scale, ascending.")
    continuous: bool = option("Whether true ratings lie between the levels.")
    items: int = option("Items of the catalogue.", ge=1)
    catalogue: str = option("Digest of the ids of the items, in their order: SHA-256 in hexadecimal digits.")
    public: Key = option("What devices and server share, 32 hexadecimal digits.")
    process: OrdinalProcess = option(
        "What the device assumes about tastes when it predicts from a table of items.", OrdinalProcess()
    )

    @classmethod
    def of(
        cls,
        setup: Setup,
        scale: RatingScale,
        item_ids: Sequence[str],
        *,
        public: str,
        process: OrdinalProcess | None = None,
    ) -> Agreement:
        """Return the agreement on a protocol.

        Parameters
        ----------
        setup : Setup
        scale : RatingScale
        item_ids : sequence of str
            The data set's own, in the order of the catalogue.
        public : str
            The public key of the run.
        process : OrdinalProcess, optional
            Where devices predict from a table of items.

        Raises
        ------
        InputError
            When the setup has user-defined classes that no file describes.
        """
        own = own_classes(setup)
        agreement = cls(
            setup=setup,
            levels=tuple(scale.values.tolist()),
            continuous=scale.continuous,
            items=len(item_ids),
            catalogue=digest_of(item_ids),
            public=public,
            process=process or OrdinalProcess(),
        )
        if own and not (all(map(is_importable, own)) and is_told_by_its_settings(agreement)):
            found = " and ".join(map(reference_of, own))
            raise InputError(
                "protocol", found, "classes of a module, whose settings JSON can hold, on a device"
            )
        return agreement

    @property
    def classes(self) -> tuple[str, ...]:
        """The user-defined classes that the protocol names."""
        return tuple(map(reference_of, own_classes(self.setup)))

    @cached_property
    def text(self) -> str:
        """The agreement as JSON, written in one way only."""
        return json.dumps(as_values(self), sort_keys=True, separators=(",", ":"))

    @cached_property
    def fingerprint(self) -> str:
        """What identifies the protocol: the SHA-256 of its text, 64 hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def group(self) -> str:
        """The group of every message of a run of this protocol."""
        return self.fingerprint[:_GROUP_DIGITS]

    @cached_property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return RatingScale(np.array(self.levels), self.continuous)


def digest_of(item_ids: Sequence[str]) -> str:
    """Return the SHA-256 of the ids of a catalogue, in hexadecimal digits."""
    return hashlib.sha256("\n".join(item_ids).encode()).hexdigest()


@lru_cache(maxsize=_OPEN)
def agreement_from(text: str, where: str, classes: tuple[str, ...] = ()) -> Agreement:
    """Read an agreement.

    Parameters
    ----------
    text : str
    where : str
        The file, for errors.
    classes : tuple of str
        The user-defined classes that it may name, as the device's installation says.

    Raises
    ------
    InputError
        When it is damaged, or names another class, whose module is not imported.
    """
    with importing_only(classes):
        return from_json(Agreement, text, where)
