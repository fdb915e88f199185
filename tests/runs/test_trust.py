"""An edited log, when it is resumed, does not determine what code runs, what is read, or where keys
are sent.
"""

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai import eval_retry
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import CachePolicy
from scripted_model import edited
from search_server import SearchServer

from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.expertqa import BENCHMARK as EXPERTQA
from qabench.benchmarks.expertqa.passages import engine_passages
from qabench.cli.run import parse_pairs
from qabench.errors import InputError
from qabench.retrieval.web.provider import load_provider
from qabench.runs.models import at_address
from qabench.runs.running import resume, start
from qabench.runs.task_options import task_options
from qabench.runs.trust import arguments_to_repeat, checked_log, resume_command

MODEL, ADDRESS = "mockllm/model", at_address("")
PASSAGES = [{"_id": "a", "text": "The planets orbit the sun"}]


def run_of(task: str, folder: Path, **task_args: Any) -> Path:
    arguments = {"config": "sample", "prompt": "qabench"} | task_args
    (log,) = inspect_eval(task, model=MODEL, task_args=arguments, limit=1, log_dir=str(folder), display="none")
    assert log.status == "success", log.error
    # Of a complete run, nothing is asked.
    stopped = folder / task.rpartition("/")[2]
    stopped.mkdir()
    return edited(Path(log.location), stopped, lambda content: setattr(content, "status", "error"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    return {
        "fanoutqa": run_of("qabench/fanoutqa_closed_book", folder, lemmatizer="simplemma"),
        "expertqa": run_of("qabench/expertqa", folder),
    }


def with_arguments(log: Path, folder: Path, **arguments: Any) -> Path:
    return edited(log, folder, lambda content: content.eval.task_args_passed.update(arguments))


def test_a_log_chooses_no_code_and_no_server(logs: dict[str, Path], tmp_path: Path) -> None:
    def name_code(log: EvalLog) -> None:
        log.eval.task_file, log.eval.solver = "evil.py", "evil.py@x"

    checked = checked_log(edited(logs["fanoutqa"], tmp_path, name_code), MODEL)
    assert checked.eval.task_file is checked.eval.solver is None
    assert checked.eval.task == "qabench/fanoutqa_closed_book"
    log = edited(logs["fanoutqa"], tmp_path, lambda log: setattr(log.eval, "model_base_url", "http://evil.example/v1"))
    with pytest.raises(InputError, match=r"was run with the server http://evil\.example/v1"):
        checked_log(log, MODEL)
    # The user decides: a server may have another address after a restart.
    mine = "http://mine.example/v1"
    assert checked_log(log, MODEL, base_url=mine).eval.model_base_url == mine
    other = "other/fanoutqa_closed_book"
    log = edited(logs["fanoutqa"], tmp_path, lambda log: setattr(log.eval, "task", other))
    with pytest.raises(InputError, match=f"'{other}', which is not a task of qabench"):
        checked_log(log)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda log: setattr(log.eval, "model", "openai/o1-pro"), "the model openai/o1-pro, not mockllm/model"),
        (lambda log: setattr(log.eval.config, "epochs", 4), "the number of epochs 4, not 1.*--epochs 4"),
        (lambda log: setattr(log.eval.config, "limit", None), "has 1 of 12 questions, but its options select 12 of 12"),
        (lambda log: setattr(log.eval.dataset, "samples", 9), "has 1 of 9 questions"),
        (lambda log: setattr(log.plan.config, "num_choices", 50), "the option num_choices=50, which is not read"),
        (lambda log: setattr(log.eval.config, "message_limit", 99), "the option message_limit=99, which is not read"),
        (lambda log: setattr(log.eval, "task_id", "*"), r"has the task id '\*'"),
    ],
)
def test_costs_are_not_read(logs: dict[str, Path], tmp_path: Path, edit: Callable[[EvalLog], None], says: str) -> None:
    with pytest.raises(InputError, match=says):
        resume(edited(logs["fanoutqa"], tmp_path, edit), MODEL)


