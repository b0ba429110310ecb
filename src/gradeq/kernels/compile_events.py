"""Write the formulas of a link and a loss into the quick lane: ``loss.slope(s, y)`` becomes ``s - y``.

Only formulas that are a single return are written in; others stay calls. The arithmetic is the one of the formula's
own text either way.
"""

from __future__ import annotations

import ast
import math
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any

from gradeq.kernels.compile import function_tree
from gradeq.kernels.lane import MOST, lane

_written: dict[tuple[type, type], tuple[CodeType, dict[str, Any]]] = {}


def inlined_lane(link: object, loss: object) -> Callable[..., Any]:
    """``lane`` with the formulas of these parts written in; ``lane`` itself when they have no source text."""
    try:
        code, borrowed = _code(type(link), type(loss))
    except (OSError, TypeError):
        return lane
    names: dict[str, Any] = {"MOST": MOST, "deque": deque, "inf": math.inf, **borrowed}
    for part, owner in (("link", link), ("loss", loss)):
        for name in getattr(owner, "__dataclass_fields__", ()):
            names[f"{part}__{name}"] = getattr(owner, name)
    exec(code, names)
    return names["lane"]  # type: ignore[no-any-return]


def _code(link: type, loss: type) -> tuple[CodeType, dict[str, Any]]:
    if (link, loss) not in _written:
        _written[link, loss] = _write(link, loss)
    return _written[link, loss]


def _write(link: type, loss: type) -> tuple[CodeType, dict[str, Any]]:
    tree = function_tree(lane)
    tree.returns = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
    inliner = _Inline({"link": link, "loss": loss})
    inliner.visit(tree)
    module = ast.fix_missing_locations(ast.Module([tree], []))
    return compile(module, "<gradeq lane>", "exec"), inliner.borrowed


class _Inline(ast.NodeTransformer):
    """Replaces part.method(args) by the method's one returned expression."""

    def __init__(self, parts: dict[str, type]) -> None:
        self.parts = parts
        self.borrowed: dict[str, Any] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        target = node.func
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)):
            return node
        part = target.value.id
        if part not in self.parts:
            return node
        method = getattr(self.parts[part], target.attr)
        body = function_tree(method)
        last = body.body[-1]
        plain = [
            s
            for s in body.body
            if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        ]
        if len(plain) != 1 or not isinstance(last, ast.Return) or last.value is None:
            return node
        owner, *formal = [argument.arg for argument in body.args.args]
        given = dict(zip(formal, node.args, strict=True))
        for name in {n.id for n in ast.walk(last.value) if isinstance(n, ast.Name)} - {
            owner,
            *formal,
        }:
            if name in method.__globals__:
                self.borrowed[name] = method.__globals__[name]
        written: ast.AST = _Substitute(part, owner, given).visit(last.value)
        return written


class _Substitute(ast.NodeTransformer):
    """Arguments for formal names, and part__field for self.field."""

    def __init__(self, part: str, owner: str, given: dict[str, ast.expr]) -> None:
        self.part, self.owner, self.given = part, owner, given

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == self.owner:
            return ast.Name(f"{self.part}__{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.given.get(node.id, node)
