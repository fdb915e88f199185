"""A real Ray cluster on this machine, shared by all tests: a head without processors, and three nodes with one each."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from ray_jobs import processes_with


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """The nodes; ``add_node`` and ``remove_node`` change them. This process is connected."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    from ray.cluster_utils import Cluster as Nodes

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = tempfile.mkdtemp(prefix="qb-nodes-", dir="/tmp")  # Ray's sockets need a short path
    head = {"num_cpus": 0, "temp_dir": folder, "include_dashboard": False, "object_store_memory": 200 << 20}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    try:
        for _ in range(3):
            nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
        ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    assert processes_with(folder) == []
