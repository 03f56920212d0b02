"""The configuration of a run: one frozen model, read strictly, with one-line errors.

Components describe themselves (see `dprec.components`); here they are put together and checked as a whole.
Unknown keys are errors, and a number written as a string is not a number.
"""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from clients.faults import FaultOptions
from clients.places import is_url, place_of
from dprec import components
from dprec.errors import InputError, SettingError, within
from dprec.metrics import check_names
from dprec.protocols.base import Predicted, Protocol
from dprec.protocols.components import AnyAttack, AnyBinarization, AnyDataset, AnySchedule, AnySplit
from dprec.protocols.registry import PROTOCOLS
from dprec.splits import Split
from dprec.wire import NetworkOptions
from simulation.configuration.strict_yaml import dump_yaml

_ModelT = TypeVar("_ModelT", bound=BaseModel)


def validated(model: type[_ModelT], values: Mapping[str, Any], source: str) -> _ModelT:
    """Validate values as a file has them against a model; those made in Python may hold components.

    Raises InputError with one line for the first error: the source and key, what was found and what is
    accepted.
    """
    try:
        return components.read(model, values)
    except SettingError as error:
        where = f"{source}: {error.key}" if error.key else source
        raise InputError(where, error.found, error.accepted) from None


if TYPE_CHECKING:
    AnyProtocol = Protocol
else:
    AnyProtocol = components.one_of(PROTOCOLS)

OptionsT = TypeVar("OptionsT", bound=components.Options)

SOURCES = "sources"
"""Key of what is written with a configuration: a digest of the code of each user-defined class."""

_USERS_AT_ONCE = 50_000
"""Largest automatic partition: more would take a worker more memory, fewer make more messages."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SimulationOptions(components.Options):
    """How the population is simulated; of these settings, only the faults and the seed change a result."""

    renamed: ClassVar[Mapping[str, str]] = {"population_dir": "devices_dir"}

    backend: Literal["auto", "ray", "local"] = components.option(
        "Flower on Ray, or everything in one process; auto is Ray for many users, on a cluster, and where "
        "more than one worker is asked for.",
        "auto",
    )
    workers: Annotated[int, Field(ge=1, le=1024)] | None = components.option(
        "Tasks of Ray that run the devices at a time; by default, two.", None
    )
    users_per_node: Annotated[int, Field(ge=1)] | Literal["auto", "all"] = components.option(
        "Users that one Flower node hosts.", "auto"
    )
    devices_dir: Annotated[str, Field(min_length=1)] | None = components.option(
        "Directory or URL, seen by every node, for the devices' ratings, which stay there for other runs; "
        "by default, a temporary one.",
        None,
    )
    network: NetworkOptions = components.option(
        "How devices would be connected in a deployment, for its network bytes.", NetworkOptions()
    )
    faults: FaultOptions = components.option("What goes wrong between devices and server.", FaultOptions())
    seed: Literal["run", "os"] = components.option(
        "What devices and server draw from: the run's seed, or entropy of the operating system.", "run"
    )

    @property
    def tasks(self) -> int:
        """Tasks of Ray at a time."""
        return self.workers or 2

    def partition_size(self, n_users: int) -> int:
        """Return the number of users per node for a population."""
        if self.users_per_node == "all":
            return max(1, n_users)
        if self.users_per_node == "auto":
            return max(1, min(_USERS_AT_ONCE, math.ceil(n_users / (4 * self.tasks))))
        return self.users_per_node


ACTIVITY, EPSILON = "activity", "epsilon"
"""Groups of users that need no column of a users' table: by number of ratings, and by loss per rating."""

