"""Options of ``qabench run`` next to --suite and --resume: each has an effect, or is rejected with a sentence."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.cli.run import WITH_RESUME, WITH_SUITE
from qabench.errors import InputError, QabenchError
from qabench.runs import running

VALUES = {"base_url": "http://127.0.0.1:9/v1", "model_args": "a=1", "task_args": "k=2"}  # of the others: 7
# Options whose effect is not an argument of run_suite or resume.
SHOWN_OTHERWISE = {
    *("suite", "resume", "help", "format", "output", "as_json", "quiet", "log_dir", "dry_run", "price_in", "price_out"),
    *("scores", "all_scores", "on", "job_timeout", "attach"),
}
COMMAND: Any = typer.main.get_command(app)
PARAMETERS = {each.name: each for each in COMMAND.get_command(None, "run").params if each.name not in SHOWN_OTHERWISE}


class Reached(QabenchError):
    """Raised in place of the run."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    recorded: list[dict[str, Any]] = []

    def record(*given: object, watch: Any, task_args: Any = None, **options: Any) -> Any:
        limits = {"watch.max_calls": watch.max_calls, "watch.token_budget": watch.token_budget}
        recorded.append({"given": given, **limits, **options, **(task_args or {})})
        raise Reached

    monkeypatch.setattr(running, "run_suite", record)
    monkeypatch.setattr(running, "resume", record)
    return recorded


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    path = tmp_path / "suite.yaml"
    path.write_text("models: [mockllm/model]\nbenchmarks: [{benchmark: felm, config: sample}]\n")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def words_of(parameter: Any) -> list[str]:
    """Return the option with a value that is not its default, as typed."""
    option = [*parameter.opts, *parameter.secondary_opts][-1:] if parameter.param_type_name == "option" else []
    if getattr(parameter, "is_flag", False):
        return option
    return [*option, VALUES.get(parameter.name, "7")]


@pytest.mark.parametrize("mode", ["suite", "resume"])
@pytest.mark.parametrize("name", PARAMETERS)
def test_each_option(name: str, mode: str, suite_file: Path, tmp_path: Path, calls: list[dict[str, Any]]) -> None:
    arguments = (f"--{mode}", suite_file, "--log-dir", tmp_path / "logs")
    result = run(*arguments, *words_of(PARAMETERS[name]))
    if name in {"suite": WITH_SUITE, "resume": WITH_RESUME}[mode]:
        assert isinstance(result.exception, Reached), result.exception
        run(*arguments)
        assert calls[0] != calls[1], "the option has no effect"
    else:
        assert isinstance(result.exception, InputError) and calls == []
        assert f"cannot be combined with --{mode}: " in str(result.exception)


def test_suite_and_resume_exclude_each_other(suite_file: Path) -> None:
    assert "--resume cannot be combined with --suite" in str(run("--suite", suite_file, "--resume", "x.eval").exception)


def test_prices_need_a_dry_run() -> None:
    words = ("felm", "--model", "m", "--price-in", "1", "--price-out", "2")
    assert "--price-in and --price-out are for --dry-run" in str(run(*words).exception)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seeds: 5", "seeds is 5: Input should be a valid list"),
        ("max_new_tokens: 0", "max_new_tokens is 0: Input should be greater than or equal to 1"),
        ("models: [1]", "models.0 is 1: Input should be a valid string"),
        ("model: m", "suite.yaml: model: Extra inputs are not permitted; an example of a suite"),
        ("models: []", "must list models and benchmarks"),
        ("benchmarks: [{config: dev}]", "suite.yaml: benchmarks.0.benchmark: Field required"),
        ("benchmarks: [{benchmark: felm, settings: [x]}]", "FELM has no setting 'x'"),
        ("benchmarks: [{benchmark: felm, options: {x: 1}}]", "has no option 'x'"),
        ("- 1", "the file is .1.: Input should be"),
    ],
)
def test_wrong_types_in_a_suite_are_one_error(line: str, message: str, tmp_path: Path) -> None:
    lines = {"models": "models: [m]", "benchmarks": "benchmarks: [{benchmark: felm}]", line.partition(":")[0]: line}
    file = tmp_path / "suite.yaml"
    file.write_text(line if line.startswith("-") else "\n".join(lines.values()) + "\n")
    with pytest.raises(InputError, match=message):
        running.read_suite(file)


def test_a_suite_has_all_settings_of_all_benchmarks(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    benchmarks = "benchmarks: [{benchmark: felm, settings: [raw, cot]}, {benchmark: fastbook}]"
    file.write_text(f"models: [mockllm/model]\n{benchmarks}\n")
    entries = running.read_suite(file).entries
    assert [(entry.benchmark, entry.setting) for entry in entries[:2]] == [("felm", "raw"), ("felm", "cot")]
    assert [entry.benchmark for entry in entries[2:]] == ["fastbook"]


def test_a_suite_is_estimated(suite_file: Path, tmp_path: Path) -> None:
    result = run("--suite", suite_file, "--dry-run", "--limit", "2", "--log-dir", tmp_path / "logs", "--format", "csv")
    assert result.exception is None, result.exception
    assert result.stdout.splitlines()[1].startswith("felm raw,mockllm/model,2,") and not (tmp_path / "logs").exists()


def test_a_suite_whose_calls_are_rejected_names_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "probe", lambda model, *_: model)
    monkeypatch.setenv("QABENCH_API_KEY", "none")
    file = tmp_path / "suite.yaml"
    file.write_text(
        "models: [m]\nbase_url: http://127.0.0.1:9/v1\nbenchmarks:\n"
        "  - {benchmark: felm, config: sample, options: {prompt: qabench}}\n"
    )
    with pytest.raises(QabenchError, match=r"the run was stopped: every call is rejected: .*; .*repeat the command"):
        running.run_suite(running.read_suite(file), tmp_path / "logs", max_retries=0)


@pytest.mark.parametrize("command", ["score", "run", "compare", "export", "retrieve", "register", "publish", "env"])
def test_the_help_has_no_types_of_python(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    text = CliRunner().invoke(app, [command, "--help"], prog_name="qabench").stdout
    assert not re.search(r"<\w|range>|TEXT\b(?<!\|TEXT)|INTEGER|\{[A-Z]", text)
    if command == "compare":
        assert "Usage: qabench compare [OPTIONS] BENCHMARK [FILE...]" in text
        assert "--seed N " in text and "--judge-base-url URL" in text
    assert COMMAND.make_context("qabench", ["env"]).make_formatter().width == 148
