"""`python -m tests.mutants [--json] [NAME ...]`: which test catches which mutant."""

import json
import os
import sys
from dataclasses import asdict

from tests.mutants.catalogue import every_mutant, read_catalogue

# One thread: processes that fork should have no other, and the tests are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: list[str]) -> int:
    """Try the named mutants, by default all; return 1 if one survives."""
    from tests.mutants.gate import try_mutants

    names = [argument for argument in arguments if argument != "--json"]
    if "--json" in arguments:
        verdicts = try_mutants(every_mutant() + read_catalogue("controls.toml"), sound=False)
        print(json.dumps([{**asdict(verdict), "passed": verdict.passed} for verdict in verdicts]))
        return 0
    verdicts = try_mutants([mutant for mutant in every_mutant() if not names or mutant.name in names])
    width = max(len(verdict.mutant.name) for verdict in verdicts)
    for verdict in verdicts:
        for number, test in enumerate(verdict.mutant.catchers):
            name = "" if number else verdict.mutant.name
            result = "" if verdict.caught.get(test) else f"  SURVIVES {verdict.broken}"
            print(f"{name:{width}}  {verdict.seconds:4.1f} s  {test}{result}")
    caught = sum(verdict.passed for verdict in verdicts)
    total = sum(verdict.seconds for verdict in verdicts)
    print(
        f"{caught} of {len(verdicts)} mutants are caught ({total:.1f} s of processor time after the imports)"
    )
    return 0 if caught == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
