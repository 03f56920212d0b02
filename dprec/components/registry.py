"""One registry per kind of component: where a component gets its name in configurations."""

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from dprec.components.options import Options
from dprec.components.user_defined import declares_kind, imported, is_ours, reference_of
from dprec.errors import InputError, SettingError, listed, shown

OptionsT = TypeVar("OptionsT", bound=Options)

ELSEWHERE = "module:Class of a file"
"""What is accepted where no component is registered."""


class Registry(Generic[OptionsT]):
    """The components of one kind, by the name that configurations use.

    An installed package adds its own through the group of entry points ``dprec.`` and the plural of the
    registry's name, such as ``dprec.mechanisms``; a configuration, as ``module:Class``. Each component has a
    ``kind`` field whose default is its name.
    """

    def __init__(self, name: str, base: type[OptionsT], components: Sequence[type[OptionsT]]) -> None:
        self.name, self.base = name, base
        self._components = {kind_of(component): component for component in components}
        if len(self._components) != len(components):
            raise TypeError(f"two components share a kind in the {name} registry")

    def __iter__(self) -> Iterator[type[OptionsT]]:
        return iter(self._components.values())

    @property
    def kinds(self) -> list[str]:
        """The registered names, in the order of registration."""
        return list(self._components)

    def __getitem__(self, kind: str) -> type[OptionsT]:
        if kind not in self._components:
            raise InputError(self.name, repr(kind), listed(self.kinds, kind) or ELSEWHERE)
        return self._components[kind]

    @property
    def group(self) -> str:
        """The group of entry points through which packages add components."""
        return f"dprec.{self.name}s"

    def of_packages(self) -> dict[str, str]:
        """Return the components that installed packages add: ``module:Class`` by name.

        Raises InputError when two packages claim a name, or one claims a name that is registered here.
        """
        claims: dict[str, str] = {}
        for point in entry_points(group=self.group):
            by = f"{point.value} of {point.dist.name}" if point.dist else point.value
            other = claims.get(point.name) or ("dprec" if point.name in self._components else None)
            if other is not None and other != point.value:
                found = f"{point.name}, which {other} and {by} both claim"
                raise InputError(f"the entry points of {self.group}", found, "one package for each name")
            claims[point.name] = point.value
        return claims

    def find(self, kind: str) -> type[OptionsT]:
        """Return the component that a configuration names: by its kind, or as ``module:Class``.

        Raises InputError when there is none, or it cannot be used.
        """
        if kind in self._components:
            return self._components[kind]
        added = {} if ":" in kind else self.of_packages()
        if ":" not in kind and kind not in added:
            raise SettingError("kind", shown(repr(kind)), listed([*self.kinds, *added], kind) or ELSEWHERE)
        component = imported(added.get(kind, kind), self.base)
        if self._components.get(kind_of(component), component) is not component:
            found = f"{reference_of(component)}, with the kind {kind_of(component)!r} of another {self.name}"
            raise SettingError("kind", found, "a class with a kind of its own, or that declares none")
        return component


def kind_of(component: type[Options]) -> str:
    """Return the name under which a component is configured."""
    if not is_ours(component) and not declares_kind(component):
        return reference_of(component)
    return str(component.__dataclass_fields__["kind"].default)


def summary_of(component: type[Options]) -> str:
    """Return the first line of a component's docstring, for listings, without reference keys."""
    lines = (component.__doc__ or "").strip().splitlines()
    return re.sub(r" \[[a-z]+[0-9]{4}\]", "", lines[0]) if lines else "Not described."
