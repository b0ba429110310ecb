"""``python -m benchmarks.real [KIND ...]``: gradeq on real streams beside other methods, labels at once.

Four kinds: ``intervals`` at 90 %, ``means`` (numbers and probabilities), several quantile ``levels`` at once, and
forecasts of ``games``. Rivals are in ``benchmarks.online``, each written from its paper with the constants that it
advises. ``kind`` says what a kind is made of, ``run`` measures.
"""
