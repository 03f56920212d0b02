"""What devices can be given, read back from what describes their population."""

from typing import TYPE_CHECKING

from dprec.components import Registry, one_of
from dprec.exchange import Setup
from dprec.exchange.setups import SETUPS
from dprec.protocols.baselines import GlobalMeanProtocol, NothingSentProtocol, RandomListProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.references import EaseProtocol, IalsProtocol
from dprec.protocols.sampled_negatives import SampledNegativesProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol

INSTALLED: Registry[Setup] = Registry(
    "protocol",
    Setup,
    [
        *SETUPS,
        NothingSentProtocol,
        GlobalMeanProtocol,
        RandomListProtocol,
        EaseProtocol,
        IalsProtocol,
        RandomizedSetsProtocol,
        SampledNegativesProtocol,
        TrustedServerProtocol,
    ],
)

if TYPE_CHECKING:
    AnyInstalled = Setup
else:
    AnyInstalled = one_of(INSTALLED)
