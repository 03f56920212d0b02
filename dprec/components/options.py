"""The settings of a component, with bounds and descriptions, and the registries that name components.

A mechanism, a completion or a data set declares its settings once, in plain Python. Types and bounds
are checked when the object is built in a notebook, and configuration files are validated against the
same declarations, so no default and no bound is written twice.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar, get_type_hints

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from dprec.components.user_defined import declares_kind, imported, is_ours, redefined, reference_of
from dprec.errors import InputError, SettingError, accepted_by, listed, shown

_BOUNDS = {"gt", "ge", "lt", "le"}

_PAPER = "paper"
"""Key of a field's metadata that says what the paper has."""


def plain(value: Any) -> Any:
    """Return a number of NumPy as what a file would hold; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_tuple(value: Any) -> Any:
    """Return a list or an array as a tuple, which settings can hold; anything else as it is."""
    values = value.tolist() if isinstance(value, np.ndarray) else value
    return tuple(values) if isinstance(values, list) else values


@dataclasses.dataclass(frozen=True)
class Published:
    """What a paper has where a setting of ours can differ."""

    values: tuple[Any, ...]
    """The settings that are the paper's, the main one first."""
    source: str
    """A key of docs/references.bib, and the place: "li2021, Eq. 2"."""


def option(
    description: str,
    default: Any = dataclasses.MISSING,
    *,
    published: Any = dataclasses.MISSING,
    source: str = "",
    **bounds: float,
) -> Any:
    """Declare a field of an `Options` class.

    Parameters
    ----------
    description : str
        What the setting means, its unit and range; shown by editors through the JSON Schema.
    default : optional
        Its default. A field without a default is required.
    published : optional
        What the paper has, or a tuple of what it has; any other value counts as beyond the paper (see
        `dprec.components.settings`). Left out where the paper leaves the choice, or the setting changes no
        result.
    source : str, optional
        Where the paper says so, as in `Published`; needed with ``published``.
    **bounds : float
        Any of ``gt``, ``ge``, ``lt``, ``le``.
    """
    unknown = set(bounds) - _BOUNDS
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; accepted: {sorted(_BOUNDS)}")
    if (published is dataclasses.MISSING) is not (source == ""):
        raise TypeError("a published value and its source belong together")
    metadata = {"description": description, **bounds}
    if published is not dataclasses.MISSING:
        values = published if isinstance(published, tuple) else (published,)
        metadata[_PAPER] = Published(values, source)
    return dataclasses.field(default=default, metadata=metadata)


def published_of(field: dataclasses.Field[Any]) -> Published | None:
    """Return what the paper has for a field; None where it leaves the choice."""
    published: Published | None = field.metadata.get(_PAPER)
    return published


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of everything that is configured; a subclass adds ``kind`` and its own fields.

    `papers` are the keys, in docs/references.bib, of the papers that a component is part of. The kind of a
    user-defined component that declares none is ``module:Class``. Privacy losses rest on whatever a protocol
    consists of; `without_loss` has the names that a user-defined class may define anew all the same, since no
    loss follows from them, and is None for the kinds on which no loss rests.

    Raises
    ------
    SettingError
        When a value is not of its field's type, not one of the allowed words, or out of bounds. An
        int is accepted for a float, and converted; a bool counts as neither. Numbers of NumPy are as good.
    TypeError
        When the type of a field cannot be resolved where the class is defined.
    """

    papers: ClassVar[tuple[str, ...]] = ()
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers"})

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )

    def __post_init__(self) -> None:
        names = [field.name for field in dataclasses.fields(self)]
        try:
            # mypy confuses the hash of the class with that of its instances.
            model = _model_of(type(self))  # type: ignore[arg-type]
            checked = model.model_validate({name: plain(getattr(self, name)) for name in names})
        except ValidationError as error:
            raise _first_error(error) from None
        for name in names:
            object.__setattr__(self, name, getattr(checked, name))
        if "kind" in names and _is_named_by_its_class(type(self)):
            object.__setattr__(self, "kind", reference_of(type(self)))

    @classmethod
    def declares_loss(cls) -> bool:
        """Return whether losses rest on the word of a class from outside alone; see `without_loss`."""
        return cls.without_loss is not None and bool(redefined(cls) - cls.without_loss)

    def entries(self) -> dict[str, Any]:
        """Return the settings by their names, and the kind by which a file names the component."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if "kind" in values and not is_ours(type(self)):
            values["kind"] = reference_of(type(self))
        return values


def as_values(value: Any) -> Any:
    """Return settings, and what they consist of, as what a file would hold."""
    if isinstance(value, Options):
        return {name: as_values(entry) for name, entry in value.entries().items()}
    if isinstance(value, tuple | list):
        return [as_values(item) for item in value]
    if isinstance(value, dict):
        return {key: as_values(item) for key, item in value.items()}
    return value


def user_defined_classes(value: Any) -> list[type[Options]]:
    """Return the user-defined classes that settings consist of."""
    if not isinstance(value, Options):
        return []
    parts = [
        own for field in dataclasses.fields(value) for own in user_defined_classes(getattr(value, field.name))
    ]
    return parts if is_ours(type(value)) else [type(value), *parts]


def _is_named_by_its_class(options: type[Options]) -> bool:
    """Return whether a user-defined class declares no kind, so that its reference is its name."""
    return not is_ours(options) and not declares_kind(options)


@functools.cache
def _model_of(options: type[Options]) -> type[BaseModel]:
    """Return a model with the fields of a class, which checks what the dataclass itself does not."""
    try:
        types = get_type_hints(options, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{options.__qualname__}: {error}; the types of its fields must be defined where the module "
            f"{options.__module__} sees them, not inside a function"
        ) from None
    if "kind" in types and _is_named_by_its_class(options):
        types["kind"] = str
    fields: dict[str, Any] = {
        field.name: (types[field.name], Field(**_without_paper(field)))
        for field in dataclasses.fields(options)
    }
    config = ConfigDict(**options.__pydantic_config__, protected_namespaces=())
    return create_model(options.__name__, __config__=config, **fields)


def _without_paper(field: dataclasses.Field[Any]) -> dict[str, Any]:
    return {key: value for key, value in field.metadata.items() if key != _PAPER}


def _first_error(error: ValidationError) -> SettingError:
    """Return the error of the first field that has one, with everything that the field accepts."""
    errors = error.errors()
    key = str(errors[0]["loc"][0])
    accepted = [accepted_by(other) for other in errors if other["loc"][0] == key]
    return SettingError(key, shown(repr(errors[0]["input"])), ", or ".join(dict.fromkeys(accepted)))


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
