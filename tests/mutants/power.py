"""How many of 20 audits notice each leaking mutant, and how many are alarmed without one.

    python -m tests.mutants.power [--audits 20] [NAME ...]

Every audit has a seed of its own and as many people as the gate in tests/mutants gives it. At least 19 of 20
have to notice a mutant. About 5 minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from types import FunctionType

from tests.mutants.audits import defect_of
from tests.mutants.catalogue import Audited, Mutant, read_catalogue
from tests.mutants.forking import in_a_child, ready_to_fork
from tests.mutants.planting import loaded_functions, plant

REQUIRED = 0.95


def alarms(audited: Audited, audits: int, mutant: Mutant | None, loaded: Iterable[FunctionType]) -> list[str]:
    """Return what each audit that found a defect says, with the mutant planted in a process of its own."""

    def work() -> list[str]:
        if mutant is not None:
            plant(mutant, loaded)
        return [defect for seed in range(1, audits + 1) if (defect := defect_of(audited, seed))]

    said, _ = in_a_child(work)
    return list(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=20)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    mutants = [
        each for each in read_catalogue("leaks.toml") if not options.names or each.name in options.names
    ]
    loaded = loaded_functions()
    ready_to_fork()
    missed = 0
    print(f"noticed in so many of {options.audits} audits:")
    for mutant in mutants:
        if mutant.audit is None:
            continue
        said = alarms(mutant.audit, options.audits, mutant, loaded)
        missed += len(said) < REQUIRED * options.audits
        print(f"{mutant.name:40} {len(said):3}  {mutant.audit}; {mutant.audit.people} people", flush=True)
    for audited in dict.fromkeys(mutant.audit for mutant in mutants if mutant.audit):
        said = alarms(audited, options.audits, None, loaded)
        print(
            f"{'without a mutant':40} {len(said):3} of {options.audits}  {audited}; {audited.people} people"
        )
        for defect in said:
            print(f"    {defect}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
