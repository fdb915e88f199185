"""The page of a report, as a browser shows it and a person uses it; texts that would do harm."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import chromium, watched_page
from report_runs import enlarged, expertqa_run, fastbook_run, felm_run, hostile_run, three_systems, written

from qabench.evaluation import Evaluation
from qabench.report import build_report
from qabench.report.records import shortened
from qabench.runs.figures import figures

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytest.importorskip("altair", reason="needs the extra report")
pytest.importorskip("vl_convert", reason="needs the extra report")
pytestmark = pytest.mark.xdist_group("report")

HARMFUL = (
    "<script>window.harmed = 1</script>",
    "</script><img src=x onerror='window.harmed = 1'>",
    "<!-- <script> -->{{ 7 * 7 }}",
    "half a pair \ud83d and \udc00, NUL \x00, escape \x1b[31m, end",
    "lines\u2028that\u2029break",
    "\u202e\u05e9\u05dc\u05d5\u05dd \"quoted\" & 'quoted'",
    '=HYPERLINK("http://example.org")',
    "long " * 30_000,
    "",
)


@pytest.fixture(scope="module")
def three() -> list[Evaluation]:
    return three_systems()


@pytest.fixture(scope="module")
def everything(three: list[Evaluation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of all four benchmarks."""
    runs = [*three, felm_run(), felm_run(model="org/other", seed=1), expertqa_run(), fastbook_run()]
    return build_report(runs, tmp_path_factory.mktemp("report") / "all")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, everything: Path) -> Iterator[Page]:
    """The report of everything, opened; the test fails on errors in the console and requests to elsewhere."""
    with watched_page(browser, accept_downloads=True) as opened:
        opened.goto(everything.as_uri())
        yield opened


def test_scores_that_are_no_numbers(three: list[Evaluation], browser: Browser, tmp_path: Path) -> None:
    first, second, *others = three[0].records
    odd = [replace(first, scores={"acc.loose": float("nan")}), replace(second, scores={"acc.loose": 3.5}), *others]
    with watched_page(browser) as page:
        page.goto(build_report([replace(three[0], records=odd), three[1]], tmp_path).as_uri())
        page.locator(".plot svg").first.wait_for()
        assert "no score" in (page.locator(".questions .badge").first.text_content() or "")
        page.locator(".questions a").first.click()
        page.locator("#question .values").first.filter(has_text="–").wait_for()
    outcomes = written(tmp_path / "index.html")["sections"][0]["outcomes"]
    assert outcomes[3] == {"run": "large", "outcome": "none", "n": 1, "share": 1 / 12}


