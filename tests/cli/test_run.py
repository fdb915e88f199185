"""Options of ``qabench run`` next to --resume: each has an effect, or is rejected with a sentence."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from qabench.cli import app
from qabench.cli.run import WITH_RESUME
from qabench.errors import InputError, QabenchError
from qabench.runs import running

# of the others: 7
VALUES = {"base_url": "http://127.0.0.1:9/v1", "model_args": "a=1", "task_args": "k=2"}
# Options whose effect is not an argument of resume.
SHOWN_OTHERWISE = {
    *("resume", "help", "format", "output", "as_json", "quiet", "log_dir", "scores", "all_scores"),
    *("price_in", "price_out", "max_cost"),  # go together: test_first_minutes
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

    monkeypatch.setattr(running, "resume", record)
    return recorded


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, arguments)])


def words_of(parameter: Any) -> list[str]:
    """Return the option with a value that is not its default, as typed."""
    option = [*parameter.opts, *parameter.secondary_opts][-1:] if parameter.param_type_name == "option" else []
    if getattr(parameter, "is_flag", False):
        return option
    return [*option, VALUES.get(parameter.name, "7")]


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_option(name: str, tmp_path: Path, calls: list[dict[str, Any]]) -> None:
    arguments = ("--resume", tmp_path / "x.eval", "--log-dir", tmp_path / "logs")
    result = run(*arguments, *words_of(PARAMETERS[name]))
    if name in WITH_RESUME:
        assert isinstance(result.exception, Reached), result.exception
        run(*arguments)
        assert calls[0] != calls[1], "the option has no effect"
    else:
        assert isinstance(result.exception, InputError) and calls == []
        assert "cannot be combined with --resume: " in str(result.exception)


def test_a_temperature_is_not_negative() -> None:
    result = run("felm", "--model", "m", "--temperature", "-1")
    assert result.exit_code == 2 and "Invalid value for '--temperature'" in result.output


def test_questions_without_public_answers_need_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def start(benchmark: object, setting: object, model: str, **options: Any) -> Any:
        started.append(options["task_args"])
        raise Reached

    monkeypatch.setattr(running, "start", start)
    words = ("fanoutqa", "--model", "m", "--config", "test", "--log-dir", tmp_path)
    assert "no score can be computed: the answers to test questions" in str(run(*words).exception)
    assert started == [] and isinstance(run(*words, "--generate-only").exception, Reached)
    own = tmp_path / "own.json"
    assert isinstance(run(*words, "--questions", own).exception, Reached)
    assert [arguments["config"] for arguments in started] == ["test", "test"]


def test_prices_need_a_dry_run() -> None:
    words = ("felm", "--model", "m", "--price-in", "1", "--price-out", "2")
    assert "--price-in and --price-out are for --dry-run" in str(run(*words).exception)
