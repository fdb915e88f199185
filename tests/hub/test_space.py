"""The pages of the metrics: reading input, aligning it, display, and a real page in Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
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
from qabench.hub.space import MAX_BYTES, align, answer, error_html, metric_parameters, read_file, read_text, result_html

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(metrics.__file__).parent
SECONDS_TO_START = 120
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
    read = None if references is None else read_text(references, "references")
    return align(read_text(predictions, "predictions"), read, {}, {"references": "answer"} | fields)


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    no_weights(monkeypatch)


# Reading


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_a_list_and_lines_are_equivalent(values: list[Any]) -> None:
    as_list, pretty = json.dumps(values), json.dumps(values, indent=1)
    assert read_text(as_list, "x").values == read_text(pretty, "x").values == values
    if len(values) > 1:  # a single line that is a list is a list of values
        read = read_text(lines(values), "x")
        assert (read.values, next(iter(read.items))) == (values, "line 1")


@given(st.text())
def test_any_text_is_read_or_explained(text: str) -> None:
    try:
        assert isinstance(read_text(text, "predictions").values, list)
    except InputError as error:
        assert str(error).startswith("predictions: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", "empty; paste"),
        ("[", r"not JSON \(Expecting value, column 2\)"),
        ('[\n "a",\n "b"\n "c"\n]', r"not JSON \(Expecting ',' delimiter, line 4, column 2\)"),
        ("Paris", 'line 1: not JSON .* strings need double quotes: "Paris"'),
        ('"a"\n\n"b\n"c"\n{', r"line 3: not JSON .*, line 5: not JSON .*Use a JSON list"),
        ("[" * 100_000, "nested deeper than 100"),
        ("[" + "9" * 5000 + "]", "not valid JSON"),
        ("x\n" * 9, "line 5: not JSON .* and 4 more"),
    ],
)
def test_unreadable_lines_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.compile(f"^predictions: .*{message}", re.DOTALL)):
        read_text(text, "predictions")


def test_files_are_json_or_jsonl_with_a_limit(tmp_path: Path) -> None:
    def read(name: str, data: bytes) -> list[Any]:
        (tmp_path / name).write_bytes(data)
        return read_file(tmp_path / name, "predictions").values

    assert read("a.json", b'\xef\xbb\xbf["a", "b"]') == ["a", "b"]
    assert read("a.jsonl", '"a\u2028"\r\n"b"\r\n'.encode()) == ["a\u2028", "b"]
    assert read("one.jsonl", b"[true, false]\n") == [[True, False]]
    assert read("one.json", b"[true, false]\n") == [True, False]
    with pytest.raises(InputError, match=r"predictions \(a.jsonl\): line 2 is not UTF-8"):
        read("a.jsonl", b'"a"\n"\xff"')
    with pytest.raises(InputError, match=r"predictions \(e.jsonl\): empty"):
        read("e.jsonl", b"\n")
    with pytest.raises(InputError, match=r"5\.0 MB; the limit of this page is 5 MB.*qabench score"):
        read("big.json", b'["' + b"x" * MAX_BYTES + b'"]')
    with pytest.raises(InputError, match="the limit of this page is 5 MB"):
        read_text("x" * (MAX_BYTES + 1), "predictions")


# Aligning


@given(st.permutations(range(6)))
def test_by_id_the_order_does_not_matter(order: list[int]) -> None:
    answers = [{"id": i, "prediction": f"p{i}"} for i in order]
    found = joined(lines(answers), json.dumps([{"id": str(i), "reference": i} for i in range(6)]))
    assert found.columns == {"predictions": [f"p{i}" for i in range(6)], "references": list(range(6))}
    assert (found.ids, found.notes) == (list("012345"), [])


def test_unmatched_ids_are_named() -> None:
    answers = [{"id": "b", "answer": "old"}, {"id": "z", "answer": "?"}, {"id": "b", "answer": None}]
    found = joined(lines(answers), lines(ROWS))
    assert found.columns["predictions"] == [None, None, None]
    assert found.columns["references"] == ["Paris", "Lima", 1998]
    assert found.notes == [
        "Questions without a prediction, scored as unanswered: 2 (a, c)",
        "Predictions for unknown ids, left out: 1 (z)",
    ]


def test_rows_may_hold_both_sides_and_columns() -> None:
    rows = [{"id": 7, "prediction": "p", "reference": "r", "domain": "wk"}, {"id": 8, "prediction": None}]
    found = align(read_text(lines(rows[:1]), "p"), None, {"domains": None}, {"domains": "domain"})
    assert found.columns == {"predictions": ["p"], "references": ["r"], "domains": ["wk"]}
    assert found.ids == ["7"]
    with pytest.raises(InputError, match="line 2 has no 'reference', but others have it"):
        joined(lines(rows), None)
    dataset = [row | {"prediction": "p"} for row in ROWS]
    assert joined(lines(dataset), None).columns == {"predictions": ["p"] * 3, "references": ["Paris", "Lima", 1998]}


def test_without_ids_on_both_sides_the_order_counts() -> None:
    found = joined('["x", "y", "z"]', lines(ROWS))
    assert found.columns == {"predictions": ["x", "y", "z"], "references": ["Paris", "Lima", 1998]}
    assert found.ids == ["a", "b", "c"] and "by position" in found.notes[0]
    assert joined('["x"]', '[{"France": "Paris"}]').columns["references"] == [{"France": "Paris"}]


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (lines(ROWS), None, "references: empty"),
        (lines(ROWS), lines(ROWS + ROWS[:1]), r"repeated ids: a"),
        (lines(ROWS), '{"id": "x", "answer": 1}', "begin with 'a', the references with 'x'; are they for the same"),
        (lines(ROWS), lines(ROWS) + "\n{", "references: line 4: not JSON"),
        ('"x"\n{"prediction": 1}', '["r", "r"]', "line 1 has no 'prediction', but others have it"),
        ('{"id": 1, "answer": 1}\n{"id": 2}', '["r", "r"]', "line 2 has no 'answer', but others have it"),
    ],
)
def test_mismatches_are_errors(predictions: str, references: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        joined(predictions, references)


# Options


def test_a_page_offers_only_harmless_options(name: str) -> None:
    takes = metric_parameters(qabench.load_metric(name))
    assert not {o.name for o in takes.options} & {"model", "base_url", "api_key", "judge", "revision", "bleurt"}
    assert {"per_question", "references_format"} <= {o.name for o in takes.options}
    for option in takes.options:
        assert option.about, "said in the metric's documentation"
        assert not option.choices or option.default in option.choices
    assert takes.fixed == ({"judge": {"max_calls": 100}} if name in ("fanout_judge", "fanoutqa") else {})


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (
            "fanout_judge",
            {"prompt": "/etc/passwd"},
            "prompt is &#x27;/etc/passwd&#x27;; allowed: auto, official, qabench",
        ),
        ("answer_component_mrr", {"k": "ten"}, "k is &#x27;ten&#x27;; it must be an integer, or several"),
        ("answer_component_mrr", {"k": "0"}, "k"),
        ("expertqa_lfqa", {"seed": "x"}, "seed is &#x27;x&#x27;; it must be an integer"),
    ],
)
def test_invalid_options_are_named(metric: str, options: dict[str, Any], message: str) -> None:
    html, result = answer(metric, example(metric) | options)
    assert result is None and 'role="alert"' in html and message in html


# Display


def example(metric: str) -> dict[str, str]:
    """Return the initial texts of a page."""
    lists = json.loads((FOLDER / metric / "example.json").read_text(encoding="utf-8"))
    return {column: json.dumps(lists[column]) for column in ("predictions", "references")}


def by_library(metric: str) -> Any:
    """Return the example's result, computed without the page."""
    columns = {name: json.loads(text) for name, text in example(metric).items()}
    if metric == "fanout_judge":
        columns["questions"] = [row["question"] for row in columns["predictions"]]
        columns["predictions"] = [row["prediction"] for row in columns["predictions"]]
    return qabench.load_metric(metric).compute(**columns, per_question=True)


