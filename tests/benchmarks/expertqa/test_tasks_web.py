"""ExpertQA over the web on a loopback server: run, resume, log, export and claims."""

import json
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import expertqa
from inspect_ai import eval_retry
from inspect_ai.log import read_eval_log
from scripted_model import in_order, run
from web_server import Reply, WebServer, page

from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.splitting import split_predictions
from qabench.data.predictions import read_predictions
from qabench.runs.log import read_run
from qabench.runs.trust import checked_log

KEY = "k3y-that-nobody-may-see"
LIGHT = "Light takes eight minutes and twenty seconds from the Sun to the Earth, as every astronomer knows. " * 12
BREAD = "Bread dough rises because yeast turns sugar into gas, which the gluten of the flour holds back. " * 12
ANSWER = "Light takes minutes [1]. Dough rises by yeast [2][1]. Nobody disagrees."


@pytest.fixture
def server(cache: Path) -> Iterator[WebServer]:
    with WebServer() as running:
        running.pages |= {
            "/robots.txt": Reply(b"User-agent: *\nDisallow: /members/"),
            "/light": page("Light", LIGHT),
            "/bread": page("Bread", BREAD),
            "/table.xls": Reply(b"...", kind="application/vnd.ms-excel"),
        }
        pages = ["/light", "/bread#yeast", "/members/only", "/paper.pdf", "/table.xls", "/gone"]
        running.found = lambda query: [] if "iron" in query.lower() else pages
        yield running


@pytest.fixture
def search(server: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TEST_SEARCH_KEY", KEY)
    monkeypatch.setenv("QABENCH_SEARCH_VARIABLES", "TEST_SEARCH_KEY")
    path = tmp_path / "loopback.toml"
    path.write_text(f"""
url = "{server.url}/search"
results = "results"
address = "url"
failures = "unresponsive_engines"
[params]
q = "{{query}}"
format = "json"
[headers]
Authorization = "Bearer ${{TEST_SEARCH_KEY}}"
[pages]
delay = 0
private_addresses = true
""")
    return str(path)


def task(method: str, search: str, **more: Any) -> Any:
    return expertqa("sample", method, prompt="qabench", search=search, ranker="bm25", **more)


def detail(sample: Any) -> dict[str, Any]:
    return (sample.scores or {})["expertqa"].metadata["detail"]


def test_a_run_is_resumed_with_the_same_evidence(server: WebServer, search: str, tmp_path: Path) -> None:
    broken = {"Why": True}

    def reply(messages: Any) -> str | Exception:
        failing = "Why" in messages[-1].text and broken["Why"]
        return RuntimeError("the model is down") if failing else ANSWER

    log = run(task("retrieve-read-web", search), reply, tmp_path / "logs")
    failed = {str(one.id): one for one in in_order(log) if one.error}
    unasked = [one for one in in_order(log) if one.metadata.get("unasked")]
    answered = [one for one in in_order(log) if str(one.id) not in failed and one not in unasked]
    assert failed and unasked and answered
    expected = {"read": 2, "PDF": 1, "robots.txt": 1, "status 404": 1, "not HTML": 1}
    assert all(one.metadata["web"]["outcomes"] == expected for one in [*failed.values(), *answered])
    for one in unasked:
        assert one.output.completion == "I don't know." and not one.model_usage
        assert "no page could be read" in one.metadata["problems"][0] and detail(one)["pages"] == []
    claim = detail(answered[0])["claims"][0]
    assert claim["evidence"][0].startswith("[1] " + server.url) and len(detail(answered[0])["pages"]) == 6
    with zipfile.ZipFile(log.location.removeprefix("file://")) as archive:
        assert not [name for name in archive.namelist() if KEY.encode() in archive.read(name)]

    assert (
        checked_log(log.location, log.eval.model, task_args={"search": search}).eval.task == "qabench/expertqa"
    )  # so that --resume takes it
    broken["Why"] = False
    asked = len(server.requests)
    (again,) = eval_retry(log, log_dir=str(tmp_path / "logs"), display="none")
    resumed = read_eval_log(again.location)
    assert len(server.requests) == asked  # neither searches nor pages
    for one in resumed.samples or []:
        before = failed.get(str(one.id))
        if before is not None:
            assert one.metadata["web"] == before.metadata["web"] and detail(one)["passages"]
    found = read_run(again.location)
    # despite the samples without a call
    assert all("max_tokens:1000" in line for line in found.signatures.values())
    assert re.search(r"web:loopback@\w{8}\|results:10\|pages:trafilatura-", found.signatures["autoais"])
    _check_claims_of_export(found, tmp_path / "answers.jsonl")


def _check_claims_of_export(found: Any, path: Path) -> None:
    """The claims of exported answers, split again, have the same evidence."""
    rows = [{"id": one.id, **benchmark("expertqa").logs().prediction(one)} for one in found.records]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = {line["id"]: line["claims"] for line in split_predictions(read_predictions(path, ("answer",))).lines}
    for row in rows:
        wanted = [(claim["claim"], claim["evidence"]) for claim in row.get("claims", [])]
        assert [(claim["claim"], claim["evidence"]) for claim in again[row["id"]]] == wanted


def test_post_hoc_searches_for_each_claim(server: WebServer, search: str, tmp_path: Path) -> None:
    reply = "Light takes eight minutes [1]. Yeast turns sugar into gas [2]. Iron rusts.\n[1] https://made.up"
    log = run(task("post-hoc-web", search, ids=[str(expertqa("sample").dataset[0].id)]), [reply], tmp_path)
    (sample,) = log.samples or []
    light, bread, iron = detail(sample)["claims"]
    assert light["text"] == "Light takes eight minutes [1]." and "eight minutes and twenty" in light["evidence"][0]
    assert bread["text"].endswith("[2].") and bread["evidence"][0].startswith(f"[2] {server.url}/bread\n\n")
    assert iron == {"text": "Iron rusts.", "evidence": [], "label": None}
    assert [one["query"] for one in sample.metadata["web"]["searches"]] == [
        "Light takes eight minutes [1].",
        "Yeast turns sugar into gas [2].",
        "Iron rusts.",
    ]
    _check_claims_of_export(read_run(log.location), tmp_path / "answers.jsonl")


def test_a_failed_search_fails_the_question(server: WebServer, search: str, tmp_path: Path) -> None:
    server.pages["/search"] = Reply(status=403)
    log = run(task("retrieve-read-web", search, fields="Law"), [ANSWER], tmp_path)
    (record,) = read_run(log.location).records
    assert record.status == "failed" and "403" in (record.problem or "") and KEY not in (record.problem or "")
    server.pages.pop("/search")
    (again,) = eval_retry(log, log_dir=str(tmp_path), display="none")
    assert {one.status for one in read_run(again.location).records} == {"answered"}


SILENT = """
import os, signal, threading
from multiprocessing.pool import ThreadPool
import anyio
from qabench.io.daemon_thread import in_daemon_thread

signal.signal(signal.SIGINT, signal.default_int_handler)  # also in a job of a shell that ignores it
pool = ThreadPool(1)

def read():
    page = pool.apply_async(threading.Event().wait)
    os.kill(os.getpid(), signal.SIGINT)
    page.get()

anyio.run(in_daemon_thread, read)
"""


def test_an_interrupted_run_does_not_wait_for_silent_servers() -> None:
    done = subprocess.run([sys.executable, "-c", SILENT], stderr=subprocess.PIPE, check=False, timeout=300)
    assert done.returncode == -signal.SIGINT and done.stderr.endswith(b"KeyboardInterrupt\n")