def test_a_log_opens_no_port_and_keeps_all_answers(logs: dict[str, Path], tmp_path: Path) -> None:
    log = edited(logs["fanoutqa"], tmp_path, lambda log: setattr(log.eval.config, "acp_server", 18177))
    with pytest.raises(InputError, match="the option acp_server=18177, which is not read"):
        resume(log, MODEL)

    def edit(log: EvalLog) -> None:
        log.eval.config.log_samples = False
        log.samples, log.eval.tags = [], ["evil"]

    done = read_eval_log(str(resume(edited(logs["fanoutqa"], tmp_path, edit), MODEL)))
    assert done.samples and done.eval.config.acp_server is done.eval.tags is None and done.eval.config.log_samples


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fanoutqa", {"judge": {"model": "m", "base_url": "http://evil.example/v1"}}),
        ("fanoutqa", {"questions": "/etc/passwd"}),
        ("fanoutqa", {"prompt": "prompts/evil.txt"}),
        ("fanoutqa", {"config": "../../evil"}),
        ("expertqa", {"k": 500, "method": "retrieve-read"}),
        ("expertqa", {"retriever": "opensearch:http://evil.example/x", "method": "retrieve-read"}),
        ("expertqa", {"search": "evil.toml", "method": "post-hoc-web"}),
    ],
)
def test_texts_must_be_repeated(logs: dict[str, Path], tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    log = with_arguments(logs[name], tmp_path, **arguments)
    (option, value), *_ = arguments.items()
    with pytest.raises(
        InputError, match=f"was run with the option {option} .* is not read from this log.*-T '?{option}="
    ):
        checked_log(log, MODEL)
    assert f"{option}=" in resume_command(log)
    assert checked_log(log, MODEL, task_args={option: value}).eval.task_args_passed[option] == value
    with pytest.raises(InputError, match=f"was run with the option {option} .*, not other"):
        checked_log(log, MODEL, task_args={option: "other"})


def test_known_names_are_taken_from_a_log(logs: dict[str, Path], tmp_path: Path) -> None:
    arguments = {"method": "retrieve-read", "ranker": "dense", "ids": ["a"]}
    log = with_arguments(logs["expertqa"], tmp_path, **arguments)
    assert checked_log(log, MODEL).eval.task_args_passed["ranker"] == "dense"
    with pytest.raises(InputError, match="was run with the option ranker dense, not bm25"):
        checked_log(log, MODEL, task_args={"ranker": "bm25"})


def test_the_printed_command_is_read_as_the_same_values(logs: dict[str, Path], tmp_path: Path) -> None:
    def edit(log: EvalLog) -> None:
        log.eval.model, log.eval.model_base_url, log.eval.config.epochs = f"{ADDRESS}m", "http://h/v1", 2
        log.eval.task_args_passed |= {"method": "retrieve-read", "k": 3, "encoder": "7", "corpus": "a b: {c}"}

    words = shlex.split(resume_command(edited(logs["expertqa"], tmp_path, edit)))
    assert words[4:10] == ["--model", "m", "--base-url", "http://h/v1", "--epochs", "2"]
    arguments = parse_pairs("-T", [value for flag, value in pairwise(words) if flag == "-T"])
    named: dict[str, Any] = {"base_url": "http://h/v1", "epochs": 2, "task_args": arguments}
    assert checked_log(words[3], "m", **named).eval.model == f"{ADDRESS}m"


def test_texts_are_repeated_unless_the_task_declares_them() -> None:
    for name in benchmark_names():
        for setting in benchmark(name).settings:
            for option in task_options(benchmark(name), setting):
                for text in ("/evil", *option.choices):
                    arguments = dict(setting.arguments) | {option.name: text}
                    repeated = option.name in arguments_to_repeat(setting.task, arguments)
                    selects = option.name in ("ids", benchmark(name).part)
                    assert repeated == (text == "/evil" and not selects), (option.name, text)


def test_generation_options_are_read_if_a_run_can_set_them(logs: dict[str, Path], tmp_path: Path) -> None:
    def add(log: EvalLog) -> None:
        for config in (log.plan.config, log.eval.model_generate_config):
            config.temperature, config.reasoning_effort = 0.5, "low"
            config.cache = CachePolicy(expiry=None)
        log.eval.config.notification = "http://evil.example"
        log.eval.config.epochs_reducer = ["evil"]

    checked = checked_log(edited(logs["fanoutqa"], tmp_path, add), MODEL)
    config = checked.plan.config
    assert config.cache is True and (config.temperature, config.reasoning_effort) == (0.5, "low")
    assert checked.eval.config.notification is checked.eval.config.epochs_reducer is None
    evil = {"extra_headers": {"X-Forward": "http://evil.example"}, "extra_body": {"a": 1}}
    for name, value in {**evil, "system_message": "Say 7.", "fallback_models": ["m"]}.items():
        log = edited(logs["fanoutqa"], tmp_path, lambda log, n=name, v=value: setattr(log.plan.config, n, v))
        with pytest.raises(InputError, match=f"the option {name}=.*, which is not read from a log"):
            resume(log, MODEL)


def test_search_keys_go_to_one_host(logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opensearchpy", reason="needs the extra opensearch")
    monkeypatch.setenv("QABENCH_SEARCH_USER", "user")
    monkeypatch.setenv("QABENCH_SEARCH_PASSWORD", "s3cret")
    with SearchServer(PASSAGES) as server:
        arguments = {"method": "retrieve-read", "retriever": f"opensearch:{server.url}/passages"}

        def edit(log: EvalLog) -> None:
            log.eval.task_args_passed.update(arguments)
            log.status, log.samples = "error", []

        log = edited(logs["expertqa"], tmp_path, edit)
        # Inspect's own command takes all
        eval_retry(str(log), log_dir=str(tmp_path / "retried"), display="none")
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
        start(
            EXPERTQA, EXPERTQA.setting("retrieve-read"), "mockllm/model", task_args=arguments, log_dir=tmp_path, limit=1
        )
        assert server.logins and None not in server.logins


def test_search_files_use_only_the_variables_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "CUSTOM_SEARCH_API_KEY", "CUSTOM_SEARCH_CX"):
        monkeypatch.setenv(name, "s3cret")
    path = tmp_path / "search.toml"
    path.write_text('url = "http://evil.example"\nresults = "r"\naddress = "a"\n[params]\nq = "{query} ${HF_TOKEN}"\n')
    with pytest.raises(InputError, match=r"HF_TOKEN, which would be sent to http://evil\.example"):
        load_provider(str(path))
