"""The method section of a report: the formulas, and the identity with the page's numbers."""

import math
import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

from gradeq.equilibrium import Coordinate, Equilibrium
from gradeq.inputs.arguments import split_name
from gradeq.report.components import Markup, el, join, name, prose, tidy
from gradeq.report.numerals import MANY_ZEROS, MINUS, PLAIN_DIGITS, decimals, number, percent, plain
from gradeq.report.story import EloStory, Story, Worked

# Worked examples

_DIGITS = range(4, 16)  # numbers of digits to try
FEWEST = 4  # fewest decimals of an average
EVERY = "(all)"
# By link: the letter of the prediction, and how it becomes the served value.
SERVED = {
    "identity": ("f", " plus a correction"),
    "linear": ("f", " plus a correction"),
    "shift": ("p", " plus a shift"),
    "logit": ("p", ", moved on the scale of log-odds"),
    "exp": ("f", " times a factor"),
    "sinh": ("f", " plus a correction in units of the usual error k"),
}
_SUMMARY = el("summary", el("h2", "Method"))  # the section is collapsed at first


def identity_line(reached: Equilibrium, cell: Coordinate, eta: float, tail: str, every: str = "all rows") -> Worked:
    """The identity of one parameter. A penalty moves every parameter at every row, so its mean is over all rows."""
    column, value = split_name(cell.name)
    average = cell.bias_after or 0.0
    n, own, penalty = cell.weight, None, 0.0
    if cell.average_penalty and reached.exact:
        level = cell.name.rpartition(" @ ")[2] if " @ " in cell.name else ""
        same = [c for c in reached.coordinates if value and split_name(c.name)[0] == column]
        same = [c for c in same if not level or c.name.endswith(f" @ {level}")] or [cell]
        n, own = sum(c.weight for c in same), cell.weight
        penalty, average = cell.average_penalty, cell.average_gradient
    name = (value or cell.name).replace(" @ ", " at level ").replace(EVERY, every)
    step = eta if reached.exact and eta else None
    return Worked(name, n, -cell.moved, average, step, average * n, penalty, own, f", {tail}")


def worked_example(line: Worked) -> str:
    """The arithmetic behind an average, in one line; empty if the printed numbers do not satisfy it."""
    if not line.n:
        return ""
    if line.eta is None:
        text = equation(lambda total, n: total / n, "{0} / {1}", (line.total, line.n), line.average)
    else:
        form, terms = f"(0 {MINUS} {{0}}) / ({{1}} × {{2}})", [line.u, line.eta, line.n]
        if line.penalty:
            form, terms = f"{form} {MINUS} {{3}}", [*terms, line.penalty]
        text = equation(lambda u, eta, n, slope=0.0: (0.0 - u) / (eta * n) - slope, form, terms, line.average)
        text += " after subtracting the mean slope of the penalty" if text and line.penalty else ""
    if text and line.own is not None and line.own != line.n:
        terms = [line.average, line.n, line.own]
        average = line.average * line.n / line.own
        text += f"; over its own rows {equation(lambda a, n, rows: a * n / rows, '{0} × {1} / {2}', terms, average)}"
    return f"{text}{line.tail}." if text else ""


def equation(
    left: Callable[..., float], form: str, terms: Sequence[float], value: float, places: int | None = None
) -> str:
    """The equation ``form`` = value, in the fewest digits for which it is true as printed; empty if there are none.

    >>> equation(lambda u, eta, n: (0.0 - u) / (eta * n), "(0 − {0}) / ({1} × {2})", (-0.0185, 0.1, 336.5), 0.00055)
    '(0 + 0.0185) / (0.1 × 336.5) = 0.00055'
    """
    if not all(map(math.isfinite, (*terms, value))):
        return ""
    places = max(decimals(value), FEWEST) if places is None else places
    for digits in _DIGITS:
        texts, values = [], []
        for term in terms:
            typed = number(term, 0) if term == round(term) else plain(term)
            if term != round(term) and len(typed) > 8:
                typed = number(term, digits + max(0, -1 - math.floor(math.log10(abs(term)))))
            texts.append(typed)
            mantissa, power, exponent = typed.replace(",", "").replace(MINUS, "-").partition("×10")
            values.append(float(f"{mantissa}e{exponent.translate(PLAIN_DIGITS)}" if power else mantissa))
        if number(left(*values), places) == number(value, places):
            # Minus a negative term is written as plus.
            text = form.format(*texts).replace(f"{MINUS} {MINUS}", "+ ")
            return f"{text} = {number(value, places)}"
    # A tiny average may be rounding of its terms; try four decimals, where it is 0.
    return equation(left, form, terms, value, FEWEST) if places > MANY_ZEROS else ""


# Debias and quantile

