"""What a layer says in words and in JSON, read back and held against the books that were kept by hand."""

import json
import math
import re

from fuzz.telling import expect

DIGITS = 1e-3  # figures have four digits
NUMBER = r"(-?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf|nan)"


def number(text):
    return float(text.replace(",", ""))


def near(said, true, size):
    """Whether a figure of four digits is a number of this size; absurd ones may be lost."""
    if not (math.isfinite(true) and math.isfinite(said)):
        return True
    return abs(said - true) <= DIGITS * max(abs(true), abs(said)) + 1e-9 * size + 1e-300


def check_printed(life, result, own, size):
    """The verdict, the table and JSON: ``own`` are the sums by hand, ``size`` that of what was added up."""
    text = result.verdict()
    expect("\n" not in text and "nan" not in text.split(), "a verdict of one line", text)
    rows = re.search(rf"over {NUMBER} rows?\b", text)
    expect(rows is not None and number(rows[1]) == result.rows, "rows in the verdict", text)
    expect("certificate broken" not in text, "a broken certificate", text, result.gap)
    check_weights(life, result, text)
    check_bias(life, text, own, size)
    check_loss(result, text, own)
    check_bound(life, result, text, own, size)
    check_json(result)
    table = str(result)
    expect(table.startswith(text), "a table begins with the verdict", table[:200], text)


def check_weights(life, result, text):
    """Averages over weights that are not all equal say so; others do not."""
    said = [
        ", by relative weight" in text,
        result.weights == "relative",
        result.certificate.get("weights") == "relative",
    ]
    expect(len(set(said)) == 1, "weights are said in one place only", said, text)
    if all(row.w in (0.0, 1.0) for row in life.rows):
        expect(not any(said), "equal weights are called relative", text)


def check_bias(life, text, own, size):
    said = re.search(rf"^bias (?:{NUMBER} -> )?{NUMBER} over", text)
    if said is None or life.case.games:
        return
    after = own.total[0] / own.weight
    expect(near(number(said[2]), after, size), "bias in the verdict", text, after)


def check_loss(result, text, own):
    said = re.search(rf"; {re.escape(result.loss_name)} (?:{NUMBER} -> )?{NUMBER}", text)
    before, after = (total / own.weight for total in own.loss)
    if said is None or not (math.isfinite(before) and math.isfinite(after)):
        return
    if min(before, after) < 1e-16 * max(1e-2, before, after):  # squares of rounding
        return
    if number(said[2]) == 0.0 and result.loss_after == 0.0:  # rounding of a correction, see ``alike``
        return
    expect(near(number(said[2]), after, 0.0), "loss in the verdict", text, after)
    if said[1] is not None:
        expect(near(number(said[1]), before, 0.0), "loss before in the verdict", text, before)
        # A perfect model cannot get better, which is no reproach.
        if after - before > max(1e-6 * before, 2.0 * result.negligible) and before > 1e-9 * after:
            expect("(worse" in text, "a loss that rose and is not said to", text, before, after)
        if after < before * (1.0 - 1e-6):
            expect("(worse" not in text, "a loss that fell is said to be worse", text, before, after)


def check_bound(life, result, text, own, size):
    """A bound in words is no smaller than what it bounds: the largest average of any coordinate."""
    said = re.search(rf"\bproven limit {NUMBER}", text)
    if said is None:
        return
    totals = [abs(total) for total in own.gradients.values() if math.isfinite(total)]
    most = max(totals, default=0.0) / own.weight
    expect(result.bound is not None, "a bound that is none", text)
    expect(most <= number(said[1]) * (1 + 1e-9) + 1e-9 * size, "bound in the verdict", text, most)
    expect(result.bound <= number(said[1]) * (1 + 1e-9), "a bound rounded down", text, result.bound)


def check_json(result):
    """JSON holds the same numbers, and no infinities."""
    saved = json.loads(json.dumps(result.as_dict(), allow_nan=False, default=str))
    certificate = saved["certificate"]
    expect(saved["rows"] == result.rows, "rows in JSON", saved["rows"], result.rows)
    for name, value in (("bound", result.bound), ("gap", result.gap)):
        plain = None if value is None or not math.isfinite(value) else value
        expect(certificate[name] == plain, f"{name} in JSON", certificate[name], value)
    averages = certificate["average_gradient"]
    for c in result.coordinates:
        if math.isfinite(c.average_gradient):
            said = averages[c.name]
            expect(said == c.average_gradient, "average in JSON", c.name, said, c.average_gradient)
