"""The catalogue of mutants fits the sources as they are."""

import pytest

from tests.mutants.catalogue import Mutant, every_mutant


@pytest.mark.parametrize("mutant", every_mutant(), ids=lambda mutant: mutant.name)
def test_what_a_mutant_replaces_stands_once_in_its_module(mutant: Mutant) -> None:
    compile(mutant.source(), mutant.file, "exec")
