"""The method section: two formulas, and the identity worked through with the page's own numbers."""

from gradeq.report import formulas
from gradeq.report.markup import Markup, el, join, name, prose
from gradeq.report.parts import folded
from gradeq.report.story import Method, Story
from gradeq.report.worked import difference, worked


def build(story: Story) -> Markup:
    """The section: served, learned, summed, and worked through."""
    method = story.method
    quantile, grouped = story.kind == "quantile", bool(story.by or story.features)
    varying = not method.exact
    letter = "m" if method.auto else "p" if method.link in ("shift", "logit") else "f"
    served = {
        "shift": f"Each row is served {letter} plus a shift",
        "logit": f"Each row is served {letter}, moved on the scale of log-odds",
        "exp": f"Each row is served {letter} times a factor",
        "sinh": f"Each row is served {letter} plus a correction in units of the usual error k",
    }.get(method.link, f"Each row is served {letter} plus a correction")
    if method.auto:
        what = "trackers of several speeds" if quantile else "running means of several lengths"
        served += f", where m mixes the raw prediction with {what} by their past loss"
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
    return folded(
        "Method",
        el("p", _indexed(first)),
        el(
            "div",
            formulas.served(method.link, grouped, letter),
            formulas.update(quantile, grouped, varying),
            class_="formula",
        ),
        el("p", _indexed(second)),
        el("div", formulas.identity(quantile, grouped, varying), class_="formula"),
        *_worked(method),
        *([el("p", prose(method.extra))] if method.extra else []),
    )


def _indexed(text: str) -> Markup:
    """Prose in which single letters of the formulas are set as such."""
    letters = {
        "n_j": el("i", "n", el("sub", "j")),
        "j": el("i", "j"),
        "m": el("i", "m"),
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


def _worked(method: Method) -> list[Markup]:
    """The identity in numbers, one line for each parameter given."""
    lines = [(line.name, worked(line)) for line in method.worked]
    shown = [el("p", "Here for ", name(who, None), f": {text}") for who, text in lines if text]
    if method.interval is not None and len(shown) == 2:
        ends = (method.worked[0], method.worked[1])
        share = difference(ends, method.interval)
        shown.append(
            el("p", f"Covered is what lies at or below the upper end and not the lower: {share}.")
        )
    return shown
