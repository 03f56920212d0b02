"""One-bit matrix completion: a hidden low-rank matrix that explains ratings of +1 and -1.

After Davenport et al. [davenport2014], and Li et al. [li2021] for its privacy.
"""

from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.completion.one_bit.perturbation import PERTURBATIONS, Perturbation

__all__ = ["PERTURBATIONS", "HiddenMatrix", "OneBit", "Perturbation"]