def test_the_example_scores_as_by_the_library(name: str, stand_ins: None) -> None:
    html, result = answer(name, example(name) | {"per_question": True})
    assert result == by_library(name)
    deviates = bool(result.get("deviations"))
    assert escape(result["signature"]) in html and ("Unofficial scores" in html) == deviates
    for number in re.findall(r"<td>(\d\.\d{4})</td>", html):
        assert any(number == f"{value:.4f}" for value in numbers(result)), number


BUILD_ALL = """
import json, sys
from qabench.metrics import metric_names
from qabench.hub.space import page
pages = {name: page(name) for name in metric_names()}
built = {name: {**page.get_config_file(), "api": page.get_api_info()} for name, page in pages.items()}
json.dump(built, sys.stdout, default=str)
"""


def test_every_page_is_built_with_its_example_and_options(tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="needs the extra space")
    # In a separate process, because gradio leaves event loops open; and in the folder of the Space whose module has the
    # name of another distribution, and is first on the path.
    shutil.copytree(FOLDER / "fanoutqa", tmp_path / "space")
    command = [sys.executable, "-c", BUILD_ALL]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path / "space")
    assert done.returncode == 0, done.stderr.decode()
    built = json.loads(done.stdout)
    assert sorted(built) == metrics.metric_names()
    for name, config in built.items():
        parts = [part["props"] for part in config["components"]]
        takes = metric_parameters(qabench.load_metric(name))
        labels = [part.get("label") for part in parts]
        (endpoint,) = built[name]["api"]["named_endpoints"].values()
        assert {"predictions", "references_file"} <= {part["parameter_name"] for part in endpoint["parameters"]}
        assert all(part["parameter_has_default"] for part in endpoint["parameters"])
        assert {"Predictions", "References", *(option.name for option in takes.options)} <= set(labels)
        for column, text in example(name).items():
            (box,) = (part for part in parts if part.get("label") == column.capitalize())
            assert json.loads(box["value"]) == json.loads(text)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


