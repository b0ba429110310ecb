"""The dashboard against a server in the test's own process: signing in, buttons, hostile names, narrow windows."""

import json
import re
import sqlite3
import time
from contextlib import ExitStack, closing

import httpx
import numpy as np
import pytest

from gradeq.service.auth import read_keys, revoke_key
from gradeq.service.dashboard.live_updates import Broadcast
from gradeq.service.dashboard.pages import markup_tree
from report.samples import HOSTILE
from service.chromium import CHROMIUM, FLAGS, Look
from service.running import running

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright to open the pages in Chromium")
chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine's path")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A server with a layer of most kinds, fed by HTTP."""
    rng = np.random.default_rng(7)
    with running(tmp_path_factory.mktemp("store") / "store.db") as made:
        y = rng.normal(10.0, 2.0, 400)
        regions = [HOSTILE if k % 3 else f"r{k % 7}" for k in range(400)]
        groups = [{"groups": {"region": one}} for one in regions]
        feed(made, "plain", {"eta": 0.05, "groups": ["region"]}, y - 1.0 + rng.normal(0, 1, 400), y, groups)
        ends = [[v - 1.0, v + 1.0] for v in y + rng.normal(0, 1, 400)]
        feed(made, "between", {"kind": "interval", "coverage": 0.9}, ends, y)
        three = [[v - 1.0, v, v + 1.0] for v in y + rng.normal(0, 1, 400)]
        feed(made, "several", {"kind": "quantiles", "levels": [0.1, 0.5, 0.9]}, three, y)
        keys = [{"key": f"{HOSTILE}{k % 5}"} for k in range(400)]
        feed(made, "keyed", {"keyed": True}, y + 1.0, y, keys)
        sets = {"kind": "conformal", "score": "absolute", "coverage": 0.9}
        feed(made, "sets", sets, y + rng.normal(0, 1, 400), y)
        made.layer("empty")
        large = 1e140 * rng.normal(0, 1, 400)
        where = [{"groups": {"g": str(k % 3)}} for k in range(400)]
        feed(made, "huge", {"eta": 0.05, "groups": ["g"]}, large + 2e140, large, where)
        feed(made, "wide", {"kind": "interval", "coverage": 0.9}, [[v, v * 3] for v in large], large)
        players = [{"a": f"{HOSTILE}{k % 6}", "b": f"p{k % 5}"} for k in range(400)]
        feed(made, "arena", {"kind": "elo"}, None, (rng.uniform(size=400) < 0.6) * 1.0, players)
        yield made


def feed(made, name, settings, predictions, labels, more=None):
    """Predictions in batches, their labels later, one of them twice and one of them unknown."""
    path = made.layer(name, **settings)
    rows = [{"id": k, **(more[k] if more else {})} for k in range(len(labels))]
    if predictions is not None:
        rows = [row | {"prediction": f} for row, f in zip(rows, list(predictions), strict=True)]
    for start in range(0, len(rows), 100):
        sent = made.client.post(f"{path}/predictions", json=rows[start : start + 100])
        assert {one["status"] for one in sent.json()} == {"served"}, sent.text[:300]
        posted = [{"id": k, "label": float(labels[k])} for k in range(start, start + 100)]
        answers = made.client.post(f"{path}/labels", json=posted[: 90 if start == 300 else 100]).json()
        assert {one["status"] for one in answers} == {"applied"}, answers[:2]
    wrong = [{"id": 0, "label": 0.25}, {"id": HOSTILE, "label": 1.0}]
    made.client.post(f"{path}/labels", json=wrong)


PAGES = [
    "/",
    "/new",
    *(f"/layers/{n}" for n in ("plain", "between", "several", "keyed", "sets", "arena", "empty", "huge", "wide")),
]
LOOKS = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (390, "light"), "narrow and dark": (390, "dark")}


OVER = """[...document.querySelectorAll("main .figure, main .verdict, main .notice, nav a, aside a, .layers td")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === "visible"
    && getComputedStyle(one).display !== "inline")
  .map((one) => one.className + ": " + one.textContent.slice(0, 80))"""  # what its own box does not hold


@chromium
@pytest.mark.parametrize("look", LOOKS)
def test_pages_are_quiet_and_fit_their_window_whatever_the_names(browser, service, look):
    width, theme = LOOKS[look]
    seen = Look(browser, service.address, width, theme)
    seen.enter(service.key)
    for path in PAGES:
        page = seen.page
        page.goto(service.address + path)
        if path not in ("/", "/new", "/layers/empty"):
            page.wait_for_selector(".plot canvas")
        page.wait_for_timeout(60)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(OVER) == [], path
        assert page.locator("img").count() == 0
        assert page.locator("[style*=expression], script:not([src]):not([type])").count() == 0
        if path in ("/layers/plain", "/layers/arena"):
            assert HOSTILE in page.inner_text("main")
            assert page.locator(".refused li").count() == 2
    seen.close()


