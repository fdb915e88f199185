"""kill -9 at random moments: what was written before is whole, and the same command finishes the rest."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from fault_child import Child, command, moment, seconds_of, timed
from fault_harness import Campaign
from openai_server import OpenAIServer

from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, run_sync
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.loading_scripts import FOLDER

SAMPLE = FOLDER / "fanoutqa/sample"
COMMIT = "0" * 40


def offline(folder: Path) -> dict[str, str]:
    """Variables that keep everything below the folder of a case."""
    return {
        "QABENCH_CACHE": str(folder / "cache"),
        "HF_HOME": str(folder / "hf"),
        "XDG_DATA_HOME": str(folder / "data"),
        "INSPECT_CACHE_DIR": str(folder / "inspect"),
        "QABENCH_OFFLINE": "1",
        "HF_HUB_OFFLINE": "1",
    }


def ends(killed: int) -> str:
    return f"finished after {killed} kill{'s' * (killed != 1)}"


# --- score


def score_child(folder: Path, cache: Path) -> Child:
    out = folder / "out.json"
    arguments = ["fanoutqa", next((SAMPLE / "generations").glob("*.jsonl")), "--config", "sample"]
    options = ["--lemmatizer", "simplemma", "--json", "-o", out, "--per-item", folder / "items.jsonl", "--quiet"]
    return Child(command("score", *arguments, *options), folder, **{**offline(folder), "QABENCH_CACHE": str(cache)})


@functools.cache
def expected_scores() -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timed(lambda: score_child(folder, folder / "cache"))
        return (folder / "out.json").read_bytes(), (folder / "items.jsonl").read_bytes()


def measured(make: Callable[[Path], Child]) -> float:
    with tempfile.TemporaryDirectory() as name:
        return timed(lambda: make(Path(name)))


def killed_score(chance: random.Random, folder: Path) -> str:
    expected = expected_scores()
    whole = seconds_of("score", lambda: measured(lambda path: score_child(path, path / "cache")))
    killed = 0
    for _ in range(chance.randint(1, 3)):
        killed += score_child(folder, folder / "cache").kill(moment(chance, whole))
        for name, content in zip(("out.json", "items.jsonl"), expected, strict=True):
            path = folder / name
            if path.exists() and path.read_bytes() != content:
                raise AssertionError(f"{name} is not whole")
    if (code := score_child(folder, folder / "cache").wait()) != 0:
        raise AssertionError(f"exit code {code}")
    if ((folder / "out.json").read_bytes(), (folder / "items.jsonl").read_bytes()) != expected:
        raise AssertionError("other scores after a kill")
    return ends(killed)


# --- judge

CALLS, IN_FLIGHT = 60, 6


def judge_child(url: str, folder: Path) -> Child:
    def work() -> int:
        cache = ReplyCache(folder / "replies.sqlite")
        client = Caller(Endpoint(url, "k"), "m", concurrency=IN_FLIGHT).client(cache)
        outcomes = run_sync(client.complete([ChatRequest("m", (("user", str(i)),)) for i in range(CALLS)]))
        return int(any(outcome.reply is None or outcome.reply.text != f"r{i}" for i, outcome in enumerate(outcomes)))

    return Child(work, folder)


def killed_judge(chance: random.Random, folder: Path) -> str:
    with OpenAIServer() as server:
        server.delay = 0.02
        server.reply = lambda body: "r" + str(body["messages"][0]["content"])
        killed = 0
        for _ in range(chance.randint(1, 3)):
            killed += judge_child(server.base_url, folder).kill(moment(chance, 0.6))
        if judge_child(server.base_url, folder).wait() != 0:
            raise AssertionError("a reply is missing or wrong")
        twice = sum(times - 1 for times in server.paid.values())
        if len(server.paid) != CALLS or twice > killed * IN_FLIGHT:
            raise AssertionError(f"{len(server.paid)} replies, {twice} paid again after {killed} kills")
    return f"{ends(killed)}, only calls in flight paid again"


CAMPAIGNS = [
    Campaign("kill-score", "`score` killed 1-3 times", "old or new files, same scores", killed_score, 5),
    Campaign("kill-judge", "calls to a judge killed 1-3 times", "no reply lost or wrong", killed_judge, 5),
]
