"""The page of a report in a browser: every control, harmful strings, screens of all sizes, accessibility."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import chromium, watched_page
from report_runs import everything as all_four
from report_runs import felm_run, hostile_run, many_systems, three_systems, written

from qabench.evaluation import Evaluation
from qabench.report import build_report
from qabench.report.view import shortened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("report")

HARMFUL = (
    "<script>window.harmed = 1</script>", "</script><img src=x onerror='window.harmed = 1'>",
    "<!-- <script> -->{{ 7 * 7 }}", "half a pair \ud83d and \udc00, NUL \x00, escape \x1b[31m, end",
    "lines\u2028that\u2029break", "\u202e\u05e9\u05dc\u05d5\u05dd \"quoted\" & 'quoted'",
    '=HYPERLINK("http://example.org")', "long " * 30_000, "",
)  # fmt: skip


@pytest.fixture(scope="module")
def three() -> list[Evaluation]:
    return three_systems()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of all four benchmarks."""
    return build_report(all_four(), tmp_path_factory.mktemp("report") / "all")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of nine systems."""
    return build_report(many_systems(9), tmp_path_factory.mktemp("report") / "many")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, everything: Path) -> Iterator[Page]:
    """The report of everything, opened; the test fails on console errors and requests to other hosts."""
    with watched_page(browser, accept_downloads=True) as opened:
        opened.goto(everything.as_uri())
        ready(opened)
        yield opened


def ready(page: Page) -> None:
    page.locator("html.ready").wait_for(state="attached")


def opened(page: Page, url: str) -> None:
    page.goto(url)
    ready(page)


def test_scores_that_are_not_numbers(three: list[Evaluation], browser: Browser, tmp_path: Path) -> None:
    first, second, *others = three[0].records
    odd = [replace(first, scores={"acc.loose": float("nan")}), replace(second, scores={"acc.loose": 3.5}), *others]
    with watched_page(browser) as page:
        opened(page, build_report([replace(three[0], records=odd), three[1]], tmp_path).as_uri())
        page.locator(".plot svg").first.wait_for()
        assert "no score" in (page.locator(".questions li").first.text_content() or "")
        page.locator(".questions a").first.click()
        page.locator("#question .values").filter(has_text="–").first.wait_for()


def test_undefined_scores_and_missing_intervals_are_named(browser: Browser, tmp_path: Path) -> None:
    """No segment is judged wrong in the first run, and one domain of the sample is too small for an interval."""
    run = felm_run()
    records = [replace(each, scores=each.scores | {"tn": 0.0, "fn": 0.0}) for each in run.records]
    with watched_page(browser) as page:
        opened(page, build_report([replace(run, records=records), felm_run("org/other")], tmp_path).as_uri())
        reason = "no segments are wrong, or none were judged wrong"
        cells = page.locator("table.scores td[data-metric]").filter(has_text="undefined")
        assert cells.first.locator(".interval").get_attribute("title") == reason
        assert reason in (page.locator(".note.warning").first.text_content() or "")
        chart = page.locator("figure.chart").filter(has_text="by domain")
        point = chart.locator("svg g").filter(has_text="no interval").first
        assert point.locator("path").get_attribute("stroke") and point.locator("line").count() == 0


def test_every_chart_is_drawn(page: Page) -> None:
    """Sections below the fold are laid out as well, for pictures of the whole page and for the browser's search."""
    ready(page)
    visibility = "all => [...new Set(all.map(part => getComputedStyle(part).contentVisibility))]"
    assert page.locator(".comparison, .groups, .browser").evaluate_all(visibility) == ["visible"]
    assert page.locator("#felm-sample .group .plot text").filter(has_text="n = ").count() >= 2
    page.locator("figure.chart").last.locator(".plot svg").wait_for()
    charts = page.locator("figure.chart").all()
    assert len(charts) >= 10
    for chart in charts:
        assert chart.locator(".plot svg > *").count() > 3
    board = page.locator("#felm-sample .leaderboard")
    charts = board.get_by_role("img")
    assert charts.first.get_attribute("aria-label") == "F1 (errors): all; 3 systems, the best first"
    own = board.locator("figure.chart").last.locator("svg text")
    assert {"imaginary-1", "other", "not ranked"} <= set(own.all_text_contents())
    board.get_by_text("As a table").last.click()
    row = board.get_by_role("row").filter(has_text="imaginary-1").inner_text().split("\t")
    assert row[1] == "–" and " to " in row[3]


