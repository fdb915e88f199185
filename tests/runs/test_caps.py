"""The calls of runs: their limit is exact at any concurrency, and estimates count what a run sends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai_server import Fault, OpenAIServer
from scripted_wiki import ScriptedWiki, isolate
from web_server import WebServer, page

from qabench import evaluate_predictions
from qabench.benchmarks import benchmark
from qabench.benchmarks.fanoutqa import BENCHMARK as FANOUTQA
from qabench.errors import InputError, QabenchError
from qabench.llm.caller import Prices
from qabench.llm.stored_replies import select
from qabench.runs.estimate import plan_run
from qabench.runs.export import predictions
from qabench.runs.log import read_run
from qabench.runs.running import resume, start
from qabench.runs.watching import Watch

PROBE = 1  # the short call before the first question
PASSAGES = [{"id": str(number), "text": f"What is the answer to question {number}?"} for number in range(9)]
CLOSED_BOOK = FANOUTQA.setting("closed-book")
CORPUS, SEARCH = object(), object()  # replaced by files
PLANETS = "463f5c17d453c3d3"  # needs the pages below
SEARCH_FILE = """
url = "{url}/search"
results = "results"
address = "url"
[params]
q = "{{query}}"
[pages]
delay = 0
private_addresses = true
"""
SETTINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("fanoutqa", "closed-book", {}),
    ("fanoutqa", "open-book", {"context_length": 4000}),
    ("fanoutqa", "open-book", {"context_length": 4000, "search": "text"}),
    ("fanoutqa", "evidence-provided", {"context_length": 4000, "ids": PLANETS}),
    *[("felm", method, {}) for method in ("raw", "cot", "link", "content")],
    ("felm", "cot-cons", {"domains": "science"}),
    *[("felm", method, {"claims": True}) for method in ("raw", "cot", "link")],
    ("expertqa", "closed", {}),
    ("expertqa", "retrieve-read", {"corpus": CORPUS}),
    ("expertqa", "post-hoc", {"corpus": CORPUS}),
    ("expertqa", "retrieve-read-web", {"search": SEARCH, "ranker": "bm25"}),
    ("expertqa", "post-hoc-web", {"search": SEARCH, "ranker": "bm25"}),
    ("fastbook", "rag", {}),
]


@pytest.fixture
def server(server: OpenAIServer, cache: Path) -> OpenAIServer:
    server.reply = lambda body: "Segment 1:\nClaim 1. It is.\nClaim 2. It was."
    return server


@pytest.fixture
def wiki(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedWiki]:
    isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("QABENCH_CACHE", str(cache))
    with ScriptedWiki() as running:
        monkeypatch.setenv("QABENCH_WIKIPEDIA_API", running.api)
        titles = {"Jupiter": 38930, "Saturn": 44474}
        running.pages = {title: (number, 1, f"<p>{title} is far away.</p>" * 9) for title, number in titles.items()}
        yield running


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as running:
        running.pages = {"/light": page("Light", "Light takes minutes from the Sun to the Earth. " * 30)}
        # Some questions and claims have no page.
        running.found = lambda query: [] if "iron" in query.lower() or "It was" in query else ["/light"]
        yield running


@pytest.mark.parametrize(("name", "setting", "arguments"), SETTINGS)
def test_an_estimate_counts_the_calls_of_the_run(
    name: str, setting: str, arguments: dict[str, Any], server: OpenAIServer, wiki: ScriptedWiki, web: WebServer,
    tmp_path: Path,
) -> None:  # fmt: skip
    corpus, search = tmp_path / "corpus.jsonl", tmp_path / "search.toml"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    search.write_text(SEARCH_FILE.format(url=web.url))
    files = {id(CORPUS): str(corpus), id(SEARCH): str(search)}
    chosen = {key: files.get(id(value), value) for key, value in arguments.items()}
    task_args = {"config": "sample", "prompt": "qabench", **chosen}
    if name == "fastbook":
        del task_args["prompt"]
    own = benchmark(name)
    plan = plan_run(own, own.setting(setting), "m", task_args)
    start(own, own.setting(setting), "m", base_url=server.base_url, task_args=task_args, log_dir=tmp_path, cache=False)
    assert plan.calls > 0 and len(server.calls) == plan.calls + PROBE
    if setting == "retrieve-read-web":  # a question without passages is not asked
        assert 0 < plan.calls < 8
    # A setting with evidence got it.
    assert bool(web.requests) is (arguments.get("search") is SEARCH)
    assert bool(wiki.requests) is (setting == "evidence-provided")


@pytest.mark.parametrize(("most", "at_once"), [(1, 1), (5, 1), (5, 12), (13, 12)])
def test_no_call_is_sent_beyond_the_limit(most: int, at_once: int, server: OpenAIServer, tmp_path: Path) -> None:
    server.delay = 0.05
    watch = Watch(tmp_path, max_calls=most)
    arguments: dict[str, Any] = {"base_url": server.base_url, "log_dir": tmp_path, "cache": False}
    task_args = {"config": "sample", "prompt": "qabench"}
    options = {"max_connections": at_once, "watch": watch}
    if most > 12:  # all calls are allowed
        start(FANOUTQA, CLOSED_BOOK, "m", task_args=task_args, **arguments, **options)
    else:
        with pytest.raises(QabenchError, match=rf"the limit of {most} calls \(--max-calls\) is reached"):
            start(FANOUTQA, CLOSED_BOOK, "m", task_args=task_args, **arguments, **options)
    assert len(server.calls) == most
    if 1 < most < 12:  # the answers of all calls are kept
        del arguments["cache"]
        resume(watch.log, "m", task_args={"prompt": "qabench"}, **arguments)
        assert len(server.calls) == 12 + 2 * PROBE


def test_repeated_calls_count(server: OpenAIServer, tmp_path: Path) -> None:
    server.fault = lambda number, body: Fault(503, headers={"Retry-After": "0"}) if number >= PROBE else None
    with pytest.raises(QabenchError, match="the limit of 4 calls"):
        start(
            *(FANOUTQA, CLOSED_BOOK, "m"), base_url=server.base_url, log_dir=tmp_path, cache=False,
            task_args={"config": "sample", "prompt": "qabench"}, watch=Watch(tmp_path, max_calls=4), max_retries=9,
        )  # fmt: skip
    assert len(server.calls) == 4


def test_empty_replies_are_asked_again(server: OpenAIServer, tmp_path: Path) -> None:
    good, logs = server.reply, tmp_path / "logs"
    arguments: dict[str, Any] = {"base_url": server.base_url, "log_dir": logs}
    task_args = {"config": "sample", "prompt": "qabench"}
    # calls with an odd number are empty
    server.reply = lambda body: "" if len(server.calls) % 2 else "Mars"
    path = start(FANOUTQA, CLOSED_BOOK, "m", task_args=task_args, max_connections=1, **arguments)
    empty = read_run(path).counts()["empty"]
    assert empty == 6 and select("openai-api/qabench/m", older_than=1).delete() == 0
    with pytest.raises(InputError, match="no replies are stored of the model"):
        select("n", empty=True).delete()
    calls = len(server.calls)
    server.reply = good
    for _ in range(2):  # the second one finds all in the log
        path = resume(path, "m", task_args={"prompt": "qabench"}, **arguments)
        assert read_run(path).counts()["empty"] == 0
    assert len(server.calls) == calls + empty + PROBE
    # A new run finds the good replies in the cache.
    calls = len(server.calls)
    path = start(FANOUTQA, CLOSED_BOOK, "m", task_args=task_args, **arguments)
    assert len(server.calls) == calls + PROBE and read_run(path).replies() == {"all": 12, "cached": 12}
    assert select(empty=True).delete() == empty and select("openai-api/qabench/m").delete() == 12


@pytest.mark.parametrize(("name", "setting"), [("felm", "raw"), ("expertqa", "closed"), ("fanoutqa", "closed-book")])
def test_exported_empty_replies_are_empty_not_missing(
    name: str, setting: str, server: OpenAIServer, tmp_path: Path
) -> None:
    server.reply = lambda body: "" if len(server.calls) % 2 else "Mars is far away."
    arguments: dict[str, Any] = {"base_url": server.base_url, "log_dir": tmp_path, "cache": False, "limit": 4}
    task_args = {"config": "sample", "prompt": "qabench"}
    own = benchmark(name)
    run = read_run(start(own, own.setting(setting), "m", task_args=task_args, max_connections=1, **arguments))
    rows = [json.loads(line) for line in predictions(run).splitlines()]
    again = evaluate_predictions(name, "sample", rows)
    assert run.counts()["empty"] == 2 and len(rows) == 4 and again.counts()["empty"] == 2


def test_the_calls_of_a_judge_do_not_count(
    server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge at a provider of Inspect has limits of its own: the run's calls, tokens and cost are the model's."""
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FANOUTQA_OPENAI_API_BASE", raising=False)
    monkeypatch.setenv("JUDGING_BASE_URL", server.base_url)
    monkeypatch.setenv("JUDGING_API_KEY", "k")
    spent = {}
    for scores in ("acc", "acc,judge"):
        watch = Watch(tmp_path, max_calls=12 + PROBE, max_cost=1e9, token_budget=10**9, prices=Prices(1, 1))
        task_args = {"config": "sample", "prompt": "qabench", "scores": scores}
        if "judge" in scores:
            task_args["judge"] = {"model": "openai-api/judging/j", "prompt": "qabench"}
        path = start(
            *(FANOUTQA, CLOSED_BOOK, "m"), base_url=server.base_url, log_dir=tmp_path / scores, cache=False,
            task_args=task_args, watch=watch,
        )  # fmt: skip
        assert read_run(path).counts()["answered"] == 12
        spent[scores] = (watch.replies, watch.tokens, watch.cost)
    assert spent["acc"] == spent["acc,judge"] and spent["acc"][0] >= 12
    assert [call.body["model"] for call in server.calls].count("j") == 12
    assert "gpt" in read_run(path).scores()
