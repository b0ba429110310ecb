"""Exponentiated gradient on the simplex, with and without a floor, as plain loops."""

import math


def plain_step(w: list[float], g: list[float], eta: float) -> list[float]:
    """One step on the full simplex, in logarithms."""
    logs = [math.log(max(a, 1e-300)) - eta * b for a, b in zip(w, g, strict=True)]
    top = max(logs)
    total = sum(math.exp(v - top) for v in logs)
    return [math.exp(v - top) / total for v in logs]


def project(z: list[float], floor: float) -> list[float]:
    """The exact KL projection on {w_i >= floor, sum w = 1}: scale, then floor."""
    k = len(z)
    order = sorted(z, reverse=True)
    scale = 0.0
    for m in range(1, k + 1):
        candidate = (1.0 - (k - m) * floor) / sum(order[:m])
        if candidate * order[m - 1] >= floor:
            scale = candidate
    return [max(floor, scale * value) for value in z]


def floored_run(
    gradients: list[list[float]], floor: float, eta: float
) -> tuple[list[list[float]], list[float], list[float]]:
    """The weights before each round, and the averages of g and of g + n."""
    k = len(gradients[0])
    w, normal = [1.0 / k] * k, [0.0] * k
    path, plain, whole = [], [0.0] * k, [0.0] * k
    for g in gradients:
        path.append(w)
        for i in range(k):
            plain[i] += g[i] / len(gradients)
            whole[i] += (g[i] + normal[i]) / len(gradients)
        z = [a * math.exp(-eta * b) for a, b in zip(w, g, strict=True)]
        w = project(z, floor)
        normal = [(math.log(a) - math.log(b)) / eta for a, b in zip(z, w, strict=True)]
    return path, plain, whole
