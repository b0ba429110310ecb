"""Every equation that a page prints is true as printed, and agrees with the table it points to."""

import ast
import html
import operator
import re
from pathlib import Path

import pytest

from cli.calling import games, here, ok, prices, scores, write
from gradeq.report.numerals import PLAIN_DIGITS

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv}  # fmt: skip
NUMBER = r"−?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
EQUATION = re.compile(rf"([\d(−][\d(),.+−×/ e-]*) = ({NUMBER})")
POWER = re.compile(r"×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def text_of(page: str) -> str:
    """What a reader sees: formulas in letters, the script and its data left out."""
    page = re.sub(r"<(math|script|style|head)\b.*?</\1>", " ", page, flags=re.DOTALL)
    page = with_exponents(html.unescape(re.sub(r"<[^>]+>", " ", page)))
    return re.sub(r"\s+", " ", page.replace("\u00a0", " "))


def with_exponents(text: str) -> str:
    return POWER.sub(lambda own: "e" + own[1].translate(PLAIN_DIGITS), text)


def value_of(printed: str) -> float:
    """The value of arithmetic in print, worked out from its digits alone."""
    source = printed.replace(",", "").replace("−", "-").replace("×", "*").strip()

    def walk(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.UnaryOp):
            return -walk(node.operand)
        assert isinstance(node, ast.Constant), ast.dump(node)
        return float(node.value)

    return walk(ast.parse(source, mode="eval").body)


def unit_of(printed: str) -> float:
    """One unit of the last digit in print."""
    digits, _, power = printed.partition("e")
    return float(10.0 ** (int(power or 0) - len(digits.partition(".")[2])))


def equations(page: str) -> list[tuple[str, str]]:
    return [(left.strip(), right) for left, right in EQUATION.findall(text_of(page))
            if re.search(r"[+×/]|− ", left)]  # fmt: skip


def check_equations(page: str, least: int = 1) -> None:
    found = equations(page)
    assert len(found) >= least, found
    for left, right in found:
        # Worked out by hand and rounded as printed, the left side is the right side.
        assert abs(value_of(left) - value_of(right)) <= 0.5001 * unit_of(right), (left, right)


def check_the_table(page: str) -> None:
    """Where a worked line points to a table or figure, that one shows the same number."""
    text = text_of(page)
    said = re.search(rf" = ({NUMBER}), the bias (in the table|above)", text)
    assert said is not None
    value, where = said.groups()
    name = text[text.index("Here for ") + 9 :].partition(" :")[0]
    if where == "above":
        shown = re.search(r'class="figure[^"]*">.*?Bias, all labels.*?class="after">([^<]*)<', page)
    else:
        shown = re.search(rf'<bdi class="name">{re.escape(name)}</bdi>.*?data-head="After">([^<]*)<', page)
    assert shown is not None, name
    printed = with_exponents(shown.group(1)).replace("+", "").replace("\u00a0", " ").split()[0]
    room = 0.5001 * (unit_of(printed) + unit_of(value))
    assert abs(value_of(printed) - value_of(value)) <= room, (printed, value)


S = ("--prediction", "score", "--label", "outcome")
B = (*S, "--outcome", "binary")
SAME = {
    "one": (*S, "--eta", "0.05"),
    "groups": (*S, "--by", "sex", "--eta", "0.1"),
    "overlapping": (*S, "--by", "sex", "--by", "region", "--eta", "plain"),
    "auto": S,
    "auto groups": (*B, "--by", "sex"),
    "binary": (*B, "--by", "region", "--eta", "plain"),
    "shift": (*B, "--link", "shift", "--eta", "0.2"),
    "decay": (*S, "--eta", "0.5", "--decay", "0.5"),
    "ridge": (*S, "--by", "sex", "--eta", "0.1", "--penalty", "ridge", "--strength", "0.01"),
    "keyed": (*S, "--key", "shop"),
    "tiny step": (*S, "--by", "sex", "--eta", "0.0000001"),
}
OTHER = {
    "features": (*S, "--feature", "x", "--eta", "0.05"),
    "exp": (*S, "--link", "exp", "--by", "sex"),
    "late": (*S, "--by", "sex", "--time", "day", "--label-time", "known"),
    "late plain": (*S, "--eta", "0.1", "--delay", "20"),
    "weights": (*S, "--by", "sex", "--weight", "weight", "--eta", "0.1"),
}
QUANTILES = {
    "one level": ("--prediction", "forecast", "--level", "0.9"),
    "plain, groups": ("--prediction", "forecast", "--level", "0.9", "--eta", "plain", "--by", "weekday"),
    "interval": ("--prediction", "low", "--prediction", "high", "--interval", "0.8"),
    "interval, groups": ("--prediction", "forecast", "--interval", "0.8", "--eta", "0.1", "--by", "weekday"),
    "levels": ("--prediction", "forecast", "--level", "0.1", "--level", "0.5", "--eta", "plain"),
    "ensemble": ("--prediction", "forecast", "--level", "0.9", "--ensemble", "0.1,1",
                 "--ensemble-eta", "0.5"),
    "ensemble, final": ("--prediction", "forecast", "--level", "0.9", "--ensemble", "0.1,1",
                        "--ensemble-eta", "0.5", "--eta", "0.05"),
}  # fmt: skip
ELO = {
    "auto": (),
    "k": ("--k", "17.4"),
    "eta": ("--eta", "0.0001"),
    "late": ("--delay", "30"),
    "dated": ("--time", "day"),
}


def page(folder: Path, command: str, rows: list, *options: str) -> str:
    file, out = write(folder / "rows.csv", rows), folder / "page.html"
    ok(here(command, file, *options, "--report", out, "--quiet"))
    return out.read_text(encoding="utf-8")


@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("kind", SAME)
def test_debias_equations_hold_and_agree_with_the_table(kind, rows, tmp_path):
    made = page(tmp_path, "debias", scores(rows), *SAME[kind])
    check_equations(made)
    check_the_table(made)


@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("kind", OTHER)
def test_equations_about_other_rows_or_another_average_hold_and_say_so(kind, rows, tmp_path):
    made = page(tmp_path, "debias", scores(rows), *OTHER[kind])
    check_equations(made)
    assert not re.search(r"the bias (in the table|above)", text_of(made))


@pytest.mark.parametrize("rows", [8, 700])
@pytest.mark.parametrize("kind", QUANTILES)
def test_quantile_equations_hold(kind, rows, tmp_path):
    made = page(tmp_path, "quantile", prices(rows), "--label", "price", *QUANTILES[kind])
    check_equations(made, 3 if "interval" in kind else 1)
    for value, covered, level in re.findall(
        rf" = ({NUMBER}), coverage minus level: ({NUMBER}) % covered.*?, level ({NUMBER}) %", text_of(made)
    ):
        off = value_of(covered) - value_of(level)
        assert abs(off - 100 * value_of(value)) <= 0.5001 * (0.01 + 100 * unit_of(value))


@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("kind", ELO)
def test_elo_equations_hold(kind, rows, tmp_path):
    sides = ("--a", "home", "--b", "away", "--winner", "winner")
    made = page(tmp_path, "elo", games(rows), *sides, *ELO[kind])
    plain = {"--k", "--eta"} & set(ELO[kind])
    assert ("400 / ln 10" in text_of(made)) == bool(plain)  # K is of plain Elo only
    check_equations(made, 2 if plain else 1)
    left = re.search(r"Fit residual (?:0|(\d) × 10⁻(\S+)) games", text_of(made))
    assert left is not None and "alanced" not in text_of(made)
    power = (left.group(2) or "").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    assert not power or int(power) >= 8  # the solver stops below 1e-10 games for each game of a player


def test_a_continued_state_says_that_the_identity_is_since_it_began(tmp_path):
    options = (*SAME["groups"], "--state", str(tmp_path / "state.json"))
    page(tmp_path, "debias", scores(300), *options)
    made = page(tmp_path, "debias", scores(60, seed=2), *options)
    check_equations(made)
    assert "learned from since the state began" in text_of(made)
    assert "the bias in the table" not in text_of(made)
