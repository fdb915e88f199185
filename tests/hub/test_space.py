"""The pages of the metrics: reading input, aligning it, display, and a real page in Chromium."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import chromium, watched_page
from hypothesis import given
from hypothesis import strategies as st
from openai_server import OpenAIServer
from stand_ins import no_weights

import qabench
from qabench import metrics
from qabench.errors import InputError
from qabench.hub.space import MAX_BYTES, align, answer, metric_parameters, read_items, result_markdown
from qabench.hub.staging import write_space
from qabench.io.tables import markdown_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(metrics.__file__).parent
SIMPLE = {"lemmatizer": "simplemma"}
ROWS = [{"id": "a", "answer": "Paris"}, {"id": "b", "answer": "Lima"}, {"id": "c", "answer": 1998}]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(min_size=1), part, max_size=3),
    max_leaves=6,
)


def lines(rows: list[Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def joined(predictions: str, references: str | None, **fields: str) -> Any:
    read = None if references is None else read_items(references.encode(), "references")
    return align(read_items(predictions.encode(), "predictions"), read, {"references": "answer"} | fields)


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Reading


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_a_list_and_lines_are_equivalent(values: list[Any]) -> None:
    texts = [json.dumps(values), json.dumps(values, indent=1), lines(values)]
    for text in texts[: 3 if len(values) > 1 else 2]:  # a single line that is a list is a list of values
        assert read_items(text.encode(), "x").values == values


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_content_is_read_or_explained(data: bytes) -> None:
    try:
        assert isinstance(read_items(data, "predictions").values, list)
    except InputError as error:
        assert str(error).startswith("predictions: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "empty; paste"),
        (b'[\n "a",\n "b"\n "c"\n]', r"not JSON \(Expecting ',' delimiter, line 4, column 2\)"),
        (b'"a"\n\n"b\n"c"\n{', r"line 3: not JSON .*, line 5: not JSON .*strings need double quotes: "),
        (b'"a"\n"\xff"', "line 2: not UTF-8 at byte 1"),
        (b"[" * 100_000, "nested deeper than 100"),
        (b"x\n" * 9, "line 5: not JSON .* and 4 more"),
        (b'["' + b"x" * MAX_BYTES + b'"]', r"5\.0 MB; the limit of this page is 5 MB.*qabench score"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_unreadable_lines_are_named(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.compile(f"^predictions: .*{message}", re.DOTALL)):
        read_items(data, "predictions")


# Aligning


@given(st.permutations(range(6)))
def test_by_id_the_order_does_not_matter(order: list[int]) -> None:
    answers = [{"id": i, "prediction": f"p{i}"} for i in order]
    columns, ids, notes = joined(lines(answers), json.dumps([{"id": str(i), "reference": i} for i in range(6)]))
    assert columns == {"predictions": [f"p{i}" for i in range(6)], "references": list(range(6))}
    assert (ids, notes) == (list("012345"), [])


def test_unmatched_ids_are_named() -> None:
    answers = [{"id": "b", "answer": "old"}, {"id": "z", "answer": "?"}, {"id": "b", "answer": None}]
    columns, _, notes = joined(lines(answers), lines(ROWS))
    assert columns == {"predictions": [None, None, None], "references": ["Paris", "Lima", 1998]}
    assert notes[:2] == [
        "questions without a prediction: 2 (a, c)",
        "predictions for unknown questions: 1 (z (line 2))",
    ]


def test_rows_may_hold_both_sides_and_columns() -> None:
    rows = [{"id": 7, "prediction": "p", "reference": "r", "domain": "wk"}, {"id": 8, "prediction": None}]
    read = read_items(lines(rows[:1]).encode(), "p")
    columns = {"predictions": ["p"], "references": ["r"], "domains": ["wk"]}
    assert align(read, None, {"domains": "domain"}) == (columns, ["7"], [])
    with pytest.raises(InputError, match="line 2 has no 'reference', but others have it"):
        joined(lines(rows), None)
    dataset = [row | {"prediction": "p"} for row in ROWS]
    assert joined(lines(dataset), None)[0] == {"predictions": ["p"] * 3, "references": ["Paris", "Lima", 1998]}


def test_without_ids_on_both_sides_the_order_counts() -> None:
    columns, ids, (note,) = joined('["x", "y", "z"]', lines(ROWS))
    assert columns == {"predictions": ["x", "y", "z"], "references": ["Paris", "Lima", 1998]}
    assert ids == ["a", "b", "c"] and "by position" in note
    assert joined('["x"]', '[{"France": "Paris"}]')[0]["references"] == [{"France": "Paris"}]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (lines(ROWS), None, "references: empty"),
        (lines(ROWS), '{"id": "x", "answer": 1}', "none of the 3 predictions .* belongs to a question .* has id 'a'"),
        ('{"id": 1, "answer": 1}\n{"id": 2}', '["r", "r"]', "line 2 has no 'answer', but others have it"),
    ],
)
def test_mismatches_are_errors(predictions: str, references: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        joined(predictions, references)


# Options


def test_a_page_offers_only_harmless_options(name: str) -> None:
    takes = metric_parameters(qabench.load_metric(name))
    options = {option.name for option in takes.options}
    assert not options & {"model", "base_url", "api_key", "judge", "revision", "bleurt"}
    assert {"per_question", "references_format"} <= options and all(option.about for option in takes.options)
    assert takes.fixed == ({"judge": {"max_calls": 100}} if name in ("fanout_judge", "fanoutqa") else {})


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ("fanout_judge", {"prompt": "/etc/passwd"}, "prompt is '/etc/passwd'; allowed: auto, official, qabench"),
        ("answer_component_mrr", {"k": "ten"}, "k is 'ten'; it must be an integer, or a list"),
        ("answer_component_mrr", {"k": "0"}, "k"),
    ],
)
def test_invalid_options_are_named(metric: str, options: dict[str, Any], message: str) -> None:
    text, result = answer(metric, example(metric) | options)
    assert result is None and text.startswith("**This cannot be scored yet.** ") and message in text


# Display


def example(metric: str) -> dict[str, str]:
    """Return the initial texts of a page."""
    lists = json.loads((FOLDER / metric / "example.json").read_text(encoding="utf-8"))
    return {column: json.dumps(lists[column]) for column in ("predictions", "references")}


def by_library(metric: str) -> Any:
    """Return the example's result, computed without the page, as JSON data."""
    columns = {name: json.loads(text) for name, text in example(metric).items()}
    if metric == "fanout_judge":
        columns["questions"] = [row["question"] for row in columns["predictions"]]
        columns["predictions"] = [row["prediction"] for row in columns["predictions"]]
    return json.loads(json.dumps(qabench.load_metric(metric).compute(**columns, per_question=True)))


