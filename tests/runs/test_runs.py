"""Runs of models: commands, logs, resuming after a kill, exports, and loading them with datasets."""

import csv
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import datasets
import pytest
from benchmark_tasks import fanoutqa_closed_book, felm
from filelock import FileLock
from inspect_ai import eval as inspect_eval
from inspect_ai import eval_set
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelUsage
from openai_server import Fault, OpenAIServer
from question_rows import question_rows
from scripted_model import edited, run, scripted, text
from typer.testing import CliRunner

from qabench import evaluate_predictions
from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.cli import app, main
from qabench.errors import InputError
from qabench.evaluation import Evaluation
from qabench.llm.stored_replies import stored_replies
from qabench.runs.export import predictions
from qabench.runs.inspect_logs import whole_log
from qabench.runs.log import read_run
from qabench.runs.running import resume, start
from qabench.runs.sources import incomplete, read_evaluations

QUESTIONS = 12
PROBE = 1  # the call before the first question
NO_LUCK = Fault(400, body={"error": {"message": "no such luck"}})


@pytest.fixture
def server(server: OpenAIServer) -> OpenAIServer:
    server.reply = lambda body: "Mars, 1998 and Lima.\nyes"
    return server


@pytest.fixture
def options(server: OpenAIServer, tmp_path: Path) -> list[str]:
    """Return the options of a run on the server."""
    where = ["--model", "m", "--base-url", server.base_url, "--log-dir", str(tmp_path)]
    return [*where, "--config", "sample", "--no-cache"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a reply of every kind."""
    replies = iter(
        [
            text("Mars: 2", "max_tokens"), text("I would rather not", "content_filter"), "",
            ConnectionError("the wire is cut"), "naïve: 東京 🦜",
        ]
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("logs")
    model = scripted(lambda messages: next(replies, "Mars, 1998 and Lima"), name="kinds")
    (done,) = inspect_eval(
        "qabench/fanoutqa_closed_book", model=model, task_args={"config": "sample", "lemmatizer": "simplemma"},
        log_dir=str(folder), max_connections=1, display="none",
    )  # fmt: skip
    assert done.status == "success"
    return Path(done.location)


@pytest.fixture(scope="module")
def done(log: Path) -> Evaluation:
    return read_run(log)


def here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which has imported Inspect: that takes a process of its own
    some seconds.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words = ["qabench", *map(str, arguments)]
    with mock.patch("sys.argv", words), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, int(end.value.code or 0), *texts)


def qabench(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "qabench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **more)


def test_every_kind_of_reply_is_a_record(done: Evaluation) -> None:
    assert (done.config, done.setting, done.model) == ("sample", "closed-book", "scripted/kinds")
    assert done.counts() == {"answered": 8, "cut off": 1, "empty": 1, "refused": 1, "failed": 1, "missing": 0}
    by_status = {record.status: record for record in done.records}
    assert by_status["failed"].answer is None and "the wire is cut" in str(by_status["failed"].problem)
    assert by_status["refused"].answer is None and by_status["empty"].answer == ""
    assert by_status["cut off"].answer == "Mars: 2"
    answered = by_status["answered"]
    assert [message.role for message in answered.messages][-2:] == ["user", "assistant"]
    assert answered.question in answered.messages[-2].text
    assert answered.output_tokens and answered.detail.keys() == {"found", "missing"}
    assert set(answered.groups) == {"category", "evidence", "type"} and "acc" in done.signatures


def test_scores_equal_those_of_the_export(done: Evaluation, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(predictions(done), encoding="utf-8")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == QUESTIONS - 2  # neither the failed one nor the refused one
    assert "naïve: 東京 🦜" in [row["answer"] for row in rows]
    scored = evaluate_predictions("fanoutqa", "sample", file, lemmatizer="simplemma")
    assert [s.interval for s in scored.scores().values()] == [s.interval for s in done.scores().values()]
    assert (scored.model, scored.config, scored.counts()["missing"]) == ("answers", "sample", 2)
    assert [record.groups for record in scored.records] == [record.groups for record in done.records]


def test_run_prints_the_scores_and_where_the_log_is(server: OpenAIServer, options: list[str], tmp_path: Path) -> None:
    more = ["-T", "lemmatizer=simplemma", "-M", "default_headers={X-Team: qa}", "--limit", "2-4", "--epochs", 3]
    account = dict.fromkeys(("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"), "do-not-send-this")
    ran = qabench("run", "fanoutqa", *options, *more, env=os.environ | account)
    assert ran.returncode == 0, ran.stderr
    (log,) = tmp_path.glob("*.eval")
    assert "acc.loose" in ran.stdout and "9 answered" in ran.stdout and "not official" in ran.stdout
    ids = [row["id"] for row in question_rows("sample")]
    assert [record.id for record in read_run(log).records] == [id for id in ids[1:4] for _ in range(3)]
    assert f"log: {log}" in ran.stderr.splitlines()
    assert {call.headers.get("x-team") for call in server.calls} == {"qa"}
    assert "do-not-send-this" not in str([call.headers for call in server.calls])
    assert {call.body["temperature"] for call in server.calls[PROBE:]} == {0}


def test_a_run_asks_by_id_and_category(options: list[str]) -> None:
    rows = question_rows("sample")
    (category, *_) = rows[3]["categories"]
    for option, selected in (
        (["-T", f"ids={rows[3]['id']}"], 1),
        (["-T", f"category={category}"], sum(category in row["categories"] for row in rows)),
    ):
        ran = here("run", "fanoutqa", *options, "--json", *option)
        assert json.loads(ran.stdout)["evaluations"][0]["counts"]["answered"] == selected


def test_the_same_call_is_paid_once(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "inspect"))
    arguments = ["--base-url", server.base_url, "--config", "sample", "--limit", "3", "--log-dir", str(tmp_path)]
    printed = []
    for options in ([], [], ["--no-cache"]):
        ran = CliRunner().invoke(app, ["run", "fanoutqa", "--model", "m", *arguments, *options])
        assert ran.exit_code == 0, ran.output
        printed.append("3 of 3 replies from the cache" in ran.stdout)
    assert printed == [False, True, False] and len(server.calls) == 6 + 3 * PROBE
    logs = sorted(tmp_path.glob("*.eval"), key=lambda path: path.stat().st_mtime)
    first, second, third = map(read_run, logs)
    assert (first.replies(), second.replies()) == ({"all": 3, "cached": 0}, {"all": 3, "cached": 3})
    assert first.scores() == second.scores() == third.scores()
    assert [(row.model, row.replies) for row in stored_replies()] == [("openai-api/qabench/m", 3)]
    assert not (tmp_path / "inspect").exists() and (tmp_path / "cache/run-replies").stat().st_mode & 0o077 == 0
    refused = CliRunner().invoke(app, ["cache", "clear"])
    assert isinstance(refused.exception, InputError) and "add --yes" in str(refused.exception)
    assert "openai-api/qabench/m: 3 replies" in refused.stderr and len(stored_replies()) == 1
    assert CliRunner().invoke(app, ["cache", "clear", "--yes"]).stdout == "deleted replies: 3\n"
    assert stored_replies() == []


@pytest.mark.slow
def test_runs_at_the_same_time_pay_once(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    both_ask = threading.Event()
    server.fault = lambda number, body: Fault() if "word ready" in str(body) else Fault(hold=both_ask)
    options = ["--model", "m", "--base-url", server.base_url, "--config", "sample", "--epochs", "2"]
    command = [sys.executable, "-P", "-m", "qabench", "run", "fanoutqa", *options, "--json", "--log-dir"]
    both = [
        subprocess.Popen([*command, tmp_path / name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for name in ("a", "b")
    ]
    server.wait_for_calls(2 * PROBE + 2)
    # Time for the second run to ask as well, which it must not.
    time.sleep(3)
    both_ask.set()
    for running in both:
        (report,) = json.loads(running.communicate()[0])["evaluations"]
        assert report["counts"]["answered"] == 2 * QUESTIONS
    assert len(server.calls) == 2 * QUESTIONS + 2 * PROBE
    assert not list((tmp_path / "cache" / "run-replies" / "locks").iterdir())


def test_failed_samples_are_recorded_and_asked_again(server: OpenAIServer, options: list[str], tmp_path: Path) -> None:
    server.fault = lambda number, body: NO_LUCK if PROBE <= number < 4 + PROBE else None
    ran = qabench("run", "fanoutqa", *options, "--json", "--max-connections", 2)
    assert ran.returncode == 0, ran.stderr
    assert "UserWarning" not in ran.stderr  # one line, as for all commands
    (first,) = json.loads(ran.stdout)["evaluations"]
    assert first["counts"]["failed"] == 4
    assert first["problems"][0].startswith("4 x failed: ") and "no such luck" in first["problems"][0]
    again = here("run", "--resume", first["path"], "--json")
    assert again.returncode == 0, again.stderr
    (resumed,) = json.loads(again.stdout)["evaluations"]
    assert resumed["counts"]["answered"] == QUESTIONS
    assert len(server.calls) == QUESTIONS + 4 + 2 * PROBE  # answered questions were not asked again
    assert resumed["path"] != first["path"]
    scored = here("score", "fanoutqa", tmp_path, "--json")
    assert json.loads(scored.stdout)["evaluations"][0]["path"] == resumed["path"]
    assert f"{first['path']} is left out" in scored.stderr


@pytest.mark.slow
def test_a_killed_run_resumes(server: OpenAIServer, options: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    server.delay, in_flight = 0.1, 4
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))  # of Inspect's buffer
    command, limit = [sys.executable, "-P", "-m", "qabench", "run"], ["--max-connections", str(in_flight)]
    killed = 0
    running = subprocess.Popen([*command, "fanoutqa", *options, "--epochs", "5", *limit])
    for reached in (10, 30):
        while running.poll() is None and sum(call.completed for call in server.calls) < reached:
            time.sleep(0.01)
        assert running.poll() is None
        running.send_signal(signal.SIGKILL)
        running.wait()
        killed += 1
        newest = max(tmp_path.glob("*.eval"), key=lambda path: path.stat().st_mtime)
        run = read_run(newest)
        assert run.status == "started" and run.counts()["failed"] == 0
        assert 0 < len(run.records) == sum(not sample.error for sample in whole_log(newest).samples)
        (score, *_) = run.scores().values()
        assert "the run did not finish (killed, or still running)" in run.deviations(score)
        resume = ["--resume", str(newest), "--json"]
        running = subprocess.Popen([*command, *resume, *limit], stdout=subprocess.PIPE)
    (report,) = json.loads(running.communicate()[0])["evaluations"]
    assert report["counts"]["answered"] == 5 * QUESTIONS and report["counts"]["missing"] == 0
    assert len(server.calls) <= 5 * QUESTIONS + killed * in_flight + 3 * PROBE


def test_a_killed_run_without_caches_keeps_its_answers(
    server: OpenAIServer, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that is killed loses the cache and Inspect's buffer, so only the log is left."""
    each = 3  # fewer than the 10 that Inspect collects before it writes the log
    words = ["fanoutqa", *options, "--epochs", "5", "--scores", "acc", "--prompt", "qabench"]
    hold = threading.Event()
    for number in (1, 2):
        held_from = len(server.calls) + PROBE + each
        server.fault = lambda call, body, first=held_from: Fault(hold=hold) if call >= first else None
        command = [sys.executable, "-P", "-m", "qabench", "run", *words, "--max-connections", "1"]
        running = subprocess.Popen(command, env=os.environ | {"XDG_DATA_HOME": str(tmp_path / f"data{number}")})
        server.wait_for_calls(held_from + 1)
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
        newest = max(tmp_path.glob("*.eval"), key=lambda path: path.stat().st_mtime)
        until = time.monotonic() + 20
        while (kept := len(whole_log(newest).samples)) < number * each and time.monotonic() < until:
            time.sleep(0.1)
        running.kill()
        running.wait()
        assert kept == number * each
        words = ["--resume", str(newest)]
    hold.set()


def test_the_export_command_writes_records_for_datasets(log: Path, done: Evaluation, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", str(log)])
    assert result.exit_code == 0 and result.stdout == predictions(done)
    path = str(tmp_path / "records.jsonl")
    result = CliRunner().invoke(app, ["export", str(log), "--format", "records", "--output", path])
    assert result.exit_code == 0, result.output
    rows = datasets.load_dataset("json", data_files=path, split="train")
    assert rows["id"] == [record.id for record in done.records]
    assert json.loads(rows[0]["scores"]) == done.records[0].scores


def test_the_export_command_writes_jsonl_files(log: Path, done: Evaluation, tmp_path: Path) -> None:
    names = {"answers": "answers.jsonl", "a.jsonl": "a.jsonl", "llama-3.1": "llama-3.1.jsonl", "": f"{log.stem}.jsonl"}
    for name, written in names.items():
        result = CliRunner().invoke(app, ["export", str(log), "-o", str(tmp_path / name)])
        assert result.exit_code == 0 and (tmp_path / written).read_text("utf-8") == predictions(done)
    result = CliRunner().invoke(app, ["export", str(log), "-o", str(tmp_path / "answers.csv")])
    assert "are JSON Lines; allowed: .jsonl" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "give a benchmark and --model"),
        (["run", "fanoutqa", "--model", "m", "-T", "foo=1"], "has no option 'foo'; allowed: config"),
        (["run", "felm", "--model", "m", "--solver", "s.py"], "solver 's.py': it has no @NAME; expected FILE.py@NAME"),
        (["run", "felm", "--model", "m", "-T", "retriever=lucene:x"], "FELM, raw, has no option 'retriever'"),
        (
            [
                "run",
                "expertqa",
                "--config",
                "sample",
                "--model",
                "none/x",
                "--setting",
                "retrieve-read",
                "-T",
                "retriever=lucene:none",
            ],
            "none is not a Lucene index",
        ),
        (["run", "fanoutqa", "--model", "m", "--base-url", "notaurl"], "the base URL is 'notaurl'"),
        (["run", "fanoutqa", "--model", "m", "--config", "test"], "no score can be computed: the answers to test"),
        (["run", "fanoutqa", "--model", "m", "-T", "config=test_nov23"], "Nothing was asked. Add --generate-only"),
        (["run", "fanoutqa", "--model", "m", "--generate-only"], "--generate-only is for questions whose answers"),
        (["run", "fanoutqa", "--model", "no-such-provider/x", "--config", "sample"], "no-such-provider"),
        (["export", "x.eval"], "the log x.eval does not exist"),
    ],
)
def test_wrong_usage_says_what_is_allowed(arguments: list[str], says: str, tmp_path: Path) -> None:
    where = ["--log-dir", str(tmp_path)] if arguments[0] == "run" else []
    result = CliRunner().invoke(app, [*arguments, *where])
    assert isinstance(result.exception, InputError), result.output
    assert says in str(result.exception)


