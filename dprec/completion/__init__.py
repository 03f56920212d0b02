"""Completion of the rating matrix from what the server received."""

from dprec.completion.averages import ItemAverage, UserAverage
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.completion import Calibrated
from dprec.completion.calibrated.item_effects import ItemEffects
from dprec.completion.matrix_factorization import MatrixFactorization
from dprec.completion.mog_matrix_factorization import MogMatrixFactorization
from dprec.completion.mog_variational import VariationalMogMatrixFactorization
from dprec.completion.nuclear_norm import NuclearNorm
from dprec.completion.one_bit.completion import OneBit
from dprec.completion.sgd_matrix_factorization import SgdMatrixFactorization
from dprec.completion.svd import TruncatedSvd
from dprec.observations import Observations, Placement
from dprec.registry import Registry

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
        ItemEffects,
    ],
)

__all__ = [
    "COMPLETIONS",
    "Calibrated",
    "Completed",
    "Completion",
    "ItemAverage",
    "ItemEffects",
    "MatrixFactorization",
    "MogMatrixFactorization",
    "NuclearNorm",
    "Observations",
    "OneBit",
    "Placement",
    "SgdMatrixFactorization",
    "TruncatedSvd",
    "UserAverage",
    "VariationalMogMatrixFactorization",
]
