"""Imports of scripts by their bare names, as when their folder is the script's, next to other
folders' scripts.
"""

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def importing_from(folder: Path, names: Collection[str]) -> Iterator[None]:
    """Inside the block, the modules ``names`` are those of ``folder``; modules of the same names
    return after it.
    """
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path  # the scripts add folders
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(others)
