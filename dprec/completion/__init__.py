"""Completion of the rating matrix from what the server received."""

from dprec.completion.averages import ItemAverage, UserAverage
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.completion import Calibrated
from dprec.completion.calibrated.item_biases import ItemBiases
from dprec.completion.gradient_descent import SgdMatrixFactorization
from dprec.completion.matrix_factorization import MatrixFactorization
from dprec.completion.mixtures import MogMatrixFactorization, VariationalMogMatrixFactorization
from dprec.completion.nuclear_norm import NuclearNorm
from dprec.completion.one_bit.completion import OneBit
from dprec.completion.spectral import TruncatedSvd
from dprec.components import Registry
from dprec.observations import EmbeddingRelease, Observations

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
    "COMPLETIONS",
    "Calibrated",
    "Completed",
    "Completion",
    "EmbeddingRelease",
    "ItemAverage",
    "ItemBiases",
    "MatrixFactorization",
    "MogMatrixFactorization",
    "NuclearNorm",
    "Observations",
    "OneBit",
    "SgdMatrixFactorization",
    "TruncatedSvd",
    "UserAverage",
    "VariationalMogMatrixFactorization",
]