LONGEST_CUTOFF = 10_000
"""Length of the longest list from the catalogue that is judged."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankingOptions(components.Options):
    """How lists from the catalogue are compared with the relevant test items."""

    candidates: Literal["unrated", "sampled"] = components.option(
        "What is ranked: all items without a train rating of the user; or also a sample of those without any "
        "rating of the user, with the user's relevant test items.",
        "unrated",
    )
    cutoffs: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LONGEST_CUTOFF)], ...],
        Field(min_length=1),
        BeforeValidator(components.as_tuple),
    ] = components.option("Lengths of the lists.", (10, 20))
    negatives: Annotated[int, Field(ge=1)] | str | None = components.option(
        "With sampled candidates, items that are drawn for each user; or the file that gives them, in the "
        "layout of NCF's test.negative.",
        None,
    )
    seed: int = components.option("Seed of these draws.", 0, ge=0, lt=2**63)

    def __post_init__(self) -> None:
        super().__post_init__()
        sampled = self.candidates == "sampled"
        if sampled and self.negatives is None:
            raise SettingError("negatives", "nothing", "a number of items or a file, with sampled candidates")
        if not sampled and self.negatives is not None:
            raise SettingError("negatives", str(self.negatives), "null, unless candidates are sampled")
        if len(set(self.cutoffs)) < len(self.cutoffs):
            raise SettingError("cutoffs", str(list(self.cutoffs)), "different lengths")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationOptions(components.Options):
    """How accuracy is measured."""

    top_k: int = components.option(
        "Length of the recommended list; of implicit data, one that is not 10 adds figures of such lists.",
        10,
        ge=1,
        le=1_000_000_000,
    )
    relevant_from: float | None = components.option(
        "A test rating of at least this is relevant; by default, the user's mean train rating.",
        None,
    )
    candidates: Literal["test", "unrated"] = components.option(
        "Which items are ranked: a user's test items, or all items without a train rating of the user.",
        "test",
    )
    ranking: RankingOptions | None = components.option(
        "Ranking over the catalogue, measured at the end of a run; left out, it is not measured.", None
    )
    lists: Annotated[int, Field(ge=1, le=LONGEST_CUTOFF)] | None = components.option(
        "Length of the lists that are written, of all items without a train rating of the user; left out, "
        "none are.",
        None,
    )
    groups: Annotated[tuple[str, ...], BeforeValidator(components.as_tuple)] = components.option(
        "What divides the users into groups whose figures are told: 'activity' (quarters by number of "
        "ratings), 'epsilon' (what the reports lose per rating), or columns of the users' table.",
        (),
    )
    errors: Annotated[tuple[str, ...], BeforeValidator(components.as_tuple)] = components.option(
        "User-defined metrics of which less is better, module:function each, at the end of a run.", ()
    )
    scores: Annotated[tuple[str, ...], BeforeValidator(components.as_tuple)] = components.option(
        "The same where more is better.", ()
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.groups)) < len(self.groups):
            raise SettingError("groups", str(list(self.groups)), "each once")
        for key in ("errors", "scores"):
            with within(key):
                check_names(getattr(self, key))
        with within("scores"):
            check_names((*self.errors, *self.scores))

    @property
    def reads_users(self) -> bool:
        """Whether a group is made of a column of the users' table."""
        return not set(self.groups) <= {ACTIVITY, EPSILON}

    @property
    def own(self) -> tuple[str, ...]:
        """The user-defined metrics."""
        return (*self.errors, *self.scores)


