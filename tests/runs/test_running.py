"""Which tasks a process imports, one resume at a time, and folders with a log that has no answers yet."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")

from filelock import FileLock
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelUsage
from scripted_model import run, text

from qabench.benchmarks.fanoutqa.tasks import fanoutqa_closed_book
from qabench.benchmarks.felm.tasks import felm
from qabench.errors import InputError
from qabench.runs.log import read_run
from qabench.runs.running import resume
from qabench.runs.sources import read_evaluations


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "default", "-P", "-c", code], capture_output=True, text=True)


def test_a_run_imports_the_tasks_of_its_benchmark(tmp_path: Path) -> None:
    done = python(f"""
import sys
from qabench.runs.running import start
task_args = {{"config": "sample", "prompt": "qabench"}}
start("felm", None, "mockllm/m", task_args=task_args, limit=1, log_dir={str(tmp_path)!r})
print(sorted(name for name in sys.modules if name.startswith("qabench.benchmarks.") and name.endswith(".tasks")))
import inspect_ai
task_args = {{"config": "sample", "lemmatizer": "simplemma"}}
(log,) = inspect_ai.eval("qabench/fanoutqa_closed_book", model="mockllm/m", task_args=task_args, limit=1,
    display="none", log_dir={str(tmp_path)!r})
print(log.status)
""")
    assert done.stdout.splitlines()[-2:] == ["['qabench.benchmarks.felm.tasks']", "success"], done.stderr


def test_a_broken_benchmark_does_not_break_the_others() -> None:
    done = python("""
import sys
sys.modules["qabench.benchmarks.fanoutqa.tasks"] = None  # its import fails
import qabench.inspect_tasks
from inspect_ai._util.registry import registry_lookup
print([registry_lookup("task", f"qabench/{name}") is not None for name in ("felm", "fastbook_rag", "expertqa")])
""")
    assert done.stdout == "[True, True, True]\n"
    assert "the tasks of fanoutqa cannot be imported: ModuleNotFoundError" in done.stderr


def test_the_second_resume_of_a_log_says_which_process_has_it(tmp_path: Path) -> None:
    task = felm("sample", prompt="qabench")
    log = Path(run(task, lambda messages: "ALL_CORRECT", tmp_path).location)
    path = log.with_name(f".{log.name}.lock")
    with FileLock(path):
        path.write_text("process 4711 on here")
        with pytest.raises(InputError, match=r"being resumed by another process \(process 4711 on here\)"):
            resume(log)


def test_a_log_without_answers_is_left_out_of_a_folder(tmp_path: Path) -> None:
    log = Path(run(felm("sample", prompt="qabench"), lambda messages: "ALL_CORRECT", tmp_path).location)
    content = read_eval_log(str(log))
    content.status, content.samples, content.eval.model_base_url = "started", [], "http://127.0.0.1:9/v1"
    content.eval.task_id = "another"
    write_eval_log(content, str(tmp_path / "running.eval"), format="eval")
    read = read_evaluations([tmp_path])
    assert [evaluation.path for evaluation in read.evaluations] == [str(log)]
    assert read.notes == [f"{tmp_path / 'running.eval'} is left out: the run has no answers yet"]
    (note,) = read_evaluations([tmp_path / "running.eval"]).notes
    command = ["qabench", "run", "--resume", str(tmp_path / "running.eval"), "--base-url", "http://127.0.0.1:9/v1"]
    assert f"`{shlex.join(command)}` asks for the others" in note


def test_a_reply_of_all_its_tokens_is_cut_off(tmp_path: Path) -> None:
    def reply(messages: object) -> object:
        output = text("Mars and", "unknown")
        output.usage = ModelUsage(input_tokens=9, output_tokens=8, total_tokens=17)
        return output

    for limit, status in ((8, "cut off"), (9, "answered")):
        task = fanoutqa_closed_book("sample", lemmatizer="simplemma")
        log = run(task, reply, tmp_path / str(limit), max_tokens=limit, limit=1)
        assert read_run(log.location).counts()[status] == 1, os.listdir(tmp_path)