def test_ids_name_the_questions_and_what_was_missed() -> None:
    answers = [{"id": "b", "answer": "Lima"}, {"id": "c", "answer": "<script>x</script>"}]
    values = {"predictions": lines(answers), "references": lines(ROWS), "per_question": True}
    html, result = answer("fanout_acc", values | SIMPLE)
    assert result and result["strict"] == 1 / 3
    assert '<th scope="row">a</th><td>0</td><td>no</td><td>paris</td>' in html.lower()
    assert "Questions without a prediction, scored as unanswered: 1 (a)" in html


def test_foreign_text_is_escaped() -> None:
    records = [{"x<1>": "<2>", "parts": {"<3>": ["<4>"]}}]
    result = {"a<5>": "<6>", "by<7>": {"<8>": {"<9>": "<10>"}}, "list<11>": [{"<12>": "<13>"}], "per_question": records}
    result |= {"deviations": ["<14>"], "absent": {"<15>": "<16>"}, "signature": "<17>"}
    html = result_html(result, ["<18>"], ["<19>"]) + error_html("<20>")
    assert not re.findall(r"<\d+>", html)
    assert {int(number) for number in re.findall(r"&lt;(\d+)&gt;", html)} == set(range(1, 21))


def test_long_tables_are_shortened_with_a_note() -> None:
    values = {"predictions": json.dumps(["x"] * 300), "references": json.dumps(["x"] * 300), "per_question": True}
    html, result = answer("fanout_acc", values | SIMPLE)
    assert result and len(result["per_question"]) == 300
    assert html.count("<tr>") == 1 + 2 + 1 + 200 and "the first 200 of 300" in html


def test_unexpected_failures_show_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("secret-path")

    monkeypatch.setattr("qabench.hub.space.load_metric", fail)
    html, result = answer("fanout_acc", {"predictions": "[]", "references": "[]"})
    assert result is None and "internal error occurred (RuntimeError)" in html and "secret-path" not in html


def test_the_judge_gets_key_and_server_from_the_host(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    pytest.importorskip("openai", reason="needs the extra judge")
    with OpenAIServer() as server:
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "secret-key")
        strangers = {"base_url": "http://elsewhere", "api_key": "k", "model": "m", "judge": {"max_calls": 9}}
        html, result = answer("fanout_judge", example("fanout_judge") | strangers | {"per_question": True})
        assert result and result["gpt"] == 2 / 3 and result["usage"]["calls"] == len(server.calls) == 2
        assert "0.6667" in html and "secret-key" not in html + json.dumps(result) and "elsewhere" not in html


