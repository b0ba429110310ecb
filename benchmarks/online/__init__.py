"""Other ways to keep predictions honest online, written from their papers, one file each.

Each takes a stream in order and gives what was in force before each row. Thresholds that scores stay under with a
given frequency: ``plain``, ``aci``, ``dtaci``, ``pid``, ``sf_ogd``. Several quantiles: ``multiqt``, ``by_level``.
Recalibrated numbers and probabilities: ``refitted`` with the fits ``offset``, ``platt`` and ``isotonic``; ``newton``.
Games: ``elo``, ``bradley_terry``.
"""
