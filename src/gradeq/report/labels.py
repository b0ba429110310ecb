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
            pieces = max(int(max(abs(x1 - x0), abs(y1 - y0)) / 3), 1)
            self._route += [
                (x0 + (x1 - x0) * i / pieces, y0 + (y1 - y0) * i / pieces)
                for i in range(pieces + 1)
            ]

    def place(self, mark: Point, lines: Sequence[str], class_: str) -> Markup:
        """The lines as text beside the mark, where they cover least; two lines may go far, with a leader."""
        width = _CHARACTER * max(len(line) for line in lines)
        height = _LINE * len(lines) - 3
        box, far = min(
            (
                (self._box(mark, dx, dy, width, height), far)
                for dx, dy, far in _OFFSETS
                if len(lines) > 1 or not far
            ),
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
                y=box[1] + _LINE * (i + 1) - 5,
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
        crossed = sum(
            box[0] - 3 <= x <= box[2] + 3 and box[1] - 2 <= y <= box[3] + 2 for x, y in self._route
        )
        return 3.0 * outside + 10.0 * covered + 2.0 * crossed


# Near: right, left, the corners, above, below. Far, with a leader: the last ones.
_NEAR = (
    (10, 0),
    (-10, 0),
    (8, -5),
    (8, 5),
    (-8, -5),
    (-8, 5),
    (0, -9),
    (0, 9),
    (14, -12),
    (-14, 12),
)
_FAR = ((60, 0), (110, 0), (160, 0), (60, -24), (60, 24), (-60, 0))
_OFFSETS = (*((x, y, 0) for x, y in _NEAR), *((x, y, 1) for x, y in _FAR))