# Constant MathML: user text never enters the formulas.
_S, _Y, _K, _Z, _THETA, _ETA_T = (f"<msub><mi>{base}</mi><mi>t</mi></msub>" for base in "sykzθη")
_ETA, _SPACE = "<mi>η</mi>", "<mspace width='0.15em'/>"
_ZT = f"<msubsup><mi>z</mi><mi>t</mi><mo>⊤</mo></msubsup>{_THETA}"
_BIAS = f"{_S}<mo>−</mo>{_Y}"
_MISS = f"<mn>1</mn><mo>{{</mo>{_Y}<mo>≤</mo>{_S}<mo>}}</mo><mo>−</mo><mi>τ</mi>"


def formula_box(*formulas: str) -> Markup:
    return el("div", *(Markup(f'<math display="block">{formula}</math>') for formula in formulas), class_="formula")


def _formulas(story: Story, letter: str) -> tuple[Markup, Markup]:
    """Two boxes: the served value and the step of theta; and the identity that the steps add up to."""
    grouped, varying = bool(story.by or story.features), not story.method.exact
    margin, f = _ZT if grouped else _THETA, f"<msub><mi>{letter}</mi><mi>t</mi></msub>"
    bracket = f"<mo>(</mo>{margin}<mo>)</mo>"
    served = {
        "identity": f"{f}<mo>+</mo>{margin}",
        "linear": f"{f}<mo>+</mo>{margin}",
        "shift": f"{f}<mo>+</mo><mn>2</mn><mi>σ</mi>{bracket}<mo>−</mo><mn>1</mn>",
        "logit": f"<mi>σ</mi><mo>(</mo><mi>logit</mi>{_SPACE}{f}<mo>+</mo>{margin}<mo>)</mo>",
        "exp": f"{f}{_SPACE}<mi>exp</mi>{bracket}",
        "sinh": f"{f}<mo>+</mo>{_K}{_SPACE}<mi>sinh</mi>{bracket}",
    }[story.method.link]
    error = f"<mo>(</mo>{_MISS if story.kind == 'quantile' else _BIAS}<mo>)</mo>"
    following = "<msub><mi>θ</mi><mrow><mi>t</mi><mo>+</mo><mn>1</mn></mrow></msub>"
    step = f"{_THETA}<mo>−</mo>{_ETA_T if varying else _ETA}{error}{_Z if grouped else ''}"
    # The average error (of group j) is the move of theta divided by eta n.
    j = "<mo>,</mo><mi>j</mi>" if grouped else ""
    n = "<msub><mi>n</mi><mi>j</mi></msub>" if grouped else "<mi>T</mi>"
    index = "<mrow><mi>t</mi><mo>∈</mo><mi>j</mi></mrow>" if grouped else "<mi>t</mi>"
    first = f"<msub><mi>θ</mi><mrow><mn>1</mn>{j}</mrow></msub>"
    last = f"<msub><mi>θ</mi><mrow><mi>T</mi><mo>+</mo><mn>1</mn>{j}</mrow></msub>"
    moved, summed = f"<mrow>{first}<mo>−</mo>{last}</mrow>", f"<munder><mo>∑</mo>{index}</munder>"
    identity = f"<mfrac><mn>1</mn>{n}</mfrac>{summed}{error}<mo>=</mo><mfrac>{moved}<mrow>{_ETA}{n}</mrow></mfrac>"
    if varying:
        identity = f"{summed}{_ETA_T}{error}<mo>=</mo>{moved}"
    return formula_box(f"{_S}<mo>=</mo>{served}", f"{following}<mo>=</mo>{step}"), formula_box(identity)


def method_section(story: Story) -> Markup:
    method = story.method
    quantile, grouped = story.kind == "quantile", bool(story.by or story.features)
    letter, how = SERVED[method.link]
    letter = "m" if method.auto else letter
    served = f"Each row is served {letter}{how}"
    if method.auto:
        what = "trackers of several speeds" if quantile else "running means of several lengths"
        served += f", where m mixes the raw prediction with {what} by their past loss"
    moves = "the corrections of its groups move" if grouped else "the correction moves"
    first = f"{served}. When its label is known, {moves} by a small step against the error."
    where = "the error of group j, averaged over its n_j rows," if grouped else "the average error over T rows"
    second = (
        f"Summing the steps gives the certificate: {where} is where the correction started, minus "
        f"where it ended, divided by η {'n_j' if grouped else 'T'}. No assumption about the data "
        "is used."
    )
    if not method.exact:
        second = (
            "The step varies, so the sum of step times error is the move of the correction, and "
            "the averages on this page are the stored exact sums of errors over the rows. No "
            "assumption about the data is used."
        )
    lines = [(line.name, worked_example(line)) for line in method.worked]
    worked = [el("p", "Here for ", name(who, None), f": {text}") for who, text in lines if text]
    if method.interval is not None and len(worked) == 2:
        (low, high), (below, above) = method.worked, method.interval
        share = equation(
            lambda b, upper, a, lower: (b + upper) - (a + lower),
            f"({{0}} + {{1}}) {MINUS} ({{2}} + {{3}})",
            (above, high.average, below, low.average),
            (above + high.average) - (below + low.average),
        ).replace(f"+ {MINUS}", f"{MINUS} ")
        worked.append(
            el("p", f"Coverage is the share up to the upper end minus the share up to the lower end: {share}.")
        )
    served_and_moved, identity = _formulas(story, letter)
    parts = [el("p", _with_symbols(first)), served_and_moved, el("p", _with_symbols(second)), identity, *worked]
    parts += [el("p", prose(method.extra))] if method.extra else []
    return el("section", el("details", _SUMMARY, *parts), class_="method")


