"""Write small functions out where they are called, so that the compiler sees one function instead of thirty.

Every compiled function costs numba about as much as all of its callers' lines. Written out are functions that are one
expression (anywhere), and functions whose only returns are their end and the end of an ``if``, where the call is a
whole statement or its value. An array that goes through a call that is left would be counted in and out at every
row. The order of arithmetic is kept, so the bits are too.
"""

from __future__ import annotations

import ast
import copy


def inlined(tree: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> None:
    """Write out calls of ``functions`` in ``tree``, which come with their own calls written out already."""
    writer = _WriteOut(functions)
    tree.body = writer.block(tree.body)
    ast.fix_missing_locations(tree)


class _WriteOut(ast.NodeTransformer):
    def __init__(self, functions: dict[str, ast.FunctionDef]) -> None:
        self.functions = functions
        self.calls = 0  # each call site gets names of its own

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements with calls written out."""
        found: list[ast.stmt] = []
        for statement in statements:
            found += self.statement(statement)
        return found or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        for name in ("body", "orelse"):
            inner = getattr(node, name, None)
            if isinstance(inner, list) and inner:
                setattr(node, name, self.block(inner))
        value = getattr(node, "value", None)
        if isinstance(node, (ast.Assign, ast.Expr, ast.Return)) and isinstance(value, ast.Call):
            body = self.function(value)
            body = None if body is None or _is_expression(body) else _with_one_end(body)
            if body is not None:
                value.args = [self.visit(arg) for arg in value.args]
                return self.written(node, value, body)
        for name, child in ast.iter_fields(node):
            if isinstance(child, ast.expr):
                setattr(node, name, self.visit(child))
            elif isinstance(child, list) and child and isinstance(child[0], ast.expr):
                setattr(node, name, [self.visit(each) for each in child])
        return [node]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        body = self.function(node)
        if body is None or not _is_expression(body):
            return node
        value = body.body[0].value  # type: ignore[attr-defined]
        given = dict(zip((a.arg for a in body.args.args), node.args, strict=True))
        used = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        if any(used.count(name) > 1 and not _is_plain(arg) for name, arg in given.items()):
            return node
        return _Renamed(given).visit(copy.deepcopy(value))  # type: ignore[no-any-return]

    def function(self, node: ast.Call) -> ast.FunctionDef | None:
        """The function that is called, if it is one of ours and given all it takes."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            return None
        found = self.functions.get(node.func.id)
        if found is None or found.args.kwonlyargs or len(found.args.args) != len(node.args):
            return None
        return found

    def written(self, node: ast.stmt, call: ast.Call, body: ast.FunctionDef) -> list[ast.stmt]:
        """The statements of a call: its arguments by new names, its body, then what became of its value."""
        self.calls += 1
        stored = {
            n.id for n in ast.walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        given: dict[str, ast.expr] = {
            name: ast.Name(f"{name}_{body.name}_{self.calls}", ast.Load()) for name in stored
        }
        before: list[ast.stmt] = []
        for argument, value in zip(body.args.args, call.args, strict=True):
            if argument.arg not in stored and _is_plain(value):
                given[argument.arg] = value
                continue
            own = f"{argument.arg}_{body.name}_{self.calls}"
            given[argument.arg] = ast.Name(own, ast.Load())
            before.append(ast.Assign([ast.Name(own, ast.Store())], value))
        last = body.body.pop() if _returns(body.body) else None
        renamed = [_Renamed(given).visit(each) for each in body.body]
        if isinstance(last, ast.Return):
            node.value = _Renamed(given).visit(last).value  # type: ignore[attr-defined]
            return [*before, *renamed, node]
        return [*before, *renamed]


class _Renamed(ast.NodeTransformer):
    """Names become what was given for them."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.AST:
        found = self.given.get(node.id)
        if found is None:
            return node
        made = copy.deepcopy(found)
        if isinstance(made, ast.Name):
            made.ctx = node.ctx
        return made


def _is_expression(function: ast.FunctionDef) -> bool:
    body = function.body
    return len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None


def _with_one_end(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """A copy with ``else`` after every ``if`` that returns, so that all ways meet in one end; None if they do not."""
    made = copy.deepcopy(function)
    gives = any(isinstance(each, ast.Return) and each.value for each in ast.walk(made))
    made.body = _joined(made.body)
    if any(isinstance(each, ast.Return) for each in ast.walk(made)):
        return None
    if gives:
        made.body.append(ast.Return(ast.Name("ended", ast.Load())))
    return made


def _joined(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with each return turned into the name of what it gives."""
    for at, each in enumerate(body):
        if isinstance(each, ast.If) and _returns(each.body) and not each.orelse:
            each.body, each.orelse = _joined(each.body), _joined(body[at + 1 :])
            return body[: at + 1]
    last = body[-1] if body else None
    if not isinstance(last, ast.Return):
        return body
    given = ast.Assign([ast.Name("ended", ast.Store())], last.value) if last.value else ast.Pass()
    return [*body[:-1], given]


def _returns(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Return)


def _is_plain(value: ast.expr) -> bool:
    return isinstance(value, (ast.Name, ast.Constant))
