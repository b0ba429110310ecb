"""The weights that rows are learned with, by their definition: over the running mean of the positive ones."""


def relative(weights, keys=None):
    """Of rows in the order of serving; with ``keys`` every key has a mean of its own."""
    counts, means, found = {}, {}, []
    for w, key in zip(weights, keys or [None] * len(weights), strict=True):
        if w > 0.0:
            counts[key] = counts.get(key, 0) + 1
            means[key] = means.get(key, 0.0) + (w - means.get(key, 0.0)) / counts[key]
        found.append(w / means[key] if w > 0.0 else 0.0)
    return found
