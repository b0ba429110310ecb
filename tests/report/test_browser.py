"""The pages in a real Chromium: quiet, alone, readable narrow, deaf to hostile names."""

import dataclasses
import json
import re
import shutil

import pytest

from gradeq.report.page import html
from gradeq.report.story import BeforeAfter, Bin, Curves, LevelRow, NamedCurve, StepPoint, ThetaPanel
from report.inventions import interval, made_up
from report.samples import HOSTILE
from report.test_sentences import elo, player

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright to open the pages in Chromium")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine's path")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


# Two frames: the size observer redraws in the first, the second comes after it.
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def leaderboard():
    rows = [player(f"{HOSTILE} {i}", 1 + i // 3, 0.001 * i) for i in range(40)]
    line = tuple(1000.0 + 3 * i for i in range(50))
    return dataclasses.replace(
        elo(rows),
        curves=Curves("row", "game", tuple(float(i + 1) for i in range(50)),
                      tuple(NamedCurve(f"{HOSTILE} {i}", line[:: 1 if i % 2 else -1])
                            for i in range(5))),
        bins=tuple(Bin(0.1 * i, 0.1 * i + 0.01, 100 * i, 0.1 * i - 0.02, 0.1 * i + 0.04)
                   for i in range(2, 9)),
        frontier=tuple(StepPoint(k, 0.67 + k / 1000, 0.1 / k, k == 4) for k in (1, 2, 4, 8)),
    )  # fmt: skip


def levels():
    story = interval(5000)
    row = LevelRow("0.1", 0.1, BeforeAfter(0.165, 0.1), BeforeAfter(13921.25, 12182.75), 0.0561)
    several = tuple(dataclasses.replace(row, name=f"0.{k}", target=k / 10) for k in range(1, 10))
    return dataclasses.replace(story, levels=several)


PAGES = {
    "hostile": lambda: html(made_up(3000, 40, HOSTILE)),
    "interval": lambda: html(interval(5000)),
    "levels": lambda: html(levels()),
    "elo": lambda: html(leaderboard()),
}
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "middle": (900, "light"),
         "narrow": (390, "light")}  # fmt: skip


# Where something is drawn left of the lines of a chart, and whether it runs over the edge of its canvas.
NUMBERS = """id => {
  const c = document.querySelector(`#${id} canvas`), lines = document.querySelector(`#${id} .u-over`);
  const wide = Math.round((lines.offsetLeft - 4) * devicePixelRatio), high = c.height;
  const data = c.getContext('2d').getImageData(0, 0, wide, high).data;
  const inked = x => Array.from({length: high}, (_, y) => data[4 * (y * wide + x) + 3]).some(v => v);
  const rows = Array.from({length: high}, (_, y) => data.slice(4 * y * wide, 4 * (y + 1) * wide).some(v => v));
  return {marks: rows.filter((own, y) => own && !rows[y - 1]).length, cut: inked(0)};
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pages")
    for name, build in PAGES.items():
        (made / f"{name}.html").write_text(build(), encoding="utf-8")
    return made


def opened(browser, folder, name, look):
    width, theme = LOOKS[look]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    seen = {"console": [], "errors": [], "requests": [], "dialogs": []}
    page.on("console", lambda message: seen["console"].append(message.text))
    page.on("pageerror", lambda error: seen["errors"].append(str(error)))
    page.on("dialog", lambda dialog: (seen["dialogs"].append(dialog.message), dialog.dismiss()))
    address = (folder / f"{name}.html").as_uri()

    def judge(route):
        if route.request.url == address:
            route.continue_()
        else:
            seen["requests"].append(route.request.url)
            route.abort()

    context.route("**/*", judge)
    page.goto(address)
    page.wait_for_selector(".plot canvas")
    page.evaluate(SETTLED)
    return page, seen


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_alone_and_fits_its_window(browser, folder, name, look):
    page, seen = opened(browser, folder, name, look)
    assert seen == {"console": [], "errors": [], "requests": [], "dialogs": []}
    assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look][0]
    assert page.locator("img").count() == 0
    if name not in ("interval", "levels"):
        assert HOSTILE in page.inner_text("main")
    blank = page.evaluate(
        """() => [...document.querySelectorAll('canvas')].filter(c => !c.getContext('2d')
             .getImageData(0, 0, c.width, c.height).data.some(v => v)).length"""
    )
    assert blank == 0
    page.context.close()


def scaled(values, factor):
    return tuple(None if v is None else factor * v for v in values)


def of_size(factor, kind=made_up):
    """A story whose charts are so many times as large."""
    story = kind(3000)
    rolling = story.rolling
    (error,) = rolling.tracked
    parts = {name: scaled(getattr(rolling, name), factor) for name in ("before", "after", "labels")}
    error = dataclasses.replace(error, before=scaled(error.before, factor), after=scaled(error.after, factor))
    panels = tuple(
        dataclasses.replace(
            panel, lines=tuple(NamedCurve(own.name, scaled(own.values, factor)) for own in panel.lines)
        )
        for panel in story.theta
    )
    steps = ThetaPanel("", "row", (1.0, 1500.0, 3000.0), (NamedCurve("step", scaled((3.0, 2.0, 1.0), factor)),))
    return dataclasses.replace(
        story, rolling=dataclasses.replace(rolling, **parts, tracked=(error,)), theta=panels, steps=steps,
    )  # fmt: skip


@pytest.mark.parametrize("power", [-9, -6, -3, -2, -1, 0, 1, 3, 6, 12, 15, 30, 32, 200])
def test_every_chart_has_whole_numbers_beside_it_whatever_its_range(browser, tmp_path, power):
    """Each mark of the y axis that Python chose is drawn, none runs over the edge of the chart."""
    text = html(of_size(10.0**power))
    (tmp_path / "sized.html").write_text(text, encoding="utf-8")
    page, _ = opened(browser, tmp_path, "sized", "light")
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])
    for chart in data["charts"]:
        found = page.evaluate(NUMBERS, chart["id"])
        assert found == {"marks": len(chart["yticks"]), "cut": False}, (chart["id"], chart["yticks"])
        assert len(chart["yticks"]) >= 2
    page.context.close()


def test_coverage_and_probabilities_have_numbers_beside_them(browser, folder):
    page, _ = opened(browser, folder, "interval", "light")
    assert page.evaluate(NUMBERS, "error")["marks"] >= 3
    page.context.close()


def test_dark_and_light_differ_and_the_button_changes_them(browser, folder):
    page, _ = opened(browser, folder, "hostile", "dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(18, 21, 25)"
    page.click("#theme")
    assert page.evaluate(colour) == "rgb(251, 251, 249)"
    page.context.close()


@pytest.mark.parametrize(("name", "chart"), [("hostile", "#mean"), ("elo", "#curves"), ("elo", ".chart.still")])
def test_arrow_keys_move_a_read_out_that_is_announced(browser, folder, name, chart):
    page, _ = opened(browser, folder, name, "light")
    holder = page.locator(chart).first
    holder.focus()
    page.keyboard.press("End")
    last = holder.locator(".read").inner_text()
    page.keyboard.press("ArrowLeft")
    before = holder.locator(".read").inner_text()
    assert holder.locator(".read").get_attribute("aria-live") == "polite"
    assert re.search(r"\d", last)
    assert before != last
    page.context.close()


def test_charts_on_one_axis_move_their_read_outs_together(browser, folder):
    page, _ = opened(browser, folder, "hostile", "light")
    page.locator("#mean").focus()
    page.keyboard.press("End")
    assert page.locator("#error .read").inner_text().startswith("row 3,000: ")
    page.context.close()


def test_tables_behind_charts_open_with_their_numbers(browser, folder):
    page, _ = opened(browser, folder, "hostile", "light")
    page.click("text=Show these numbers as a table")
    table = page.locator("details[open] table")
    table.wait_for()
    assert table.locator("tbody tr").count() > 100
    assert table.locator("th[scope=col]").count() == 6
    page.context.close()


def test_the_rest_of_a_long_table_opens(browser, folder):
    page, _ = opened(browser, folder, "elo", "light")
    rows = page.locator("#board tbody tr:visible")
    assert rows.count() == 20
    page.click("#all")
    assert rows.count() == 40
    assert page.locator("#all").get_attribute("aria-expanded") == "true"
    page.context.close()


def test_a_dark_page_prints_in_the_light_theme_without_buttons(browser, folder):
    page, _ = opened(browser, folder, "hostile", "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink')") in (
        "#191c20",
        " #191c20",
    )
    assert page.locator("button:visible").count() == 0
    page.context.close()


def test_an_ordinary_report_prints_on_three_pages(browser, tmp_path):
    (tmp_path / "ordinary.html").write_text(html(made_up(3000, 5)), encoding="utf-8")
    page, _ = opened(browser, tmp_path, "ordinary", "light")
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 3
    page.context.close()


def test_without_script_the_words_and_tables_are_there(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "elo.html").as_uri())
    assert page.locator("#board tbody tr:visible").count() == 40
    assert "Log loss" in page.inner_text("main")
    context.close()


def test_a_narrow_leaderboard_keeps_intervals_rank_ranges_and_whole_names(browser, tmp_path):
    names = [f"a-model-with-a-long-name-2025-{i:02d}-of-{kind}" for i in range(9) for kind in "xy"]
    rows = [player(name, 1 + i, 0.001 * i) for i, name in enumerate(names)]
    (tmp_path / "names.html").write_text(html(elo(rows)), encoding="utf-8")
    page = browser.new_page(viewport={"width": LOOKS["narrow"][0], "height": 900})
    page.goto((tmp_path / "names.html").as_uri())
    for part in (".pm", ".rank small", ".name"):
        boxes = page.locator(f"#board tbody {part}")
        assert boxes.count() == len(rows)
        for box in boxes.all():
            assert box.is_visible()
            assert box.evaluate("e => e.scrollWidth <= e.clientWidth || !e.clientWidth")
    page.close()
