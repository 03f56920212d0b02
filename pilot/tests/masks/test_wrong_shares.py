"""What a server makes of secure sums in which a device lies."""

from pathlib import Path

import pytest

from dprec.errors import RunError
from dprec.exchange import UNMASK
from dprec.secure_aggregation import graph_size
from dprec.secure_aggregation.messages import SECRET_BYTES
from dprec_pilot.server.serving import serve
from pilot.tests.server.pilots import pilot
from pilot.tests.server.test_secure_sums import USERS, Grid, check_predictions, secure
from simulation import run


def every_share_changed(said: bytes) -> bytes:
    """Return shares of the field, none of which is the one that its device was given."""
    return b"".join(
        bytes([said[place] ^ 1]) + said[place + 1 : place + SECRET_BYTES]
        for place in range(0, len(said), SECRET_BYTES)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("liar", [0, 5, 11])
def test_nothing_is_learned_from_wrong_shares_where_more_are_known_than_a_secret_needs(
    tmp_path: Path, liar: int
) -> None:
    """The release may be refused, or be put right without that device: what is learned is never wrong."""
    size = graph_size(USERS, 0.17, 2)
    assert size.degree > size.threshold
    config, server = pilot(secure("popularity-secagg"), tmp_path / "pilot")
    grid = Grid(server)
    grid.tampered[liar, UNMASK] = every_share_changed
    refused = ""
    try:
        serve(grid, server, tmp_path / "out")
    except RunError as error:
        refused = str(error)
    if refused:
        assert "in every round" in refused
    else:
        check_predictions(server, run(config, page=False))
