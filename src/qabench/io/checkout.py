"""The commit of a checkout.

A module of its own because builds run it, too.
"""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(root: Path, version: str) -> str | None:
    """Return the commit of a checkout, such as "g3dd1941" or "g3dd1941.dirty" with uncommitted changes.

    None if the folder is not a checkout of git, or if it is exactly what the tag of the version
    names.
    """
    if not (root / ".git").exists():
        return None
    describe = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty=.dirty",
        "--long",
        "--tags",
    ]
    try:
        done = subprocess.run(
            [*describe, f"--match=v{version}"], capture_output=True, text=True, check=True
        )
    except (
        OSError,
        subprocess.CalledProcessError,
    ):  # git is not installed, or does not trust the folder
        return None
    name = done.stdout.strip()
    if name.startswith(f"v{version}-0-g") and not name.endswith(".dirty"):
        return None
    return "g" + name.rpartition("-g")[2]
