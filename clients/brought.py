"""What messages bring to the workers of a simulation beside their content: classes from outside dprec.

A population's folder may be shared, so nothing in it is run: it holds settings, and names classes. Which
classes these are, where they are imported from, and the code of those that no other process can import come
from the process that started the run, through the channel by which it starts workers: this process itself,
or Ray.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dprec.errors import InputError
from dprec.options import Options, option, own_classes
from dprec.own_classes import importing_only, is_importable, reference_of
from dprec.packing import import_folders, import_from, packed, unpacked
from dprec.setups import AnySetup, Setup, is_told_by_its_settings


@dataclass(frozen=True, kw_only=True)
class _Told(Options):
    """A setup as a population's folder describes it."""

    setup: AnySetup = option("One of ours, with any components.")


@dataclass(frozen=True)
class Brought:
    """What messages bring for one run.

    Parameters
    ----------
    folders : tuple of str
        Where its own classes are imported from.
    classes : frozenset of str
        ``module:Class`` of those that the population's folder may name.
    setup : bytes, optional
        What is installed on the devices, packed, where it cannot be told by names and settings.
    """

    folders: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    setup: bytes | None = None

    @classmethod
    def for_setup(cls, setup: Setup) -> Brought:
        """Return what has to be brought for a setup.

        Raises
        ------
        InputError
            When a component of somebody's own cannot travel.
        """
        own = own_classes(setup)
        names = [reference_of(component) for component in own]
        if not own:
            return NOTHING
        if all(map(is_importable, own)) and is_told_by_its_settings(_Told(setup=setup)):
            return cls(folders=import_folders(), classes=frozenset(names))
        return cls(setup=packed(setup, " and ".join(names)))

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Read the run's classes where they are, and no other class from outside."""
        import_from(self.folders)
        with importing_only(self.classes):
            yield

    def unpacked_setup(self, where: str) -> Setup:
        """Return the setup that was brought.

        Parameters
        ----------
        where : str
            The file that does not hold it, for the error.

        Raises
        ------
        InputError
            When there is none, or a class of it cannot be imported here.
        """
        if self.setup is None:
            raise InputError(f"{where}, setup", "none", "a setup, unless the run's messages bring it")
        setup: Setup = unpacked(self.setup, "setup")
        return setup


NOTHING = Brought()
"""For a run whose components are all of dprec."""
