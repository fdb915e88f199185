"""``qabench run --on``: jobs on the test Hub, whose script runs here and calls a scripted server in place of vLLM."""

import json
import os
import re
import shlex
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import hub_jobs
import pytest
from hub_server import TOKEN, Hub
from huggingface_hub import HfApi
from openai_server import Fault, OpenAIServer
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.hub import jobs
from qabench.hub.client import HubError

MODEL = "qabench/model"
RUN = ["fanoutqa", "--config", "sample", "-T", "lemmatizer=simplemma", "--no-cache", "--max-connections", "1"]
ON = ["--model", MODEL, "--on", "a10g-small"]
VLLM = """#!{python} -P
import sys
sys.path.append({support!r})
from http.server import ThreadingHTTPServer
from openai_server import Fault, OpenAIServer
options = dict(zip(sys.argv, sys.argv[1:]))
open({started!r}, "a").write(options["serve"] + " ")
if options.get("--max-model-len") == "1":
    sys.exit("ValueError: it does not fit into the GPU's memory")
server = OpenAIServer()
server.models = Fault(body={{"data": [{{"id": options["serve"], "max_model_len": 4096}}]}})
handler = server._server.RequestHandlerClass
ThreadingHTTPServer((options["--host"], int(options["--port"])), handler).serve_forever()
"""


