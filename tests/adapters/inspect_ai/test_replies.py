"""The cache of a run's replies: what is in its key, that logs have no trace of it, and that nothing
is paid twice.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import get_model
from openai_server import Fault, OpenAIServer

from qabench.adapters.inspect_ai.reply_cache import model_identity
from qabench.benchmarks import Benchmark
from qabench.benchmarks.fanoutqa import BENCHMARK as FANOUTQA
from qabench.benchmarks.felm import BENCHMARK as FELM
from qabench.runs.log import read_run
from qabench.runs.running import resume, start

CONVERTER = os.environ.get("EVERY_EVAL_EVER") or shutil.which("every_eval_ever")


@pytest.fixture
def server(server: OpenAIServer, cache: Path) -> OpenAIServer:
    server.reply = lambda body: "Mars, 1998 and Lima.\nyes"
    return server


def identity(model: str, **arguments: Any) -> dict[str, str]:
    return model_identity(get_model(model, memoize=False, **arguments))


def test_the_key_has_all_that_identifies_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    first = identity("mockllm/a", model_path=str(folder))
    assert first["provider"] == "mockllm" and first["name"] == "a" and first["files"]
    (folder / "weights").write_bytes(b"22")
    identities = [
        first,
        identity("mockllm/a", model_path=str(folder)),
        identity("mockllm/b", model_path=str(folder)),
        identity("mockllm/a", model_path=str(tmp_path)),
        identity("mockllm/a", model_path=str(folder), seed=1),
        identity("mockllm/a", model_path=str(folder), base_url="http://a.example"),
    ]
    monkeypatch.setenv("MOCKLLM_BASE_URL", "http://b.example")
    identities.append(identity("mockllm/a", model_path=str(folder)))
    assert len({json.dumps(one) for one in identities}) == len(identities)
    assert identity("mockllm/a", api_key="k1") == identity("mockllm/a", api_key="k2")


@pytest.mark.parametrize(("benchmark", "name"), [(FANOUTQA, "closed-book"), (FELM, "cot-cons")])
def test_other_readers_can_read_a_log(server: OpenAIServer, tmp_path: Path, benchmark: Benchmark, name: str) -> None:
    options: dict[str, Any] = {"base_url": server.base_url, "task_args": {"config": "sample"}, "limit": 1}
    setting = benchmark.setting(name)
    path = start(benchmark, setting, "m", log_dir=tmp_path, **options)
    before = len(server.calls)
    again = start(benchmark, setting, "m", log_dir=tmp_path, **options)
    assert len(server.calls) == before + 1  # the call before the first question
    replies = read_run(again).replies()
    assert replies["all"] == replies["cached"] == read_run(path).replies()["all"] > 0
    for log in map(read_eval_log, (str(path), str(again))):
        assert EvalLog.model_validate_json(log.model_dump_json()).eval.model == log.eval.model
        assert "CachePolicy" not in repr(log)


@pytest.mark.skipif(CONVERTER is None, reason="every_eval_ever is not installed")
@pytest.mark.parametrize(("benchmark", "name"), [(FANOUTQA, "closed-book"), (FELM, "cot-cons")])
def test_the_converter_of_every_eval_ever(
    server: OpenAIServer, tmp_path: Path, benchmark: Benchmark, name: str
) -> None:
    task_args = {"config": "sample"}
    path = start(
        benchmark,
        benchmark.setting(name),
        "m",
        log_dir=tmp_path,
        base_url=server.base_url,
        task_args=task_args,
        limit=1,
    )
    every_eval_ever(tmp_path, "convert", "inspect", "--log_path", str(path), "--output_dir", "data")
    files = [str(file.relative_to(tmp_path)) for file in (tmp_path / "data").rglob("*.json*")]
    printed = every_eval_ever(tmp_path, "validate", *files)
    assert len(files) == 2 and "2 passed" in printed
    assert all(file.startswith(f"data/{benchmark.name}-sample/") for file in files)


def every_eval_ever(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([str(CONVERTER), *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("cache", [True, False])
def test_a_resumed_run_caches_as_the_run_did(server: OpenAIServer, tmp_path: Path, cache: bool) -> None:
    options: dict[str, Any] = {
        "base_url": server.base_url, "task_args": {"config": "sample"}, "limit": 3, "max_connections": 1
    }  # fmt: skip
    server.fault = lambda number, body: Fault(400, body={"error": {"message": "no"}}) if number == 2 else None
    log = start(FANOUTQA, FANOUTQA.settings[0], "m", log_dir=tmp_path, cache=cache, **options)
    assert read_run(log).counts()["failed"] == 1 and len(server.calls) == 1 + 3
    done = read_run(resume(log, "m", base_url=server.base_url))
    assert done.counts()["answered"] == 3 and len(server.calls) == 4 + 1 + 1
    again = read_run(start(FANOUTQA, FANOUTQA.settings[0], "m", log_dir=tmp_path, **options))
    assert again.replies() == {"all": 3, "cached": 3 if cache else 0}
