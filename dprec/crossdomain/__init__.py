"""Cross-domain recommendation with X-Map (Guerraoui et al. [guerraoui2017]), one module per step."""

from dprec.crossdomain.alter_egos import *
from dprec.crossdomain.domains import *
from dprec.crossdomain.recommender import *
from dprec.crossdomain.similarity import *

__all__ = [
    "LAYER_NAMES",
    "LOWEST",
    "STEPS",
    "AlterEgoCodec",
    "AlterEgos",
    "Candidates",
    "CrossDomainRatings",
    "ItemBasedRecommender",
    "LayeredGraph",
    "RatedItems",
    "RecommendationOptions",
    "ReplacementDraws",
    "ReplacementOptions",
    "RowCodec",
    "SimilarityKind",
    "SimilarityNoise",
    "ValueCode",
    "alter_egos",
    "joined",
    "layered_graph",
    "x_sim",
]
