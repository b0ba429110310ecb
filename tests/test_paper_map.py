"""Every statement of the paper has a function and a test that exist, and the map names them."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
BOUNDS = (ROOT / "docs" / "bounds.md").read_text(encoding="utf-8")

LABELS = [  # in the order of the paper, which numbers each kind by itself
    "prop:squared_loss_nr_lrs",
    "prop:gd_simple",
    "prop:gd_sublinear",
    "prop:restorative_zero_curv_1d",
    "prop:restorative_zero_curv",
    "prop:restorative_pos_curv",
    "prop:restorative_quad_curv",
    "cor:quantile_loss_zero_curv",
    "cor:squared_loss_quad_curv",
    "cor:logistic_loss_zero_curv",
    "cor:glm_loss_ortho_features",
    "prop:restricted_strongly_monotone",
    "lem:logistic_grad_inner_prod",
    "prop:logistic_lasso_pos_curv",
    "lem:squared_grad_inner_prod",
    "prop:squared_ridge_quad_curv",
    "prop:gd_simple_lrt",
    "prop:gd_sublinear_lrt",
    "prop:restorative_lrt",
    "alg:simple-debias-squared",
    "alg:simple-debias-logistic",
    "alg:multigroup-debias-squared",
    "alg:multigroup-debias-logistic",
    "alg:quantile-ensembling",
    "prop:pmd_simple",
    "prop:pmd_sublinear",
    "prop:finite_mirror",
    "prop:restorative_proj",
    "prop:geq_implies_nmr",
    "prop:nmr_implies_geq",
]
KINDS = {"prop": "Proposition", "cor": "Corollary", "lem": "Lemma", "alg": "Algorithm"}
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and "tests/" in line]
NAMES = sorted(set(re.findall(r"`(gradeq(?:\.\w+)+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", PAGE)))


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def printed(label: str) -> str:
    """How the paper prints a label: its kind, and its place among the labels of that kind."""
    kind = label.partition(":")[0]
    same = [other for other in LABELS if other.startswith(f"{kind}:")]
    return f"{KINDS[kind]} {same.index(label) + 1}"


def resolve(name: str) -> object:
    """The object of a dotted path: the longest importable module, then its attribute."""
    parts = name.split(".")
    return getattr(import_module(".".join(parts[:-1])), parts[-1])


@pytest.mark.parametrize("label", LABELS)
def test_each_statement_of_the_paper_has_a_row_with_its_printed_number_code_and_test(label: str) -> None:
    rows = [row for row in ROWS if row.startswith(f"| `{label}` |")]
    assert len(rows) == 1
    assert rows[0].startswith(f"| `{label}` | {printed(label)} |")
    assert "`gradeq." in rows[0] and "`tests/" in rows[0]


def test_the_printed_numbers_are_those_that_the_paper_refers_to() -> None:
    assert printed("prop:gd_simple") == "Proposition 2"
    assert printed("prop:pmd_simple") == "Proposition 14"
    assert printed("cor:squared_loss_quad_curv") == "Corollary 2"
    assert printed("alg:quantile-ensembling") == "Algorithm 5"
    assert printed("prop:nmr_implies_geq") == "Proposition 19"


@pytest.mark.parametrize(("place", "rows"), [*((f"Definition {k}", 1) for k in (1, 2, 3)), ("Table 1", 4)])
def test_definitions_and_the_table_have_rows_with_code_and_test(place: str, rows: int) -> None:
    found = [row for row in ROWS if re.match(rf"\| {place}[ ,]", row)]
    assert len(found) == rows
    assert all("`gradeq." in row for row in found)


def test_no_row_has_a_label_that_the_paper_lacks() -> None:
    assert set(re.findall(r"`((?:prop|cor|lem|alg):[\w-]+)`", PAGE)) == set(LABELS)


@pytest.mark.parametrize("name", NAMES)
def test_each_function_of_the_map_exists(name: str) -> None:
    assert resolve(name) is not None


@pytest.mark.parametrize("test", TESTS)
def test_each_test_of_the_map_exists(test: str) -> None:
    path, name = test.split("::")
    assert name in functions_in(path)


def test_each_name_in_the_catalogue_of_bounds_exists() -> None:
    theory = import_module("gradeq.theory")
    wanted = re.findall(r"`([a-z]\w*\*?\w*)`", BOUNDS)
    for name in wanted:
        if "*" in name:
            pattern = re.compile(name.replace("*", r"\w+") + "$")
            assert any(pattern.match(known) for known in theory.__all__), name
        else:
            assert name in theory.__all__, name
    assert len(wanted) > 80


def test_each_result_of_a_bound_is_in_the_catalogue() -> None:
    theory = ROOT / "src" / "gradeq" / "theory"
    names = ("layers", "candidate")
    sources = [theory / f"{name}.py" for name in names]
    labels = {
        label
        for source in sources
        for label in re.findall(r'"((?:\d\.\d|[A-D]\d[ab]?)(?: with \d\.\d)?)"', source.read_text())
    }
    assert {"3.1", "A1", "C1", "6.2"} <= labels
    for label in labels:
        for part in label.split(" with "):
            assert re.search(rf"\| (?:[\w, ]+, )?{re.escape(part)}\b", BOUNDS), part
