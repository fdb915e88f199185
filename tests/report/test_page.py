"""The page of a report in a browser: every control, harmful strings, screens of all sizes,
accessibility.
"""

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
from qabench.report.section import sections_of
from qabench.report.view import shortened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("report")

CLIPBOARD = ["clipboard-read", "clipboard-write"]
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
    """The report of everything, opened; the test fails on console errors and requests to other
    hosts.
    """
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
    """No segment is judged wrong in the first run, and one domain of the sample is too small for an
    interval.
    """
    run = felm_run()
    records = [replace(each, scores=each.scores | {"error_tp": 0.0, "error_fp": 0.0}) for each in run.records]
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
    """Sections below the fold are laid out as well, for pictures of the whole page and for the
    browser's search.
    """
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
    assert {"openai/imaginary-1", "org/other", "not ranked"} <= set(own.all_text_contents())
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
    assert section.locator("table.scores tbody tr").first.inner_text().startswith(best.model)
    section.locator("th[data-metric='acc.strict'] button").click()
    assert section.locator('th[aria-sort="descending"]').inner_text().startswith("Strict accuracy")
    page.reload()
    ready(page)
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
    assert section.locator("table.scores tbody tr:visible th").all_inner_texts() == ["org/medium"]


def test_the_difference_of_two_runs(page: Page, three: list[Evaluation]) -> None:
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('select[name="first"]').select_option("0")
    browser.locator('select[name="second"]').select_option("2")
    pairs = zip(three[0].records, three[2].records, strict=True)
    gains = {a.id: a.scores["acc.loose"] - b.scores["acc.loose"] for a, b in pairs}
    better, worse = (sum(sign * gain > 1e-9 for gain in gains.values()) for sign in (1, -1))
    browser.locator(".told").filter(has_text=f"openai/large is better on {better}, org/small on {worse}").wait_for()
    shown = [gains[code.text_content()] for code in browser.locator(".questions code").all()]
    assert all(shown) and [abs(gain) for gain in shown] == sorted(map(abs, shown), reverse=True)
    browser.locator('select[name="side"]').select_option("first")
    browser.locator(".told").filter(has_text=f"{better} of 12").wait_for()


def test_a_table_is_copied(browser: Browser, everything: Path, three: list[Evaluation]) -> None:
    with watched_page(browser, permissions=CLIPBOARD) as page:
        opened(page, everything.as_uri())
        texts = copied(page, "#fanoutqa-sample", "Scores")
        page.locator("#fanoutqa-sample .run-filter summary").click()
        page.locator('#fanoutqa-sample .run-filter input[value="1"]').uncheck()
        two_runs = copied(page, "#fanoutqa-sample", "Scores")
        felm = copied(page, "#felm-sample", "Scores")
    rows = list(csv.DictReader(io.StringIO(texts["CSV"])))
    score = three[0].scores()["acc.loose"]
    large = next(row for row in rows if row["Run"] == "openai/large")
    names = [f"Loose accuracy{part}" for part in ("", " low", " high", " n")]
    assert [float(large[name]) for name in names] == [score.value, score.low, score.high, score.n]
    # The columns of n differ: segments and responses.
    felm_row = next(csv.DictReader(io.StringIO(felm["CSV"])))
    assert felm_row["F1 (errors) n"] != felm_row["Responses: F1 (errors) n"] and "n" not in felm_row
    section = sections_of(three)[0]
    assert section.paper_table
    assert texts["Markdown"] == section.paper_table.formatted("markdown") and "**" in texts["Markdown"]
    assert texts["LaTeX"] == section.paper_table.formatted("latex") and "\\textbf" in texts["LaTeX"]
    # Without some runs, it is the table that is seen.
    assert two_runs["Markdown"].splitlines()[1].startswith("| --- | ---: |")
    assert two_runs["LaTeX"].count("\\\\") == 3 and "org/medium" not in two_runs["LaTeX"]


def copied(page: Page, section: str, title: str) -> dict[str, str]:
    """Return a table as each of its buttons copies it."""
    texts = {}
    for name in ("CSV", "Markdown", "LaTeX"):
        page.locator(section).get_by_role("button", name=f'Copy {name}: the table "{title}"').first.click()
        page.locator(".toast").filter(has_text=f"Table as {name}").last.wait_for()
        texts[name] = page.evaluate("navigator.clipboard.readText()")
    return texts


