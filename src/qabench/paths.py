"""The folder in which qabench stores files on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The cache folder: QABENCH_CACHE, or ``qabench`` in the user's cache folder.

    The path is absolute. The folder is not created. All its content can be downloaded or computed again.
    """
    if named := os.environ.get("QABENCH_CACHE"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("qabench")
