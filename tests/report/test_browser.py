"""The page in a real browser: it draws, sorts and opens, asks no network, and says nothing on the console."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import chromium
from report_pages import asked, document, written

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium.FOUND is None, reason="there is no chromium here"),
]

DRAWN = """[...document.querySelectorAll("canvas")].map((canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(new Uint32Array(pixels.buffer)).size;
})"""
FIRST = "document.querySelector('table.worst').tBodies[0].rows[0].cells[{}].textContent"
CLICK = "document.querySelector('table.worst').tHead.rows[0].cells[{}].click()"


@pytest.fixture(scope="module")
def browser(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    """The demo's report, opened."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "report.html").write_text(written(demo, ".html", "ttft=1s"), encoding="utf-8")
    with chromium.Browser(folder / "profile") as opened:
        opened.visit(folder / "report.html")
        yield opened


def test_every_plot_is_drawn(browser: chromium.Browser) -> None:
    colours = browser.run(DRAWN)
    assert len(colours) == 2
    assert all(count > 5 for count in colours)
    assert browser.run("[...document.querySelectorAll('.bound.seats')].length") > 0


def test_the_console_is_silent_and_nothing_is_asked_of_a_network(browser: chromium.Browser) -> None:
    assert not browser.said("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    urls = [one["request"]["url"] for one in browser.said("Network.requestWillBeSent")]
    assert len(urls) == 1
    assert urls[0].startswith("file://")


def test_the_policy_stops_what_is_not_ours(browser: chromium.Browser) -> None:
    browser.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.acted=1\">')")
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.acted=1'}))"
    )
    assert browser.run("new Promise((done) => setTimeout(() => done(window.acted ?? 0), 200))") == 0


def test_a_click_on_a_heading_sorts_and_a_second_one_turns(browser: chromium.Browser, demo: Path) -> None:
    rows = asked(demo, "slowest", top=10)
    browser.run(CLICK.format(1))
    assert browser.run(FIRST.format(0)) == rows[-1]["request_id"]
    browser.run(CLICK.format(1))
    assert browser.run(FIRST.format(0)) == rows[0]["request_id"]
    browser.run(CLICK.format(4))
    assert browser.run(FIRST.format(4)) == str(min(row["input_tokens"] for row in rows))


def test_the_cause_is_in_the_first_screenful(browser: chromium.Browser, demo: Path) -> None:
    assert (
        browser.run("document.getElementById('verdict').textContent") == document(demo, "ttft=1s")["verdict"]
    )
    low = browser.run("document.querySelector('.finding').getBoundingClientRect().bottom")
    assert 0 < low < 1400


def test_details_open(browser: chromium.Browser) -> None:
    shown = "document.querySelector('.waterfall table').checkVisibility()"
    assert not browser.run(shown)
    browser.run("document.querySelectorAll('details summary').forEach((one) => one.click())")
    assert browser.run(shown)


def test_nothing_is_wider_than_the_page(browser: chromium.Browser) -> None:
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
