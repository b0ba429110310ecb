"""Paths, modules and names in CONTRIBUTING.md, README.md and docs/ exist, and the map is the one that is enforced."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from test_imports import LAYERS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gradeq"
GUIDE = ROOT / "CONTRIBUTING.md"
PAGES = [ROOT / "README.md", GUIDE, *sorted((ROOT / "docs").rglob("*.md"))]
PATH = re.compile(r"(?<![\w/.*-])((?:[\w.-]+/)*\w+\.py)(?::([A-Za-z_][\w.]*))?")
DOTTED = re.compile(r"(?<![\w/.:])(gradeq(?!\.db\b)(?:\.[A-Za-z_]\w*)+)(\(?)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def file_of(path: str) -> Path | None:
    """A path as CONTRIBUTING.md writes it: from the root, or from src/gradeq."""
    found = (folder / path for folder in (ROOT, SOURCE))
    return next((file for file in found if file.is_file()), None)


@cache
def names_in(path: Path) -> frozenset[str]:
    """The names that a file defines at its top level, and those of its classes."""

    def named(body: list[ast.stmt], prefix: str = "") -> set[str]:
        names = set()
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    names |= named(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign):
                names |= {prefix + t.id for t in node.targets if isinstance(t, ast.Name)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(prefix + node.target.id)
        return names

    return frozenset(named(ast.parse(text_of(path)).body))


def wrong_paths(text: str) -> list[str]:
    """Files that do not exist, and names that their file does not define."""
    wrong = []
    for path, name in PATH.findall(text):
        file = file_of(path)
        if file is None:
            wrong.append(path)
        elif name and name not in names_in(file):
            wrong.append(f"{path}:{name}")
    return wrong


def exists(dotted: str, called: bool = False) -> bool:
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        try:
            for part in parts[cut:]:
                value = getattr(value, part)
        except AttributeError:
            return False
        return callable(value) or not called
    return False


def test_each_path_in_the_guide_exists_and_defines_the_names_beside_it() -> None:
    assert not wrong_paths(text_of(GUIDE))
    assert len(PATH.findall(text_of(GUIDE))) > 80


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_module_and_name_of_gradeq_on_a_page_exists(page: Path) -> None:
    text = text_of(page)
    assert not [name for name, call in DOTTED.findall(text) if not exists(name, bool(call))]
    assert not [path for path in re.findall(r"\bsrc/gradeq/[\w/.]*\w", text) if not (ROOT / path).exists()]


def test_the_map_of_the_guide_is_the_order_of_imports() -> None:
    section = text_of(GUIDE).partition("\n## The map\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^ ?(\d+)  (\w+) ", section, re.MULTILINE)
    shown = [{name for level, name in lines if int(level) == k + 1} for k in range(len(LAYERS))]
    assert shown == [set(layer) - {"_version"} for layer in LAYERS]


def test_each_method_in_the_core_screen_exists() -> None:
    screen = text_of(GUIDE).partition("\n## The core in one screen\n")[2].partition("\n## ")[0]
    methods = set(re.findall(r"\b([A-Z]\w+\.[a-z]\w*)\b", screen))
    methods |= {f"Rule.{name}" for name in re.findall(r"\brule\.(\w+)", screen)}
    defined = {name for path in SOURCE.rglob("*.py") for name in names_in(path)}
    assert len(methods) > 10
    assert not methods - defined


@pytest.mark.parametrize("page", [GUIDE, ROOT / "docs" / "glossary.md"], ids=lambda page: page.name)
def test_the_glossaries_explain_the_words_that_everyone_meets(page: Path) -> None:
    table = text_of(page).partition("| word | meaning |")[2].partition("\n\n")[0]
    words = re.findall(r"^\| ([a-z][^|]*?) \|", table, re.MULTILINE)
    everyone = {"layer", "ticket", "posting", "lateness", "certificate", "bound", "maturity"}
    assert everyone <= set(words)


def test_wrong_names_are_found() -> None:
    assert wrong_paths("`links.py:Link` `links.py:Lonk` `lonks.py`") == ["links.py:Lonk", "lonks.py"]
    assert exists("gradeq.theory.best_bound") and not exists("gradeq.theory.worst")
    assert exists("gradeq.theory") and not exists("gradeq.theory", called=True)
