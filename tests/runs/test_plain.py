"""Finished logs are read without importing Inspect, with the same result as with its classes."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import fanoutqa_closed_book
from inspect_ai.log import EvalLog, list_eval_logs
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ContentReasoning, ContentText
from inspect_ai.tool import ToolCall
from scripted_model import edited, run

from qabench.runs import log as runs_log
from qabench.runs.archive import open_archive
from qabench.runs.log import read_run
from qabench.runs.log_types import Log
from qabench.runs.plain import Unfamiliar, read_plain_header


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    replies = iter(["Paris and Lima.", ConnectionError("no"), "", *["Mars in 1998"] * 9])
    folder = tmp_path_factory.mktemp("logs")
    return Path(run(fanoutqa_closed_book("sample", lemmatizer="simplemma"), lambda _: next(replies), folder).location)


def with_tools_and_parts(content: EvalLog) -> None:
    call = ToolCall(id="1", function="search", arguments={"query": "Lima"})
    parts = [ContentReasoning(reasoning="hm"), ContentText(text="one"), ContentText(text="two")]
    assert content.samples
    content.samples[0].messages += [
        ChatMessageAssistant(content=parts, tool_calls=[call]),
        ChatMessageTool(content="found", tool_call_id="1"),
    ]


def with_an_attachment(content: EvalLog) -> None:
    assert content.samples
    content.samples[0].attachments = {"a": "a long text"}
    content.samples[0].messages.append(ChatMessageAssistant(content="attachment://a"))


def with_a_long_reply_limit(content: EvalLog) -> None:
    content.plan.config.max_tokens, content.eval.config.message_limit = 7, 3


@pytest.mark.parametrize("change", [id, with_tools_and_parts, with_an_attachment, with_a_long_reply_limit])
def test_the_result_is_that_of_inspect(log: Path, tmp_path: Path, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = edited(log, tmp_path, change)
    assert isinstance(read_plain_header(path), Log)
    ours = read_run(path)

    def unfamiliar(*_: Any) -> Any:
        raise Unfamiliar

    monkeypatch.setattr(runs_log, "read_plain_header", unfamiliar)
    assert read_run(path) == ours


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [(None, "version", 3),
     (None, "log_updates", []),
     ("eval", "packages", {"inspect_ai": "0.3.284"}),
     ("eval", "task_args", "text")],
)  # fmt: skip
def test_inspect_reads_unfamiliar_headers(log: Path, tmp_path: Path, part: str | None, name: str, value: Any) -> None:
    path = tmp_path / log.name
    with open_archive(log) as archive:
        header = json.loads(archive.read("header.json"))
    target = header["eval"].get(part, header["eval"]) if part else header
    target[name] = value
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    with pytest.raises(Unfamiliar):
        read_plain_header(path)


def test_scoring_a_log_does_not_import_inspect(tmp_path: Path) -> None:
    run(fanoutqa_closed_book("sample", lemmatizer="simplemma"), lambda _: "Mars", tmp_path)
    (path,) = [info.name for info in list_eval_logs(str(tmp_path))]
    code = (
        "import sys; from qabench.cli import app\n"
        "try: app()\n"
        "finally: print('inspect_ai' in sys.modules, 'openai' in sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "score", "fanoutqa", path.removeprefix("file://")]
    done = subprocess.run([*command, "--lemmatizer", "simplemma"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("False False\n")
