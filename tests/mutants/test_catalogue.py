"""The catalogue of mutants fits the sources as they are."""

from tests.mutants.catalogue import every_mutant


def test_what_a_mutant_replaces_stands_once_in_its_module() -> None:
    for mutant in every_mutant():
        compile(mutant.source(), mutant.name, "exec")
