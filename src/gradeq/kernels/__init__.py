"""Compiled batch loops: plain Python loops over plain formulas, fused and compiled at the last moment.

``loops`` holds the loop texts, ``compile`` turns a loop and its parts into one machine-code function.
This package is the only place that imports numba, and only when a long input asks for it.
"""
