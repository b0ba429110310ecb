"""What no file of the repository may contain, and how long a file may be."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 600

FORBIDDEN = {
    "an absolute path of one machine": re.compile(r"(?<![\w.~$}-])/(?:work|root|home)/"),
    "the address of a package index": re.compile(
        r"--(?:extra-)?index-url|\bindex[-_]url\s*=|pypi\.org/simple|pythonhosted\.org"
    ),
    "pickle": re.compile(
        r"\b(?:c?pickle|cloudpickle|dill|marshal|joblib)\.loads?\(|\bimport c?pickle\b"
        r"|\bfrom c?pickle import|allow_pickle=True"
    ),
}
# The batch loops are assembled from the package's own formulas, never from input.
MAY_EXECUTE = re.compile(r"src/gradeq/kernels/compil\w*\.py")


def _tracked() -> list[Path]:
    """The files under version control, or none outside a checkout."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return []
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return sorted(path for path in paths if path.is_file() and path != Path(__file__))


TRACKED = _tracked()
PYTHON = [path for path in TRACKED if path.suffix == ".py"]


def _where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def forbidden_in(text: str) -> list[str]:
    """Names what is forbidden in the text, with the line."""
    return [
        f"line {number}: {what}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]


def executed_text_in(source: str) -> list[int]:
    """The lines that call the builtins eval or exec."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}
    ]


@pytest.mark.skipif(not TRACKED, reason="not a git checkout")
def test_no_file_holds_machine_paths_index_addresses_or_pickle() -> None:
    found = []
    for path in TRACKED:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{_where(path)}: {what}" for what in forbidden_in(text)]
    assert not found, "\n".join(found)


@pytest.mark.skipif(not TRACKED, reason="not a git checkout")
def test_text_is_executed_only_where_the_loops_are_compiled() -> None:
    found = [
        f"{_where(path)}:{line}"
        for path in PYTHON
        if not MAY_EXECUTE.fullmatch(_where(path))
        for line in executed_text_in(path.read_text(encoding="utf-8"))
    ]
    assert not found


@pytest.mark.skipif(not TRACKED, reason="not a git checkout")
def test_every_python_file_is_short_enough_to_read() -> None:
    lengths = {_where(path): len(path.read_text("utf-8").splitlines()) for path in PYTHON}
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


@pytest.mark.parametrize(
    "text",
    [
        "open('/root/data.csv')",
        "see /work/x",
        "pip install --index-url x",
        "pickle.loads(b)",
        "np.load(f, allow_pickle=True)",
    ],
)
def test_a_forbidden_line_is_found(text: str) -> None:
    assert forbidden_in(text)


def test_harmless_lines_pass() -> None:
    assert not forbidden_in("never pickle; see docs/work/x and model.eval()")
    assert executed_text_in("eval('1')") == [1]
    assert executed_text_in("model.eval()") == []
