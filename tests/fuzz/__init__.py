"""An adversary for everything that a layer prints: averages, bounds, caps, coverage, windows."""
