"""What a comparison is configured with, and one run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dprec.accounting import LARGEST_DELTA, SMALLEST_DELTA, ComparableUnit, unit_from_text
from dprec.components import Options, Values, as_tuple, option
from dprec.errors import SettingError
from dprec.protocols.base import Predicted
from dprec.protocols.best import promises
from dprec.protocols.components import AnyAttack, AnyBinarization, AnyDataset, AnySplit
from simulation.configuration.models import (
    EvaluationOptions,
    RunConfig,
    SimulationOptions,
    with_absolute_paths,
)

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


@dataclass(frozen=True, kw_only=True)
class MatchOptions(Options):
    """What makes protocols comparable."""

    epsilon: Annotated[ComparableUnit, BeforeValidator(unit_from_text)] = option(
        "The unit in which every protocol gets the same epsilon.", "rating"
    )
    delta: float | None = option(
        "With an epsilon per user: the probability beyond which it holds. Draws that compose share the "
        "budget by their privacy loss distributions; by default, each protocol composes as configured.",
        None,
        ge=SMALLEST_DELTA,
        le=LARGEST_DELTA,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is not None and self.epsilon == "rating":
            accepted = "null, or --set match.epsilon=user, in which draws compose"
            raise SettingError("delta", f"{self.delta:g}, with epsilon per rating", accepted)


class Entry(BaseModel):
    """One protocol of a comparison."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=_NAME)] = Field(description="Its name in tables and plots.")
    preset: str | None = Field(
        default=None,
        description="Name of a preset, or of a file NAME.yaml here or one folder up, or a path from here; by "
        "default, name.",
    )
    protocol: Values | None = Field(default=None, description="The protocol itself, in place of a preset's.")
    changes: Values = Field(
        default_factory=dict, alias="set", description="Values to replace in it, by dotted key."
    )
    epsilons: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None, description="Epsilons for this protocol alone, in place of the comparison's."
    )
    panel: str | None = Field(
        default=None, description="Panel; only protocols of the same panel share tables and figures."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Entry:
        if self.preset is not None and self.protocol is not None:
            raise SettingError("protocol", "a protocol beside a preset", "one of the two")
        return self


class PopulationOptions(BaseModel):
    """Populations on which every protocol also runs."""

    model_config = _STRICT

    users: list[Annotated[int, Field(ge=2, le=2**31 - 1)]] = Field(
        default_factory=list,
        description="Numbers of users: of synthetic data, who are drawn, with as many ratings each; of other "
        "data, copies of those that there are.",
    )
    datasets: list[AnyDataset] = Field(
        default_factory=list, description="Data sets whose users are a population each, such as MovieLens 1M."
    )
    dataset: AnyDataset | None = Field(
        default=None, description="What users are drawn from, or copied; by default the comparison's own."
    )
    split: AnySplit | None = Field(
        default=None,
        description="How ratings are split; by default as the comparison's, where the data allow.",
    )
    epsilons: list[Annotated[float, Field(gt=0)]] | None = Field(
        default=None, min_length=1, description="Budgets; by default the comparison's."
    )
    protocols: list[str] | None = Field(
        default=None, min_length=1, description="Names of the protocols that run; by default all."
    )


class PublishedCost(BaseModel):
    """What a protocol sends according to a paper, shown beside what was measured."""

    model_config = _STRICT

    label: str = Field(description="The protocol's name in this comparison, or in the paper.")
    up: str = Field(description="From the user to the server, as printed.")
    down: str = Field(description="From the server to the user, as printed.")
    source: str = Field(description="Where it is printed.")


class ComparisonConfig(BaseModel):
    """Everything that a comparison depends on."""

    model_config = _STRICT

    name: Annotated[str, Field(pattern=_NAME)] = Field(description="Name of the comparison.")
    title: str | None = Field(default=None, description="Title of the report.")
    dataset: AnyDataset = Field(description="The ratings, the same for every protocol.")
    split: AnySplit = Field(description="The split, the same for every protocol.")
    binarization: AnyBinarization | None = Field(
        default=None, description="How ratings are cut into +1 and -1; by default each preset's own."
    )
    folds: list[int] | list[str] | None = Field(
        default=None, min_length=1, description="Values for the split's fold; by default its own."
    )
    seeds: list[Annotated[int, Field(ge=0)]] = Field(
        default=[0], min_length=1, description="Seeds; every random draw is repeated for each."
    )
    epsilons: list[Annotated[float, Field(gt=0)]] = Field(
        default_factory=list, description="Budgets for the protocols that take one."
    )
    quick: bool = Field(
        default=False, description="Whether only the first seed and fold and the middle one of epsilons run."
    )
    only: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Names of the protocols that run, as in comparison.csv, with their baselines; by default "
        "all.",
    )
    match: MatchOptions = Field(
        default=MatchOptions(),
        description="What every epsilon covers: one rating or, where one-shot and iterative protocols are "
        "compared, all that a user sends (epsilon: user).",
    )
    protocols: list[Entry] = Field(description="What is compared.")
    promises: Literal["all"] | None = Field(
        default=None,
        description="Whether best is compared as well, under every promise that data and match permit.",
    )
    baselines: bool = Field(
        default=True,
        description="Whether it also shows what is reached without any of its protocols: nothing-sent, "
        "global-mean, item-average and sets-only, or of lists random-list and popularity, for everything "
        "that the protocols predict, with what is public about the items wherever any of them reads that.",
    )
    populations: PopulationOptions | None = Field(
        default=None, description="Other numbers of users, at which every protocol runs as well."
    )
    published: list[PublishedCost] | None = Field(
        default=None, description="Published costs, shown in the report beside the measured ones."
    )
    attacks: Annotated[tuple[AnyAttack, ...] | None, BeforeValidator(as_tuple)] = Field(
        default=None, description="What is tried on every run; by default each preset's own."
    )
    noise_samples: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None,
        description="Samples of the noise of every one-shot mechanism that reveals the item set, at every "
        "epsilon, shown in the report beside theory; by default none.",
    )
    simulation: SimulationOptions = Field(default=SimulationOptions(), description="How it is simulated.")
    evaluation: EvaluationOptions = Field(
        default=EvaluationOptions(), description="How accuracy is measured, the same for every protocol."
    )
    groups: list[str] = Field(
        default_factory=list,
        description="What divides the users into groups whose figures are compared, over all folds: as "
        "evaluation.groups, which it replaces; protocols of signs have none.",
    )

    @model_validator(mode="after")
    def _any_protocol(self) -> ComparisonConfig:
        if not self.protocols and self.promises is None:
            raise SettingError("protocols", "none", "at least one, or promises: all")
        return self

    def with_absolute_paths(self) -> ComparisonConfig:
        """Return the comparison so that it can go on from any directory."""
        changes: dict[str, Any] = {
            name: with_absolute_paths(getattr(self, name)) for name in ("dataset", "evaluation")
        }
        if (others := self.populations) is not None:
            paths: dict[str, Any] = {
                "datasets": [with_absolute_paths(dataset) for dataset in others.datasets]
            }
            if others.dataset is not None:
                paths["dataset"] = with_absolute_paths(others.dataset)
            changes["populations"] = others.model_copy(update=paths)
        return self.model_copy(update=changes)

    @property
    def promised(self) -> list[Entry]:
        """An entry for every promise that is compared and not listed already."""
        if self.promises is None:
            return []
        predicted: Predicted = "lists" if self.dataset.holds_sets else "ratings"
        settings = promises(predicted, self.match.epsilon)
        entries = [
            Entry(name=name, protocol={**values, "privacy": {"epsilon": 1.0, **values["privacy"]}})
            for name, values in settings.items()
        ]
        return [entry for entry in entries if entry not in self.protocols]


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    key: str
    """Name of its directory in cells/."""
    protocol: str
    """Name of the protocol's entry."""
    epsilon: float | None
    """The budget; None for a protocol without privacy, which runs once rather than per budget."""
    fold: int | str | None
    seed: int
    config: RunConfig
    panel: str | None = None
    baseline: str | None = None
    """Name of the baseline that it is; None for any other protocol."""
    public: str = ""
    """What it reads that is public about the items; empty for nothing."""
    population: str | None = None
    """Of which population it is; None for the comparison's own ratings."""
    stated: Mapping[str, str] = field(default_factory=dict, compare=False)
    """What of a promise its settings state; see `Protocol.stated`."""
    quick: bool = False
    """Whether it is of a comparison that runs only some of its cells."""
    where: str = field(default="", compare=False)
    """File and entry, for errors; cells of two files may be equal."""
