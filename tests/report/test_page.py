"""The page: one small file, one script and one style allowed by hash, every name only text."""

import base64
import dataclasses
import hashlib
import html as entities
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from gradeq import Debiaser
from gradeq.report.charts import axis_scale, date_ticks, x_ticks
from gradeq.report.components import clean, el, join, prose
from gradeq.report.page import LARGEST, html
from gradeq.report.story import BeforeAfter, Certificate, LevelRow, Story, Verdict, as_json
from report import samples
from report.inventions import interval, made_up
from report.samples import HOSTILE, arena, compas
from report.test_sentences import elo, player

STORIES = {
    "debias": lambda: made_up(3000, 8),
    "hostile": lambda: made_up(3000, 40, HOSTILE),
    "quantile": lambda: interval(5000),
}


@pytest.fixture(scope="module", params=STORIES, ids=list(STORIES))
def page(request):
    return html(STORIES[request.param]())


class Parsed(HTMLParser):
    """Tags with attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.raw, self.texts, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = (tag, dict(attrs)) if tag in {"script", "style"} else None

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        (self.raw if self._inside else self.texts).append((self._inside, data))


def contents(page, tag, type_=None):
    whole = {}
    for inside, data in Parsed(page).raw:
        if inside[0] == tag and inside[1].get("type") == type_:
            whole[tag] = whole.get(tag, "") + data
    return whole[tag]


def test_the_policy_allows_exactly_this_script_and_this_style(page):
    policy = re.search(r'Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(contents(page, tag).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.count("sha256-") == 2
    assert "unsafe" not in policy


def test_there_is_one_script_one_data_block_and_one_style(page):
    tags = Parsed(page).tags
    scripts = [attrs for tag, attrs in tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert sum(tag == "style" for tag, _ in tags) == 1


def test_no_element_has_a_style_a_handler_or_an_address(page):
    for tag, attrs in Parsed(page).tags:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form", "a"}
        bad = [name for name in attrs if name in {"style", "src", "href"} or name.startswith("on")]
        assert not bad, (tag, attrs)
    assert "http://" not in page
    assert "https://" not in page


def test_a_hostile_name_is_only_text():
    page = html(made_up(3000, 40, HOSTILE))
    parsed = Parsed(page)
    assert not [tag for tag, _ in parsed.tags if tag == "img"]
    assert any(HOSTILE in data for _, data in parsed.texts)
    data = json.loads(contents(page, "script", "application/json"))
    names = [line["name"] for chart in data["charts"] for line in chart["lines"]]
    assert f"{HOSTILE} 0"[:39] + "…" in names or f"{HOSTILE} 0" in names


def test_the_data_block_has_no_character_that_could_end_it(page):
    block = contents(page, "script", "application/json")
    assert not set("<>&") & set(block)
    json.loads(block)


def test_every_series_has_at_most_420_points(page):
    data = json.loads(contents(page, "script", "application/json"))
    assert data["charts"]
    for chart in data["charts"]:
        points = len(data["x"][chart["x"]])
        assert 2 <= points <= 420
        assert all(len(line["v"]) == points for line in chart["lines"])


@pytest.mark.parametrize(("rows", "groups", "name"), [(10**6, 50, ""), (60_000, 6_000, "&<é" * 40)])
def test_a_page_stays_below_300_kb_whatever_comes_in(rows, groups, name):
    assert len(html(made_up(rows, groups, name)).encode()) < LARGEST


def test_a_page_of_many_players_stays_below_300_kb():
    rows = tuple(samples.player(i + 1, "&" * 500, 1000.0 - i, 99, 0.5, 0.0, 1) for i in range(5000))
    assert len(html(elo_of(rows)).encode()) < LARGEST


def elo_of(rows):
    from report.test_sentences import elo

    return elo(rows)


def test_a_bias_is_never_shown_without_its_loss():
    story = made_up(3000, 8)
    page = html(story)
    assert "Squared error" in page
    rows = re.findall(r"<tr><th scope=.row.><bdi.*?</tr>", page)
    assert len(rows) == 8
    assert all('class="now"' in row and 'class="was"' in row and "→" in row for row in rows)


def test_the_command_and_the_audit_can_be_copied():
    page = html(made_up(3000))
    assert 'id="command">gradeq debias flights.csv' in page
    assert "gradeq audit state.json" in page


@pytest.mark.parametrize("made", [made_up, interval])
def test_a_bound_is_said_to_rest_on_the_range_and_the_delays_that_were_seen(made):
    """The same rows ten times as large have a bound ten times as large, so none is known before the run."""
    bounds = []
    for unit in (1.0, 10.0):
        layer = Debiaser(eta=0.1)
        layer.run([0.0] * 50, [unit, -unit] * 25)
        bounds.append(layer.equilibrium().bound)
    assert bounds[1] == pytest.approx(10.0 * bounds[0])
    page = html(made(3000))
    assert "any data in the range seen, with labels as late as these," in page
    assert "known before the run" not in page


def test_a_vacuous_bound_is_a_word_and_a_loose_one_has_an_asterisk():
    story = made_up(3000, 4)
    first, second, *rest = story.groups
    groups = (dataclasses.replace(first, bound=99.0, vacuous=True), dataclasses.replace(second, bound=98.0), *rest)
    page = html(dataclasses.replace(story, groups=groups))
    assert page.count(">no guarantee<") == 1
    assert "98.00<span" in page
    assert "99.00" not in page


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        (Certificate(0.01, 0.09, 2e-17), ["exact", "≤", "2\u00a0×\u00a010⁻¹⁷"]),
        (Certificate(0.01, 0.09, 0.0, exact=False), ["exact", "the move of θ agree exactly"]),
        (Certificate(0.01, 0.09, 0.3), ["broken", "differ"]),
        (Certificate(0.10, 0.09, 0.0), ["exceeded", "&gt;"]),
        (Certificate(0.01, 1.5, 0.0, vacuous=True), ["no guarantee"]),
        (Certificate(0.01, None, 0.0), ["exact"]),
    ],
)
def test_the_certificate_says_how_it_was_checked(certificate, said):
    story = made_up(3000)
    verdict = dataclasses.replace(story.verdict, certificate=certificate)
    page = html(dataclasses.replace(story, verdict=verdict))
    start = page.index('>Certificate<span class="tag') if certificate else 0
    figure = page[start : start + 700]
    assert all(word in figure for word in said), figure


def test_a_bare_story_without_optional_parts_still_gives_a_page():
    story = made_up(300)
    bare = Story(
        kind="debias", made=story.made, prediction=("f",), label="y", by=(), outcome="real",
        rows=12, labelled=12, verdict=Verdict(story.verdict.loss, Certificate(0.1, None, 0.0),
                                              BeforeAfter(0.1, 0.1)),
        method=dataclasses.replace(story.method, worked=()),
    )  # fmt: skip
    page = html(bare)
    assert "Too few labels to judge (12)." in page
    assert "Over time" not in page


def test_several_levels_get_a_table_with_coverage_and_loss():
    story = dataclasses.replace(
        interval(3000), levels=(LevelRow("0.5", 0.5, BeforeAfter(0.4, 0.51), BeforeAfter(1.2, 1.1), 0.03),)
    )
    page = html(story)
    assert "<h2>Levels</h2>" in page
    assert "51.0\u00a0%" in page


def test_numbers_that_are_not_finite_do_not_break_a_page():
    story = made_up(300, 3)
    groups = tuple(dataclasses.replace(g, bound=float("inf"), label_mean=float("nan")) for g in story.groups)
    assert "NaN" not in contents(html(dataclasses.replace(story, groups=groups)), "script", "application/json")
    assert "null" in as_json(dataclasses.replace(story, groups=groups))
    json.loads(as_json(story))


def test_real_stories_say_the_known_numbers(data_dir):
    page = entities.unescape(re.sub(r"<[^>]+>", "", html(compas(data_dir))))
    assert "Bias removed. On average the score was 0.113 too low" in page
    assert "Squared error fell from 0.251 to 0.209." in page
    assert "All 5 groups end within 0.023 of zero. Three things below qualify this result." in page
    assert "(0 − 0.7438) / (0.025 × 1,322) = −0.0225" in page
    board = entities.unescape(re.sub(r"<[^>]+>", "", html(arena(data_dir))))
    assert " leads." in board and re.search(r"at most 5.\d+.points \(exact\)", board)
    assert "Log loss of the forecasts is 0.670; a coin flip has 0.693." in board


@pytest.mark.parametrize(
    "text", ['<b onclick="x">', "a & b", "</script>", "\x00\x1b[31m", "\udc80", "\u202eabc", "x" * 999]
)
def test_any_text_in_any_place_is_escaped(text):
    made = el("td", clean(text), prose(text), title=text[:10])
    again = Parsed(str(made))
    assert [tag for tag, _ in again.tags] == ["td"]
    assert join(made).encode()
    assert len(clean(text)) <= 60


@pytest.mark.parametrize("days", [0.01, 0.3, 1, 9, 60, 365, 730, 4000, 40_000])
def test_dates_get_few_round_ticks_inside_the_axis(days):
    low = 1_356_998_400.0
    ticks = date_ticks(low, low + days * 86400)
    assert 1 <= len(ticks) <= 8
    assert all(low <= at <= low + days * 86400 for at, _ in ticks)
    assert len({label for _, label in ticks}) >= min(len(ticks), 2)


@pytest.mark.parametrize("seed", range(20))
def test_an_axis_holds_its_values_and_has_two_to_seven_ticks(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, 10) * 10.0 ** rng.integers(-6, 7)
    made = axis_scale(values.tolist())
    assert made.low <= values.min() <= values.max() <= made.high
    assert 2 <= len(made.ticks) <= 7
    assert len({label for _, label in made.ticks}) == len(made.ticks)


def test_row_ticks_are_whole_numbers():
    assert all("." not in label for _, label in x_ticks("row", 1.0, 17.0))


@pytest.mark.parametrize("players", [2, 4, 9])
def test_on_a_short_board_every_bias_fits_its_axis(players):
    rows = [player(f"p{k}", 1 + k, 0.002 * k + 0.03 * (k == 1)) for k in range(players)]
    page = html(elo(rows))
    cells = re.findall(r'<td class="biasbar">.*?</td>', page, re.S)
    assert len(cells) == players
    assert not [cell for cell in cells if "<path" in cell]  # an arrow head: the bar goes on
