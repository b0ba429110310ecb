"""Geometries: where the parameters live, and how a step that leaves the set comes back (paper Appendix B).

A geometry is a frozen value with two methods that fill an output, on lists as on arrays:
``dual(theta, out)``, the mirror map, and ``primal(z, eta, out)``, the proximal step that takes a dual point
back to parameters. With r the indicator of the set, or the penalty of a proximal form,

    primal(z, eta) = argmin over x of  D(x, dual^-1(z)) + eta r(x)

where D is the Bregman distance of the mirror map: half the squared distance, or Kullback-Leibler.
The greedy form applies it after each step, and then the average of gradient plus normal part is a displacement
(prop:pmd_simple). The lazy form keeps the plain sum of steps and serves its projection; it is offered where
``lazy_is_sound``, and ``lazy_because`` says why or why not.
"""

from gradeq.geometries.affine import Affine
from gradeq.geometries.euclidean import Ball, Box, Euclidean, NonNegative
from gradeq.geometries.geometry import Geometry
from gradeq.geometries.isotonic import Isotonic, pool
from gradeq.geometries.proximal import Shrink, SoftThreshold
from gradeq.geometries.simplex import EntropicSimplex, Simplex

__all__ = [
    "Affine",
    "Ball",
    "Box",
    "EntropicSimplex",
    "Euclidean",
    "Geometry",
    "Isotonic",
    "NonNegative",
    "Shrink",
    "Simplex",
    "SoftThreshold",
    "pool",
]
