"""gradeq keeps deployed predictions honest: online layers with an exact certificate."""

from gradeq._version import __version__

__all__ = ["__version__"]
