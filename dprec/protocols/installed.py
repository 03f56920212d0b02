"""What devices can be given, read back from what describes their population."""

from typing import TYPE_CHECKING

from dprec.components import Registry, one_of
from dprec.exchange import Setup
from dprec.protocols.base import Protocol
from dprec.protocols.baselines import GlobalMeanProtocol, NothingSentProtocol, RandomListProtocol
from dprec.protocols.federated import FederatedProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.gram import GramProtocol, PairsInBlanketProtocol, PopularityProtocol
from dprec.protocols.implicit_als import ImplicitAlsProtocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.private_als import PrivateAlsProtocol
from dprec.protocols.public_start import PublicStartProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.references import EaseProtocol, IalsProtocol
from dprec.protocols.sampled_negatives import SampledNegativesProtocol
from dprec.protocols.secret_sets import SecretSetProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.protocols.x_map import XMapProtocol

PROTOCOLS: tuple[type[Protocol], ...] = (
    OneShotProtocol,
    XMapProtocol,
    NothingSentProtocol,
    GlobalMeanProtocol,
    RandomListProtocol,
    EaseProtocol,
    IalsProtocol,
    TrustedServerProtocol,
    RandomizedSetsProtocol,
    SampledNegativesProtocol,
    GramProtocol,
    PairsInBlanketProtocol,
    PopularityProtocol,
    PublicStartProtocol,
    SecretSetProtocol,
    PrivateAlsProtocol,
    ImplicitAlsProtocol,
    IterativeProtocol,
    FederatedProtocol,
    GradientPerturbationProtocol,
)

INSTALLED: Registry[Setup] = Registry("protocol", Setup, [*PROTOCOLS])

if TYPE_CHECKING:
    AnyInstalled = Setup
else:
    AnyInstalled = one_of(INSTALLED)
