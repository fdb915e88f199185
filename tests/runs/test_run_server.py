"""All benchmarks with a real model on a real OpenAI-compatible server, from the command to the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_server import served_model

pytest.importorskip("inspect_ai", reason="needs the extra run")

pytestmark = pytest.mark.integration
SETTINGS = [
    ("fanoutqa", "closed-book", {"acc.loose", "acc.strict", "rouge1.fscore"}),
    ("felm", "raw", set()),  # a random model gives no verdict, so there is no score
    ("expertqa", "closed", {"rouge1", "rougeL"}),
    ("fastbook", "rag", {"mrr@10", "recall@10", "rouge1.fscore"}),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(base URL, model) of a running server."""
    with served_model(tmp_path_factory.mktemp("served")) as running:
        yield running


def test_a_model_runs_every_benchmark_and_has_a_report(served: tuple[str, str], tmp_path: Path) -> None:
    base_url, model = served
    logs = []
    for benchmark, setting, figures in SETTINGS:
        command = ["run", benchmark, "--setting", setting, "--config", "sample", "--model", model]
        options = ["--base-url", base_url, "--max-new-tokens", "40", "--log-dir", str(tmp_path), "--json"]
        report = json.loads(qabench(*command, *options))
        assert report["status"] == "success", report["problems"]
        # Random weights: nothing is right and much is cut off, but all questions have a reply.
        assert report["counts"]["failed"] == report["counts"]["missing"] == 0
        assert sum(report["counts"].values()) > 0
        assert figures <= report["scores"].keys()
        logs.append(report["path"])
    page = Path(json.loads(qabench("report", *logs, "--output", str(tmp_path / "report"), "--json"))["page"])
    for name in ("FanOutQA", "FELM", "ExpertQA", "fastbook"):
        assert name in page.read_text(encoding="utf-8")


def qabench(*arguments: str) -> str:
    command = [sys.executable, "-P", "-W", "ignore", "-m", "qabench", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout
