"""Options of ``qabench run`` next to --suite and --resume: each has an effect, or is rejected with a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

pytest.importorskip("inspect_ai", reason="needs the extra run")

from openai_server import OpenAIServer

from qabench.cli import app
from qabench.cli.run import WITH_RESUME, WITH_SUITE
from qabench.errors import InputError, QabenchError
from qabench.runs import running, suite

# An option with a value, and the keyword that run_suite or resume gets for it.
PASSED: dict[str, tuple[list[str], str, Any]] = {
    "base_url": (["--base-url", "http://127.0.0.1:9/v1"], "base_url", "http://127.0.0.1:9/v1"),
    "model_args": (["-M", "a=1"], "model_args", {"a": 1}),
    "config": (["--config", "dev"], "config", "dev"),
    "questions": (["--questions", "q.json"], "questions", "q.json"),
    "limit": (["--limit", "3"], "limit", 3),
    "ids": (["--id", "x"], "ids", ["x"]),
    "category": (["--category", "c"], "", None),
    "epochs": (["--epochs", "2"], "epochs", 2),
    "shuffle": (["--shuffle", "7"], "sample_shuffle", 7),
    "setting": (["--setting", "raw"], "", None),
    "prompt": (["--prompt", "qabench"], "prompt", "qabench"),
    "protocol": (["--protocol", "qabench"], "protocol", "qabench"),
    "temperature": (["--temperature", "0.5"], "temperature", 0.5),
    "max_new_tokens": (["--max-new-tokens", "9"], "max_tokens", 9),
    "seed": (["--seed", "1"], "", None),
    "retriever": (["--retriever", "lucene:x"], "retriever", "lucene:x"),
    "context_length": (["--context-length", "100"], "context_length", 100),
    "wiki": (["--wiki", "w.zim"], "wiki", "w.zim"),
    "solver": (["--solver", "f.py@s"], "solver", "f.py@s"),
    "task_args": (["-T", "k=2"], "k", 2),
    "list_options": (["--list-options"], "", None),
    "max_connections": (["--max-connections", "4"], "max_connections", 4),
    "max_retries": (["--max-retries", "1"], "max_retries", 1),
    "timeout": (["--timeout", "60"], "timeout", 60),
    "max_calls": (["--max-calls", "5"], "watch.max_calls", 5),
    "token_budget": (["--token-budget", "50"], "watch.token_budget", 50),
    "cache": (["--no-cache"], "cache", False),
    "model": (["--model", "m"], "", None),
    "benchmark": (["felm"], "", None),
}
SHOWN_OTHERWISE = (
    *("format", "output", "as_json", "quiet", "log_dir", "dry_run", "price_in", "price_out"),
    *("track", "on", "job_timeout", "attach"),
)


class Reached(QabenchError):
    """Raised in place of the run."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = []

    def record(*_: object, watch: Any, task_args: Any = None, **options: Any) -> Any:
        limits = {"watch.max_calls": watch.max_calls, "watch.token_budget": watch.token_budget}
        recorded.append({**limits, **options, **(task_args or {})})
        raise Reached

    monkeypatch.setattr(suite, "run_suite", record)
    monkeypatch.setattr(running, "resume", record)
    return recorded


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    path = tmp_path / "suite.yaml"
    path.write_text("models: [mockllm/model]\nbenchmarks: [{benchmark: felm, config: sample}]\n")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def names() -> set[str]:
    group: Any = typer.main.get_command(app)
    command = group.get_command(None, "run")
    return {parameter.name for parameter in command.params} - {"suite", "resume", "help"}


