"""kill -9 at random moments: what was written before is whole, and the same command finishes the rest."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from fault_child import Child, command, moment, seconds_of, timed
from fault_harness import Campaign
from http_fault_server import Fault, FaultServer
from openai_server import OpenAIServer

from qabench.data.pinned import SourceFile
from qabench.data.sources import write_mirror
from qabench.errors import QabenchError
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, run_sync
from qabench.llm.endpoint import Endpoint
from qabench.llm.exchange import ChatRequest
from qabench.loading_scripts import FOLDER
from qabench.retrieval import BM25Index

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


def remains(folder: Path, *names: str) -> None:
    """Raises AssertionError if a final file's name is on something that was not renamed as a whole."""
    for path in folder.rglob("*.json"):
        if path.name in names:
            json.loads(path.read_text(encoding="utf-8"))


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


# --- run

RUN_IN_FLIGHT = 3


def run_child(url: str, folder: Path, resume: Path | None) -> Child:
    options = ["--base-url", url, "--max-connections", RUN_IN_FLIGHT, "--json", "--quiet"]
    first = ["fanoutqa", "--model", "m", "--config", "sample", "--log-dir", folder / "logs", "--no-cache"]
    what = ["--resume", resume] if resume else [*first, "-T", "lemmatizer=simplemma"]
    return Child(command("run", *what, *options), folder, **offline(folder))


