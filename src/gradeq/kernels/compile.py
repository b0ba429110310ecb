"""Fuses a loop with the formulas it calls into one module, and compiles it with numba."""

from __future__ import annotations

import ast
import copy
import dataclasses
import hashlib
import importlib.util
import inspect
import os
import sys
import textwrap
import types
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from gradeq._version import __version__


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
        return _Substituted(given).visit(copy.deepcopy(value))

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
        stored = {n.id for n in ast.walk(body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
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
        renamed = [_Substituted(given).visit(each) for each in body.body]
        if isinstance(last, ast.Return):
            node.value = _Substituted(given).visit(last).value  # type: ignore[attr-defined]
            return [*before, *renamed, node]
        return [*before, *renamed]


class _Substituted(ast.NodeTransformer):
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


TITLE = "gradeq_kernel_"  # how the names of cached modules begin
OWN = __name__.rpartition(".")[0]  # the package of our own loops
Key = tuple[Any, ...]  # a loop and the types of its parts

_ready: dict[Key, Callable[..., Any]] = {}
_texts: dict[Key, str | None] = {}


def key_of(loop: Callable[..., object], parts: tuple[object, ...]) -> Key:
    return (loop, *(type(part) for part in parts))


def in_memory(key: Key | None = None) -> bool:
    return bool(_ready) if key is None else key in _ready


def compiled(loop: Callable[..., object], parts: tuple[object, ...]) -> Callable[..., Any] | None:
    """Compile the loop for these parts now; None without numba or without the parts' source text."""
    key = key_of(loop, parts)
    if key not in _ready:
        try:
            import numba  # noqa: F401
        except ImportError:
            return None
        text = text_of(loop, parts)
        if text is None:
            return None
        _ready[key] = load(text, loop.__name__)
    return _ready[key]


def text_of(loop: Callable[..., object], parts: tuple[object, ...]) -> str | None:
    """The text to compile, made once; None for a part typed into a prompt, which has no source."""
    key = key_of(loop, parts)
    if key not in _texts:
        try:
            _texts[key] = fused_source(loop, parts)
        except (OSError, TypeError):
            _texts[key] = None
    return _texts[key]


def is_cached(text: str | None, name: str) -> bool:
    """Whether the machine code of this text (None: of any text of this name) lies on the disk."""
    folder, title = _cache_folder(), f"{TITLE}{name}_*" if text is None else _title(text, name)
    found = () if folder is None else folder.glob(f"__pycache__/{title}.*.nbi")
    return any(True for _ in found)


def fields(part: object) -> tuple[Any, ...]:
    """A part as the tuple of its fields, in the form compiled code takes."""
    if isinstance(part, tuple):  # the numbers of a record are places and sizes
        return tuple(np.uint64(each) if isinstance(each, int) else each for each in part)
    values = tuple(_plain(getattr(part, name)) for name in _field_names(type(part)))
    return values or (0.0,)  # an empty tuple has no type to compile for


def fused_source(loop: Callable[..., object], parts: tuple[object, ...]) -> str:
    """One module of plain functions: the loop, the formulas it calls, and what those call."""
    tree = function_tree(loop)
    names = [argument.arg for argument in tree.args.args[: len(parts)]]
    types_by_name = {name: type(part) for name, part in zip(names, parts, strict=True)}
    functions: dict[str, ast.FunctionDef] = {}
    constants: dict[str, str] = {}
    taken: dict[str, str] = {}
    _collect(tree, types_by_name, loop.__globals__, functions, constants, taken)
    tree.name = "loop"
    for function in functions.values():  # in the order of calling: those that are called come first
        inlined(function, functions)
    inlined(tree, functions)
    called = _called(tree, functions)
    lines = ["import math", "import numba", "import numpy", ""]
    lines += [f"{name} = {text}" for name, text in sorted(constants.items())]
    for name in (name for name in functions if name in called):
        _take(functions[name], taken)
        lines += ["@numba.njit(forceinline=True, error_model='numpy')", ast.unparse(functions[name]), ""]
    _take(tree, taken)
    lines += ["@numba.njit(cache=CACHE, error_model='numpy', nogil=True)", ast.unparse(tree), ""]
    return "\n".join(lines)


def _constant(value: float, module: str) -> str:
    """A constant as text; whole numbers of our own loops are places and sizes, whose sign need not be looked at."""
    place = isinstance(value, int) and value >= 0 and module.startswith(OWN)
    return f"numpy.uint64({value})" if place else repr(value)


def _take(tree: ast.FunctionDef, taken: dict[str, str]) -> None:
    """Take the fields that a function uses from their tuples, once, at its beginning."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    lines = [f"{name} = {taken[name]}" for name in sorted(used & taken.keys())]
    tree.body[:0] = ast.parse("\n".join(lines)).body


def _called(tree: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> set[str]:
    """The functions that are still called, directly or through another."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in functions and node.id not in found:
            found |= {node.id} | _called(functions[node.id], functions)
    return found


def load(text: str, name: str) -> Callable[..., Any]:
    """Import the generated module, from the cache folder where one can be written."""
    title, folder = _title(text, name), _cache_folder()
    if folder is not None:
        try:
            return _load_file(folder / f"{title}.py", text, title)
        except OSError:
            pass  # a read-only or full disk costs the cache, not the answer
    module = types.ModuleType(title)
    exec(compile(text.replace("CACHE", "False"), f"<{title}>", "exec"), module.__dict__)
    return module.loop


def _title(text: str, name: str) -> str:
    """The name of the module: a change of text, of our sources, of numba or of Python gives another."""
    try:
        compiler = version("numba")
    except PackageNotFoundError:  # bundled without its papers; numba looks at its version itself
        compiler = ""
    stamp = f"{__version__}|{_sources()}|{compiler}|{sys.version}|{text}"
    return f"{TITLE}{name}_{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"


@lru_cache(maxsize=1)
def _sources() -> str:
    """A hash of the packages whose types a kernel takes: the cache may name one, and fails if it was renamed."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for name in ("kernels", "rules", "ledger", "engine"):
        for path in sorted((package / name).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _load_file(path: Path, text: str, title: str) -> Callable[..., Any]:
    body = text.replace("CACHE", "True")
    if not path.exists() or path.read_text() != body:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(body)
        partial.replace(path)
        os.utime(path, (0, 0))  # numba keys its cache on the time stamp; the name already holds the hash
    spec = importlib.util.spec_from_file_location(title, path)
    if spec is None or spec.loader is None:
        raise OSError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    spec.loader.exec_module(module)
    return module.loop


def _cache_folder() -> Path | None:
    home = os.environ.get("GRADEQ_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(home) if home else Path.home() / ".cache"
        folder = folder / "gradeq" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _collect(
    tree: ast.FunctionDef,
    parts: dict[str, type],
    scope: dict[str, Any],
    functions: dict[str, ast.FunctionDef],
    constants: dict[str, str],
    taken: dict[str, str],
) -> None:
    """Rewrite the parts in ``tree`` and gather, depth first, every function, constant and field that it needs."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    local = {a.arg for a in tree.args.args} | {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    outside = {name: scope[name] for name in {node.id for node in nodes} - local if name in scope}
    for name, value in outside.items():
        if isinstance(value, (float, int)) and not isinstance(value, bool):
            constants[name] = _constant(value, scope["__name__"])
        elif dataclasses.is_dataclass(value) and not dataclasses.fields(value):
            constants[name], parts = repr(fields(value)), {**parts, name: type(value)}
    rewriter = _Parts(parts, taken)
    rewriter.visit(tree)
    tree.returns = None
    tree.decorator_list = []
    for argument in tree.args.args:
        argument.annotation = None
    _drop_docstring(tree)
    bodies = {**outside, **rewriter.methods}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        body = bodies.get(name)
        if name in functions or not inspect.isfunction(body):
            continue
        inner = function_tree(body)
        inner.name = name
        given = zip(inner.args.args, node.args, strict=False)  # some may have defaults
        own = {a.arg: v.id for a, v in given if isinstance(v, ast.Name) and v.id in parts}
        _Renamed(own).visit(inner)
        passed = {part: parts[part] for part in own.values()}
        _collect(inner, passed, body.__globals__, functions, constants, taken)
        functions[name] = inner


class _Parts(ast.NodeTransformer):
    """link.serve(...) becomes link_serve(link, ...), and rows.base becomes rows_base."""

    def __init__(self, parts: dict[str, type], taken: dict[str, str]) -> None:
        self.parts, self.taken = parts, taken
        self.methods: dict[str, Any] = {}

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        target = node.func
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id in self.parts:
            part = target.value.id
            node.func = ast.Name(f"{part}_{target.attr}", ast.Load())
            node.args.insert(0, ast.Name(part, ast.Load()))
            self.methods[node.func.id] = getattr(self.parts[part], target.attr)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self.parts:
            part = node.value.id
            names = _field_names(self.parts[part])
            if node.attr in names:
                name = f"{part}_{node.attr}"
                self.taken[name] = f"{part}[{names.index(node.attr)}]"
                return ast.Name(name, ast.Load())
        return node


class _Renamed(ast.NodeTransformer):
    """What a function calls a part becomes what its caller calls it."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self.names.get(node.arg, node.arg))


def function_tree(function: Callable[..., object]) -> ast.FunctionDef:
    """The syntax tree of a plain function's own text."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"{function!r} is not written as a plain function")
    return tree


def _drop_docstring(tree: ast.FunctionDef) -> None:
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(tree.body) > 1:
        tree.body.pop(0)


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a part (a dataclass) or of a record (a named tuple)."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", ())


def _plain(value: object) -> Any:
    if isinstance(value, (bool, int, float, np.ndarray)):
        return value
    return np.asarray(value, dtype=np.float64)
