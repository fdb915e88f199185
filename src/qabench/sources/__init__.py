"""Pinned upstream files: a declarative table, and a function that returns a verified local path.

    table = load_table("sources.json", "fanoutqa")
    path = local_path(table["fanoutqa/data/fanout-final-dev.json"])

Environment variables:

- QABENCH_MIRROR: folders with the layout OWNER/REPO/PATH, joined with os.pathsep
- QABENCH_CACHE: the folder of downloads
- QABENCH_OFFLINE or HF_HUB_OFFLINE: no network access
- QABENCH_SOURCE_URL: a web server with the layout of a mirror
"""

from __future__ import annotations

from qabench.io.files import cache_dir
from qabench.sources.download import Progress, request_url
from qabench.sources.resolve import (
    FileResult,
    available,
    cache_path,
    check,
    fetch,
    find_local,
    local_path,
    mirror_dirs,
    offline_variable,
    write_mirror,
)
from qabench.sources.table import Digests, SourceFile, SourceTable, compute_digests, find_mismatch, load_table, verify

__all__ = [
    "Digests",
    "FileResult",
    "Progress",
    "SourceFile",
    "SourceTable",
    "available",
    "cache_dir",
    "cache_path",
    "check",
    "compute_digests",
    "fetch",
    "find_local",
    "find_mismatch",
    "load_table",
    "local_path",
    "mirror_dirs",
    "offline_variable",
    "request_url",
    "verify",
    "write_mirror",
]