def test_the_judge_stops_at_a_hundred_calls(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    pytest.importorskip("openai", reason="needs the extra judge")
    rows = [{"id": i, "question": "Where?", "prediction": f"p{i}", "reference": "r"} for i in range(103)]
    with OpenAIServer() as server:
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
        _, first = answer("fanout_judge", {"predictions": lines(rows)})
        assert first and len(server.calls) == first["counts"]["scored"] == 100
        assert len(first["unreadable"]) == 3
        _, second = answer("fanout_judge", {"predictions": lines(rows)})
        assert second and second["counts"]["scored"] == len(server.calls) == 103


# A real page


@contextmanager
def served(app: Path, folder: Path) -> Iterator[str]:
    """The address of a page that runs in a separate process, started as on a Space: ``python app.py``."""
    pytest.importorskip("gradio", reason="needs the extra space")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # The same lemmatizer as in this process, regardless of the environment.
    environment = {name: value for name, value in os.environ.items() if name != "QABENCH_SPACY_MODEL"}
    environment |= {"GRADIO_SERVER_PORT": str(port), "GRADIO_TEMP_DIR": str(folder / "uploads")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, app.name], cwd=app.parent, env=environment, stdout=log, stderr=log)
    try:
        give_up = time.monotonic() + SECONDS_TO_START
        while not _answers(f"http://127.0.0.1:{port}/"):
            if process.poll() is not None or time.monotonic() > give_up:
                pytest.fail(f"the page did not start:\n{(folder / 'log').read_text()}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Yield the opened page; console errors and requests to other machines fail."""
    # A Space has only the folder, and the installed package.
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(FOLDER / "fanout_acc", folder / "space")
    with chromium() as browser, served(folder / "space" / "app.py", folder) as address, watched_page(browser) as page:
        page.goto(address)
        yield page


@pytest.fixture
def page(opened: Page) -> Page:
    opened.reload()
    opened.get_by_role("button", name="Score", exact=True).wait_for()
    return opened


def scored(page: Page) -> dict[str, Any]:
    """Presses the button; the exact result, downloaded."""
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("Exact result").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def test_the_example_is_shown_and_scores(page: Page) -> None:
    expected = json.loads(json.dumps(by_library("fanout_acc")))
    assert "France: Paris" in page.get_by_label("Predictions").first.input_value()
    assert scored(page) == expected
    figures = page.get_by_role("table", name="Scores")
    assert f"{expected['loose']:.4f}" in figures.inner_text()
    assert "lima" in page.get_by_role("table", name="By question").inner_text().lower()
    assert "Unofficial scores" in page.locator(".box.warning").inner_text()
    page.get_by_role("tab", name="Metric card").click()
    page.get_by_role("heading", name="Metric Description").wait_for()


def test_files_are_joined_by_id(page: Page, tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(lines([{"id": "c", "answer": "in 1998"}, {"id": "x", "answer": "?"}]))
    (tmp_path / "references.jsonl").write_text(lines(ROWS))
    (tmp_path / "big.jsonl").write_text('"x"\n' * (MAX_BYTES // 4 + 1))
    page.get_by_role("button", name=re.compile("file upload")).click()
    for name in ("answers.jsonl", "references.jsonl"):
        page.locator("input[type=file]").first.set_input_files(tmp_path / name)
        page.get_by_label(name, exact=True).wait_for()
    assert scored(page)["strict"] == 1 / 3
    assert "left out: 1 (x)" in page.locator(".box.note").inner_text()
    page.get_by_role("button", name="Clear all", exact=True).click()
    page.get_by_label("answers.jsonl", exact=True).wait_for(state="detached")
    page.locator("input[type=file]").first.set_input_files(tmp_path / "big.jsonl")
    page.get_by_label("big.jsonl", exact=True).wait_for()
    page.get_by_role("button", name="Score", exact=True).click()
    assert "the limit of this page is 5 MB" in page.get_by_role("alert").inner_text()
    assert not page.get_by_text("Exact result").is_visible()
