"""A newcomer's day at the dashboard, in a real Chromium: the first calls, a stream, a server that is killed."""

import subprocess

import numpy as np
import pytest

from service.chromium import CHROMIUM, FLAGS, Look, Server

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright to open the pages in Chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine's path")

PIXELS = """() => { const c = document.querySelector('#error canvas'); return c ? c.toDataURL() : ''; }"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    made.start()
    yield made
    made.kill()


def pasted(page, number, key):
    """Run what stands in a box of the first page, as a newcomer would: its answer."""
    text = page.locator(".steps pre code").nth(number).inner_text()
    script = text.replace("paste-the-key-here", key)
    done = subprocess.run(
        ["bash", "-c", f"export GRADEQ_KEY={key}\n{script} --silent --noproxy '*'"],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def streamed(client, first, count, rng):
    """So many predictions and their labels, in batches: what the model says is 3 too low in the north."""
    for start in range(first, first + count, 500):
        ids = range(start, start + 500)
        raw = rng.normal(40.0, 4.0, 500)
        where = rng.choice(["north", "south"], 500)
        sent = [
            {"id": i, "prediction": f, "groups": {"region": r}}
            for i, f, r in zip(ids, raw.tolist(), where.tolist(), strict=True)
        ]
        assert client.post("/v1/layers/demand/predictions", json=sent).status_code == 200
        y = raw + 3.0 * (where == "north") + rng.normal(0.0, 1.0, 500)
        labels = [{"id": i, "label": v} for i, v in zip(ids, y.tolist(), strict=True)]
        answers = client.post("/v1/layers/demand/labels", json=labels).json()
        assert {one["status"] for one in answers} == {"applied"}


def test_from_the_first_call_to_a_server_that_was_killed(browser, server):
    look = Look(browser, server.address)
    page = look.enter(server.key)
    assert server.key not in page.url
    page.wait_for_selector("text=Waiting for the first call")
    assert '"created":true' in pasted(page, 0, server.key).replace(" ", "")
    page.wait_for_selector("text=The layer is there")  # by itself: nothing was reloaded
    assert '"adjusted":42.0' in pasted(page, 1, server.key).replace(" ", "")
    page.wait_for_selector("text=The prediction was served")
    assert '"applied"' in pasted(page, 2, server.key)
    page.wait_for_selector("text=It works")
    told = page.locator(".outcome b").inner_text()
    with server.client() as client:
        again = {"id": "order-18", "prediction": 42.0, "groups": {"region": "north"}}
        assert client.post("/v1/layers/demand/predictions", json=again).json()["adjusted"] == float(told) == 42.175
        page.click("text=Open demand")
        page.wait_for_selector("h1 >> text=demand")

        rng = np.random.default_rng(1)
        streamed(client, 0, 5_000, rng)
        page.wait_for_selector("#error canvas")
        page.wait_for_selector("text=5,001 labels learned from")
        early = page.evaluate(PIXELS)
        streamed(client, 5_000, 5_000, rng)
        page.wait_for_selector("text=10,001 labels learned from")
        assert page.evaluate(PIXELS) != early
        bias = client.get("/v1/layers/demand/equilibrium").json()["bias"]
        said = page.locator(".verdict").inner_text()
        assert said.startswith("Bias reduced.")
        assert all(f"{-bias[when]:.2f} too low" in said for when in ("before", "after"))

    server.kill()
    page.wait_for_selector("text=reconnecting")
    server.start()
    page.wait_for_selector("body:not(.away)", timeout=20_000)
    with server.client() as client:
        streamed(client, 10_000, 500, rng)
        page.wait_for_selector("text=10,501 labels learned from")
    look.close()
