"""What goes in and comes out over HTTP, one item at a time; the OpenAPI document is made from these types."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Id = (
    Annotated[str, Meta(min_length=1, max_length=255)]
    | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
)
Name = str | int | float | bool | None


class Prediction(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A prediction of your model, to be served adjusted. Of a game: the players ``a`` and ``b`` instead of it."""

    id: Id | None = None
    prediction: float | list[float] | None = None
    groups: dict[str, Name] | None = None
    features: dict[str, float] | None = None
    key: Name = None
    weight: float = 1.0
    a: Name = None
    b: Name = None
    home: float = 1.0


class Label(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The label of a prediction, by its id or by the signed ticket that came with it.

    ``correct``: put it in the place of the label that was sent before.
    """

    label: float
    id: Id | None = None
    correct: bool = False
    ticket: str | None = None


class Answer(Struct, omit_defaults=True):
    """What became of one item.

    Of a prediction: ``served``, ``duplicate`` (served before: the same value again), ``conflict`` or ``rejected``.
    Of a label: ``applied``, ``waiting`` (kept: its row is not mature, or labels of one value seem to come earlier),
    ``duplicate``, ``corrected``, ``conflict``, ``unknown``, ``expired`` or ``rejected``.
    ``seq`` is its number in the journal, your receipt. ``stored`` is false when the store could not write: the value
    comes from the last good state and its label will be unknown. ``learning`` is false while the layer is frozen; of
    a label: it was heard, not learned from.
    ``stale``: the server could not hear of the others' labels for more than 10 seconds.
    ``cold``: one of its groups, its key or a player was never seen before.
    """

    id: str | int | None = None
    status: str = ""
    adjusted: float | list[float] | None = None
    lower: float | None = None
    upper: float | None = None
    ticket: str | None = None
    seq: int | None = None
    stored: bool = True
    learning: bool = True
    stale: bool = False
    cold: bool = False
    detail: str | None = None
    remedy: str | None = None


GOOD = frozenset({"served", "duplicate", "applied", "waiting", "corrected"})


def not_done(id: str | int | None) -> Answer:
    """The answer to a good item of an atomic call that was refused."""
    return Answer(
        id=id,
        status="rejected",
        detail="not done, since another item of this atomic call was refused",
        remedy="mend that one and send all again",
    )
