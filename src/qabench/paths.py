"""Where qabench keeps files on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """The folder of everything that can be made again: QABENCH_CACHE, or ``qabench`` in the user's cache folder.

    Absolute; not created.
    """
    if named := os.environ.get("QABENCH_CACHE"):
        return Path(named).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("qabench")
