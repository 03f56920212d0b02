"""The protocols, by the names that configurations use."""

from typing import TYPE_CHECKING

from dprec.components import Registry, one_of
from dprec.protocols.base import Protocol
from dprec.protocols.baselines import GlobalMeanProtocol, NothingSentProtocol, RandomListProtocol
from dprec.protocols.best import BestProtocol
from dprec.protocols.collective_als import CollectiveAlsProtocol
from dprec.protocols.counted_negatives import CountedNegativesProtocol
from dprec.protocols.federated import FederatedProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.gram import GramProtocol, PairsInBlanketProtocol
from dprec.protocols.graph_filter import GraphFilterProtocol
from dprec.protocols.implicit_als import ImplicitAlsProtocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.popular import PopularityProtocol
from dprec.protocols.private_als import PrivateAlsProtocol
from dprec.protocols.public_start import PublicStartProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.references import EaseProtocol, IalsProtocol
from dprec.protocols.sampled_negatives import SampledNegativesProtocol
from dprec.protocols.secret_sets import SecretSetProtocol
from dprec.protocols.sparse_reconstruction import SparseReconstructionProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.protocols.x_map import XMapProtocol

PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    Protocol,
    [
        OneShotProtocol,
        IterativeProtocol,
        PrivateAlsProtocol,
        CollectiveAlsProtocol,
        ImplicitAlsProtocol,
        FederatedProtocol,
        TrustedServerProtocol,
        GradientPerturbationProtocol,
        XMapProtocol,
        NothingSentProtocol,
        GlobalMeanProtocol,
        BestProtocol,
        RandomListProtocol,
        CountedNegativesProtocol,
        PopularityProtocol,
        EaseProtocol,
        IalsProtocol,
        GramProtocol,
        GraphFilterProtocol,
        RandomizedSetsProtocol,
        SampledNegativesProtocol,
        SparseReconstructionProtocol,
        PairsInBlanketProtocol,
        PublicStartProtocol,
        SecretSetProtocol,
    ],
)

if TYPE_CHECKING:
    AnyProtocol = Protocol
else:
    AnyProtocol = one_of(PROTOCOLS)
