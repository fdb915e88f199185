"""The pages of the metrics: reading input, results, and a real page in Chromium."""

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
from qabench.hub.space import MAX_CHARACTERS, answer, read_values
from qabench.hub.staging import write_space

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(metrics.__file__).parent


@pytest.fixture(params=metrics.metric_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@given(st.text())
def test_any_text_is_read_or_explained(text: str) -> None:
    try:
        assert isinstance(read_values(text, "predictions"), list)
    except InputError as error:
        assert str(error).startswith("predictions")


@pytest.mark.parametrize(
    ("text", "message"),
    [(" \n", ": empty; paste"),
     ('[\n "a",\n "b"\n "c"\n]', r": not JSON \(Expecting ',' delimiter: line 4 column 2 .*\); strings need"),
     ('"Lima"', " is 'Lima'; paste a JSON list"),
     ("[" * 100_000, ".*nested deeper than 100"),
     ('["' + "x" * MAX_CHARACTERS + '"]', r": 5\.0 million characters; .* is 5 million.*qabench score"),
     ('[{"id": "b", "answer": "Lima"}, {"id": "a"}]', r": items have ids \(b, a\).*by their position")],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_unusable_input_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.compile(f"^predictions{message}", re.DOTALL)):
        read_values(text, "predictions")


def example(metric: str) -> dict[str, str]:
    """Return the initial texts of a page."""
    columns = json.loads((FOLDER / metric / "example.json").read_text(encoding="utf-8"))
    return {column: json.dumps(values) for column, values in columns.items() if column != "note"}


def by_library(metric: str) -> Any:
    """Return the example's result, computed without the page."""
    return qabench.load_metric(metric).compute(**{name: json.loads(text) for name, text in example(metric).items()})


def test_the_example_scores_as_by_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_weights(monkeypatch)
    assert answer(name, example(name)) == by_library(name)


def test_parameters_of_the_api_have_the_names_of_the_columns(name: str) -> None:
    pytest.importorskip("gradio", reason="needs the extra space")
    from qabench.hub.space import page

    endpoint = page(name).get_api_info()["named_endpoints"]["/score"]
    assert [parameter["parameter_name"] for parameter in endpoint["parameters"]] == list(example(name))


@pytest.mark.parametrize(
    ("texts", "message"),
    [({"predictions": '["x"]'}, "1 predictions for 3 references"),
     ({"predictions": None}, "predictions: empty; paste a JSON list")],
)  # fmt: skip
def test_unusable_values_are_messages(texts: dict[str, str | None], message: str) -> None:
    result = answer("fanout_acc", example("fanout_acc") | texts)
    assert list(result) == ["error"] and result["error"].startswith(message)


def test_the_host_sets_key_server_and_most_calls_of_the_judge(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    columns = {"predictions": [f"p{i}" for i in range(103)], "references": ["r"] * 103, "questions": ["Where?"] * 103}
    texts = {name: json.dumps(values) for name, values in columns.items()}
    with OpenAIServer() as server:
        monkeypatch.setenv("FANOUTQA_OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "secret-key")
        result = answer("fanout_judge", texts)
        assert "secret-key" not in json.dumps(result) and len(server.calls) == result["counts"]["scored"] == 100


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page of a Space, which has only its folder: ``python app.py``. Console errors and other
    requests fail.
    """
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


def test_a_page_scores_its_example_and_other_answers(page: Page) -> None:
    expected = by_library("fanout_acc")
    assert "France: Paris" in page.get_by_label("Predictions").first.input_value()
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text(str(expected["loose"])).first.wait_for()
    page.get_by_text(expected["signature"]).first.wait_for()
    page.get_by_label("Predictions").first.fill('["in Lima", "in 1998", "?"]')
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_text("0.0833").first.wait_for()
