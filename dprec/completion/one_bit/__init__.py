"""One-bit matrix completion: a low-rank matrix behind ratings of +1 and -1 (Li et al.; Davenport et al.)."""
