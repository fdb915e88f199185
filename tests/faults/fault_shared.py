"""Several processes on the same caches, indexes and folders at once: each gets the right result."""

from __future__ import annotations

import random
from pathlib import Path

from fault_child import Child, command
from fault_harness import Campaign
from fault_kills import (
    CALLS,
    CONTENT,
    SOURCES,
    TEXTS,
    check_files,
    expected_scores,
    expected_tree,
    fetch_child,
    judge_child,
    offline,
    score_child,
    small_indexes,
    tree,
)
from http_fault_server import Fault, FaultServer
from openai_server import OpenAIServer

from qabench.retrieval import BM25Index

MOST = 4  # processes


def finish(children: list[Child]) -> None:
    for child in children:
        if (code := child.wait()) != 0:
            raise AssertionError(f"exit code {code}: {child.errors[-300:]}")


def shared_scores(chance: random.Random, folder: Path) -> str:
    """One cache of normalized strings."""
    count = chance.randint(2, MOST)
    folders = [folder / str(i) for i in range(count)]
    for one in folders:
        one.mkdir()
    finish([score_child(one, folder / "cache") for one in folders])
    for one in folders:
        if ((one / "out.json").read_bytes(), (one / "items.jsonl").read_bytes()) != expected_scores():
            raise AssertionError("other scores")
    return f"{count} equal results"


def shared_replies(chance: random.Random, folder: Path) -> str:
    """One cache of replies, and a process that is killed now and then."""
    count = chance.randint(2, MOST)
    with OpenAIServer() as server:
        server.delay = 0.01
        server.reply = lambda body: "r" + str(body["messages"][0]["content"])
        children = [judge_child(server.base_url, folder) for _ in range(count)]
        killed = int(chance.random() < 0.3 and children.pop().kill(chance.random() * 0.3))
        finish(children)
        twice = sum(times - 1 for times in server.paid.values())
        if len(server.paid) != CALLS or twice > 6 * killed:
            raise AssertionError(f"{len(server.paid)} replies, {twice} paid twice")
    return f"{count} processes, each reply paid once" + " (but those in flight at the kill)" * killed


def shared_fetch(chance: random.Random, folder: Path) -> str:
    """One cache of downloads and one mirror."""
    count = chance.randint(2, MOST)
    with FaultServer() as server:
        server.files = {str(source.mirror_path): CONTENT[source.path] for source in SOURCES}
        server.always = Fault(chunk=20_000, pause=0.001)
        finish([fetch_child(server, folder) for _ in range(count)])
        if check_files(folder) != 2 * len(SOURCES):
            raise AssertionError("a file is missing")
        if len(server.requests) != len(SOURCES):
            raise AssertionError(f"{len(server.requests)} downloads of {len(SOURCES)} files")
    return f"{count} processes, each file downloaded once"


def shared_index(chance: random.Random, folder: Path) -> str:
    """Some save the same index, others open and search it."""
    path = folder / "index.bm25"
    old, new = small_indexes()
    path.write_bytes(old)
    texts = [{"text": text} for text in TEXTS]

    def save() -> int:
        BM25Index.from_dataset(texts).save(path)
        return 0

    def read() -> int:
        for _ in range(20):
            index = BM25Index.load(path, verify=True)
            assert len(index) in (1000, len(TEXTS)) and index.search("w1 w2 w3", 5)
        return 0

    finish([Child(work, folder) for work in (save, read, *chance.choices((save, read), k=2))])
    if path.read_bytes() != new:
        raise AssertionError("not the new index")
    return "old or new index"


def shared_build(chance: random.Random, folder: Path) -> str:
    """The same repository from several processes, with one cache of datasets."""

    def child() -> Child:
        arguments = ["build", folder / "out", "fanoutqa", "--config", "sample", "--quiet"]
        return Child(command(*arguments), folder, **offline(folder))

    children = [child() for _ in range(chance.randint(2, 3))]
    codes = [one.wait() for one in children]
    if 0 not in codes or tree(folder / "out/fanoutqa") != expected_tree():
        raise AssertionError(f"exit codes {codes}: {[one.errors[-200:] for one in children]}")
    return f"whole repository, {codes.count(0)} of {len(codes)} processes with exit code 0"


CAMPAIGNS = [
    Campaign("shared-scores", "2-4 processes, one cache of texts", "equal scores", shared_scores, 3),
    Campaign("shared-replies", "2-4 processes, one cache of replies", "each reply paid once", shared_replies, 4),
    Campaign("shared-fetch", "2-4 processes fetch the same files", "each file downloaded once", shared_fetch, 4),
    Campaign("shared-index", "4 processes write and read one index", "old or new index", shared_index, 4),
    Campaign("shared-build", "2-3 processes build one repository", "whole repository", shared_build, 2),
]
