"""How a broken promise is told."""

ROUNDING = 1e-9


class Broken(AssertionError):
    """A number that a run contradicts."""


def expect(holds, what, *numbers):
    if not holds:
        raise Broken(f"{what}: {numbers}")


def close(a, b, size):
    return abs(a - b) <= ROUNDING * max(size, 1e-300) + ROUNDING * abs(b)
