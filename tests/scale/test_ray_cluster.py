"""Jobs on a Ray cluster of several nodes: results of one process, also when a worker or a node is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ray_jobs import constant, doubling_killed_once, processes_with, refusing, waiting
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.io.workers import cluster
from qabench.loading_scripts import fanoutqa
from qabench.scale import Cluster
from qabench.scale.parts import open_source, run

pytestmark = pytest.mark.xdist_group("ray")
ANSWERS = sorted((Path(fanoutqa.__path__[0]) / "sample" / "generations").iterdir())[0]


def run_command(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_scores_equal_those_of_one_process(nodes: Any, spacy_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_TEXT_CACHE", "0")
    monkeypatch.setattr(import_module("qabench.text.normalize"), "CHARACTERS_PER_BLOCK_ON_A_CLUSTER", 500)
    command = ["score", "fanoutqa", ANSWERS, "--config", "sample", "--lemmatizer", "spacy", "--json"]
    assert run_command(*command, "--ray-address", nodes.address) == run_command(*command)
    assert cluster() is None


def test_a_killed_worker_loses_and_repeats_nothing(nodes: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    source = tmp_path / "numbers.jsonl"
    source.write_text("".join(json.dumps({"number": n}) + "\n" for n in range(23)))
    done: list[tuple[int, int]] = []
    with Cluster():
        paths = run(
            open_source(source, ["number"]),
            tmp_path / "doubles",
            partial(doubling_killed_once, tmp_path),
            {"double": "int64"},
            {},
            rows_per_part=4,
            progress=lambda *rows: done.append(rows),
        )
    assert (tmp_path / "killed").exists()
    assert [rows for rows, _ in done] == [4, 8, 12, 16, 20, 23]
    assert [n for path in paths for n in parquet.read_table(path)["double"].to_pylist()] == [2 * n for n in range(23)]


def test_a_removed_node_loses_and_repeats_nothing(nodes: Any, tmp_path: Path) -> None:
    import ray

    go_on = tmp_path / "go-on"
    with Cluster() as machines:
        results = machines.map(partial(constant, partial(waiting, go_on, 3)), range(12))
        found = [next(results) for _ in range(3)]
        _, name, process = found[0]
        sockets = {node["NodeID"]: node["RayletSocketName"] for node in ray.nodes()}
        lost = next(node for node in nodes.worker_nodes if node.raylet_socket_name == sockets[name])
        os.kill(process, signal.SIGKILL)  # it waits with a later number
        nodes.remove_node(lost, allow_graceful=False)
        go_on.touch()
        found += results
    nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
    assert [number for number, _, _ in found] == list(range(12))
    assert name not in {node for _, node, _ in found[3:]}


def test_errors_of_workers(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.scale.cluster.MAX_ATTEMPTS", 1)
    with Cluster() as machines:
        with pytest.raises(InputError, match=r"^2 is refused$"):
            list(machines.map(partial(constant, refusing), [1, 2]))
        with pytest.raises(QabenchError, match="part 1 of the job was started 1 times; its process"):
            list(machines.map(partial(constant, refusing), [1, 3]))


def test_a_local_cluster_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    before = set(Path("/tmp").glob("qabench-ray-*"))
    command = [sys.executable, "-m", "qabench", "score", "fanoutqa", str(ANSWERS), "--config", "sample", "--ray"]
    done = subprocess.run([*command, "--lemmatizer", "simplemma"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "acc.loose" in done.stdout and "core_worker.cc" not in done.stderr
    assert set(Path("/tmp").glob("qabench-ray-*")) <= before
    assert processes_with("qabench-ray-") == []