def newest_log(folder: Path) -> Path | None:
    """The newest log that can be resumed."""
    logs = sorted((folder / "logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
    return logs[-1] if logs else None


def killed_run(chance: random.Random, folder: Path) -> str:
    from qabench.runs.log import read_run

    with OpenAIServer() as server:
        server.delay = 0.05
        killed = starts = 0
        while True:
            log = newest_log(folder)
            child = run_child(server.base_url, folder, log if log and readable(log) else None)
            starts += 1
            if starts > 3 or not child.kill(moment(chance, 3.0)):
                if (code := child.wait()) != 0:
                    raise AssertionError(f"exit code {code}: {child.errors[-300:]}")
                break
            killed += 1
        log = newest_log(folder)
        assert log is not None
        counts = read_run(log).counts()
        questions = 12
        if counts["answered"] != questions or counts["missing"]:
            raise AssertionError(f"{counts}")
        fresh = sum(1 for path in (folder / "logs").glob("*.eval") if not readable(path))
        if len(server.calls) > questions + killed * RUN_IN_FLIGHT + starts + fresh * questions:
            raise AssertionError(f"{len(server.calls)} calls after {killed} kills")
    return ends(killed)


def readable(log: Path) -> bool:
    from qabench.runs.log import read_run

    try:
        read_run(log)
    except QabenchError:
        return False
    return True


# --- indexes

TEXTS = [f"w{i % 7} w{i % 31} w{i % 97} w{i * i % 211} é{i}" for i in range(4000)]
QUERIES = ("w1 w2 w3", "w96 é17", "w5 w5 w210 é2999 nothing")


def killed_index(chance: random.Random, folder: Path) -> str:
    """A killed ``save`` over an older index: it is the old one or the new one."""
    path = folder / "index.bm25"
    old, new = small_indexes()
    path.write_bytes(old)

    def work() -> int:
        BM25Index.from_dataset([{"text": text} for text in TEXTS]).save(path)
        return 0

    whole = seconds_of("index", lambda: measured(lambda _: Child(work, folder)))
    path.write_bytes(old)
    killed = Child(work, folder).kill(moment(chance, whole))
    content = path.read_bytes()
    if content not in (old, new):
        raise AssertionError("neither the old nor the new index")
    BM25Index.load(path)
    return f"the {'old' if content == old else 'new'} index after {int(killed)} kill{'s' * (not killed)}"


@functools.cache
def small_indexes() -> tuple[bytes, bytes]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "index.bm25"
        found = []
        for texts in (TEXTS[:1000], TEXTS):
            BM25Index.from_dataset([{"text": text} for text in texts]).save(path)
            found.append(path.read_bytes())
    return found[0], found[1]


_kept: list[tempfile.TemporaryDirectory[str]] = []  # deleted when the process ends


# --- files

CONTENT = {f"data/file{i}.json": random.Random(i).randbytes(60_000) for i in range(3)}
SOURCES = [
    SourceFile("felm", "owner/repo", COMMIT, name, "MIT", sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    for name, data in CONTENT.items()
]


def fetch_child(server: FaultServer, folder: Path) -> Child:
    def work() -> int:
        return int(not all(result.ok for result in write_mirror(SOURCES, folder / "mirror")))

    network = {"QABENCH_OFFLINE": None, "HF_HUB_OFFLINE": None, "QABENCH_MIRROR": None}
    return Child(work, folder, QABENCH_SOURCE_URL=server.url, QABENCH_CACHE=str(folder / "cache"), **network)


def killed_fetch(chance: random.Random, folder: Path) -> str:
    with FaultServer() as server:
        server.files = {str(source.mirror_path): CONTENT[source.path] for source in SOURCES}
        server.always = Fault(chunk=6_000, pause=0.002)
        killed = 0
        for _ in range(chance.randint(1, 3)):
            killed += fetch_child(server, folder).kill(moment(chance, 0.25))
            check_files(folder)
        if (child := fetch_child(server, folder)).wait() != 0:
            raise AssertionError(child.errors[-300:])
        if check_files(folder) != 2 * len(SOURCES):
            raise AssertionError("a file is missing")
    return ends(killed)


def check_files(folder: Path) -> int:
    """How many files have their final name. Raises AssertionError if the content of one is wrong."""
    found = [
        path
        for path in folder.rglob("file*.json")
        if path.is_file() and not path.name.endswith((".incomplete", ".lock"))
    ]
    for path in found:
        if path.read_bytes() != CONTENT[f"data/{path.name}"]:
            raise AssertionError(f"{path} is not whole")
    return len(found)


# --- build


def build_child(folder: Path) -> Child:
    arguments = ["build", folder / "out", "fanoutqa", "--config", "sample", "--quiet"]
    return Child(command(*arguments), folder, **offline(folder))


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@functools.cache
def expected_tree() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        timed(lambda: build_child(Path(name)))
        return tree(Path(name) / "out/fanoutqa")


def killed_build(chance: random.Random, folder: Path) -> str:
    expected = expected_tree()
    whole = seconds_of("build", lambda: measured(build_child))
    killed = 0
    for _ in range(chance.randint(1, 3)):
        killed += build_child(folder).kill(moment(chance, whole))
        if (folder / "out/fanoutqa").exists() and tree(folder / "out/fanoutqa") != expected:
            raise AssertionError("a repository that is not whole has its final name")
    if (child := build_child(folder)).wait() != 0:
        raise AssertionError(child.errors[-300:])
    if tree(folder / "out/fanoutqa") != expected:
        raise AssertionError("another repository after a kill")
    return ends(killed)


def _preload() -> None:
    """What children would import; they are forked."""
    import datasets  # noqa: F401

    os.environ.setdefault("HF_HUB_OFFLINE", "1")


CAMPAIGNS = [
    Campaign("kill-score", "`score` killed 1-3 times", "old or new files, same scores", killed_score, 5),
    Campaign("kill-judge", "calls to a judge killed 1-3 times", "no reply lost or wrong", killed_judge, 5),
    Campaign("kill-run", "`run` killed up to 3 times", "no answer lost", killed_run, 1),
    Campaign("kill-index", "`BM25Index.save` killed", "the old index or the new one", killed_index, 10),
    Campaign("kill-fetch", "download and mirror killed 1-3 times", "whole files or none", killed_fetch, 5),
    Campaign("kill-build", "`build` killed 1-3 times", "whole repository or none", killed_build, 2),
]
