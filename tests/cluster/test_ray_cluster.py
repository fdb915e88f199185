"""Jobs on a real Ray cluster of two nodes: results of one process, also when a worker or a node is
lost.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import ray_jobs
from datasets import Dataset
from typer.testing import CliRunner

from qabench.cli import app
from qabench.cluster import Cluster
from qabench.cluster.jobs import label, map_parts
from qabench.errors import InputError, QabenchError
from qabench.io.workers import cluster
from qabench.loading_scripts import fanoutqa

ray = pytest.importorskip("ray", reason="needs the extra ray")
pytestmark = pytest.mark.xdist_group("ray")
ANSWERS = sorted((Path(fanoutqa.__path__[0]) / "sample" / "generations").iterdir())[0]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a cluster with two nodes of one processor each. This process is connected to
    the first.
    """
    from ray.cluster_utils import Cluster as Nodes

    folder = tempfile.mkdtemp(prefix="qb-", dir="/tmp")  # Ray's sockets need a short path
    Path(folder, "ray").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # the nodes import ``ray_jobs``
        patch.setenv("PYTHONPATH", str(Path(ray_jobs.__file__).parent))
        nodes = Nodes()
        try:
            # By default, workers have the lowest priority: the other tests of a parallel run would
            # leave them no time.
            system = {"worker_niceness": 0, "health_check_period_ms": 1000}
            nodes.add_node(num_cpus=1, include_dashboard=False, object_store_memory=200 << 20, _system_config=system)
            nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
            ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
            yield nodes.address
        finally:
            ray.shutdown()
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
    assert ray_jobs.processes_with(folder) == []


def run_command(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_scores_equal_those_of_one_process(address: str, spacy_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_TEXT_CACHE", "0")
    monkeypatch.setattr("qabench.benchmarks.fanoutqa.normalizer.CHARACTERS_PER_BLOCK_ON_A_CLUSTER", 500)
    command = ["score", "fanoutqa", ANSWERS, "--config", "sample", "--lemmatizer", "spacy", "--json"]
    assert run_command(*command, "--ray-address", address) == run_command(*command) and cluster() is None


def test_bleurt_equals_one_process(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra bleurt")
    from tiny_bleurt import WORDS, write_tiny_bleurt

    from qabench.models.bleurt import load_bleurt

    monkeypatch.setattr("qabench.models.bleurt.BATCH_SIZE", 4)
    write_tiny_bleurt(tmp_path)
    texts = [" ".join(WORDS[: n % 11 + 1]) for n in range(40)]
    expected = load_bleurt(str(tmp_path))(texts, texts[::-1])
    with Cluster(workers=1):
        assert load_bleurt(str(tmp_path))(texts, texts[::-1]) == expected
    assert len(set(expected)) == 11


def test_labels_equal_one_process(address: str, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra autoais")
    from tiny_t5 import save_tiny_t5

    from qabench.models.entailment import prompt_of

    claims = [{"claim": f"the moon number {n}", "evidence": [f"the sea {'e' * (n % 5)}"] * (n % 3)} for n in range(30)]
    model = save_tiny_t5(tmp_path / "model", [prompt_of(" ".join(c["evidence"]), c["claim"]) for c in claims])
    source = Dataset.from_list(claims)
    expected = label(source, tmp_path / "one", model=str(model), rows_per_part=7)
    with Cluster(workers=1):
        paths = label(source, tmp_path / "many", model=str(model), rows_per_part=7)
    assert [path.read_bytes() for path in expected] == [path.read_bytes() for path in paths] and len(expected) == 5


def test_a_killed_worker_loses_and_repeats_nothing(address: str, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    source = Dataset.from_dict({"number": list(range(23))})
    progress: list[tuple[int, int]] = []
    with Cluster():
        load = partial(ray_jobs.doubling_killed_once, tmp_path)
        record = lambda *rows: progress.append(rows)  # noqa: E731
        paths = map_parts(source, tmp_path / "doubles", load, {}, rows_per_part=4, progress=record)
    assert (tmp_path / "killed").exists() and [rows for rows, _ in progress] == [4, 8, 12, 16, 20, 23]
    assert [n for path in paths for n in parquet.read_table(path)["double"].to_pylist()] == [2 * n for n in range(23)]


def test_errors_of_workers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster() as machines, pytest.raises(InputError, match=r"^2 is refused$"):
        list(machines.map(partial(ray_jobs.constant, ray_jobs.refusing), [1, 2]))
    with Cluster() as machines, pytest.raises(QabenchError, match=r"on the Ray cluster: KeyError\('four'\)$"):
        list(machines.map(partial(ray_jobs.constant, ray_jobs.refusing), [4]))
    monkeypatch.setattr("qabench.cluster.MAX_RETRIES", 0)
    # One input: a result that its process did not deliver before it was killed would be computed
    # again.
    with Cluster() as machines, pytest.raises(QabenchError, match="the job failed on the Ray cluster"):
        list(machines.map(partial(ray_jobs.constant, ray_jobs.refusing), [3]))


def test_a_lost_node_loses_and_repeats_nothing(address: str, tmp_path: Path) -> None:
    """The last test of the cluster, of which one node remains."""
    head, mark = ray.get_runtime_context().get_node_id(), tmp_path / "lost"
    with Cluster() as machines:
        assert machines.workers == 2
        results = list(machines.map(partial(ray_jobs.on_a_node_that_is_lost, mark, head), range(12)))
    assert mark.exists() and results == [(number, head) for number in range(12)]


def test_a_local_cluster() -> None:
    command = [sys.executable, "-m", "qabench", "score", "fanoutqa", str(ANSWERS), "--config", "sample", "--ray"]
    command += ["--lemmatizer", "simplemma"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    assert "acc.loose" in output and "core_worker.cc" not in errors
