"""The settings of a component, with bounds and descriptions, and the registries that name components.

A mechanism, a completion or a data set declares its settings once, in plain Python. Types and bounds
are checked when the object is built in a notebook, and configuration files are validated against the
same declarations, so no default and no bound is written twice.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoints, entry_points
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializationInfo,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import (
    CoreSchema,
    PydanticKnownError,
    PydanticSerializationError,
    core_schema,
    to_jsonable_python,
)
from pydantic_core.core_schema import DefinitionsSchema

from dprec.components.user_defined import declares_kind, imported, is_ours, redefined, reference_of
from dprec.errors import MAPPING, UNKNOWN_KEY, InputError, SettingError, accepted_by, listed, shown, within

_BOUNDS = {"gt", "ge", "lt", "le"}

_PAPER = "paper"
"""Key of a field's metadata that says what the paper has."""

_READER = "reader"
"""Key of a field's metadata that says who alone reads it."""


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
    """A key of dprec/references.bib, and the place: "li2021, Eq. 2"."""


def option(
    description: str,
    default: Any = dataclasses.MISSING,
    *,
    published: Any = dataclasses.MISSING,
    source: str = "",
    reader: str = "",
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
    reader : str, optional
        Of a protocol's option with a default: "server" if no device reads it
        (`dprec.protocols.base.Protocol.installed`), "result" if it changes no draw of the server either
        (`Protocol.drawn_by`).
    **bounds : float
        Any of ``gt``, ``ge``, ``lt``, ``le``.
    """
    unknown = set(bounds) - _BOUNDS
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; accepted: {sorted(_BOUNDS)}")
    if (published is dataclasses.MISSING) is not (source == ""):
        raise TypeError("a published value and its source belong together")
    metadata: dict[str, Any] = {"description": description, **bounds}
    if reader:
        metadata[_READER] = reader
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

    `papers` are the keys, in dprec/references.bib, of the papers that a component is part of. The kind of a
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
    renamed: ClassVar[Mapping[str, str]] = {}
    """What old keys are called now."""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers"})

    def __post_init__(self) -> None:
        values = {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        # mypy confuses the hash of the class with that of its instances.
        checked = _validated(_model_of(type(self)), values)  # type: ignore[arg-type]
        for name in values:
            object.__setattr__(self, name, getattr(checked, name))
        if "kind" in values and _is_named_by_its_class(type(self)):
            object.__setattr__(self, "kind", reference_of(type(self)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(_written, info_arg=True, when_used="json")
        return core_schema.with_info_plain_validator_function(
            cls._instance, ref=_reference(cls), serialization=written
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(schema_of(cls))

    @classmethod
    def _instance(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, cls):
            return value
        if not of_a_file(info):
            raise PydanticKnownError("is_instance_of", {"class": cls.__name__})
        return made(cls, value)

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


def _written(settings: Options, info: SerializationInfo) -> dict[str, Any]:
    return {
        key: _written(value, info)
        if isinstance(value, Options) and not hasattr(value, "kind")
        else as_values(value)
        for key, value in settings.entries().items()
        if value is not None or not info.exclude_none
    }


def schema_of(options: type[Options]) -> DefinitionsSchema:
    """Return pydantic's schema of the settings of a class as a file has them."""
    schema: Any = _model_of(options).__pydantic_core_schema__  # type: ignore[arg-type]
    parts = schema if schema["type"] == "definitions" else {"schema": schema, "definitions": []}
    return core_schema.definitions_schema(
        {**parts["schema"], "ref": _reference(options)}, parts["definitions"]
    )


def _reference(options: type[Options]) -> str:
    """Return a name that no other class has, which ends as its definitions in a JSON Schema are called."""
    return f"{options.__module__}.{options.__qualname__}:{id(options)}"


def as_values(value: Any) -> Any:
    """Return settings, and what they consist of, as what a file would hold."""
    if isinstance(value, Options):
        return {name: as_values(entry) for name, entry in value.entries().items()}
    if isinstance(value, tuple | list):
        return [as_values(item) for item in value]
    if isinstance(value, dict):
        return {key: as_values(item) for key, item in value.items()}
    return value


def check_data(component: Options) -> None:
    """Raise SettingError for a user-defined part of a component with a field that no file can hold."""
    for name, value in component.entries().items():
        if isinstance(value, Options):
            with within(name):
                check_data(value)
        elif not is_ours(type(component)):
            try:
                to_jsonable_python(as_values(value))
            except PydanticSerializationError:
                found = f"a value of type {type(value).__name__}, in {reference_of(type(component))}"
                accepted = (
                    "data: numbers, text, lists or mappings of them; or a ClassVar, which is no setting"
                )
                raise SettingError(name, found, accepted) from None


def as_written(value: Any) -> str:
    """Return a value for a message as a file has it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return shown(repr(as_values(value)))


def user_defined_classes(value: Any) -> list[type[Options]]:
    """Return the user-defined classes that settings consist of."""
    if not isinstance(value, Options):
        return []
    values = (getattr(value, field.name) for field in dataclasses.fields(value))
    classes = [] if is_ours(type(value)) else [type(value)]
    return [*classes, *(part for field_value in values for part in user_defined_classes(field_value))]


def _is_named_by_its_class(options: type[Options]) -> bool:
    """Return whether a user-defined class declares no kind, so that its reference is its name."""
    return not is_ours(options) and not declares_kind(options)


_STRICT = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=True,
    protected_namespaces=(),
)


@functools.cache
def _model_of(options: type[Options]) -> type[BaseModel]:
    """Return a model with the fields of a class, which checks what the dataclass itself does not."""
    try:
        types = get_type_hints(options, include_extras=True)
    except NameError as error:
        where = f"where the module {options.__module__} sees them, not inside a function"
        reason = f"{options.__qualname__}: {error}; the types of its fields must be defined {where}"
        raise TypeError(reason) from None
    if "kind" in types and _is_named_by_its_class(options):
        types["kind"] = str
    fields: dict[str, Any] = {"renamed": (ClassVar[Mapping[str, str]], options.renamed)}
    for field in dataclasses.fields(options):
        declared = {key: value for key, value in field.metadata.items() if key not in (_PAPER, _READER)}
        default = () if field.default is dataclasses.MISSING else (field.default,)
        if field.default_factory is not dataclasses.MISSING:
            default = (field.default_factory(),)
        fields[field.name] = types[field.name], Field(*default, **declared)
    return create_model(options.__name__, __config__=_STRICT, __doc__=options.__doc__, **fields)


_OF_A_FILE = "of a file"
"""Context of a validation in which mappings stand for settings, and lists for tuples."""


def of_a_file(info: ValidationInfo) -> bool:
    """Return whether values are validated as they are in a file, where a mapping stands for settings."""
    return info.mode == "json" or info.context == _OF_A_FILE


GroupT = TypeVar("GroupT", bound=BaseModel | Options)


OptionsT = TypeVar("OptionsT", bound=Options)


def parse_json(group: type[GroupT], text: str | bytes) -> GroupT:
    """Read settings from JSON; raises SettingError as `read` does."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        content = text.decode(errors="replace") if isinstance(text, bytes) else text
        raise SettingError("", shown(repr(content)), "JSON") from None
    return read(group, values)


def to_json(options: Options) -> str:
    """Return settings as JSON, which `from_json` reads."""
    return json.dumps(as_values(options))


def from_json(kind: type[OptionsT], text: str, where: str) -> OptionsT:
    """Read what `to_json` returned, and check every value of it.

    Raises InputError when it is damaged; the error names the file and the first invalid key.
    """
    try:
        return parse_json(kind, text)
    except SettingError as error:
        raise InputError(f"{where}, {error.key or 'JSON'}", error.found, error.accepted) from None


def is_told_by_its_settings(options: Options) -> bool:
    """Return whether settings are the same after they were written and read as JSON."""
    try:
        return from_json(type(options), to_json(options), "settings") == options
    except (InputError, TypeError):  # a setting that JSON has no form for
        return False


def fill(whole: BaseModel, values: Mapping[str, Any]) -> None:
    """Give a model that is being made its values, as `read` reads them."""
    _validated(type(whole), _as_in_a_file(values), _OF_A_FILE, whole)


def read(group: type[GroupT], values: Any) -> GroupT:
    """Read settings from values as a file has them, among which there may be components.

    ``group``: the class that declares them.
    Raises SettingError when one is invalid; it names the first key at fault as written, or no key for the
    whole.
    """
    return made(group, _as_in_a_file(values))


def made(group: type[GroupT], values: Any) -> GroupT:
    """Make settings of plain values and components; otherwise like `read`."""
    if not isinstance(values, dict):
        raise SettingError("", as_written(values), MAPPING)
    if issubclass(group, BaseModel):
        return _validated(group, values, _OF_A_FILE)
    model = _model_of(group)  # type: ignore[arg-type]
    checked = _validated(model, {key: _as_tuples(value) for key, value in values.items()}, _OF_A_FILE)
    return group(**{name: getattr(checked, name) for name in checked.model_fields_set})


_DEEPEST = 50
"""Deepest nesting of mappings and lists; no configuration reaches ten."""


def _as_in_a_file(value: Any, depth: int = 0) -> Any:
    """Return a value with texts as keys and in place of what no file can hold, such as a date; or refuse it.

    In Python, numbers and arrays may be NumPy's.
    """
    if depth > _DEEPEST:
        raise SettingError("", "values nested too deeply", f"at most {_DEEPEST} levels")
    value = value.tolist() if isinstance(value, np.ndarray) else plain(value)
    if isinstance(value, Mapping):
        return {_as_in_a_file(str(key)): _as_in_a_file(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_in_a_file(inner, depth + 1) for inner in value]
    if isinstance(value, Options | int | float | None):
        return value
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise SettingError("", "an unpaired Unicode surrogate", "valid Unicode text") from None
    return str(value)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


_ModelT = TypeVar("_ModelT", bound=BaseModel)


def _validated(
    model: type[_ModelT], values: dict[str, Any], context: str | None = None, instance: _ModelT | None = None
) -> _ModelT:
    checker = model.__pydantic_validator__
    try:
        checked: _ModelT = checker.validate_python(values, context=context, self_instance=instance)
    except ValidationError as error:
        raise first_error(error, model) from None
    return checked


def first_error(error: ValidationError, model: type[BaseModel]) -> SettingError:
    """Return the first error of a model, under the key at fault, with everything that is accepted there.

    A misspelt key leaves the right one missing, so unknown keys come before what is missing.
    """
    errors = error.errors()
    first = errors[0]
    if first["type"] == "missing":
        first = next((detail for detail in errors if detail["type"] == "extra_forbidden"), first)
    key, group = _place(first["loc"], model)
    name, fields = key.rpartition(".")[2], _fields(group)
    match first["type"]:
        case "extra_forbidden" if now := getattr(group, "renamed", {}).get(name):
            return SettingError(key, "an old name", now)
        case "extra_forbidden":
            return SettingError(key, UNKNOWN_KEY, listed(list(fields), name))
        case "missing":
            described = fields[name].description if name in fields else None
            return SettingError(
                key, "missing", f"a value ({described.rstrip('.')})" if described else "a value"
            )
        case "value_error" if isinstance(raised := first["ctx"]["error"], SettingError):
            # A component refuses its settings itself, and names the one at fault.
            return SettingError(f"{key}.{raised.key}".strip("."), raised.found, raised.accepted)
    # A key with several types has an error for each; its value may be whatever any of them accepts.
    alike = [accepted_by(detail) for detail in errors if _place(detail["loc"], model)[0] == key]
    return SettingError(key, as_written(first["input"]), ", or ".join(dict.fromkeys(alike)))


def _place(location: Sequence[str | int], model: type[BaseModel]) -> tuple[str, type[BaseModel]]:
    """Return the dotted key that the location of an error means, and the model that its last part is of.

    Between keys, a location also names the alternatives of a type.
    """
    key, group = "", model
    inner: type[BaseModel] | None = model
    for part in location:
        if isinstance(part, int):
            key += f"[{part}]"
        elif inner is not None:
            key, group = f"{key}.{part}" if key else part, inner
            inner = _model_in(_fields(group)[part].annotation) if part in _fields(group) else None
    return key, group


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys that are written."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a type consists of; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


@functools.cache
def _entry_points(group: str) -> EntryPoints:
    """Return what installed packages add; read once, as it takes a file of each of them."""
    return entry_points(group=group)


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
        for point in _entry_points(self.group):
            by = f"{point.value} of {point.dist.name}" if point.dist else point.value
            claimed = claims.get(point.name) or ("dprec" if point.name in self._components else None)
            if claimed is not None and claimed != point.value:
                found = f"{point.name}, which {claimed} and {by} both claim"
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
