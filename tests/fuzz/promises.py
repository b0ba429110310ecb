"""What is promised for later or at worst, held against what came: vacuous, the harm cap, labels_until."""

import math

from fuzz.telling import expect

NEAR = 1e-6  # ranges are widened by rounding


def vacuous(life, result, rows):
    """A bound is called vacuous exactly if it is not below the raw error, and nothing where there is no bound."""
    case = life.case
    shown = [(result.bound, result.vacuous, None)]
    shown += [(c.bound, c.vacuous, c.name) for c in result.coordinates]
    for bound, said, name in shown:
        expect((bound is None) == (said is None), "vacuous without a bound", name, bound, said)
    said = result.certificate
    expect((said["bound"] is None) <= (said["vacuous"] is None), "vacuous without a bound", said)
    expect(result.vacuous is True or result.needed is None, "labels needed", result.needed)
    if life.corrected or case.kind in ("risk", "conformal"):
        return
    if case.levels or case.games:
        for c in result.coordinates:
            judged(c.name, c.bound, c.vacuous, max(abs(c.bias_before or 0.0), 0.05))
    elif not (case.groups or case.features or case.keyed):
        raw = [case.error(row.base, row.y, row.base)[0] for row in rows]
        weight = math.fsum(row.w for row in rows)
        mean = math.fsum(row.w * e / weight for row, e in zip(rows, raw, strict=True))
        most = max(map(abs, raw))
        if 1e-140 < most < 1e140:
            spread = math.fsum(row.w / weight * e * e for row, e in zip(rows, raw, strict=True))
            deviation = math.sqrt(max(0.0, spread - mean * mean) / len(rows))
            judged("(all)", result.bound, result.vacuous, max(abs(mean), deviation))


def judged(name, bound, said, raw):
    if bound is not None and abs(bound - raw) > 1e-4 * raw:
        expect(said == (bound > raw), "vacuous", name, bound, raw, said)


def harm(life, rows, own):
    """What the step can cost at most, where that is proven."""
    if not hasattr(life.layer, "harm_cap"):
        return
    cap, case, (before, after) = life.layer.harm_cap(), life.case, own.loss
    factor, added = cap.factor, cap.added
    if case.binary and case.combination.link != "shift":
        before, after = log_losses(rows)
        if factor is not None and any(row.y not in (0.0, 1.0) for row in rows):
            if case.games or cap.soft is None:
                return  # it speaks of 0/1 labels
            factor, added = None, cap.soft
    if factor is None and added is None:
        return
    room = before * (factor or 1.0) * (1 + NEAR) + 1e-280 * own.weight
    room += own.weight * (added or 0.0) * (1 + NEAR)
    expect(after <= room, "harm cap", before / own.weight, after / own.weight, cap)


def log_losses(rows):
    """The log loss of the prediction as it came (Elo: of a coin) and of what was served, both as they are judged."""

    def cost(p, y):
        p = min(1 - 1e-6, max(1e-6, p))
        return -y * math.log(p) - (1.0 - y) * math.log(1.0 - p)

    return tuple(
        math.fsum(row.w * cost(p(row), row.y) for row in rows) for p in (lambda row: row.base, lambda row: row.served)
    )


def labels_until(life, result, rows):
    """How many more labels: none for what is reached, some for what is not, and the truth about doing all again."""
    case, layer = life.case, life.layer
    bound = told(life, result)
    if bound is None or not 1e-290 < bound < 1e290:
        answer = layer.labels_until(0.1 * case.scale)
        expect(answer is None or answer >= 0, "labels until", answer)
        return
    exact = case.constant and not (any(life.waited) or life.stepped or life.merged)
    exact = exact and layer.steps["smallest"] == layer.steps["largest"]
    reached, missing = (layer.labels_until(bound * by) for by in (1 + NEAR, 1 - NEAR))
    expect(reached == 0, "labels until what is reached", bound, reached)
    expect(missing is None or missing > 0, "labels until what is not reached", bound, missing)
    further = layer.labels_until(bound * 0.1)
    expect(further is None or (missing is not None and further >= missing), "further", missing, further)
    ranged = case.kind not in ("ensemble", "conformal") and case.told.get("link") != "sinh"
    if exact and ranged and case.weights in ("none", "constant") and life.rng.random() < 0.5 and not life.frozen:
        again(life, bound, rows)


def told(life, result):
    """The bound that ``labels_until`` speaks of: the whole's, in games the worst of the players."""
    if not life.case.games:
        return result.bound
    bounds = [one.bound for one in life.layer.leaderboard()]
    return None if not bounds or None in bounds else max(bounds)


def again(life, bound, rows):
    """All rows once more, on a copy: the bound is then what labels_until said of as many more labels."""
    case, layer, n = life.case, life.layer.copy(), len(rows)
    if case.games:
        for row in rows:
            side = {"home": row.where["home"]} if case.home else {}
            layer.play(*row.coords[:2], row.y, row.given, **side)
    else:
        for row in rows:
            ticket = layer.open(*(() if case.kind == "risk" else (row.base,)), **row.where, weight=row.given)
            layer.post(ticket, row.y)
    result = layer.equilibrium()
    then = result.bound if not case.games else max(one.bound for one in layer.leaderboard())
    enough, short = (life.layer.labels_until(then * (1 + NEAR)), life.layer.labels_until(then * (1 - NEAR)))
    expect(enough is not None and enough <= n, "labels until the bound of twice as many", n, enough, then, bound)
    expect(short is None or short > n or then >= bound, "labels until less than that", n, short, then, bound)
