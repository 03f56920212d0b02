"""What a configuration or a component is, from its settings alone: no rating is read, and nothing runs."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from dprec import components as kinds
from dprec.accounting import UNITS_IN_WORDS, Guarantee, Trust
from dprec.binarization import binary_scale
from dprec.components import Deviation, Options, Registry, as_values, kind_of, summary_of
from dprec.datasets import Dataset
from dprec.errors import InputError, within
from dprec.protocols.base import Public, guarantee_of
from dprec.protocols.components import COMPONENT_REGISTRIES
from dprec.protocols.registry import PROTOCOLS
from dprec.ratings import POSITIVE, RatingScale
from dprec.reports import ReportSize
from simulation.analysis.vocabulary import server_sees
from simulation.configuration.models import RunConfig

_STARS = RatingScale.evenly(1, 5, 1)
_USERS, _ITEMS, _RATINGS = 943, 1682, 106
"""The shape of MovieLens 100K, with the mean number of ratings of its users."""

_Schema = Mapping[str, Any]

REQUIRED = "required"
"""Stands for the default of a setting that has none."""


class ComponentLine(NamedTuple):
    """A component of a configuration: where it is configured, its name, its first line, its papers' keys."""

    key: str
    kind: str
    words: str
    papers: tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """The population and the user for whom reports are described."""

    scale: RatingScale
    users: int
    items: int
    """Sizes of the population and of the catalogue."""
    ratings: int
    """Ratings of the user, at least 1."""

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.users, self.items


@dataclass(frozen=True)
class SettingLine:
    """A setting of a component, what it would be by default, and what the paper has."""

    key: str
    """Dotted, below the protocol or the component that is described."""
    value: Any
    default: Any
    """As in a file; `REQUIRED` if there is none."""
    published: tuple[Any, ...]
    """What the paper has, the main value first; empty where the paper leaves the choice."""
    source: str
    """Where the paper says so; empty with ``published``."""
    words: str
    """What it means."""
    accepts: str
    """What may be configured, with its bounds."""

    def as_json(self, *names: str) -> dict[str, Any]:
        """Return some of its fields as JSON values."""
        return {name: as_values(getattr(self, name)) for name in names}


_INSTEAD: dict[Trust, str] = {
    "local": "no ε of a report is proved",
    "shuffle": "protected among the messages of all devices, not by itself",
    "secure-aggregation": "protected once it is added up, not by itself: it is masked until then",
    "central": "as it is to the server, which is trusted with it: the promise is about what that releases",
}
"""What protects reports that have no loss of their own, under a promise."""

_WITHOUT_NOISE: dict[Trust, str] = {"secure-aggregation": "masked until it is added up; the sum has no noise"}
"""The same where nothing is promised."""


@dataclass(frozen=True)
class Description:
    """A configuration in words and figures."""

    name: str
    parts: tuple[ComponentLine, ...]
    """The protocol first, with an empty key; if it picks another, that one's components follow."""
    example: Example
    """For whom the report and the guarantee are described."""
    sent: ReportSize | None
    """What a device sends; None if nothing."""
    guarantee: Guarantee
    settings: tuple[SettingLine, ...]
    beyond_the_paper: tuple[Deviation, ...]
    schedule: ComponentLine | None
    """When devices are asked again; None if they are asked once. A report is described as if they were."""

    @property
    def protection(self) -> str:
        """What protects a report by itself, and where nothing does, what does instead."""
        sent, status = self.sent, self.guarantee.status
        if sent is None:
            return "nothing is sent"
        if sent.epsilon is not None:
            message = "a report" if sent.of else "an answer"
            return f"exact ε of {message} {sent.epsilon:.10g} {UNITS_IN_WORDS[sent.per]}"
        if sent.symbols == 1:
            return "the items as they are, and nothing of how they were rated"
        if status == "none":
            return _WITHOUT_NOISE.get(self.guarantee.trust, "not protected")
        return _INSTEAD[self.guarantee.trust]

    @property
    def server_sees(self) -> str:
        """What the server learns directly from the devices."""
        guarantee, spends = self.guarantee, self.sent is None or self.sent.symbols != 1
        return server_sees(
            trust=guarantee.trust, hides_rated_items=guarantee.hides_rated_items, unlinked=guarantee.unlinked,
            declared=guarantee.status == "declared", sends=self.sent is not None, spends=spends,
            lists=self.example.scale.implicit,
        )  # fmt: skip


def describe(config: RunConfig) -> Description:
    """Describe a configuration."""
    protocol, example = config.protocol, _example(config)
    public = Public(example.users, example.items, example.scale)
    picked = protocol.picked
    # Of a protocol that another one picks, the components follow.
    further = [part for part in _parts(picked, "") if part.key] if picked != protocol else []
    parts = (*_parts(protocol, ""), *further)
    with within("protocol"):
        sent, guarantee = (
            protocol.sent(public, example.ratings),
            guarantee_of(protocol, example.shape, config.schedule),
        )
    settings = tuple(_lines(type(protocol), protocol, "", components=True))
    schedule = None if config.schedule is None else next(_parts(config.schedule, "schedule"))
    beyond = kinds.deviations(picked)
    return Description(config.name, parts, example, sent, guarantee, settings, beyond, schedule)