def test_a_metric_is_chosen(page: Page, three: list[Evaluation]) -> None:
    ready(page)
    section = page.locator("#fanoutqa-sample")
    section.locator('.controls select[name="metric"]').select_option("rouge2.fscore")
    assert "ROUGE-2" in section.locator(".finding").inner_text()
    assert "fanoutqa-sample.metric=rouge2.fscore" in page.url
    best = max(three, key=lambda run: run.scores()["rouge2.fscore"].interval.mean)
    assert section.locator("table.scores tbody tr").first.inner_text().startswith(best.model.rpartition("/")[2])
    section.locator("th[data-metric='acc.strict'] button").click()
    assert section.locator('th[aria-sort="descending"]').inner_text().startswith("Strict accuracy")
    page.reload()
    assert "Strict accuracy" in section.locator(".finding").inner_text()


def test_runs_are_filtered_in_the_address(page: Page, everything: Path) -> None:
    ready(page)
    section = page.locator("#fanoutqa-sample")
    section.locator(".run-filter summary").click()
    section.locator('.run-filter input[value="1"]').uncheck()
    assert page.url.endswith("?fanoutqa-sample.runs=1.3")
    assert section.locator("table.scores tbody tr:visible").count() == 2
    assert section.locator("table.pairs tbody tr").count() == 1
    assert section.locator(".questions li").first.locator(".mark").count() == 2
    opened(page, f"{everything.as_uri()}#?fanoutqa-sample.runs=2")
    assert section.locator("table.scores tbody tr:visible th").all_inner_texts() == ["medium"]


def test_the_difference_of_two_runs(page: Page, three: list[Evaluation]) -> None:
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('select[name="first"]').select_option("0")
    browser.locator('select[name="second"]').select_option("2")
    pairs = zip(three[0].records, three[2].records, strict=True)
    gains = {a.id: a.scores["acc.loose"] - b.scores["acc.loose"] for a, b in pairs}
    better, worse = (sum(sign * gain > 1e-9 for gain in gains.values()) for sign in (1, -1))
    browser.locator(".told").filter(has_text=f"large is better on {better}, small on {worse}").wait_for()
    shown = [gains[code.text_content()] for code in browser.locator(".questions code").all()]
    assert all(shown) and [abs(gain) for gain in shown] == sorted(map(abs, shown), reverse=True)
    browser.locator('select[name="side"]').select_option("first")
    browser.locator(".told").filter(has_text=f"{better} of 12").wait_for()


def test_a_table_is_copied(browser: Browser, everything: Path, three: list[Evaluation]) -> None:
    with watched_page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        opened(page, everything.as_uri())
        tools = page.locator("#fanoutqa-sample .table", has=page.locator("table.scores")).locator(".table-tools")
        texts = {}
        for name in ("CSV", "Markdown", "LaTeX"):
            tools.get_by_role("button", name=f'Copy {name}: the table "Scores"').click()
            page.locator(".toast").first.wait_for()
            texts[name] = page.evaluate("navigator.clipboard.readText()")
    rows = list(csv.DictReader(io.StringIO(texts["CSV"])))
    score = three[0].scores()["acc.loose"].interval
    large = next(row for row in rows if row["Run"] == "large")
    assert large["Loose accuracy"] == f"{score.mean:.3f} [{score.low:.3f}, {score.high:.3f}]"
    assert texts["Markdown"].splitlines()[1].startswith("| --- | ---: |")
    assert texts["LaTeX"].count("\\\\") == 4 and "\\toprule" in texts["LaTeX"]


