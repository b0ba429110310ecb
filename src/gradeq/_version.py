"""The version of the package, its single source."""

__version__ = "0.2.0"