def as_json(description: Description) -> dict[str, Any]:
    """Return a description as JSON values, under the names that the terminal shows."""
    values = dataclasses.asdict(description)
    sent = values["sent"]
    levels = values["example"].pop("scale")["values"].tolist()
    setting = ("key", "value", "default", "published", "source")
    beyond = [
        {**dataclasses.asdict(deviation), "words": str(deviation)}
        for deviation in description.beyond_the_paper
    ]
    return {
        **values,
        "parts": [part._asdict() for part in description.parts],
        "schedule": None if description.schedule is None else description.schedule._asdict(),
        "sent": sent and {**sent, "protection": description.protection},
        "example": {"levels": levels, **values["example"]},
        "guarantee": {**values["guarantee"], "server_sees": description.server_sees},
        "settings": [line.as_json(*setting) for line in description.settings],
        "beyond_the_paper": beyond,
    }


def _example(config: RunConfig) -> Example:
    """Return the population that the data set states, or the shape of MovieLens 100K."""
    dataset: Dataset = config.dataset
    scale = binary_scale() if config.binarization is not None else dataset.known_scale()
    if config.protocol.facts.predicts == "lists":
        scale = POSITIVE

    def stated(name: str, usual: int) -> int:
        number = getattr(dataset, name, None)
        # `items` may also say where to read about them.
        return number if type(number) is int else usual

    users, items = stated("users", _USERS), stated("items", _ITEMS)
    ratings = stated("ratings", _RATINGS * users) // users
    return Example(scale or _STARS, users, items, min(items, max(1, ratings)))


def _parts(options: Options, key: str) -> Iterator[ComponentLine]:
    if hasattr(options, "kind"):
        yield ComponentLine(key, options.kind, summary_of(type(options)), options.papers)
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if isinstance(value, Options):
            yield from _parts(value, f"{key}.{field.name}" if key else field.name)


def _lines(
    component: type[Options], configured: Options | None, prefix: str, *, components: bool
) -> Iterator[SettingLine]:
    """Yield the settings of a class with their values, and those of its groups or of its components."""
    schema = TypeAdapter(component).json_schema()
    definitions = schema.get("$defs", {})
    properties = _resolved(schema, definitions).get("properties", {})
    written = {} if configured is None else configured.entries()
    for field in dataclasses.fields(component):
        if field.name == "kind" or field.name not in properties or (written and field.name not in written):
            continue
        key, group = prefix + field.name, kinds.group_of(component, field.name)
        default = REQUIRED if field.default is dataclasses.MISSING else field.default
        value = default if configured is None else written[field.name]
        inner = value if isinstance(value, Options) else None
        if components:
            group = None if inner is None else type(inner)
        if group is not None:
            yield from _lines(group, inner, f"{key}.", components=components)
            continue
        published = kinds.published_of(field)
        paper = (published.values, published.source) if published else ((), "")
        accepts = _accepted(properties[field.name], definitions)
        yield SettingLine(key, value, default, *paper, field.metadata.get("description", ""), accepts)


_TYPES = {
    **{"array": "a list", "boolean": "true or false", "integer": "an integer", "null": "null"},
    **{"number": "a number", "object": "a mapping", "string": "text"},
}
"""Types of a JSON Schema in words."""

_BOUNDS = (
    *(("minimum", "at least"), ("exclusiveMinimum", "above")),
    *(("maximum", "at most"), ("exclusiveMaximum", "below")),
)


@dataclass(frozen=True)
class ComponentDescription:
    """A component in words."""

    what: str
    """What it is, such as "mechanism"."""
    kind: str
    words: str
    """Its documentation."""
    papers: tuple[str, ...]
    place: str
    """``module:Class``."""
    settings: tuple[SettingLine, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the description as JSON values."""
        names = ("key", "accepts", "default", "published", "source", "words")
        settings = [line.as_json(*names) for line in self.settings]
        return {**dataclasses.asdict(self), "settings": settings}


def described_components(name: str) -> list[ComponentDescription]:
    """Describe what a name stands for: a kind, ``mechanisms/KIND`` or ``module:Class``; empty if nothing."""
    all_registries: tuple[Registry[Any], ...] = (*COMPONENT_REGISTRIES, PROTOCOLS)
    plural, _, kind = name.rpartition("/")
    registries = [registry for registry in all_registries if plural in ("", f"{registry.name}s")]
    if ":" in kind:
        component = kinds.imported(kind, Options)
        registries = [registry for registry in registries if issubclass(component, registry.base)]
        if not registries:
            accepted = ", ".join(registry.base.__name__ for registry in all_registries)
            raise InputError(name, "a class that is no component", f"one derived from one of {accepted}")
    else:
        registries = [
            registry for registry in registries if kind in registry.kinds or kind in registry.of_packages()
        ]
    described = []
    for registry in registries:
        options_class: type[Options] = registry.find(kind)
        its_kind, papers = kind_of(options_class), options_class.papers
        words, place = inspect.cleandoc(options_class.__doc__ or ""), kinds.reference_of(options_class)
        settings = tuple(_lines(options_class, None, "", components=False))
        described.append(ComponentDescription(registry.name, its_kind, words, papers, place, settings))
    return described


def _resolved(schema: _Schema, definitions: _Schema) -> _Schema:
    """Return what a reference of a JSON Schema stands for."""
    reference = schema.get("$ref")
    return schema if reference is None else definitions[reference.rpartition("/")[2]]


def _accepted(schema: _Schema, definitions: _Schema) -> str:
    """Return in words what a JSON Schema accepts."""
    schema = _resolved(schema, definitions)
    if "discriminator" in schema:
        return ", ".join(schema["discriminator"]["mapping"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_accepted(part, definitions) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = schema.get("properties", {}).get("kind", {})
    if "pattern" in kind:
        return "module:Class"
    bounds = [f"{words} {schema[key]:g}" for key, words in _BOUNDS if key in schema]
    return ", ".join([_TYPES.get(schema.get("type", ""), "a value"), *bounds])
