"""Compiled batch loops: plain Python loops over plain formulas, fused and compiled at the last moment.

``compile`` turns a loop and its parts into one machine-code function, ``call`` chooses between that and the plain
text; the other modules hold the texts. This package is the only place that imports numba, and only when a long input
asks for it.
"""
