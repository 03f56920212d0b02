"""What is said of data that are read beside the reports."""

import numpy as np

from dprec.catalogue import Catalogue
from simulation.protocols.one_shot import notes_on_catalogue


def test_public_data_about_the_items_are_named() -> None:
    whole = Catalogue(np.zeros((3, 1)), np.zeros((3, 2), dtype=np.bool_), ("year",), ("Drama", "War"))
    assert notes_on_catalogue(whole) == (
        "Predictions also rest on public data about the items: year, 2 categories.",
    )
    assert notes_on_catalogue(None) == ()
