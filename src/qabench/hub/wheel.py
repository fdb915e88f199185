"""The wheel of this qabench that a Space installs, unless qabench was installed from an index."""

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
# A published version never changes, so its wheel has a fixed date: 1980-01-01, the first that a zip
# archive can have.
REPRODUCIBLE = {"SOURCE_DATE_EPOCH": "315532800"}


def is_released() -> bool:
    """Return whether qabench came from an index, such as PyPI, from which a Space gets it, too."""
    return not install_origin()


def own_wheel(folder: Path) -> Path | None:
    """Build a wheel of the installed qabench. Return None if it was installed from an index.

    Raises:
        QabenchError: the wheel cannot be built.
    """
    origin = install_origin()
    if not origin:
        return None
    url = origin["url"]
    requirement = url
    if "vcs_info" in origin:
        requirement = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    elif "dir_info" in origin:
        # The package is built from a copy, because setuptools writes into the folder.
        ignored = shutil.ignore_patterns(".*", "build", "*.egg-info")
        copy = shutil.copytree(
            url.removeprefix("file://"), folder / "source", ignore=ignored, symlinks=True
        )
        # The copy has no .git, from which setup.py takes the commit.
        if commit := code_version().partition("+")[2]:
            (copy / "src/qabench/commit.txt").write_text(commit, encoding="utf-8")
        requirement = str(copy)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        requirement,
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
            f"qabench was installed from {url}, and no wheel of it could be built: {reason}"
        )
    (wheel,) = folder.glob("*.whl")
    return wheel
