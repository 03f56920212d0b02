"""Loops over arrays, each written as a paper would print it; compiled where Numba is installed.

Modules are imported by the functions that call them, so that what needs no loop starts without Numba.
"""