def _with_symbols(text: str) -> Markup:
    pieces = re.split(r"\b(n_j|[jmpfkT])\b", text)  # the symbols, in italics, are at odd places
    symbols = [el("i", "n", el("sub", "j")) if piece == "n_j" else el("i", piece) for piece in pieces[1::2]]
    return join(*(part for pair in zip_longest(pieces[::2], symbols, fillvalue="") for part in pair))


# Elo


def elo_method_section(story: EloStory) -> Markup:
    method = story.method
    a, b, home = (f"<msub><mi>θ</mi>{i}</msub>" for i in ("<mi>a</mi>", "<mi>b</mi>", "<mtext>home</mtext>"))
    off, gap = "<mo>(</mo><mi>y</mi><mo>−</mo><mi>p</mi><mo>)</mo>", "<mspace width='1.2em'/>"
    eta = _ETA if method.exact else _ETA_T
    mixed = f"<mi>logit</mi>{_SPACE}<mi>m</mi><mo>+</mo>" if method.auto else ""
    advantage = f"<mo>+</mo><mi>h</mi>{home}" if story.home is not None else ""
    forecast = f"<mi>p</mi><mo>=</mo><mi>σ</mi><mo>(</mo>{mixed}{a}<mo>−</mo>{b}{advantage}<mo>)</mo>"
    update = f"{a}<mo>←</mo>{a}<mo>+</mo>{eta}{off}{gap}{b}<mo>←</mo>{b}<mo>−</mo>{eta}{off}"
    if story.home is not None:
        eta_home = "<msub><mi>η</mi><mtext>home</mtext></msub>"
        update += f"{gap}{home}<mo>←</mo>{home}<mo>+</mo>{eta_home}<mi>h</mi>{off}"
    lines = [(line.name, worked_example(line)) for line in method.worked]
    parts = [
        el("p", prose(_forecast(story))),
        formula_box(forecast, update),
        el("p", tidy(_step(story))),
        el("p", tidy(_board(story))),
        *(el("p", "For ", name(who, None), f": {text}") for who, text in lines if text),
    ]
    return el("section", el("details", _SUMMARY, *parts), class_="method")


def _forecast(story: EloStory) -> str:
    text, moved = "Before each game p is the probability that a wins", "both ratings move"
    if story.method.auto:
        text += (
            ": m mixes filters that expect more or less drift, weighted by their log loss, and each "
            f"{story.noun} has a correction on the scale of log-odds"
        )
        moved = "the filters learn from the game, and both corrections move"
    text += f". Afterwards {moved} by a small step against the error"
    text += f". {story.method.extra}" if story.method.extra else "; their sum stays the same."
    if story.home is not None:
        text += (
            " h is 1 where a is at home, 0 on neutral ground, \u22121 where b is; the home advantage has "
            f"its own step, {plain(float(f'{story.home.step:.3g}'))}."
        )
    return text


def _step(story: EloStory) -> str:
    if story.method.auto:
        size = f"\u03b7 = {plain(story.eta)}."
    else:
        per = story.k / story.eta
        k = equation(lambda eta, per: eta * per, "{0} \u00d7 {1}", (story.eta, per), story.k, 1)
        size = f"K = \u03b7 \u00d7 400 / ln 10{f', here {k}' if k else ''}."
    if story.method.exact:
        return (
            f"{size} Hence for each {story.noun}, exactly: mean predicted \u2212 actual win rate = "
            "(\u03b8 at the start \u2212 \u03b8 at the end) / (\u03b7 \u00d7 games)."
        )
    return f"{size} Each bias is the stored exact sum of errors over its games; \u03b8 alone does not determine it."


def _board(story: EloStory) -> str:
    fit = (
        "strengths for which the expected wins of all games equal the actual ones, after adding one drawn game "
        f"of each {story.noun}, spread over its opponents"
    )
    now = "current strengths, by the filter with the most weight among those that expect drift"
    views = [(story.fitted, fit), (1.0 - story.fitted, now)]
    for share, what in views:
        if share > 0.9995:
            rest = "" if share == 1.0 else " (the other view has a weight below 0.1 %)"
            return f"The Elo of the leaderboard are {what}{rest}."
    both = ", and ".join(f"{what} (weight {percent(share)})" for share, what in views)
    return f"The Elo of the leaderboard average two views by what the games say about drift: {both}."
