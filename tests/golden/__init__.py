"""States written by released versions; they must load for ever."""
