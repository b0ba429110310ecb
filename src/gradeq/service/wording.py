"""Refusals in the words of the HTTP API: settings and values as JSON has them, no classes, no command line."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from dataclasses import replace
from functools import lru_cache

from gradeq.report.story import Notice

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
OPTION = re.compile(r"`--([a-z-]+)(?: ([^`]+))?`")
LIMITS = re.compile(r"(?P<type>\w+)(?P<length> of length)? (?P<side><=|>=) (?P<limit>-?\d+)")


@lru_cache(maxsize=1_000)
def in_json(message: str) -> str:
    """A refusal of the library in the words of a caller.

    >>> in_json("Constant(eta=-1.0): a step must be positive; use home=True")
    'eta -1.0: a step must be positive; use home true'
    >>> in_json("label 11.0 lies outside the support [0, 10] (--min, --max)")
    'label 11.0 lies outside the support [0, 10]'
    """
    return PYTHON.sub(_turned, message)


def _turned(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "left_out":
            return ""
        case "lasso":
            return 'the setting "penalty": "lasso" with a "strength"'
        case "scores":
            return " or 'cqr'"
        case "help":
            return "give one of the words that this setting takes"
        case "is":
            return f"{SETTINGS.get(found['of'], found['of'])} {_value(found['is'])}: "
        case "value":
            return f"{SETTINGS.get(found['setting'], found['setting'])} {_value(found['value'])}"
        case "last":
            return f"[{_value(found['first'])}, {_value(found['last'])}]"
        case "names":
            return ", ".join(map(str, literal_eval(found[0]))) or "none"
        case "kind":
            kind = KINDS[found["kind"]]
            return f"{a(kind)} layer" if found["article"] or not found.start() else f"{kind} layer"
        case "word":
            return WORDS[found[0]]
        case _:
            return found[0]


def in_settings(notice: Notice) -> Notice:
    """A notice with options of the command line written as settings of a layer.

    >>> in_settings(Notice("amber", "", "", "`--eta plain` moves less.")).remedy
    '`"eta": "plain"` moves less.'
    """
    return replace(notice, remedy=OPTION.sub(_setting, notice.remedy))


def _setting(found: re.Match[str]) -> str:
    name = found[1].replace("-", "_")
    return f'`"{name}"`' if found[2] is None else f'`"{name}": "{found[2]}"`'


def _value(text: str) -> str:
    """A value of Python as JSON; what is none stays as it is."""
    try:
        return json.dumps(literal_eval(text))
    except (ValueError, SyntaxError):
        return text


def a(kind: str) -> str:
    """A kind with its article.

    >>> a("elo"), a("debias")
    ('an elo', 'a debias')
    """
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def wanted(rule: str) -> str:
    """What a value must be, from what the decoder of JSON says.

    >>> wanted("Expected `float | null`, got `str`"), wanted("Expected `str` of length >= 1")
    ('give a number', 'give a text of at least 1')
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
