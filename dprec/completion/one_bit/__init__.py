"""One-bit matrix completion: a low-rank matrix behind ratings of +1 and -1.

After Davenport et al. [davenport2014], and Li et al. [li2021] for its privacy.
"""