BROKEN = """[...document.querySelectorAll("main .figure .term")].flatMap((term) => {
  const found = [], text = term.firstChild;
  for (const word of text.data.matchAll(/[^\\s]+/g)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (range.getClientRects().length > 1) found.push(word[0]);
  }
  return found;
})"""  # words of a figure's name that stand in two lines


@chromium
def test_no_word_of_a_figures_name_is_broken_in_two(browser, service):
    seen = Look(browser, service.address)
    page = seen.enter(service.key)
    for width in (1100, 1200, 1280, 700, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for name in ("plain", "between", "several"):
            page.goto(f"{service.address}/layers/{name}")
            assert page.evaluate(BROKEN) == [], (width, name)
    seen.close()


@chromium
def test_the_first_message_leaves_a_page_as_it_was_sent(browser, service):
    """The same page as HTML and as a tree: what the browser made of one is what it makes of the other."""
    seen = Look(browser, service.address)
    page = seen.enter(service.key, "/layers/plain")
    page.wait_for_selector(".plot canvas")
    page.evaluate(
        """() => { window.changed = 0; new MutationObserver(all => { window.changed += all.filter(m =>
           !m.target.closest?.('.plot, .read, time') && !m.target.parentNode?.closest?.('time')
           && m.attributeName !== 'title').length; })
           .observe(document.body, {childList: true, subtree: true, attributes: true, characterData: true}); }"""
    )
    page.wait_for_timeout(1500)
    assert page.evaluate("window.changed") == 0
    seen.close()


@chromium
def test_learning_is_paused_and_resumed_by_a_button_and_seen_at_once(browser, service):
    seen = Look(browser, service.address)
    page = seen.enter(service.key, "/layers/between")
    page.click("text=Pause learning")
    page.wait_for_selector("text=Learning is paused.")
    assert service.client.get("/v1/layers/between").json()["learning"] is False
    assert "Learning paused" in page.locator("[aria-current=page]").inner_text()
    page.click("text=Resume learning")
    page.wait_for_selector("text=Pause learning")
    assert service.client.get("/v1/layers/between").json()["learning"] is True
    with page.expect_download() as found:
        page.click("text=Download state")
    assert found.value.suggested_filename == "between.json"
    seen.close()


@chromium
def test_charts_are_read_by_keyboard_and_keep_what_is_read_while_they_change(browser, service):
    seen = Look(browser, service.address)
    page = seen.enter(service.key, "/layers/several")
    page.wait_for_selector("#error canvas")
    page.locator("#error").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    read = page.locator("#error .read").inner_text()
    assert re.search(r"label \d", read)
    feed(service, "several2", {"kind": "quantiles", "levels": [0.1, 0.5, 0.9]}, [[1.0, 2.0, 3.0]] * 100, [2.0] * 100)
    page.wait_for_selector("text=several2")
    assert page.locator("#error .read").inner_text() == read
    service.client.delete("/v1/layers/several2")
    seen.close()


@chromium
def test_a_page_whose_layer_is_deleted_or_whose_key_is_revoked_says_so(browser, tmp_path):
    with running(tmp_path / "store.db") as made:
        made.layer("short")
        made.layer("long")
        key = made.new_key()
        seen = Look(browser, made.address)
        page = seen.enter(key, "/layers/short")
        page.wait_for_selector("h1 >> text=short")
        made.client.delete("/v1/layers/short")
        page.wait_for_url(made.address + "/", timeout=15_000)
        number = next(one.number for one in read_keys(made.service.store) if one.prefix == key[3:11])
        revoke_key(made.service.store, number, time.time())
        made.service.ring.reload()
        page.reload()
        page.wait_for_selector("text=Paste an API key")
        seen.context.close()
        # What the page asks for meanwhile is refused: the layer is gone, then the key.
        assert not [said for said in seen.wrong if "404" not in said and "401" not in said]


def test_pages_need_a_sign_in_and_buttons_a_token_and_the_scope(service):
    with httpx.Client(base_url=service.address, trust_env=False) as stranger:
        assert "Sign in" in stranger.get("/layers/plain").text
        assert stranger.get("/live?page=/").status_code == 401
        assert stranger.get("/layers/plain/state").status_code == 403
        assert stranger.post("/layers/plain/control", json={"do": "freeze"}).status_code == 401
    for scopes, allowed in ((("predict",), 403), (("predict", "label", "admin"), 200)):
        with httpx.Client(base_url=service.address, trust_env=False) as own:
            answer = own.post("/session", json={"key": service.new_key(scopes=scopes)})
            flags = answer.headers["set-cookie"]
            assert "HttpOnly" in flags
            assert "SameSite=Strict" in flags
            page = own.get("/layers/plain").text
            token = re.search(r'data-token="(\w+)"', page)[1]
            assert ("Pause learning" in page) is (allowed == 200)
            ask = {"do": "freeze"}
            assert own.post("/layers/plain/control", json=ask).status_code == 403
            wrong = {"X-Gradeq-Token": "0" * len(token)}
            assert own.post("/layers/plain/control", json=ask, headers=wrong).status_code == 403
            right = {"X-Gradeq-Token": token}
            assert own.post("/layers/plain/control", json=ask, headers=right).status_code == allowed
            assert own.get("/layers/plain/state").status_code == allowed
    service.client.post("/v1/layers/plain/control", json={"do": "resume"})


def test_a_tenant_sees_only_its_own_layers(service):
    with httpx.Client(base_url=service.address, trust_env=False) as other:
        other.post("/session", json={"key": service.new_key("other")})
        assert "plain" not in other.get("/").text
        assert other.get("/layers/plain").headers["location"] == "/"
        assert other.get("/live?page=/layers/plain").status_code == 404
        assert other.get("/v1/layers/plain/overview").status_code == 404


def test_an_overview_is_json_with_bias_and_loss_and_what_was_refused(service):
    for name in ("plain", "between", "several", "keyed", "sets", "arena", "empty"):
        found = service.client.get(f"/v1/layers/{name}/overview").json()
        assert found["name"] == name
        assert found["light"]["level"] in ("green", "amber", "red")
        assert all(check["good"] for check in found["checks"])
    plain = service.client.get("/v1/layers/plain/overview").json()
    reached = service.client.get("/v1/layers/plain/equilibrium").json()
    assert plain["story"]["verdict"]["bias"] == reached["bias"]
    assert plain["story"]["verdict"]["loss"]["after"] == reached["loss"]["after"]
    assert [one["status"] for one in plain["refused"]] == ["conflict", "unknown"]
    assert plain["flight"]["open"] == 10


def test_the_stream_says_at_most_one_thing_a_second_and_the_same_to_all(service):
    path = service.layer("stream")
    times: list[float] = []
    with ExitStack() as open_now:
        clients = [open_now.enter_context(service.as_key(service.key)) for _ in range(2)]
        streams = [open_now.enter_context(c.stream("GET", f"{path}/events")) for c in clients]
        lines = [stream.iter_lines() for stream in streams]
        began, served = time.monotonic(), 0
        while time.monotonic() - began < 2.5:
            served += 1
            service.client.post(f"{path}/predictions", json={"prediction": 1.0})
        last = []
        for each in lines:
            for line in each:
                if line.startswith("data: "):
                    times.append(time.monotonic())
                    found = json.loads(line[6:])
                    if found["served"] == served:
                        last.append(found)
                        break
    assert served > 20
    assert last[0] == last[1]
    assert len(times) <= 2 * (2 + time.monotonic() - began)


def test_a_page_of_trees_holds_text_and_never_markup():
    from gradeq.report.components import el, join

    found = markup_tree(join(el("b", HOSTILE, title=HOSTILE), "\x00 & <i>", el("br")))
    assert found == [["b", {"title": HOSTILE}, HOSTILE], "\ufffd & <i>", ["br", {}]]


@chromium
def test_books_that_do_not_balance_give_a_red_light_with_what_is_wrong(browser, tmp_path):
    with running(tmp_path / "store.db") as made:
        feed(made, "sound", {}, [1.0] * 100, [2.0] * 100)
        feed(made, "tampered", {"eta": 0.05}, [1.0] * 100, [2.0] * 100)
        with closing(sqlite3.connect(tmp_path / "store.db")) as file, file:
            file.execute("UPDATE sums SET labels = labels + 1 WHERE layer = (SELECT max(number) FROM layers)")
        for row in made.service.store.layers():
            made.service.watch.audit_layer(row)
        time.sleep(1.0)  # what a page shows may be so old
        seen = Look(browser, made.address)
        page = seen.enter(made.key, "/layers/tampered")
        lights = {one.locator("b").first.inner_text(): one.inner_text() for one in page.locator(".layers li").all()}
        assert "Journal and ledger differ" in lights["tampered"]
        assert "differ" not in lights["sound"]
        page.wait_for_selector(".checks >> text=the sums of 1 parameters are not those of the journal")
        page.goto(made.address)
        assert "1 of 2 need a look." in page.inner_text("main")
        seen.close()


def test_nobody_looks_nothing_is_made(service):
    broadcast: Broadcast = service.service.broadcast
    deadline = time.monotonic() + 5
    while broadcast._topics and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not broadcast._topics
