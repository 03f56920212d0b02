"""Lists from sets of items: scores of all items for users of whom no rating is known.

Pure functions on arrays. Sets are `scipy.sparse.csr_array` of shape (users, items) of ones.
"""
