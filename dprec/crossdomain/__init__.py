"""Cross-domain recommendation with X-Map (Guerraoui et al. [guerraoui2017]), one module per step."""

from dprec.crossdomain.alter_egos import (
    AlterEgoCodec,
    AlterEgos,
    ReplacementOptions,
    RowCodec,
    ValueCode,
    alter_egos,
)
from dprec.crossdomain.domains import CrossDomainRatings, joined
from dprec.crossdomain.recommender import ItemBasedRecommender, RecommendationOptions, SimilarityNoise
from dprec.crossdomain.replacement import STEPS, Candidates, ReplacementDraws
from dprec.crossdomain.similarity import (
    LAYER_NAMES,
    LOWEST,
    LayeredGraph,
    RatedItems,
    SimilarityKind,
    layered_graph,
    x_sim,
)

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
