"""Cross-domain recommendation with X-Map (Guerraoui et al. [guerraoui2017]), one module per step."""

from dprec.crossdomain.alter_egos import AlterEgos, ReplacementOptions, alter_egos
from dprec.crossdomain.domains import CrossDomainRatings, joined
from dprec.crossdomain.recommender import ItemBasedRecommender, RecommendationOptions
from dprec.crossdomain.replacement import Candidates, ReplacementDraws
from dprec.crossdomain.similarity import RatedItems
from dprec.crossdomain.xsim import LayeredGraph, layered_graph, x_sim

__all__ = [
    "AlterEgos",
    "Candidates",
    "CrossDomainRatings",
    "ItemBasedRecommender",
    "LayeredGraph",
    "RatedItems",
    "RecommendationOptions",
    "ReplacementDraws",
    "ReplacementOptions",
    "alter_egos",
    "joined",
    "layered_graph",
    "x_sim",
]