class RunConfig(BaseModel):
    """Everything that a run depends on."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        """Check plain values or components as those of a file are; raises SettingError naming the key."""
        components.fill(self, values)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)] = Field(
        description="Name of the run and of its directory."
    )
    seed: int = Field(default=0, ge=0, description="Seed of everything that is drawn.")
    dataset: AnyDataset = Field(description="The ratings.")
    split: AnySplit = Field(
        description="How the ratings are divided into train and test; not read where there is a schedule."
    )
    binarization: AnyBinarization | None = Field(
        default=None, description="How ratings are cut into +1 and -1, for methods that need signs."
    )
    protocol: AnyProtocol = Field(description="How devices and server arrive at predictions together.")
    schedule: AnySchedule | None = Field(
        default=None,
        description="When devices are asked in the course of time; by default once, about everything.",
    )
    attacks: Annotated[tuple[AnyAttack, ...], BeforeValidator(components.as_tuple)] = Field(
        default=(),
        description="What is tried on the run at its end. Secure sums, whose noise is else drawn at once, "
        "then draw it device by device: with the same distribution, and other bits.",
    )
    simulation: SimulationOptions = Field(default=SimulationOptions(), description="How it is simulated.")
    evaluation: EvaluationOptions = Field(
        default=EvaluationOptions(), description="How accuracy is measured on test ratings."
    )

    @model_validator(mode="before")
    @classmethod
    def _without_sources(cls, values: Any) -> Any:
        """Leave out what a run adds to its config.yaml: the file runs again with the code that there is.

        Where time divides the ratings, no split has to be given.
        """
        if not isinstance(values, dict):
            return values
        split = {"split": {"kind": "holdout"}} if values.get("schedule") else {}
        return split | {key: value for key, value in values.items() if key != SOURCES}

    @model_validator(mode="after")
    def _of_data(self) -> Self:
        """Have a protocol that follows the data know what these hold, as far as that is known of them."""
        if self.protocol.follows_data:
            predicted: Predicted = "lists" if self.dataset.holds_sets else "ratings"
            with within("protocol"):
                self.__dict__["protocol"] = self.protocol.of_data(predicted)
        return self

    @property
    def reads_users(self) -> bool:
        """Whether the users' table is read: for groups, for epsilons, or for attacks."""
        privacy = self.protocol.privacy
        if self.attacks:
            return True
        return self.evaluation.reads_users or (privacy is not None and privacy.column is not None)

    @property
    def division(self) -> Split:
        """How the ratings are divided: by time where there is a schedule, which comes before any split."""
        return self.split if self.schedule is None else self.schedule.division

    @property
    def sources(self) -> dict[str, str]:
        """A digest of the code of each class and metric that is not of this distribution, by reference."""
        return {
            **components.sources_of(self.user_defined_classes()),
            **components.sources_of_functions(self.evaluation.own),
        }

    def user_defined_classes(self) -> list[type[components.Options]]:
        """Return the classes of its components that are not of this distribution."""
        parts = (self.dataset, self.split, self.binarization, self.protocol, self.schedule, *self.attacks)
        return [component for part in parts for component in components.user_defined_classes(part)]

    def with_absolute_paths(self) -> Self:
        """Return the configuration so that it can be run from any directory."""
        changes: dict[str, Any] = {
            name: with_absolute_paths(getattr(self, name)) for name in ("dataset", "evaluation")
        }
        place = self.simulation.devices_dir
        if place is not None and not is_url(place):
            changes["simulation"] = dataclasses.replace(self.simulation, devices_dir=str(place_of(place)))
        return self.model_copy(update=changes)

    def plain_values(self) -> dict[str, Any]:
        """Return the configuration as a file that can be run from any directory holds it."""
        values: dict[str, Any] = _without_nulls(self.with_absolute_paths().model_dump(mode="json"))
        return values if self.attacks else {key: value for key, value in values.items() if key != "attacks"}

    def written_values(self) -> dict[str, Any]:
        """Return the same values with the digests of user-defined code, which a run goes on with."""
        return with_sources(self.plain_values(), self.sources)

    def to_yaml(self) -> str:
        """Return the configuration as YAML that can be run from any directory.

        A comment names each class that no file can bring back, and `SOURCES` holds the digests of all
        user-defined code: a run goes on only with the code that it began with.
        """
        passing = [
            components.reference_of(component)
            for component in self.user_defined_classes()
            if not components.is_importable(component)
        ]
        notes = [
            f"# {name} is not at the top of a file, so this file alone does not run.\n" for name in passing
        ]
        return "".join(notes) + dump_yaml(self.written_values())


def with_sources(values: dict[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Return values as they are written, with the digests of user-defined code, if there is any."""
    return {**values, SOURCES: dict(sources)} if sources else values


def parse_config(values: Mapping[str, Any], source: str = "configuration") -> RunConfig:
    """Check a configuration given as plain values; see `dprec.load`."""
    return validated(RunConfig, values, source)


_PATHS = ("path", "target_path", "train_path", "test_path", "validation_path", "negatives")


def with_absolute_paths(part: OptionsT) -> OptionsT:
    """Return a part of a configuration with the paths that it names made absolute."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name in _PATHS and isinstance(value, str) and value:
            changes[field.name] = str(Path(value).expanduser().absolute())
        elif isinstance(value, components.Options):
            changes[field.name] = with_absolute_paths(value)
    return dataclasses.replace(part, **changes) if changes else part


def _without_nulls(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_nulls(value) for key, value in values.items() if value is not None}
    return values