@pytest.mark.parametrize("width", [390, 1280])
def test_a_matrix_of_nine_runs_fits_the_screen(browser: Browser, everything: Path, many: Path, width: int) -> None:
    for file in (everything, many):
        with watched_page(browser, viewport={"width": width, "height": 844}) as page:
            opened(page, file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.locator("table.matrix tbody td").count() == (0 if file == everything else 81)


def test_filters_and_search(page: Page, three: list[Evaluation]) -> None:
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    rows, told = browser.locator(".questions li"), browser.locator(".told")
    assert rows.count() == len(three[0].records)
    browser.locator('select[name="run"]').select_option("2")
    browser.locator('select[name="outcome"]').select_option("wrong")
    wrong = [r.id for r in three[2].records if r.scores["acc.loose"] == 0 and r.status == "answered"]
    told.filter(has_text=f"{len(wrong)} of ").wait_for()
    assert [code.text_content() for code in rows.locator("code").all()] == wrong
    browser.get_by_role("button", name="Reset").click()
    told.filter(has_text="12 questions").wait_for()
    browser.locator('input[type="search"]').fill("DANUBE longer")
    told.filter(has_text="1 of 12 questions").wait_for()
    browser.get_by_role("button", name="Reset").click()
    browser.locator('select[name="group:category"]').select_option("Geography")
    browser.locator('select[name="order"]').select_option("low")
    told.filter(has_text="2 of 12").wait_for()
    by_id = [run.by_id() for run in three]
    ids = [code.text_content() or "" for code in rows.locator("code").all()]
    means = [sum(records[id][0].scores["acc.loose"] for records in by_id) for id in ids]
    assert means == sorted(means)


def test_the_keyboard(page: Page, three: list[Evaluation]) -> None:
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.type("novels")
    page.locator(".told").first.filter(has_text=re.compile("^1 of 12")).wait_for()
    page.wait_for_timeout(300)  # the rows follow the count
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.evaluate("document.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
    page.wait_for_timeout(300)  # a late filter leaves the focus on the row
    page.keyboard.press("Enter")
    dialog = page.locator("#question")
    dialog.wait_for()
    assert "novels" in dialog.locator("h3").inner_text()
    best = max(three, key=lambda run: run.scores()["acc.loose"].interval.mean).model.rpartition("/")[2]
    page.keyboard.press("1")
    dialog.locator('.tabs button[aria-pressed="true"]').filter(has_text=best).wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert "novels" in page.evaluate("document.activeElement.innerText")


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
    assert marks and not marks & set(record.detail["missing"])


@pytest.mark.parametrize(
    ("link", "texts"),
    [("felm-sample/0", ["Segments", "error found", "agrees"]),
     ("expertqa-sample/4135f1855880", ["Claims and their evidence", "https://example.org/astronomy/speed-of-light"]),
     ("fastbook-sample/1-1", ["Components of the answer", "rank ", "Passages retrieved"])],
)  # fmt: skip
def test_the_findings_of_each_benchmark(page: Page, everything: Path, link: str, texts: list[str]) -> None:
    page.goto(f"{everything.as_uri()}#/{link}")
    page.locator("#question .record").first.wait_for()
    shown = page.locator("#question").text_content() or ""
    assert [text for text in texts if text not in shown] == []


def test_fields_of_any_name_are_shown(page: Page, three: list[Evaluation], tmp_path: Path) -> None:
    first = three[0].records[0]
    changed = replace(first, detail={"rule_used": "the last word", "steps": [1, 2]})
    run = replace(three[0], records=[changed, *three[0].records[1:]])
    page.goto(f"{build_report([run], tmp_path).as_uri()}#/fanoutqa-sample/{first.id}")
    page.locator("#question .record").first.wait_for()
    shown = page.locator("#question").text_content() or ""
    assert "rule used" in shown and "the last word" in shown and "steps" in shown


def saved(page: Page, click: Any) -> tuple[str, bytes]:
    with page.expect_download() as download:
        click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_charts_are_saved(page: Page) -> None:
    ready(page)
    chart = page.locator("#fanoutqa-sample figure.chart").filter(has_text="by category")
    files = [saved(page, chart.get_by_role("button", name=f"as {kind}").click) for kind in ("SVG", "PNG", "CSV")]
    (name, svg), (_, png), (_, table) = files
    assert name == "fanoutqa-sample-category-acc-loose.svg" and "Loose accuracy by category" in svg.decode()
    assert png.startswith(b"\x89PNG")
    assert {row["run"] for row in csv.DictReader(io.StringIO(table.decode()))} == {"large", "medium", "small"}


def test_numbers_and_questions_are_saved(page: Page, everything: Path, three: list[Evaluation]) -> None:
    _, figures_csv = saved(page, page.locator("#save-csv").click)
    rows = list(csv.DictReader(io.StringIO(figures_csv.decode())))
    (loose,) = [r for r in rows if (r["run"], r["grouping"], r["metric"]) == ("large", "", "acc.loose")]
    assert float(loose["mean"]) == three[0].scores()["acc.loose"].interval.mean
    _, numbers = saved(page, page.locator("#save-json").click)
    assert json.loads(numbers) == written(everything)
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('input[type="search"]').fill("novels")
    browser.locator(".told").filter(has_text="1 of 12").wait_for()
    _, lines = saved(page, browser.get_by_role("button", name="JSON Lines").click)
    assert [json.loads(line)["run"] for line in lines.decode().splitlines()] == ["large", "medium", "small"]


def test_light_dark_and_print(browser: Browser, everything: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    with watched_page(browser, color_scheme="dark") as page:
        opened(page, everything.as_uri())
        assert page.evaluate(ground) == "rgb(20, 22, 25)"
        page.locator("#theme").click()
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.keyboard.press("t")
        assert page.evaluate(ground) == "rgb(20, 22, 25)"
        page.emulate_media(media="print", color_scheme="dark")
        page.locator('.chart .plot svg rect[fill="#ffffff"]').first.wait_for(state="attached")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert page.locator(".filters:visible, .tools:visible").count() == 0


def test_tables_without_javascript(browser: Browser, everything: Path, three: list[Evaluation]) -> None:
    with watched_page(browser, java_script_enabled=False) as page:
        page.goto(everything.as_uri())
        shown = page.locator("#fanoutqa-sample table.scores").inner_text()
        assert f"{three[0].scores()['acc.loose'].interval.mean:.3f}" in shown
        assert "large" in page.locator("#fanoutqa-sample .finding").inner_text()
        assert page.locator(".plot:visible, .filters:visible, .tools:visible").count() == 0


def as_shown(text: str) -> str:
    """Return a string as the page shows it: symbols for invisible characters, and both ends of a long one."""
    pictures: dict[int, str] = {0: "\u2400", 0x1B: "\u241b", 0x202E: "\\u202e"} | dict.fromkeys(
        range(0xD800, 0xE000), "\ufffd"
    )
    return shortened(text).translate(pictures)


def test_harmful_texts_are_only_shown(browser: Browser, tmp_path: Path) -> None:
    built = build_report([hostile_run(HARMFUL), hostile_run(HARMFUL[1:])], tmp_path)
    assert not re.search(
        r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", built.read_text(encoding="utf-8")
    )
    policy = re.search('Security-Policy" content="(.+)"', built.read_text(encoding="utf-8"))
    assert policy and re.match("default-src 'none'; script-src 'sha256-[^' ]+'; ", html.unescape(policy[1]))
    with watched_page(browser) as page:
        opened(page, built.as_uri())
        assert page.locator(".questions a").count() == len(HARMFUL)
        page.keyboard.press("j")
        for text in HARMFUL:
            page.keyboard.press("Enter")
            page.locator("#question .record").first.wait_for()
            if text.strip():
                assert page.locator("#question .answer").first.text_content() == as_shown(text)
            assert page.locator("#question-title").text_content() == as_shown(text)
            page.keyboard.press("Escape")
            page.locator("#question").wait_for(state="hidden")
            page.keyboard.press("j")
        assert page.evaluate("window.harmed === undefined")
        assert page.locator("img").count() == 0


def test_many_questions_open_at_once(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    records = [replace(three[0].records[i % 12], id=f"{i:04}") for i in range(724)]
    built = build_report([replace(three[0], records=records, expected=724)], tmp_path)
    with watched_page(browser) as page:
        opened(page, built.as_uri())
        assert page.locator(".told").text_content() == "724 questions" and page.locator(".questions li").count() < 200
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("systems", ["everything", "many"])
def test_axe_finds_nothing(browser: Browser, request: pytest.FixtureRequest, scheme: str, systems: str) -> None:
    """Contrast, names and keyboard access, checked with axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    rules = {"rules": {"label-content-name-mismatch": {"enabled": True}}}  # not on by default

    def violations() -> list[str]:
        broken = axe.Axe().run(page, options=rules).response["violations"]
        return [f"{rule['id']}: {[node['target'] for node in rule['nodes'][:3]]}" for rule in broken]

    with watched_page(browser, bypass_csp=True, color_scheme=scheme, reduced_motion="reduce") as page:
        opened(page, request.getfixturevalue(systems).as_uri())
        page.wait_for_timeout(200)
        assert violations() == []
        page.locator(".questions a").first.click()
        page.locator("#question .record").first.wait_for()
        assert violations() == []


def test_every_control_is_reached_by_tab(page: Page) -> None:
    ready(page)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.className"))
    assert {"sort", "metric"} <= reached
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
