"""Lists of items from sets that nobody sees: what is summed, what is learned, and how devices rank."""

from dprec.lists.method import ListMethod, TableOptions

__all__ = ["ListMethod", "TableOptions"]