def test_signatures_are_copied(browser: Browser, everything: Path, three: list[Evaluation]) -> None:
    copies = {"Copy": three[0].signatures, "Copy short": three[0].short_signatures()}
    with watched_page(browser, permissions=CLIPBOARD) as page:
        opened(page, everything.as_uri())
        signatures = page.locator("#fanoutqa-sample details.signatures")
        signatures.locator("summary").click()
        for button, lines in copies.items():
            signatures.get_by_text(button, exact=True).first.click()
            page.locator(".toast").filter(has_text="ignature copied").last.wait_for()
            assert page.evaluate("navigator.clipboard.readText()") == next(iter(lines.values()))
    assert copies["Copy"] != copies["Copy short"]


def test_pairs_of_many_systems(browser: Browser, many: Path) -> None:
    """Intervals, p-values and wins are in a table below the matrix, and copies have plain signs."""
    with watched_page(browser, permissions=CLIPBOARD) as page:
        opened(page, many.as_uri())
        pairs = page.locator(".comparison details.as-table")
        pairs.locator("summary").click()
        rows = pairs.locator("tbody tr")
        assert rows.count() == 36 and " to " in rows.first.inner_text()
        matrix = copied(page, ".comparison", "Differences in loose accuracy")
        table = copied(page, ".comparison", "Pairs")
        cells = page.locator(".groups table.heat-table td.heat .interval")
        assert "–" in cells.first.inner_text()
    numbers = written(many)["sections"][0]["comparisons"][0]["pairs"]
    row = next(csv.DictReader(io.StringIO(table["CSV"])))
    assert [float(row[name]) for name in ("Difference", "Difference low", "p", "Wins", "Difference n")] == [
        numbers[0][name] for name in ("difference", "low", "p", "wins", "n")
    ]
    names = {row["Row - column"] for row in csv.DictReader(io.StringIO(matrix["CSV"]))}
    assert names == {f"org/system-{i}-instruct" for i in range(9)}
    assert "\N{MINUS SIGN}" not in matrix["CSV"] + matrix["Markdown"] + table["CSV"] + table["LaTeX"]