def test_the_example_scores_as_by_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_weights(monkeypatch)
    text, result = answer(name, example(name) | {"per_question": True})
    expected = by_library(name)
    assert result and json.loads(result) == expected
    assert markdown_text(expected["signature"]) in text
    assert ("Unofficial scores" in text) == bool(expected.get("deviations"))


def test_foreign_text_is_escaped() -> None:
    records = [{"x<1>": "<2>", "parts": {"<3>": ["<4>"]}}]
    result = {"a<5>": "<6>", "by<7>": {"<8>": {"<9>": "<10>"}}, "list<11>": [{"<12>": "<13>"}], "per_question": records}
    result |= {"deviations": ["<14>"], "absent": {"<15>": "<16>"}, "signature": "<17>"}
    text = result_markdown(result, ["<18>"], ["<19>"])
    assert "<" not in text
    assert {int(number) for number in re.findall(r"&lt;(\d+)&gt;", text)} == set(range(1, 20))
    error, _ = answer("fanout_acc", {"predictions": '["<b>"]', "references": "<b>"})
    assert "<" not in error


def test_long_tables_are_shortened_with_a_note() -> None:
    texts = json.dumps(["x"] * 300)
    text, result = answer("fanout_acc", {"predictions": texts, "references": texts, "per_question": True} | SIMPLE)
    assert result and len(json.loads(result)["per_question"]) == 300
    assert "| 200 " in text and "| 201 " not in text and "the first 200 of 300" in text


def test_the_host_sets_key_server_and_most_calls_of_the_judge(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    rows = [{"id": i, "question": "Where?", "prediction": f"p{i}", "reference": "r"} for i in range(103)]
    strangers = {"base_url": "http://elsewhere", "api_key": "k", "model": "m", "judge": {"max_calls": 999}}
    with OpenAIServer() as server:
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "secret-key")
        text, result = answer("fanout_judge", {"predictions": lines(rows)} | strangers)
        assert result and "secret-key" not in text + result and "elsewhere" not in text
        assert len(server.calls) == json.loads(result)["counts"]["scored"] == 100


# A real page


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page of a Space, which has only its folder: ``python app.py``. Console errors and other requests fail."""
    pytest.importorskip("gradio", reason="needs the extra space")
    write_space("fanout_acc", tmp_path / "space", "qabench")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # The same lemmatizer as in this process, regardless of the environment.
    environment = {name: value for name, value in os.environ.items() if name != "QABENCH_SPACY_MODEL"}
    environment |= {"GRADIO_SERVER_PORT": str(port), "GRADIO_TEMP_DIR": str(tmp_path / "uploads")}
    log = tmp_path / "log"
    with chromium() as browser, watched_page(browser) as page, log.open("wb") as output:
        command = [sys.executable, "app.py"]
        with subprocess.Popen(command, cwd=tmp_path / "space", env=environment, stdout=output, stderr=output) as app:
            while b"Running on" not in log.read_bytes():
                assert app.poll() is None, log.read_text()
                time.sleep(0.1)
            page.goto(f"http://127.0.0.1:{port}/")
            yield page
            app.terminate()


def test_a_page_scores_its_example_and_files(page: Page, tmp_path: Path) -> None:
    expected = by_library("fanout_acc")
    assert "France: Paris" in page.get_by_label("Predictions").first.input_value()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("Unofficial scores").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    assert json.loads(download.value.path().read_text(encoding="utf-8")) == expected
    report = page.get_by_text("Unofficial scores").locator("xpath=../..")
    assert f"{expected['loose']:.4f}" in report.inner_text() and "lima" in report.inner_text().lower()
    (tmp_path / "answers.jsonl").write_text(lines([{"id": "c", "answer": "in 1998"}, {"id": "x", "answer": "?"}]))
    (tmp_path / "references.jsonl").write_text(lines(ROWS))
    (tmp_path / "big.jsonl").write_text('"x"\n' * (MAX_BYTES // 4 + 1))
    page.get_by_role("button", name=re.compile("file upload")).click()
    for name in ("answers.jsonl", "references.jsonl"):
        page.locator("input[type=file]").first.set_input_files(tmp_path / name)
        page.get_by_label(name, exact=True).wait_for()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("predictions for unknown questions: 1 (x").wait_for()
    page.reload()
    page.get_by_role("button", name=re.compile("file upload")).click()
    page.locator("input[type=file]").first.set_input_files(tmp_path / "big.jsonl")
    page.get_by_label("big.jsonl", exact=True).wait_for()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("the limit of this page is 5 MB").wait_for()
