"""Completion of the rating matrix from what the server received."""

from dprec.completion.base import *
from dprec.completion.calibrated.biases import *
from dprec.completion.calibrated.completion import *
from dprec.completion.calibrated.embedding import *
from dprec.completion.calibrated.guarding import Guard
from dprec.completion.calibrated.regressions import Regressed
from dprec.completion.factors import *
from dprec.completion.gradient_descent import *
from dprec.completion.matrix_factorization import MatrixFactorization
from dprec.completion.mixtures import *
from dprec.completion.one_bit.completion import *
from dprec.completion.one_bit.perturbation import *
from dprec.completion.one_bit.projections import Domain
from dprec.completion.one_bit.solver import *
from dprec.completion.spectral import NuclearNorm, TruncatedSvd
from dprec.components import Registry
from dprec.observations import AS_THEY_ARE, EmbeddingRelease, Observations

COMPLETIONS: Registry[Completion] = Registry(
    "completion",
    Completion,
    [
        MatrixFactorization,
        MogMatrixFactorization,
        VariationalMogMatrixFactorization,
        SgdMatrixFactorization,
        TruncatedSvd,
        NuclearNorm,
        ItemAverage,
        UserAverage,
        OneBit,
        Calibrated,
        ItemBiases,
    ],
)

__all__ = [
    "AS_THEY_ARE",
    "COMPLETIONS",
    "PERTURBATIONS",
    "Averages",
    "Biases",
    "Calibrated",
    "CalibratedModel",
    "CalibratedNoise",
    "Completed",
    "Completion",
    "Domain",
    "EmbeddingRelease",
    "FittedMixture",
    "Guard",
    "HiddenMatrix",
    "ItemAverage",
    "ItemBiases",
    "ItemBiasesModel",
    "Link",
    "LinkKind",
    "MatrixFactorization",
    "MogMatrixFactorization",
    "NuclearNorm",
    "Observations",
    "OneBit",
    "OutputPerturbation",
    "Perturbation",
    "Profiles",
    "Regressed",
    "SgdMatrixFactorization",
    "SignLikelihood",
    "Start",
    "StepOptions",
    "SymbolTables",
    "TruncatedSvd",
    "UserAverage",
    "VariationalMogMatrixFactorization",
    "check_rank",
    "cold_notes",
    "confident_user_factors",
    "embedded",
    "initial_item_factors",
    "inner_products",
    "levels_of",
    "link_of",
    "one_mean_per_user",
    "own_averages",
    "packed_outer",
    "predicted_rows",
    "prior_biases",
    "products_of_rows",
    "scale_of_means",
    "slope_channel",
    "solve_user_factors",
    "step_item_factors",
    "unpack",
]