@pytest.mark.parametrize("mode", ["suite", "resume"])
@pytest.mark.parametrize("name", sorted(PASSED))
def test_options_apply_or_are_rejected(
    name: str, mode: str, suite_file: Path, tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    words, keyword, value = PASSED[name]
    result = run(f"--{mode}", suite_file, "--log-dir", tmp_path / "logs", *words)
    if name in {"suite": WITH_SUITE, "resume": WITH_RESUME}[mode]:
        assert isinstance(result.exception, Reached), result.exception
        assert calls[0][keyword] == value
    else:
        assert isinstance(result.exception, InputError) and calls == []
        assert f"cannot be combined with --{mode}: " in str(result.exception)


def test_every_option_is_tested() -> None:
    assert names() == PASSED.keys() | set(SHOWN_OTHERWISE)


def test_suite_and_resume_exclude_each_other(suite_file: Path) -> None:
    assert "--resume cannot be combined with --suite" in str(run("--suite", suite_file, "--resume", "x.eval").exception)


def test_prices_need_a_dry_run() -> None:
    words = ("felm", "--model", "m", "--price-in", "1", "--price-out", "2")
    assert "--price-in and --price-out are for --dry-run" in str(run(*words).exception)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seeds: 5", "seeds is 5; input should be a valid list"),
        ("limit: many", "limit is 'many'; input should be a valid integer"),
        ("limit: true", "limit is True; input should be a valid integer"),
        ("cache: 'no'", "cache is 'no'; input should be a valid boolean"),
        ("base_url: 7", "base_url is 7; input should be a valid string"),
        ("max_new_tokens: 0", "max_new_tokens is 0; input should be greater than or equal to 1"),
        ("models: {a: 1}", "models is {'a': 1}; input should be a valid list"),
        ("models: [1]", "models.0 is 1; input should be a valid string"),
        ("model: m", "unknown key 'model' .did you mean 'models'.*allowed: "),
        ("models: []", "must list models and benchmarks"),
        ("benchmarks: felm", "benchmarks is 'felm'; input should be a valid list"),
        ("benchmarks: [{benchmark: 3}]", "benchmarks.0.benchmark is 3; input should be a valid string"),
        ("benchmarks: [{config: dev}]", "the key 'benchmarks.0.benchmark' is missing"),
        ("benchmarks: [{benchmark: felm, options: [1]}]", "options is .1.; input should be a valid dictionary"),
        ("benchmarks: [{benchmark: felm, settings: 5}]", "settings is 5; input should be a valid list"),
        ("benchmarks: [{benchmark: felm, config: [x]}]", "config is .'x'.; input should be a valid string"),
        ("benchmarks: [{benchmark: felm, settings: [x]}]", "FELM has no setting 'x'"),
        ("benchmarks: [{benchmark: felm, options: {x: 1}}]", "has no option 'x'"),
        ("- 1", "the file is .1., which is not a mapping"),
    ],
)
def test_wrong_types_in_a_suite_are_one_error(line: str, message: str, tmp_path: Path) -> None:
    lines = {"models": "models: [m]", "benchmarks": "benchmarks: [{benchmark: felm}]", line.partition(":")[0]: line}
    file = tmp_path / "suite.yaml"
    file.write_text(line if line.startswith("-") else "\n".join(lines.values()) + "\n")
    with pytest.raises(InputError, match=message):
        suite.read_suite(file)


def test_a_suite_is_estimated(suite_file: Path, tmp_path: Path) -> None:
    result = run("--suite", suite_file, "--dry-run", "--limit", "2", "--log-dir", tmp_path / "logs", "--format", "csv")
    assert result.exception is None, result.exception
    assert result.stdout.splitlines()[1].startswith("felm raw,mockllm/model,2,")
    assert not (tmp_path / "logs").exists()


def test_a_suite_with_fastbook(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    with OpenAIServer() as server:
        file.write_text(
            f"models: [m]\nbase_url: {server.base_url}\nlimit: 2\nbenchmarks:\n"
            "  - {benchmark: fastbook, config: sample}\n"
            "  - {benchmark: felm, config: sample, options: {prompt: qabench}}\n"
        )
        paths, unfinished = suite.run_suite(suite.read_suite(file), tmp_path / "logs", max_retries=0)
    assert unfinished == [] and ["fastbook" in path.name for path in paths] == [True, False]


def test_a_suite_whose_calls_are_rejected_names_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "probe", lambda model, *_: model)
    monkeypatch.setenv("QABENCH_API_KEY", "none")
    file = tmp_path / "suite.yaml"
    file.write_text(
        "models: [m]\nbase_url: http://127.0.0.1:9/v1\nbenchmarks:\n"
        "  - {benchmark: felm, config: sample, options: {prompt: qabench}}\n"
    )
    with pytest.raises(QabenchError, match=r"the run was stopped: every call is rejected: .*; .*repeat the command"):
        suite.run_suite(suite.read_suite(file), tmp_path / "logs", max_retries=0)
