"""`dprec contract`: whether a federated model keeps the contract, a line for each rule."""

from collections.abc import Sequence
from typing import Any

from dprec.components import check_data, read, reference_of
from dprec.errors import InputError, RunError, within
from dprec.federated import MODELS, RULES, Broken, FederatedModel, verdicts
from simulation.configuration.strict_yaml import apply_override
from simulation.console.terminal import print_lines, printable


def held_to_contract(name: str, overrides: Sequence[str]) -> None:
    """Print of every rule whether a model keeps it, and what to change; raises RunError for a broken one."""
    model, outcomes = _named(name, overrides), dict[str, Broken | None]()
    for rule, broken in verdicts(model):
        outcomes[rule.name] = broken
        lines = [f"kept       {rule.name}: {rule.asks}"]
        if broken is not None:
            lines = [f"BROKEN     {rule.name}: {broken.found}", f"           change: {broken.change}"]
        print_lines(map(printable, lines))
    print_lines(f"not tried  {rule.name}: {rule.asks}" for rule in RULES[len(outcomes) :])
    if faults := [name for name, broken in outcomes.items() if broken is not None]:
        raise RunError(f"{reference_of(type(model))} breaks {', '.join(faults)}")


def _named(name: str, overrides: Sequence[str]) -> FederatedModel:
    values: dict[str, Any] = {}
    for override in overrides:
        apply_override(values, override)
    try:
        model = MODELS.find(name)
    except InputError as error:
        raise InputError(name, error.found, error.accepted) from None
    with within("overrides"):
        configured = read(model, values)
    check_data(configured)
    return configured
