"""The method section: two formulas, and the identity worked through with the page's own numbers."""

from gradeq.report import formulas
from gradeq.report.markup import Markup, el, join, name, prose
from gradeq.report.numerals import decimals, number, plain
from gradeq.report.parts import section
from gradeq.report.story import Story


def build(story: Story) -> Markup:
    """The section: served, learned, summed, and worked through."""
    method = story.method
    quantile, grouped = story.kind == "quantile", bool(story.by or story.features)
    varying = method.eta is None
    served = {
        "shift": "Each row is served p plus a shift",
        "logit": "Each row is served p, moved on the scale of log-odds",
        "exp": "Each row is served f times a factor",
        "sinh": "Each row is served f plus a correction in units of the usual error k",
    }.get(method.link, "Each row is served f plus a correction")
    moves = "the corrections of its groups move" if grouped else "the correction moves"
    first = f"{served}. When its label is known, {moves} by a small step against the error."
    where = (
        "the error of group j, averaged over its n_j rows,"
        if grouped
        else "the average error over T rows"
    )
    second = (
        f"Summing the steps gives the certificate: {where} is where the correction started, minus "
        f"where it ended, divided by η {'n_j' if grouped else 'T'}. No assumption about the data "
        "is used."
    )
    if varying:
        second = (
            "The step varies, so the sum of step times error is the move of the correction, and "
            "the averages on this page are the stored exact sums of errors over the rows. No "
            "assumption about the data is used."
        )
    return section(
        "Method",
        _indexed(first),
        el(
            "div",
            formulas.served(method.link, grouped),
            formulas.update(quantile, grouped, varying),
            class_="formula",
        ),
        el("p", _indexed(second)),
        el("div", formulas.identity(quantile, grouped, varying), class_="formula"),
        el("p", *_worked(story)),
        *([el("p", prose(method.extra))] if method.extra else []),
        class_="method",
    )


def _indexed(text: str) -> Markup:
    """Prose in which single letters of the formulas are set as such."""
    letters = {
        "n_j": el("i", "n", el("sub", "j")),
        "j": el("i", "j"),
        "p": el("i", "p"),
        "f": el("i", "f"),
        "k": el("i", "k"),
        "T": el("i", "T"),
    }
    pieces: list[str] = []
    for i, piece in enumerate(text.split(" ")):
        pieces += [" "] if i else []
        bare = piece.rstrip(".,")
        pieces += [letters[bare], piece[len(bare) :]] if bare in letters else [piece]
    return join(*pieces)


def _worked(story: Story) -> list[str]:
    method = story.method
    where = [name(method.name, None)] if method.name else ["all rows"]
    average = number(method.average, max(decimals(method.average), 4))
    table = "in the table" if story.groups else "above"
    meaning = "coverage minus target" if story.kind == "quantile" else f"the bias {table}"
    if method.eta is None:
        total = method.total if method.total is not None else method.average * method.n
        sums = f": {number(total, 4)} / {_n(method.n)} = {average}, {meaning}."
        return ["Here for ", *where, sums]
    start = plain(method.u1) if method.u1 == round(method.u1, 4) else number(method.u1, 4)
    moved = f"({start} {minus(method.u)})"
    share = f"({plain(method.eta)} × {_n(method.n)})"
    return ["Here for ", *where, f": {moved} / {share} = {average}, {meaning}."]


def _n(n: float) -> str:
    """Rows, or with weights their sum, which need not be whole."""
    return number(n, 0 if n == round(n) else 4)


def minus(value: float) -> str:
    """Write "− 0.7438", or "+ 1.2500" for minus a negative value."""
    return f"+ {number(-value, 4)}" if value < 0 else f"− {number(value, 4)}"
