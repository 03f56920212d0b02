"""The baselines of a comparison: what a protocol must beat before it is worth any privacy or bytes.

A comparison has them by default, once for each thing that its protocols predict.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence

from simulation.comparison.definition import Entry
from simulation.comparison.templates import SHARED, Template
from simulation.configuration.models import RunConfig, parse_config
from simulation.configuration.presets import presets
from simulation.configuration.strict_yaml import read_yaml
from simulation.protocols.floors import BASELINES, baseline_of

_LONGEST_PANEL = 40
"""Characters of a panel in a name; the names of runs are limited."""


def added_baselines(
    templates: Sequence[Template], *, folds: bool, baselines: Sequence[str] = BASELINES
) -> list[Template]:
    """Return the baselines that a comparison's entries lack, of everything that they predict.

    Parameters
    ----------
    templates : sequence of Template
        Of the entries.
    folds : bool
        Whether the comparison sets the fold of every entry.
    baselines : sequence of str
        Which of `BASELINES` are added.
    """
    groups: dict[str, list[Template]] = {}
    for template in templates:
        predicts = predicted(template.run, template.entry.panel, folds=folds)
        groups.setdefault(predicts, []).append(template)
    names = {template.entry.name for template in templates}
    added = []
    for group, words in zip(
        groups.values(), _distinguishing([own[0] for own in groups.values()]), strict=True
    ):
        listed = {baseline_of(template.run.protocol) for template in group}
        for baseline in baselines:
            if baseline not in listed:
                kind = group[0].run.dataset.kind
                name = next(name for name in _names(baseline, words, kind) if name not in names)
                names.add(name)
                added.append(_baseline(baseline, name, group[0]))
    return added


def predicted(config: RunConfig, panel: str | None, *, folds: bool) -> str:
    """Return what a configuration predicts, as text: ratings, how they are split and cut, and the panel.

    Public data about the items change no rating, and neither does the fold of a comparison that has several.
    """
    values = config.model_dump(mode="json", include={"dataset", "split", "binarization"})
    # In data that are drawn, it is the number of items.
    if type(values["dataset"].get("items")) is not int:
        values["dataset"].pop("items", None)
    if folds:
        del values["split"]["fold"]
    return json.dumps([values, panel], sort_keys=True)


def _distinguishing(firsts: Sequence[Template]) -> list[list[str]]:
    """Return what tells each group from the others, in words, given a template of each."""
    kinds = [template.run.dataset.kind for template in firsts]
    signs = [template.run.binarization is not None for template in firsts]
    panels = [template.entry.panel for template in firsts]
    return [
        [kind] * (kind != kinds[0])
        + ["signs"] * (sign and not all(signs))
        + [_slug(panel)] * (panel is not None and len(set(panels)) > 1)
        for kind, sign, panel in zip(kinds, signs, panels, strict=True)
    ]


def _slug(panel: str | None) -> str:
    """Return a panel as a part of a directory's name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", panel or "")[:_LONGEST_PANEL].strip("-")


def _names(baseline: str, words: Sequence[str], kind: str) -> Iterator[str]:
    """Yield names for a baseline, the best first, without end."""
    plain = "-".join(word for word in (baseline, *words) if word)
    yield plain
    if kind not in words:
        yield f"{plain}-{kind}"
    number = 2
    while True:
        yield f"{plain}-{number}"
        number += 1


def _baseline(baseline: str, name: str, like: Template) -> Template:
    """Return a baseline that predicts what another entry does."""
    shared = {key: like.values[key] for key in SHARED if key in like.values}
    values = {**read_yaml(presets()[baseline]), **copy.deepcopy(shared), "name": name}
    entry = Entry(name=name, preset=baseline, panel=like.entry.panel)
    return Template(entry, values, parse_config(values, like.where), like.where, like.population)
