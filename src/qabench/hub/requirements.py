"""What a Space installs: a wheel of this qabench, unless it was installed from an index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from qabench.errors import QabenchError, install_origin
from qabench.io.environment import code_version

# Downloading and building packages can take minutes.
PIP_SECONDS = 900
# A published version never changes, so its wheel has fixed dates.
REPRODUCIBLE = {"SOURCE_DATE_EPOCH": "315532800"}


def is_released() -> bool:
    """Return whether qabench was installed from an index, such as PyPI, so that anybody can do so."""
    return not install_origin()


def own_wheel(folder: Path) -> Path | None:
    """Build a wheel of the installed qabench, unless it was installed from an index.

    Raises:
        QabenchError: the wheel cannot be built.
    """
    origin = install_origin()
    if not origin:
        return None
    source = origin["url"]
    if "vcs_info" in origin:
        source = f"{origin['vcs_info']['vcs']}+{source}@{origin['vcs_info']['commit_id']}"
    elif "dir_info" in origin:
        # The package is built from a copy, because setuptools writes into the folder.
        ignored = shutil.ignore_patterns(".*", "build", "*.egg-info")
        copy = shutil.copytree(
            source.removeprefix("file://"), folder / "source", ignore=ignored, symlinks=True
        )
        if commit := code_version().partition("+")[2]:
            (copy / "src/qabench/commit.txt").write_text(commit, encoding="utf-8")
        source = str(copy)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        source,
    ]
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
