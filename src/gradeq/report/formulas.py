"""The two formulas of the method section, in MathML: how a value is served, what must hold."""

from gradeq.report.markup import Markup

# Constant markup, written here and nowhere filled in: no user text passes through this module.


def _sub(base: str, index: str) -> str:
    return f"<msub><mi>{base}</mi>{index}</msub>"


_T = "<mi>t</mi>"
_NEXT = "<mrow><mi>t</mi><mo>+</mo><mn>1</mn></mrow>"
_ZT = "<msubsup><mi>z</mi><mi>t</mi><mo>⊤</mo></msubsup>" + _sub("θ", _T)
_ALONE = _sub("θ", _T)
_HOME = _sub("θ", "<mtext>home</mtext>")


def _served(link: str, margin: str, letter: str) -> str:
    s, f = _sub("s", _T), _sub(letter, _T)
    bracket = f"<mo>(</mo>{margin}<mo>)</mo>"
    right = {
        "identity": f"{f}<mo>+</mo>{margin}",
        "linear": f"{f}<mo>+</mo>{margin}",
        "shift": f"{f}<mo>+</mo><mn>2</mn><mi>σ</mi>{bracket}<mo>−</mo><mn>1</mn>",
        "logit": f"<mi>σ</mi><mo>(</mo><mi>logit</mi><mspace width='0.15em'/>{f}"
        f"<mo>+</mo>{margin}<mo>)</mo>",
        "exp": f"{f}<mspace width='0.15em'/><mi>exp</mi>{bracket}",
        "sinh": f"{f}<mo>+</mo>{_sub('k', _T)}<mspace width='0.15em'/><mi>sinh</mi>{bracket}",
    }[link]
    return f"{s}<mo>=</mo>{right}"


def _error(quantile: bool) -> str:
    s, y = _sub("s", _T), _sub("y", _T)
    if quantile:
        return f"<mn>1</mn><mo>{{</mo>{y}<mo>≤</mo>{s}<mo>}}</mo><mo>−</mo><mi>τ</mi>"
    return f"{s}<mo>−</mo>{y}"


def _math(inside: str) -> Markup:
    return Markup(f'<math display="block">{inside}</math>')


def served(link: str, groups: bool, letter: str) -> Markup:
    """The value served, for a link by name; ``letter`` stands for what is corrected."""
    return _math(_served(link, _ZT if groups else _ALONE, letter))


def update(quantile: bool, groups: bool, varying: bool) -> Markup:
    """How theta moves when a label is known."""
    eta = _sub("η", _T) if varying else "<mi>η</mi>"
    z = _sub("z", _T) if groups else ""
    return _math(
        f"{_sub('θ', _NEXT)}<mo>=</mo>{_sub('θ', _T)}<mo>−</mo>{eta}"
        f"<mo>(</mo>{_error(quantile)}<mo>)</mo>{z}"
    )


def identity(quantile: bool, groups: bool, varying: bool) -> Markup:
    """What the steps add up to: the average error is the move of theta over eta n."""
    j = "<mi>j</mi>" if groups else ""
    n = "<msub><mi>n</mi><mi>j</mi></msub>" if groups else "<mi>T</mi>"
    index = "<mrow><mi>t</mi><mo>∈</mo><mi>j</mi></mrow>" if groups else "<mi>t</mi>"
    comma = "<mo>,</mo>" if groups else ""
    first = f"<msub><mi>θ</mi><mrow><mn>1</mn>{comma}{j}</mrow></msub>"
    last = f"<msub><mi>θ</mi><mrow><mi>T</mi><mo>+</mo><mn>1</mn>{comma}{j}</mrow></msub>"
    moved = f"<mrow>{first}<mo>−</mo>{last}</mrow>"
    summed = f"<munder><mo>∑</mo>{index}</munder>"
    bracket = f"<mo>(</mo>{_error(quantile)}<mo>)</mo>"
    if varying:
        return _math(f"{summed}{_sub('η', _T)}{bracket}<mo>=</mo>{moved}")
    return _math(
        f"<mfrac><mn>1</mn>{n}</mfrac>{summed}{bracket}<mo>=</mo>"
        f"<mfrac>{moved}<mrow><mi>η</mi>{n}</mrow></mfrac>"
    )


def game(mixed: bool, home: bool) -> Markup:
    """The predicted probability that a wins; ``mixed``: m is corrected, ``home``: somebody may be at home."""
    p, a, b = "<mi>p</mi>", _sub("θ", "<mi>a</mi>"), _sub("θ", "<mi>b</mi>")
    first = "<mi>logit</mi><mspace width='0.15em'/><mi>m</mi><mo>+</mo>" if mixed else ""
    last = f"<mo>+</mo><mi>h</mi>{_HOME}" if home else ""
    return _math(f"{p}<mo>=</mo><mi>σ</mi><mo>(</mo>{first}{a}<mo>−</mo>{b}{last}<mo>)</mo>")


def game_update(home: bool, varying: bool) -> Markup:
    """How both ratings, and the advantage at home, move after a game."""
    a, b, gap = _sub("θ", "<mi>a</mi>"), _sub("θ", "<mi>b</mi>"), "<mspace width='1.2em'/>"
    eta, off = (
        _sub("η", _T) if varying else "<mi>η</mi>",
        "<mo>(</mo><mi>y</mi><mo>−</mo><mi>p</mi><mo>)</mo>",
    )
    own = _sub("η", "<mtext>home</mtext>")
    last = f"{gap}{_HOME}<mo>←</mo>{_HOME}<mo>+</mo>{own}<mi>h</mi>{off}" if home else ""
    return _math(
        f"{a}<mo>←</mo>{a}<mo>+</mo>{eta}{off}{gap}{b}<mo>←</mo>{b}<mo>−</mo>{eta}{off}{last}"
    )
