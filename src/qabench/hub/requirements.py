"""What a Space installs: a wheel of this checkout unless the version is released."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.io.environment import code_version

PIP_SECONDS = 900
# a published version never changes: neither do dates in its wheel
REPRODUCIBLE = {"SOURCE_DATE_EPOCH": "315532800"}


def is_released() -> bool:
    """Return whether qabench was installed from an index, such as PyPI: a version that anybody can install."""
    return not _origin()


def _origin() -> dict[str, Any]:
    """Return where pip installed qabench from, or {} for an index (PEP 610)."""
    return dict(json.loads(distribution("qabench").read_text("direct_url.json") or "{}"))


def own_wheel(folder: Path) -> Path | None:
    """Build a wheel of the installed qabench in a folder, or None if it was installed from an index.

    Raises:
        QabenchError: the wheel cannot be built.
    """
    origin = _origin()
    if not origin:
        return None
    source = origin["url"]
    if "vcs_info" in origin:
        source = f"{origin['vcs_info']['vcs']}+{source}@{origin['vcs_info']['commit_id']}"
    elif "dir_info" in origin:  # built from a copy, because setuptools writes into the folder
        ignored = shutil.ignore_patterns(".*", "build", "*.egg-info")
        copy = shutil.copytree(
            source.removeprefix("file://"), folder / "source", ignore=ignored, symlinks=True
        )
        if commit := code_version().partition("+")[2]:
            (copy / "src/qabench/commit.txt").write_text(commit, encoding="utf-8")
        source = str(copy)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), source]
    done = subprocess.run(
        [*command, "--quiet", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PIP_SECONDS,
        env=os.environ | REPRODUCIBLE,
    )
    if done.returncode:
        reason = done.stderr.strip()[-500:]
        raise QabenchError(
            f"qabench was installed from {origin['url']}, and no wheel of it could be built: {reason}"
        )
    (wheel,) = folder.glob("*.whl")
    return wheel
