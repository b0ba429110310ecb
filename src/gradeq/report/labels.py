"""Where to write beside a mark so that words cover neither marks, nor lines, nor each other."""

from collections.abc import Sequence
from itertools import pairwise

from gradeq.report.markup import Markup, el, join

Box = tuple[float, float, float, float]
Point = tuple[float, float]

_CHARACTER, _LINE = 6.6, 15.0


class Labels:
    """Places labels greedily in a frame; the first one placed has the first choice."""

    def __init__(self, frame: Box) -> None:
        self._frame = frame
        self._taken: list[Box] = []
        self._route: list[Point] = []

    def keep_clear(self, points: Sequence[Point]) -> None:
        """Keep words off these marks and off the straight lines between neighbours."""
        self._taken += [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
        for (x0, y0), (x1, y1) in pairwise(points):
            pieces = max(int(max(abs(x1 - x0), abs(y1 - y0)) / 4), 1)
            self._route += [
                (x0 + (x1 - x0) * i / pieces, y0 + (y1 - y0) * i / pieces)
                for i in range(pieces + 1)
            ]

    def place(self, mark: Point, lines: Sequence[str], class_: str) -> Markup:
        """The lines as text beside the mark, where they cover least; far ones get a leader."""
        width = _CHARACTER * max(len(line) for line in lines)
        height = _LINE * len(lines)
        box, far = min(
            ((self._box(mark, dx, dy, width, height), far) for dx, dy, far in _OFFSETS),
            key=lambda found: self._cost(found[0]) + 0.2 * found[1],
        )
        self._taken.append(box)
        right = box[2] <= mark[0]
        x = box[2] if right else box[0]
        texts = [
            el(
                "text",
                line,
                x=x,
                y=box[1] + _LINE * (i + 1) - 4,
                text_anchor="end" if right else "start",
                class_=f"{class_} strong" if len(lines) > 1 and i == 0 else class_,
            )
            for i, line in enumerate(lines)
        ]
        if far and len(lines) > 1:
            edge = box[2] + 4 if right else box[0] - 4
            middle = min(max(mark[1], box[1] + 4), box[3] - 4)
            leader = el("line", x1=mark[0], x2=edge, y1=mark[1], y2=middle, class_="lead")
            return join(leader, *texts)
        return join(*texts)

    def _box(self, mark: Point, dx: float, dy: float, width: float, height: float) -> Box:
        x = mark[0] + dx if dx > 0 else mark[0] + dx - width if dx < 0 else mark[0] - width / 2
        y = mark[1] + dy - height / 2 + (height / 2 if dy > 0 else -height / 2 if dy < 0 else 0)
        return (x, y, x + width, y + height)

    def _cost(self, box: Box) -> float:
        left, top, right, bottom = self._frame
        outside = max(left - box[0], 0) + max(top - box[1], 0)
        outside += max(box[2] - right, 0) + max(box[3] - bottom, 0)
        covered = sum(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
            for other in self._taken
        )
        crossed = sum(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in self._route)
        return 3.0 * outside + 10.0 * covered + 2.0 * crossed


# Right, left, then the corners, above and below; the last two are far off, with a leader.
_OFFSETS = (
    (10.0, 0.0, 0), (-10.0, 0.0, 0), (8.0, -5.0, 0), (8.0, 5.0, 0), (-8.0, -5.0, 0),
    (-8.0, 5.0, 0), (0.0, -9.0, 0), (0.0, 9.0, 0), (60.0, 0.0, 1), (110.0, 0.0, 1),
    (160.0, 0.0, 1), (60.0, -24.0, 1), (60.0, 24.0, 1), (-60.0, 0.0, 1),
)  # fmt: skip