def test_every_chart_is_drawn(page: Page) -> None:
    for chart in page.locator("figure.chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator(".plot svg").wait_for()
        assert chart.locator(".plot svg path").count() > 2
    assert page.locator("figure.chart").count() == len(page.locator("figure.chart .plot svg.marks").all()) == 20


def test_a_figure_is_chosen(page: Page) -> None:
    pairs = page.locator("#fanoutqa-sample table.pairs tbody tr:visible")
    assert {row.get_attribute("data-figure") for row in pairs.all()} == {"acc.loose"}
    page.locator('select[data-section="fanoutqa-sample"][data-choice="pairs"]').select_option("rouge2.fscore")
    assert {row.get_attribute("data-figure") for row in pairs.all()} == {"rouge2.fscore"}


def test_filters_and_search(page: Page, three: list[Evaluation]) -> None:
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    rows, told = browser.locator(".questions li"), browser.locator(".told")
    assert rows.count() == len(three[0].records)
    browser.locator('select[name="run"]').select_option("2")
    browser.locator('select[name="outcome"]').select_option("wrong")
    wrong = [record.id for record in three[2].records if record.scores["acc.loose"] == 0]
    told.filter(has_text=f"{len(wrong)} of ").wait_for()
    assert [code.inner_text() for code in rows.locator("code").all()] == wrong
    browser.get_by_role("button", name="Reset").click()
    told.filter(has_text="12 questions").wait_for()
    browser.locator('input[type="search"]').fill("DANUBE longer")
    told.filter(has_text="1 of 12 questions").wait_for()
    browser.locator('input[type="search"]').fill("no such words anywhere")
    told.filter(has_text="0 of 12 questions").wait_for()
    assert rows.count() == 0


def test_groups_and_order(page: Page, three: list[Evaluation]) -> None:
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('select[name="group:category"]').select_option("Geography")
    browser.locator('select[name="order"]').select_option("low")
    browser.locator(".told").filter(has_text="2 of 12").wait_for()
    means = [
        sum(next(r for r in run.records if r.id == code.inner_text()).scores["acc.loose"] for run in three)
        for code in browser.locator(".questions code").all()
    ]
    assert means == sorted(means)
    browser.get_by_role("button", name="Reset").click()
    browser.locator('select[name="order"]').select_option("long")
    longest = max(three[0].records, key=lambda record: len(record.question))
    browser.locator(".questions li").first.filter(has_text=longest.id).wait_for()


def test_the_keyboard(page: Page) -> None:
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.type("novels")
    page.locator(".told").first.filter(has_text="1 of 12").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    dialog = page.locator("#question")
    dialog.wait_for()
    assert "novels" in dialog.locator("h3").inner_text()
    page.keyboard.press("2")
    dialog.locator('.tabs button[aria-pressed="true"]').filter(has_text="medium").wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert "novels" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("?")
    page.locator("#shortcuts").wait_for()


def test_from_question_to_question(page: Page, everything: Path, three: list[Evaluation]) -> None:
    ids = [record.id for record in three[0].records]
    page.goto(f"{everything.as_uri()}#/fanoutqa-sample/{ids[3]}")
    title = page.locator("#question-title")
    title.filter(has_text=three[0].records[3].question).wait_for()
    page.keyboard.press("j")
    title.filter(has_text=three[0].records[4].question).wait_for()
    assert page.url.endswith(f"#/fanoutqa-sample/{ids[4]}")
    page.keyboard.press("k")
    title.filter(has_text=three[0].records[3].question).wait_for()
    page.locator("#question").get_by_role("button", name="Close").click()
    assert "#/" not in page.url


def test_keys_faster_than_the_browser(page: Page, everything: Path, three: list[Evaluation]) -> None:
    """Keys that come before the events of those before them: a step is a step, and Escape leaves the list ready."""
    first, *others = three[0].records
    page.goto(f"{everything.as_uri()}#/fanoutqa-sample/{first.id}")
    title = page.locator("#question-title")
    title.filter(has_text=first.question).wait_for()
    pressed = """(keys) => {
      const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      keys.forEach(press);
      if (keys.includes("Escape")) document.activeElement.click();
    }"""
    page.evaluate(pressed, ["j", "j", "j"])
    title.filter(has_text=others[2].question).wait_for()
    page.evaluate(pressed, ["Escape", "j"])
    title.filter(has_text=others[3].question).wait_for()
    page.wait_for_timeout(100)
    assert page.locator("#question").is_visible()
    assert page.url.endswith(f"#/fanoutqa-sample/{others[3].id}")


def test_what_was_found_is_marked(page: Page, everything: Path, three: list[Evaluation]) -> None:
    record = next(r for r in three[1].records if r.detail["found"] and r.detail["missing"] and r.answer)
    page.goto(f"{everything.as_uri()}#/fanoutqa-sample/{record.id}")
    dialog = page.locator("#question")
    dialog.locator(".tabs button").filter(has_text="medium").click()
    dialog.locator("summary").filter(has_text="Conversation").click()
    assert dialog.locator(".message").count() == len(record.messages)
    assert dialog.locator(".chip.wrong").count() == len(record.detail["missing"])
    assert dialog.locator(".chip.right").count() == len(record.detail["found"])
    marks = {mark.inner_text().lower() for mark in dialog.locator(".answer mark").all()}
    missing = set(record.detail["missing"])
    assert marks and not marks & missing
    assert dialog.locator(".answer").inner_text() == record.answer


@pytest.mark.parametrize(
    ("link", "texts"),
    [
        ("felm-sample/0", ["Segments", "error found", "agrees"]),
        ("expertqa-sample/q0", ["Claims and their evidence", "https://example.org/astronomy/speed-of-light"]),
        ("fastbook-sample/1-1", ["Components of the answer", "rank ", "Passages retrieved"]),
    ],
)
def test_the_findings_of_each_benchmark(page: Page, everything: Path, link: str, texts: list[str]) -> None:
    page.goto(f"{everything.as_uri()}#/{link}")
    page.locator("#question .record").first.wait_for()
    shown = page.locator("#question").text_content() or ""
    assert [text for text in texts if text not in shown] == []


def saved(page: Page, click: Any) -> tuple[str, bytes]:
    with page.expect_download() as download:
        click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_charts_are_saved(page: Page) -> None:
    chart = page.locator('figure.chart[data-section="fanoutqa-sample"][data-chart="by category"]')
    name, svg = saved(page, chart.locator('[data-save="svg"]').click)
    assert (name, svg[:4]) == ("fanoutqa-sample-by-category-acc-loose.svg", b"<svg")
    assert "Loose accuracy by category" in svg.decode()
    _, png = saved(page, chart.locator('[data-save="png"]').click)
    assert png.startswith(b"\x89PNG")
    _, table = saved(page, chart.locator('[data-save="csv"]').click)
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    assert {row["figure"] for row in rows} == {"acc.loose"}


def test_figures_and_questions_are_saved(page: Page, everything: Path, three: list[Evaluation]) -> None:
    _, figures_csv = saved(page, page.locator("#save-csv").click)
    rows = list(csv.DictReader(io.StringIO(figures_csv.decode())))
    (loose,) = [r for r in rows if (r["run"], r["grouping"], r["figure"]) == ("large", "", "acc.loose")]
    assert float(loose["mean"]) == figures(three[0])["acc.loose"].mean
    _, numbers = saved(page, page.locator("#save-json").click)
    assert json.loads(numbers) == written(everything)
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('input[type="search"]').fill("novels")
    browser.locator(".told").filter(has_text="1 of 12").wait_for()
    _, lines = saved(page, browser.get_by_role("button", name="JSON lines").click)
    objects = [json.loads(line) for line in lines.decode().splitlines()]
    assert [one["run"] for one in objects] == ["large", "medium", "small"]
    _, table = saved(page, browser.get_by_role("button", name="CSV").click)
    records = list(csv.DictReader(io.StringIO(table.decode(), newline="")))
    assert [row["answer"] for row in records] == [one["answer"] or "" for one in objects]


def test_light_and_dark(browser: Browser, everything: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with watched_page(browser, color_scheme="dark") as page:
        page.goto(everything.as_uri())
        assert page.evaluate(ground) == "rgb(20, 22, 25)"
        page.locator("#theme").click()
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.keyboard.press("t")
        assert page.evaluate(ground) == "rgb(20, 22, 25)"


def test_a_telephone_shows_all_without_scrolling_sideways(browser: Browser, everything: Path) -> None:
    with watched_page(browser, viewport={"width": 390, "height": 844}) as page:
        page.goto(everything.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_tables_stand_without_javascript(browser: Browser, everything: Path, three: list[Evaluation]) -> None:
    with watched_page(browser, java_script_enabled=False) as page:
        page.goto(everything.as_uri())
        shown = page.locator("#fanoutqa-sample table.scores").inner_text()
        assert f"{figures(three[0])['acc.loose'].mean:.3f}" in shown
        assert page.locator("#fanoutqa-sample table.pairs tbody tr:visible").count() == 3 * 5
        assert page.locator(".plot:visible, .filters:visible").count() == 0


def seen(text: str) -> str:
    """A text as the page shows it: pictures in the place of what cannot be seen, and of long ones both ends."""
    pictures = {0: "\u2400", 0x1B: "\u241b"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
    return shortened(text).translate(pictures)


def test_harmful_texts_are_only_shown(browser: Browser, tmp_path: Path) -> None:
    built = build_report([hostile_run(HARMFUL), hostile_run(HARMFUL[1:])], tmp_path, title=HARMFUL[1])
    assert "\x00" not in built.read_text(encoding="utf-8")
    with watched_page(browser) as page:
        page.goto(built.as_uri())
        rows = page.locator(".questions a")
        assert rows.count() == len(HARMFUL)
        page.keyboard.press("j")
        for text in HARMFUL:
            page.keyboard.press("Enter")
            page.locator("#question .record").first.wait_for()
            if text.strip():
                assert page.locator("#question .answer").first.text_content() == seen(text)
            assert page.locator("#question-title").text_content() == seen(text)
            page.keyboard.press("Escape")
            page.locator("#question").wait_for(state="hidden")
            page.keyboard.press("j")
        for chart in page.locator("figure.chart").all():
            chart.scroll_into_view_if_needed()
        assert page.title() == HARMFUL[1]
        assert page.evaluate("window.harmed === undefined")
        assert page.locator("img").count() == 0


def test_a_text_that_became_html_could_do_nothing(browser: Browser, everything: Path) -> None:
    """The page's policy runs its own two scripts alone, and lets nothing be fetched."""
    with browser.new_context() as context:
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(everything.as_uri())
        page.evaluate(
            """() => {
              const injected = document.createElement("div");
              injected.innerHTML = "<img src='http://127.0.0.1:9/a.png' onerror='window.harmed = 1'>";
              const script = document.createElement("script");
              script.text = "window.harmed = 1";
              document.body.append(injected, script);
            }"""
        )
        page.wait_for_timeout(200)
        assert page.evaluate("window.harmed === undefined")
        assert sum("Content Security Policy" in text for text in said) >= 2


def test_many_questions_open_at_once(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    built = build_report([enlarged(three[0], 724)], tmp_path)
    with watched_page(browser) as page:
        page.goto(built.as_uri())
        assert page.locator(".told").inner_text() == "724 questions"
        assert page.locator(".questions li").count() < 200
        page.locator(".questions li").first.locator("a").focus()
        for _ in range(70):
            page.keyboard.press("j")
        assert page.evaluate("[...document.querySelectorAll('.questions a')].indexOf(document.activeElement)") == 70


def test_epochs_stand_together(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    record = three[0].records[0]
    records = [replace(record, epoch=n, answer=f"try {n}", scores={"acc.loose": n / 4}) for n in (1, 2, 3)]
    built = build_report([replace(three[0], records=records, expected=3)], tmp_path)
    with watched_page(browser) as page:
        page.goto(f"{built.as_uri()}#/fanoutqa-sample/{record.id}")
        page.locator("#question .record").first.wait_for()
        assert page.locator("#question h5").all_inner_texts() == ["Epoch 1", "Epoch 2", "Epoch 3"]
        assert "0.50" in page.locator(".questions .badge").inner_text()
