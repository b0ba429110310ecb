"""Fuse a loop with its parts and compile it, from the one text of each.

A loop is a plain function whose first arguments are parts (a link, a loss, ...), which it calls as
``link.serve(f, m)``, and records (named tuples of arrays), which it reads as ``rows.base``; a function it calls may
take parts and records too, and name a part of its module that has no fields. Interpreted, it runs as it stands. For
long inputs the same text is rewritten into one module of plain functions: ``link.serve(f, m)`` becomes
``link_serve(link, f, m)``, parts and records travel as the tuples of their fields, and ``rows.base`` becomes
``rows_base``, taken from its tuple once, before the loop. The module is stored under the hash of its own text, so an
edited formula never meets a stale cache, and numba caches the machine code beside it.

Arithmetic is strict (no fastmath, no fused multiply-add): compiled and interpreted agree to the last bit.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.util
import inspect
import os
import sys
import textwrap
import types
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from gradeq._version import __version__
from gradeq.kernels.inline import inlined

TITLE = "gradeq_kernel_"  # how the names of cached modules begin
OWN = __name__.rpartition(".")[0]  # the package of our own loops
Key = tuple[Any, ...]  # a loop and the types of its parts

_ready: dict[Key, Callable[..., Any]] = {}
_texts: dict[Key, str | None] = {}


def key_of(loop: Callable[..., Any], parts: tuple[object, ...]) -> Key:
    """What is compiled once: a loop with parts of these types."""
    return (loop, *(type(part) for part in parts))


def in_memory(key: Key | None = None) -> bool:
    """Whether this loop (None: any) is compiled and loaded."""
    return bool(_ready) if key is None else key in _ready


def compiled(loop: Callable[..., Any], parts: tuple[object, ...]) -> Callable[..., Any] | None:
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


def text_of(loop: Callable[..., Any], parts: tuple[object, ...]) -> str | None:
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


def fused_source(loop: Callable[..., Any], parts: tuple[object, ...]) -> str:
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
        lines += [
            "@numba.njit(forceinline=True, error_model='numpy')",
            ast.unparse(functions[name]),
            "",
        ]
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
    return module.loop  # type: ignore[no-any-return]


def _title(text: str, name: str) -> str:
    """The name of the module: a change of text, package, numba or Python gives another."""
    try:
        compiler = version("numba")
    except PackageNotFoundError:  # bundled without its papers; numba looks at its version itself
        compiler = ""
    stamp = f"{__version__}|{compiler}|{sys.version}|{text}"
    return f"{TITLE}{name}_{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"


def _load_file(path: Path, text: str, title: str) -> Callable[..., Any]:
    body = text.replace("CACHE", "True")
    if not path.exists() or path.read_text() != body:
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(body)
        partial.replace(path)
        os.utime(
            path, (0, 0)
        )  # numba keys its cache on the time stamp; the name already holds the hash
    spec = importlib.util.spec_from_file_location(title, path)
    if spec is None or spec.loader is None:
        raise OSError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    spec.loader.exec_module(module)
    return module.loop  # type: ignore[no-any-return]


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
    local = {a.arg for a in tree.args.args} | {
        node.id for node in nodes if isinstance(node.ctx, ast.Store)
    }
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
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id in self.parts
        ):
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


def function_tree(function: Callable[..., Any]) -> ast.FunctionDef:
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


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, np.ndarray)):
        return value
    return np.asarray(value, dtype=np.float64)