@pytest.fixture
def server(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    server.reply = lambda body: "Mars, 1998 and Lima."
    monkeypatch.setenv("QABENCH_JOB_PROVIDER", "openai-api/qabench")
    monkeypatch.setenv("QABENCH_BASE_URL", server.base_url)
    return server


@pytest.fixture
def hub(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "own_wheel", lambda folder: None)
    with Hub() as running:
        running.used_here(monkeypatch)
        HfApi(running.url, TOKEN).create_repo(MODEL)
        yield running
        for thread in filter(None, [job.thread for job in running.jobs.values()]):
            thread.join()  # a job that lost its Hub would close the connections of the next test


def qabench(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_run_as_a_job(hub: Hub, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fanoutqa").write_text("a file named like a benchmark stays here")
    result = qabench("run", *RUN, *ON, "--limit", "2-3", "--scores", "acc", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    report = json.loads(result.stdout)
    assert report["model"] == f"openai-api/qabench/{MODEL}" and report["counts"]["answered"] == 2
    assert {call.body["model"] for call in server.calls} == {MODEL}
    assert Path(report["path"]).parent == Path("logs") and Path(report["path"]).is_file()
    again = json.loads(qabench("score", "fanoutqa", report["path"], "--lemmatizer", "simplemma", "--json").stdout)
    assert again["scores"] == report["scores"] and report["scores"]
    (job,) = hub.jobs.values()
    lines = result.stderr.splitlines()
    assert f"job: {hub.url}/jobs/tester/{job.id} on a10g-small, $1.00 per hour" in lines
    assert "the job ran for 2 minutes, about $0.03" in lines and any("Asked: 2 of 2" in line for line in lines)
    assert (job.spec["flavor"], job.spec["timeoutSeconds"]) == ("a10g-small", 6 * 3600)
    assert job.spec["secrets"] == {"HF_TOKEN": TOKEN}
    assert TOKEN not in str({**job.spec, "secrets": None}) + "".join(job.lines) + result.output
    (script,) = hub.folder("tester/jobs-artifacts").rglob("*.py")
    path = Path(report["path"])
    path.write_text("a local log of the same name")
    assert "exists and is not the log of the job" in str(qabench("run", "--attach", f"tester/{job.id}").exception)
    assert path.read_text() == "a local log of the same name" and len(list(path.parent.iterdir())) == 1
    header = re.search(r"# /// script\n(.*)# ///", script.read_text(), re.DOTALL)
    assert header
    dependencies = tomllib.loads(header[1].replace("# ", ""))["dependencies"]
    assert dependencies[0].startswith("qabench[run,spacy]==") and dependencies[-1] == "vllm"


def test_the_job_starts_vllm_once(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script without a change, with a stand-in for vLLM's package and its command ``vllm serve``."""
    monkeypatch.delenv("QABENCH_JOB_PROVIDER")
    folder, started = tmp_path / "bin", tmp_path / "started"
    folder.mkdir()
    (folder / "vllm.py").write_text("")
    values = {"python": sys.executable, "support": str(Path(hub_jobs.__file__).parent), "started": str(started)}
    (folder / "vllm").write_text(VLLM.format(**values))
    (folder / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    result = qabench("run", *RUN, *ON, "--limit", 2, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    report = json.loads(result.stdout)
    assert report["model"] == f"vllm/{MODEL}" and report["counts"]["answered"] == 2
    assert started.read_text() == f"{MODEL} "
    assert "does not fit into the GPU's memory" in str(qabench("run", *RUN, *ON, "-M", "max_model_len=1").exception)
    assert started.read_text() == f"{MODEL} " * 2, "it is not started again for each question"


def test_a_failed_job_is_resumed_by_another(hub: Hub, server: OpenAIServer) -> None:
    stopped = qabench("run", *RUN, *ON, "--limit", 3, "--max-calls", 2)
    assert isinstance(stopped.exception, QabenchError) and stopped.exit_code == 1
    message = str(stopped.exception)
    assert re.match(r"the job http\S+/jobs/tester/0+ ended as ERROR; resume with: ", message)
    assert "(--max-calls) is reached" in message.splitlines()[-1]
    command = re.search(r"qabench (run --resume (\S+) --model qabench/model --on a10g-small)\. ", message)
    assert command
    log = command[2]
    assert "--model qabench/model --on" in str(qabench("run", "--resume", log, *ON[2:], "--model", "a/b").exception)
    resumed = qabench(*shlex.split(command[1]), "--json")
    assert resumed.exit_code == 0, (resumed.output, resumed.exception)
    report = json.loads(resumed.stdout)
    assert report["counts"]["answered"] == 3 and not report["counts"]["missing"] and report["path"] != log
    assert len(hub.jobs) == 2


def test_detach_attach_and_cancel(hub: Hub, server: OpenAIServer, tmp_path: Path) -> None:
    hold = threading.Event()
    server.fault = lambda number, body: Fault(hold=hold) if number else None

    def interrupt() -> None:
        server.wait_for_calls(2)
        (job,) = hub.jobs.values()
        job.followed.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
    try:
        detached = qabench("run", *RUN, *ON, "--limit", "2")
    finally:
        signal.signal(signal.SIGINT, before)
    assert getattr(detached.exception, "exit_code", None) == 130
    last = str(detached.exception)
    attach = re.match(r"detached; .*\$1.00 per hour. Follow it with: qabench run --attach (tester/\S+); end it", last)
    assert attach
    hold.set()
    result = qabench("run", "--attach", attach[1], "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert json.loads(result.stdout)["counts"]["answered"] == 2

    hold.clear()
    server.calls.clear()
    job = jobs.submit(["felm", "--model", MODEL, "--config", "sample"], [], MODEL, "a10g-small", "30m")
    server.wait_for_calls(2)
    HfApi(hub.url, TOKEN).cancel_job(job_id=job.id)
    canceled = qabench("run", "--attach", job.url)
    hold.set()
    assert f"the job {job.url} ended as CANCELED; " in str(canceled.exception)


@pytest.mark.parametrize("answer", ["silence", "slow", "slow headers", "large"])
def test_endless_answers_about_a_job_end(hub: Hub, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"MAX_SILENT_SECONDS": 0.5, "MAX_ANSWER_SECONDS": 0.5, "MAX_ANSWER_BYTES": 50_000}
    for name, value in limits.items():
        monkeypatch.setattr(f"qabench.hub.client.{name}", value)
    hub.fail("GET /api/jobs/", endless=answer, times=100)
    for command in (["--attach", "tester/1"], ["felm", *ON]):
        failed = qabench("run", *command).exception
        assert isinstance(failed, HubError)
        assert ("more than 50,000 bytes" if answer == "large" else "no complete answer within") in str(failed)
    assert not hub.jobs


def test_names_of_the_hub_are_quoted_in_hints(hub: Hub) -> None:
    spec = {"flavor": "a10g-small", "environment": {jobs.ARGUMENTS: ""}}
    hub.jobs["1"] = hub_jobs.Job("1", "x; touch y", spec, stage="ERROR")
    failed = qabench("run", "--attach", "tester/1")
    assert "follow it again with: qabench run --attach 'x; touch y/1'" in failed.stderr
    assert "ended as ERROR; no question was asked" in str(failed.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["felm", "--model", "openai/gpt/4"], "--model is 'openai/gpt/4', which is not a name on the Hub"),
     (["--model", MODEL], "give a benchmark, such as"),
     (["felm", "--model", MODEL, "-M", "api_key=x"], "-M api_key would be shown on the job's page"),
     (["felm", "--model", MODEL, "--base-url", "http://x"], "--base-url cannot be combined with --on"),
     (["felm", "--model", MODEL, "--questions", "q.jsonl"], "q.jsonl: there is no such file")],
)  # fmt: skip
def test_wrong_usage_starts_no_job(hub: Hub, arguments: list[str], message: str) -> None:
    result = qabench("run", *arguments, "--on", "a10g-small")
    assert isinstance(result.exception, InputError) and message in str(result.exception) and not hub.jobs


def test_unknown_names_start_no_job(hub: Hub, server: OpenAIServer) -> None:
    cpu = qabench("run", "felm", "--model", MODEL, "--on", "cpu-basic").exception
    assert isinstance(cpu, InputError) and "no machine with a GPU 'cpu-basic'; allowed: a10g-small" in str(cpu)
    missing = qabench("run", "felm", "--model", "qabench/other", "--on", "a10g-small").exception
    assert isinstance(missing, HubError) and "404" in str(missing)
    assert "404" in str(qabench("run", "--attach", "tester/1").exception) and not hub.jobs
    hub.jobs["2"] = hub_jobs.Job("2", "tester", {"environment": {}})
    assert "is not a job of `qabench run --on`" in str(qabench("run", "--attach", "tester/2").exception)
