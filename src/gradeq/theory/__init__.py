"""Every proven bound, by name: numbers in, numbers out, plain ``math``.

``best_bound(Setting(...))`` picks the smallest one that holds for a layer. Labels such as "result 3.4" are
explained in docs/bounds.md; docs/paper-map.md leads from the paper to the functions.
"""

from gradeq.theory.best import *  # noqa: F403
from gradeq.theory.constrained import *  # noqa: F403
from gradeq.theory.features import *  # noqa: F403
from gradeq.theory.generic import *  # noqa: F403
from gradeq.theory.harm import *  # noqa: F403
from gradeq.theory.late import *  # noqa: F403
from gradeq.theory.scalar import *  # noqa: F403
from gradeq.theory.setting import *  # noqa: F403

# What these modules define, without what they import from elsewhere.
__all__ = sorted(
    name
    for name, item in globals().copy().items()
    if name.isupper() or getattr(item, "__module__", "").startswith("gradeq.theory.")
)
