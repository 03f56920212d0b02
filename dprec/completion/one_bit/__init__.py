"""One-bit completion of ratings of +1 and -1 [davenport2014], and its privacy [li2021]."""
