"""Ranked lists learned from sets of items that nobody sees."""
