"""The engine: what stands between a layer (or a learner) and its rule.

Checks of what comes in, names and their places, how late labels come and the step that each gets, the book of open
tickets, whole columns in one pass, and ``Learner``, the thin face of a rule and its state.
"""
