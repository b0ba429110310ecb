"""Scripts and styles that pages share: the plotting library with its licence, charts, and the look of everything."""

import base64
import hashlib
from functools import cache
from importlib.resources import files


def script(own: str) -> str:
    """Everything that a page runs: uPlot, the charts, and the page's ``own`` script."""
    # The licence of uPlot goes with it in full, in place of its one-line banner.
    plot = text("vendor/uPlot.iife.min.js")
    plot = plot[plot.index("*/") + 2 :] if plot.startswith("/*") else plot
    licence = f"/* uPlot\n{text('vendor/uPlot.LICENSE')}*/"
    return "\n".join((licence + plot, text("charts.js"), own))


def style(own: str = "") -> str:
    """The look of a page; ``own`` rules come last."""
    return "\n".join((text("vendor/uPlot.min.css"), text("report.css"), own))


def digest(content: str) -> str:
    """A script or style as a content policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


@cache
def text(path: str, package: str = "gradeq.report") -> str:
    """A file of a package."""
    return files(package).joinpath(path).read_text(encoding="utf-8").replace("\r\n", "\n")
