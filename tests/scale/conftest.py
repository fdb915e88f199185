"""A real Ray cluster on this machine, shared by all tests: a head without processors, and two nodes with one each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray_jobs


@pytest.fixture(scope="package")
def nodes() -> Iterator[Any]:
    """The nodes; ``add_node`` and ``remove_node`` change them. This process is connected."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    from ray.cluster_utils import Cluster as Nodes

    folder = tempfile.mkdtemp(prefix="qb-", dir="/tmp")  # Ray's sockets need a short path
    Path(folder, "ray").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(Path(ray_jobs.__file__).parent))  # the nodes import ``ray_jobs``
        nodes = Nodes()
        try:
            # By default, workers have the lowest priority: the other tests of a parallel run would leave them no time.
            system = {"worker_niceness": 0, "health_check_period_ms": 1000}
            nodes.add_node(num_cpus=0, include_dashboard=False, object_store_memory=200 << 20, _system_config=system)
            for _ in range(2):
                nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
            ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
    assert ray_jobs.processes_with(folder) == []