def test_the_directory_of_a_log_is_read_once(done: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each sample, which takes minutes for 10,000."""
    from inspect_ai._util import async_zip

    find, times = async_zip._find_central_directory, []
    monkeypatch.setattr(async_zip, "_find_central_directory", lambda *place: times.append(1) or find(*place))
    assert len(read_run(done.path).records) == len(done.records) > 3
    assert len(times) <= 3  # of the header, and of all samples


def test_an_answer_changed_in_a_log_is_noticed(tmp_path: Path, log: Path) -> None:
    """Inspect's reader does not compare checksums, so that it returns the changed answer."""
    plain, damaged = tmp_path / "plain.eval", tmp_path / "damaged.eval"
    with zipfile.ZipFile(log) as packed, zipfile.ZipFile(plain, "w") as unpacked:
        for name in packed.namelist():
            unpacked.writestr(name, packed.read(name))
    assert "1998" in str(read_run(plain).records[-1].answer)
    damaged.write_bytes(plain.read_bytes().replace(b"1998", b"1999"))
    with pytest.raises(InputError, match=r"is damaged \(.*Bad CRC-32"):
        read_run(damaged)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("status", ["success", "started"])
@pytest.mark.parametrize("first", ["equal", "failed"])
def test_a_log_with_a_sample_twice(tmp_path: Path, log: Path, done: Evaluation, first: str, status: str) -> None:
    """Inspect writes a sample again if a run was killed and resumed. The last one counts."""
    path = tmp_path / "twice.eval"
    repeated = f"samples/{next(record.id for record in done.records if record.answer)}_epoch_1.json"
    with zipfile.ZipFile(log) as source, zipfile.ZipFile(path, "w") as archive:
        failed = json.loads(source.read(repeated)) | {"error": {"message": "x", "traceback": "", "traceback_ansi": ""}}
        copies = [source.read(repeated)] * 2
        if first != "equal":
            copies[0] = json.dumps(failed).encode()
        for name in source.namelist():
            if name != "header.json" or status == "success":
                for content in copies if name == repeated else [source.read(name)]:
                    archive.writestr(name, content)
    assert read_run(path).counts() == done.counts() and len(whole_log(path).samples) == QUESTIONS
    sample = next(sample for sample in whole_log(path).samples if f"/{sample.id}_" in repeated)
    assert sample.error is None


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_sample_with_two_answers_is_refused(tmp_path: Path, log: Path, done: Evaluation) -> None:
    path = Path(shutil.copy(log, tmp_path / "forged.eval"))
    name = f"samples/{next(record.id for record in done.records if record.answer)}_epoch_1.json"
    with zipfile.ZipFile(path, "a") as archive:
        sample = json.loads(archive.read(name))
        sample["output"]["choices"][0]["message"]["content"] = "a better answer"
        archive.writestr(name, json.dumps(sample))
    for read in (read_run, whole_log):
        with pytest.raises(InputError, match="occurs 2 times, with different answers"):
            read(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_answered_copy_of_a_sample_counts(tmp_path: Path, log: Path, done: Evaluation) -> None:
    path = Path(shutil.copy(log, tmp_path / "twice.eval"))
    record = next(record for record in done.records if record.answer)
    name = f"samples/{record.id}_epoch_1.json"
    with zipfile.ZipFile(path, "a") as archive:
        sample = json.loads(archive.read(name))
        sample["error"] = {"message": "killed", "traceback": "", "traceback_ansi": ""}
        archive.writestr(name, json.dumps(sample))
    assert {each.id: each.answer for each in read_run(path).records}[record.id] == record.answer
    assert not next(sample for sample in whole_log(path).samples if sample.id == record.id).error


def test_a_dead_server_ends_the_run_at_once(tmp_path: Path) -> None:
    arguments = ["--base-url", "http://127.0.0.1:9/v1", "--config", "sample", "--log-dir", tmp_path]
    ran = here("run", "felm", "--model", "m", "-T", "prompt=qabench", *arguments)
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr.count("\n") == 2
    assert "at http://127.0.0.1:9/v1 does not answer: Connection refused" in ran.stderr
    assert not list(tmp_path.glob("*.eval"))


def test_a_run_without_the_chosen_scores_exits_with_1(server: OpenAIServer, tmp_path: Path) -> None:
    where = ["--model", "m", "--base-url", server.base_url, "--log-dir", tmp_path, "--config", "sample", "--limit", 2]
    ran = here("run", "fastbook", *where, "--scores", "mrr@3")
    assert ran.returncode == 1 and "no score mrr@3: computed is mrr@10" in ran.stdout


@pytest.mark.parametrize(("first", "hint"), [(0, "set QABENCH_API_KEY"), (3, "qabench run --resume")])
def test_a_rejected_key_ends_the_run(server: OpenAIServer, options: list[str], first: int, hint: str) -> None:
    server.fault = lambda number, body: Fault(401, body={"error": {"message": "revoked"}}) if number >= first else None
    ran = here("run", "fanoutqa", *options, "--max-connections", "1")
    assert ran.returncode == 1 and ran.stdout == "" and "HTTP 401: revoked" in ran.stderr and hint in ran.stderr
    assert len(server.calls) == 1 if not first else len(server.calls) < QUESTIONS


@pytest.mark.parametrize(
    ("option", "message"),
    [(["--max-calls", "2"], "the limit of 2 calls (--max-calls) is reached"),
     (["--token-budget", "250"], "the budget of 250 tokens (--token-budget) is spent")],
)  # fmt: skip
def test_limits_stop(server: OpenAIServer, options: list[str], tmp_path: Path, option: list[str], message: str) -> None:
    ran = qabench(
        *("run", "fanoutqa", *options, "--max-connections", "1", *option),
        # as a shell's "&" in a script does
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert ran.returncode == 1 and message in ran.stderr
    assert f"qabench run --resume {next(tmp_path.glob('*.eval'))}" in ran.stderr and len(server.calls) < QUESTIONS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt(server: OpenAIServer, options: list[str], tmp_path: Path, number: int, code: int) -> None:
    server.delay = 0.3
    command = [sys.executable, "-P", "-m", "qabench", "run", "fanoutqa", *options]
    running = subprocess.Popen([*command, "--max-connections", "1"], stderr=subprocess.PIPE, text=True)
    while running.poll() is None and len(server.calls) < 3 + PROBE:
        time.sleep(0.01)
    running.send_signal(number)
    (_, error) = running.communicate()
    assert running.returncode == code, error
    assert "Traceback" not in error and f"qabench run --resume {next(tmp_path.glob('*.eval'))}" in error


def test_a_run_without_answers_prints_no_scores(server: OpenAIServer, options: list[str]) -> None:
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number else None
    ran = here("run", "fanoutqa", *options)
    assert ran.returncode == 1 and "acc.loose" not in ran.stdout
    assert "none of the 12 questions was answered" in ran.stdout and "12 x failed" in ran.stdout


def test_the_plan_counts_calls_without_making_any(tmp_path: Path) -> None:
    ran = qabench(
        "run", "fanoutqa", "--model", "openai/gpt-4o", "--config", "sample", "--dry-run", "--json", "--price-in", "2",
        "--price-out", "10", cwd=tmp_path,
    )  # fmt: skip
    plan = json.loads(ran.stdout)
    assert plan["calls"] == QUESTIONS and plan["prompt_tokens"] > 100
    assert plan["cost"] == pytest.approx((plan["prompt_tokens"] * 2 + plan["completion_tokens"] * 10) / 1e6)
    assert not list(tmp_path.iterdir())


def test_a_log_is_read_while_its_run_writes_it(server: OpenAIServer, options: list[str], tmp_path: Path) -> None:
    seen: list[Evaluation] = []
    early = tmp_path / "early" / "early.eval"
    early.parent.mkdir()

    def reply(body: object) -> str:
        for log in tmp_path.glob("*.eval"):
            seen.append(read_run(log))
            if not early.exists():
                shutil.copy(log, early)
        return "Mars, 1998 and Lima.\nyes"

    server.reply = reply
    ran = here("run", "fanoutqa", *options, "--max-connections", "1")
    assert ran.returncode == 0, ran.stderr
    (log,) = tmp_path.glob("*.eval")
    finished = {record.id: record.scores for record in read_run(log).records}
    sizes = [len(evaluation.records) for evaluation in seen]
    assert sizes == sorted(sizes) and sizes[0] == 0 < sizes[-1] < len(finished) == QUESTIONS
    for evaluation in seen:
        assert (evaluation.status, evaluation.expected) == ("started", QUESTIONS)
        assert all(finished[record.id] == record.scores for record in evaluation.records)
    assert f"has {sizes[-1]} of {QUESTIONS} answers so far; if its run has ended, " in str(incomplete(seen[-1]))
    assert "0 of 12 answers so far" in here("score", early).stdout


def test_the_options_of_a_setting_are_listed() -> None:
    ran = here("run", "felm", "--list-options", "--setting", "raw", "--format", "csv")
    abouts = {name: about for name, _, about in csv.reader(ran.stdout.splitlines())}
    assert "option" in abouts and "claims" in abouts and "method" not in abouts
    assert all(about and "`" not in about and "see " not in about for about in abouts.values())


def test_a_set_of_tasks_of_inspect_is_reported(server: OpenAIServer, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("QABENCH_BASE_URL", server.base_url)
    monkeypatch.setenv("QABENCH_API_KEY", "none")
    models = [f"openai-api/qabench/{name}" for name in "ab"]
    options: dict[str, Any] = {"model": models, "limit": 2, "log_dir": str(tmp_path / "logs"), "display": "none"}
    tasks = ["qabench/fanoutqa_closed_book", "qabench/felm"]
    for _ in range(2):
        finished, logs = eval_set(tasks, task_args={"config": "sample"}, **options)
        assert finished and len(logs) == 4
    assert len(server.calls) == 8
    ran = here("score", tmp_path / "logs", "--format", "csv")
    rows = list(csv.DictReader(ran.stdout.splitlines()))
    assert {row["system"] for row in rows} == {"a", "b"}
    assert here("report", tmp_path / "logs", "--output", tmp_path / "report").returncode == 0
    assert here("compare", "fanoutqa", tmp_path / "logs", "--resamples", 100).returncode == 0


def test_a_broken_benchmark_does_not_break_the_others() -> None:
    code = """if True:
        import sys
        sys.modules["qabench.benchmarks.fanoutqa.tasks"] = None  # its import fails
        import qabench.adapters.inspect_ai.registry
        from inspect_ai._util.registry import registry_lookup
        print([registry_lookup("task", f"qabench/{name}") is not None for name in ("felm", "fastbook_rag", "expertqa")])
    """
    done = subprocess.run([sys.executable, "-W", "default", "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout == "[True, True, True]\n"
    assert "the tasks of fanoutqa cannot be imported: ModuleNotFoundError" in done.stderr


def test_a_log_cannot_be_resumed_while_its_run_goes_on(server: OpenAIServer, tmp_path: Path) -> None:
    refused: list[str] = []

    def reply(body: object) -> str:
        for log in tmp_path.glob("*.eval"):
            with pytest.raises(InputError, match="another process") as raised:
                resume(log, "m", base_url=server.base_url)
            refused.append(str(raised.value))
        return "ALL_CORRECT"

    server.reply = reply
    where: dict[str, Any] = {"base_url": server.base_url, "log_dir": tmp_path, "task_args": {"config": "sample"}}
    log = start(FELM, FELM.settings[0], "m", **where, limit=1, cache=False)
    assert refused == [f"{log} is being written or resumed by another process; wait for it, or end it"]
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.parametrize("error", [OSError(errno.EOPNOTSUPP, "no locks here"), NotImplementedError("no flock")])
def test_a_run_needs_no_locks(error: Exception, server: OpenAIServer, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(FileLock, "acquire", mock.Mock(side_effect=error))
    where: dict[str, Any] = {"base_url": server.base_url, "log_dir": tmp_path}
    server.fault = lambda number, body: NO_LUCK if number == PROBE else None
    log = start(FELM, FELM.settings[0], "m", **where, task_args={"config": "sample"}, limit=1, cache=False)
    assert read_run(resume(log, "m", **where)).counts()["answered"] == 1


def test_a_log_without_answers_is_left_out_of_a_folder(tmp_path: Path) -> None:
    log = Path(run(felm("sample", prompt="qabench"), lambda messages: "ALL_CORRECT", tmp_path).location)

    def stop(content: EvalLog) -> None:
        content.status, content.samples, content.eval.model_base_url = "started", [], "http://127.0.0.1:9/v1"
        content.eval.task_id = "another"

    running = edited(log, tmp_path, stop)
    read = read_evaluations([tmp_path])
    assert [evaluation.path for evaluation in read.evaluations] == [str(log)]
    assert read.notes == [f"{running} is left out: the run has no answers yet"]
    (note,) = read_evaluations([running]).notes
    command = f"qabench run --resume {running} --model scripted/model --base-url http://127.0.0.1:9/v1"
    assert f"`{command}` asks for the others" in note


def test_a_reply_of_all_its_tokens_is_cut_off(tmp_path: Path) -> None:
    def reply(messages: object) -> object:
        output = text("Mars and", "unknown")
        output.usage = ModelUsage(input_tokens=9, output_tokens=8, total_tokens=17)
        return output

    for limit, status in ((8, "cut off"), (9, "answered")):
        task = fanoutqa_closed_book("sample", lemmatizer="simplemma")
        log = run(task, reply, tmp_path / str(limit), max_tokens=limit, limit=1)
        assert read_run(log.location).counts()[status] == 1, os.listdir(tmp_path)
