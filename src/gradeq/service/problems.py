"""Why a request is refused: problem details (RFC 9457) in the words of the HTTP API."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from http import HTTPStatus
from math import ceil
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gradeq.errors import GradeqError, OtherSettings
from gradeq.report.story import Notice
from gradeq.service.store.database import StoreTaken, StoreUnavailable


class NoSuchLayer(GradeqError):
    """The tenant has no layer of this name."""


class LayerExists(GradeqError):
    """A layer of this name exists with other settings."""


class LayerStopped(GradeqError):
    """The layer does not learn: an audit failed, or it diverged."""


class Busy(GradeqError):
    """The queue is full."""


KINDS = {
    "Debiaser": "debias",
    "QuantileTracker": "quantile",
    "MultiQuantileTracker": "quantiles",
    "IntervalTracker": "interval",
    "Conformal": "conformal",
    "QuantileEnsemble": "ensemble",
    "Elo": "elo",
}
WORDS = {"None": "null", "True": "true", "False": "false"}
PHRASES = {
    "left_out": "",
    "lasso": 'the setting "penalty": "lasso" with a "strength"',
    "scores": " or 'cqr'",
    "help": "give one of the words that this setting takes",
}
SETTINGS = {"alpha": "decay"}  # what parts call them
TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
QUOTED = r"(?<!\w)'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
VALUE = rf"{QUOTED}|\[[^\]]*\]|\{{[^}}]*\}}|\([^()]*\)|[-+\w.]+"
PYTHON = re.compile(
    rf"""
      (?P<left_out> [ ]\(--[^)]*\) | ;[ ]numbers[ ]beyond[ ][^;]*$ | [ ]\(Expecting[ ].*\)$ )
    | (?P<lasso> penalty=Lasso\(\.\.\.\) )
    | (?P<scores> ,[ ]'cqr',[ ]or[ ]a[ ]function[ ]s\(x,[ ]y\) )
    | (?P<help> see[ ]help\(gradeq\.\w+\)[ ]for[ ]those[ ]it[ ]knows )
    | \b(?P<part> \w+ )\( (?P<of> [a-z_]+ )= (?P<is> {VALUE} ) \):[ ](?:(?P=of)[ ])?
    | \b(?P<setting> [a-z_]+ )= (?P<value> {VALUE} )
    | \( (?P<first> -?[\d.]+ | None | lower ),[ ](?P<last> -?[\d.]+ | None | upper ) \)
    | (?: (?<=needs[ ]) | (?<=layer's:[ ]) ) (?P<names> \[ [^\]]*\] )
    | (?P<quoted> {QUOTED} )
    | \b(?:(?P<article> an? )[ ])?(?P<kind> {"|".join(KINDS)} )\b
    | \b(?P<word> {"|".join(WORDS)} )\b
    """,
    re.VERBOSE,
)
OPTION, OPTION_VALUE = re.compile(r"`--([a-z-]+)`"), re.compile(r"`--([a-z-]+) ([^`]+)`")
LIMITS = re.compile(r"(?P<type>\w+)(?P<length> of length)? (?P<side><=|>=) (?P<limit>-?\d+)")


@lru_cache(maxsize=1_000)
def in_http_words(message: str) -> str:
    """A refusal of the library in the words of a caller.

    >>> in_http_words("Constant(eta=-1.0): a step must be positive; use home=True")
    'eta -1.0: a step must be positive; use home true'
    >>> in_http_words("label 11.0 lies outside the support [0, 10] (--min, --max)")
    'label 11.0 lies outside the support [0, 10]'
    """
    return PYTHON.sub(_translate, message)


def _translate(part: re.Match[str]) -> str:
    match part.lastgroup:
        case "is":
            return f"{SETTINGS.get(part['of'], part['of'])} {_value(part['is'])}: "
        case "value":
            return f"{SETTINGS.get(part['setting'], part['setting'])} {_value(part['value'])}"
        case "last":
            return f"[{_value(part['first'])}, {_value(part['last'])}]"
        case "names":
            return ", ".join(map(str, literal_eval(part[0]))) or "none"
        case "kind":
            kind = KINDS[part["kind"]]
            return f"{with_article(kind)} layer" if part["article"] or not part.start() else f"{kind} layer"
        case group:
            return PHRASES.get(group or "", WORDS.get(part[0], part[0]))


def _value(text: str) -> str:
    try:
        return json.dumps(literal_eval(text))
    except (ValueError, SyntaxError, TypeError):
        return text


def with_setting_names(notice: Notice) -> Notice:
    """A notice with command-line options written as settings of a layer.

    >>> with_setting_names(Notice("amber", "", "", "`--eta plain` moves less.")).remedy
    '`"eta": "plain"` moves less.'
    """
    remedy = OPTION_VALUE.sub(lambda found: f'`"{found[1].replace("-", "_")}": "{found[2]}"`', notice.remedy)
    return replace(notice, remedy=OPTION.sub(lambda found: f'`"{found[1].replace("-", "_")}"`', remedy))


def with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def expected_type(rule: str) -> str:
    """What a value must be, from what the decoder of JSON says.

    >>> expected_type("Expected `float | null`, got `str`")
    'give a number'
    >>> expected_type("Expected `str` of length >= 1")
    'give a text of at least 1'
    """
    rule = rule.replace("`", "").removeprefix("Expected ").partition(", got")[0]
    limited = LIMITS.fullmatch(rule)
    if limited is not None:
        side = "at most" if limited["side"] == "<=" else "at least"
        return f"give {TYPES.get(limited['type'], limited['type'])} of {side} {limited['limit']}"
    if "bool" in rule and "str" in rule:
        return "give a text or a number"
    named = [TYPES.get(one, one) for one in rule.split(" | ") if one != "null"]
    return f"give {' or '.join(named)}"


class ProblemDetails(Struct):
    """Why a call was refused (RFC 9457): ``code`` is for programs, ``detail`` and ``remedy`` are for people."""

    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    code: str
    detail: str
    remedy: str


class Problem(Exception):
    """Refuses a whole call; nothing was changed."""

    def __init__(
        self, status: int, code: str, detail: str, remedy: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        self.details = ProblemDetails(HTTPStatus(status).phrase, status, code, detail, remedy)

    @property
    def status(self) -> int:
        return self.details.status

    def body(self) -> bytes:
        return msgspec.json.encode(self.details)


def retry_after(seconds: float) -> dict[str, str]:
    """The Retry-After header: whole seconds, at least one."""
    return {"Retry-After": str(max(1, ceil(seconds)))}


def split_remedy(message: str, otherwise: str = "correct the value and send it again") -> tuple[str, str]:
    """A refusal of the library, ``what is wrong; what to do``, as detail and remedy, ``otherwise`` if it has none."""
    line = " ".join(message.split())
    detail, found, remedy = line.rpartition("; ")
    if found:
        return detail, remedy
    detail, found, rule = line.partition(": give ")
    return (detail, f"give {rule}") if found else (line, otherwise)


STATUS_BY_ERROR: tuple[tuple[type[Exception], int, str, bool], ...] = (
    (NoSuchLayer, 404, "no_such_layer", False),
    (LayerExists, 409, "layer_exists", False),
    (LayerStopped, 409, "layer_stopped", False),
    (Busy, 429, "busy", True),
    (StoreUnavailable, 503, "store_unavailable", True),
    (StoreTaken, 503, "store_taken", True),
    (OtherSettings, 409, "other_settings", False),
    (GradeqError, 422, "refused", False),
)


def to_problem(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    for kind, status, code, again in STATUS_BY_ERROR:
        if isinstance(error, kind):
            otherwise = "retry later" if again else "correct the value and send it again"
            detail, remedy = split_remedy(in_http_words(str(error)), otherwise)
            return Problem(status, code, detail, remedy, retry_after(1.0) if again else None)
    remedy = "retry (ids make that safe), check the server log, and report it"
    return Problem(500, "internal", f"internal error ({type(error).__name__})", remedy)
