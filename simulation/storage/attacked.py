"""What attacks have reached: a part of summary.json, and flat, beside the attacks' settings, attack.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from simulation.storage.column import Column
from simulation.storage.files import Document

_TITLES = {
    r"rounds_level": "levels recovered, all rounds",
    r"rounds_(level|sign)_half": r"\1s recovered, half of the rounds",
    r"rounds_(level|sign)_first": r"\1s recovered, first round",
    r"rounds_membership_auc_first": "membership from rounds, AUC, first round",
    r"linkage_top1_at_(\d+)": r"linked, \1 ratings known",
    r"unique_at_(\d+)": r"unique, \1 items known",
    r"attribute_auc_(\w+)": r"attribute \1, AUC",
    r"attribute_accuracy_(\w+)": r"attribute \1, right guesses",
    r"shadow_tpr_at_1_percent": "taking part, true positives at 1 % false positives",
    r"target_hit_rate_at_10_at_(\d+)(?:_(\d+))?_percent": r"target, hit rate at 10, \1.\2 % malicious users",
    r"target_rank_at_(\d+)(?:_(\d+))?_percent": r"target, rank, \1.\2 % malicious users",
    r"damage_rmse": "damage, RMSE",
    r"damage_ndcg": "damage, NDCG at 10",
}
"""Of figures that an attack names itself."""


def titled(name: str) -> str:
    """Return the title of a figure that is not declared here; empty for one that is not known."""
    for pattern, title in _TITLES.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(title).replace(". %", " %")
    return ""


class Reached(Document):
    """What an attack reached, beside what it is judged by."""

    value: Annotated[float | None, Column("{of}", digits=3, where="page")] = Field(
        description="Null where there is nothing to look at."
    )
    baseline: Annotated[float | None, Column("{of}", "nothing sent", 3, where="files")] = Field(
        description="By the same attack with nothing sent."
    )
    bound: Annotated[float | None, Column("{of}", "at most", 3, where="files")] = Field(
        description="What is exceeded once in a million under the proved losses; null without a theorem."
    )

    def flat(self, name: str) -> dict[str, float | None]:
        """Return the three by the names of their columns."""
        return {name: self.value, f"{name}_baseline": self.baseline, f"{name}_bound": self.bound}


class Performed(Document):
    """An attack that was performed."""

    settings: dict[str, Any] = Field(description="Its kind and its settings.")
    figures: tuple[str, ...] = Field(description="Names of its figures.")
    notes: tuple[str, ...] = Field(description="What a reader of its figures must know.")


class AttackSummary(Document):
    """What attacks have reached; a figure that was not asked for is left out."""

    recovered_level: Annotated[Reached | None, "levels recovered"] = Field(
        None, description="Share of the ratings whose level is guessed from what was sent."
    )
    recovered_sign: Annotated[Reached | None, "signs recovered"] = Field(
        None, description="Share of which it is guessed whether they are above the middle of the scale."
    )
    membership_auc: Annotated[Reached | None, "membership, AUC"] = Field(
        None, description="Area under the ROC curve of who rated which item."
    )
    membership_tpr: Annotated[Reached | None, "membership, true positives at 0.1 % false positives"] = Field(
        None, description="True positives of the same at 0.1 % false positives."
    )
    membership_posterior_auc: Annotated[Reached | None, "membership, popularity known, AUC"] = Field(
        None, description="Area under the same curve where it is known besides how popular items are."
    )
    membership_posterior_tpr: Annotated[
        Reached | None, "membership, popularity known, true positives at 0.1 % false positives"
    ] = Field(None, description="True positives of the same at 0.1 % false positives.")
    sums_membership_auc: Annotated[Reached | None, "membership from sums, AUC"] = Field(
        None, description="Area under the ROC curve of whether an item is in a profile, from noisy sums."
    )
    sums_membership_tpr: Annotated[
        Reached | None, "membership from sums, true positives at 0.1 % false positives"
    ] = Field(None, description="True positives of the same at 0.1 % false positives.")
    omission_precision: Annotated[Reached | None, "omitted items rated"] = Field(
        None, description="Share of the most listed items, where a user's list lacks them, that it rated."
    )
    linkage_top1: Annotated[Reached | None, "linked"] = Field(
        None,
        description="Share of the users whose report is found from so many known ratings, the middle number.",
    )
    attribute_auc: Annotated[Reached | None, "attributes, AUC"] = Field(
        None, description="Area under the ROC curve of the attribute of users that is told best."
    )
    rounds_sign: Annotated[Reached | None, "signs recovered, all rounds"] = Field(
        None, description="Share of the signs that are guessed from all reports on the ratings."
    )
    rounds_membership_auc: Annotated[Reached | None, "membership from rounds, AUC"] = Field(
        None, description="Area under the ROC curve of who rated an item, from what is sent in all rounds."
    )
    shadow_auc: Annotated[Reached | None, "taking part, AUC"] = Field(
        None, description="Area under the ROC curve of whether a user took part, from what is released."
    )
    shadow_tpr: Annotated[Reached | None, "taking part, true positives at 0.1 % false positives"] = Field(
        None, description="True positives of the same at 0.1 % false positives."
    )
    target_hit_rate_at_10: Annotated[Reached | None, "target, hit rate at 10"] = Field(
        None, description="Share of the honest users without the targets who are shown one among ten."
    )
    target_rank: Annotated[Reached | None, "target, rank"] = Field(
        None, description="Median rank of the targets among items that such users have not rated."
    )
    target_prediction: Annotated[Reached | None, "target, prediction"] = Field(
        None, description="Mean prediction of the targets for such users."
    )
    further: dict[str, float | None] = Field(
        default={}, description="Other figures, by the names of their columns."
    )
    performed: tuple[Performed, ...] = Field(description="The attacks.")

    @model_validator(mode="after")
    def _check_figures(self) -> Self:
        """Refuse a file without a figure that its attacks have."""
        if missing := [name for attack in self.performed for name in attack.figures if not self._held(name)]:
            raise ValueError(f"no figure {missing[0]}")
        return self

    @classmethod
    def of(cls, figures: Mapping[str, Reached], performed: tuple[Performed, ...]) -> AttackSummary:
        """Sort figures, by name, into those that are declared here and others."""
        values: dict[str, Any] = {
            name: reached for name, reached in figures.items() if name in cls.model_fields
        }
        others = [reached.flat(name) for name, reached in figures.items() if name not in values]
        if others:
            values["further"] = {name: value for flat in others for name, value in flat.items()}
        return cls(**values, performed=performed)

    def flat(self) -> dict[str, float | None]:
        """Return all figures by the names of their columns."""
        return {
            key: value for name, reached in self.reached.items() for key, value in reached.flat(name).items()
        }

    @property
    def reached(self) -> dict[str, Reached]:
        """All figures by name, in the order of the attacks."""
        names = [name for attack in self.performed for name in attack.figures]
        return {name: figure for name in names if (figure := self._held(name))}

    def _held(self, name: str) -> Reached | None:
        """Return a figure; None if it is not here."""
        if name in type(self).model_fields:
            declared: Reached | None = getattr(self, name)
            return declared
        keys = name, f"{name}_baseline", f"{name}_bound"
        if not self.further.keys() >= set(keys):
            return None
        value, baseline, bound = (self.further[key] for key in keys)
        return Reached(value=value, baseline=baseline, bound=bound)