def test_names_of_digits_stay_text(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    """A copy for a program has "007" as it is, and counts as numbers."""
    names = ["007", "1,234"]
    runs = [replace(run, model=name) for run, name in zip(three, names, strict=False)]
    with watched_page(browser, permissions=CLIPBOARD) as page:
        opened(page, build_report(runs, tmp_path).as_uri())
        text = copied(page, "#fanoutqa-sample", "Scores")["CSV"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["Run"] for row in rows} == set(names)
    assert all(row["Loose accuracy n"].isdecimal() for row in rows)


def test_a_narrow_interval_is_seen(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    """Its ends are higher than the marker, also where the marker is wider than the interval."""
    records = [replace(three[0].records[i % 12], id=f"{i:04}") for i in range(2400)]
    built = build_report([replace(three[0], records=records, expected=2400), three[1]], tmp_path)
    with watched_page(browser) as page:
        opened(page, built.as_uri())
        row = page.locator("table.scores tbody tr").filter(has_text="large").locator(".plot-cell svg")
        heights = row.locator("line").evaluate_all("all => all.map(line => line.getBBox()).map(box => box.height)")
        marker = row.locator("path").evaluate("path => path.getBoundingClientRect().height")
        ends = [height for height in heights if 0 < height < 22]
        assert len(ends) == 2 and min(ends) > marker


def test_long_names_fit_a_phone(browser: Browser, three: list[Evaluation], tmp_path: Path) -> None:
    """They are told apart by their ends."""
    name = "organization/" + "A-Model-With-A-Very-Long-Name-" * 4
    runs = [replace(run, model=f"{name}{i}") for i, run in enumerate(three)]
    built = build_report(runs, tmp_path)
    for width in (390, 1360):
        with watched_page(browser, viewport={"width": width, "height": 844}) as page:
            opened(page, built.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            names = page.locator("table.scores tbody th").all_inner_texts()
            assert {name[-1] for name in names} == {"0", "1", "2"} and max(map(len, names)) <= 80


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
    dialog.locator(".tabs button").filter(has_text="org/medium").click()
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


def test_forms_of_details(page: Page, three: list[Evaluation], tmp_path: Path) -> None:
    """Pages, texts and their problems, and tables with remarks, in the declared order."""
    first = three[0].records[0]
    detail: dict[str, Any] = {"found": ["a"], "missing": [], "judge": "The judge's reply", "verdict": 0.5}
    detail |= {"evidence_read": [{"title": "Page A"}, {"title": None, "url": "https://example.org/b"}]}
    detail |= {"evidence_missing": ["Page C"], "judge_problem": "no verdict in the reply"}
    run = replace(three[0], records=[replace(first, detail=detail), *three[0].records[1:]])
    felm = felm_run()
    segments = [{"text": "S.", "label": False, "verdict": None, "type": "a type", "comment": "a comment"}]
    told = {
        "segments": segments,
        "replies": ["one", None],
        "claims": [{"segment": 1, "text": "a claim"}],
        "reasons": ["a warning"],
    }
    other = replace(felm, records=[replace(felm.records[0], detail=told), *felm.records[1:]])
    url = build_report([run, other], tmp_path).as_uri()
    texts = {}
    for link in (f"fanoutqa-sample/{first.id}", f"felm-sample/{felm.records[0].id}"):
        page.goto("about:blank")
        page.goto(f"{url}#/{link}")
        page.locator("#question .record").first.wait_for()
        texts[link.partition("-")[0]] = page.locator("#question .record").text_content() or ""
    shown = texts["fanoutqa"]
    pages = "Evidence pages (2 read, 1 necessary page not read)✗ Page C not readPage A https://example.org/b"
    assert "Found 1 of 1 string of the reference" in shown and pages in shown.replace("Page Ahttps", "Page A https")
    assert "Judgeno verdict in the replyThe judge's reply" in shown and "verdict0.5" not in shown
    row = "1S.a commenterrora typenone– no verdict"
    assert "a warning" in texts["felm"] and row in texts["felm"]
    assert "Claims (1)1. a claim" in texts["felm"] and "Replies (2)onenone" in texts["felm"]


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
    assert {row["run"] for row in csv.DictReader(io.StringIO(table.decode()))} == {
        "openai/large",
        "org/medium",
        "org/small",
    }


def test_numbers_and_questions_are_saved(page: Page, everything: Path, three: list[Evaluation]) -> None:
    _, figures_csv = saved(page, page.locator("#save-csv").click)
    rows = list(csv.DictReader(io.StringIO(figures_csv.decode())))
    of_loose = [r for r in rows if (r["run"], r["grouping"], r["metric"]) == ("openai/large", "", "acc.loose")]
    (loose,) = [r for r in of_loose if not r["versus"]]
    assert float(loose["mean"]) == three[0].scores()["acc.loose"].interval.mean
    (comparison,) = [
        each for each in written(everything)["sections"][0]["comparisons"] if each["metric"] == "acc.loose"
    ]
    pairs = {(pair["first"], pair["second"]): pair for pair in comparison["pairs"]}
    (better,) = [r for r in of_loose if r["versus"] == "org/small"]
    pair = pairs["openai/large", "org/small"]
    assert [float(better[name]) for name in ("mean", "low", "p")] == [pair["difference"], pair["low"], pair["p"]]
    _, numbers = saved(page, page.locator("#save-json").click)
    assert json.loads(numbers) == written(everything)
    browser = page.locator('.browser[data-section="fanoutqa-sample"]')
    browser.locator('input[type="search"]').fill("novels")
    browser.locator(".told").filter(has_text="1 of 12").wait_for()
    _, lines = saved(page, browser.get_by_role("button", name="JSON Lines").click)
    assert [json.loads(line)["run"] for line in lines.decode().splitlines()] == [
        "openai/large",
        "org/medium",
        "org/small",
    ]


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
    """Return a string as the page shows it: symbols for invisible characters, and both ends of a
    long one.
    """
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
