"""Facts about this installation: versions, environment variables, and caches."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from qabench.io.files import cache_dir
from qabench.io.redaction import is_secret, redacted

HIDDEN = "(set, not shown)"

PREFIXES_OF_VARIABLES = ("QABENCH_", "FANOUTQA_", "CUSTOM_SEARCH_", "HF_", "JAVA_HOME")

# The libraries whose version can change a score or a run.
PACKAGES = [
    "datasets",
    "evaluate",
    "huggingface-hub",
    "numpy",
    "ftfy",
    "rouge-score",
    "rouge-score-rs",
    "spacy",
    "simplemma",
    "rank-bm25",
    "markdownify",
    "libzim",
    "pyserini",
    "openai",
    "inspect-ai",
    "lm-eval",
    "torch",
    "transformers",
    "en_core_web_sm",
]


def environment() -> dict[str, Any]:
    """Return JSON data for a bug report: versions, the cache's size, environment variables."""
    variables = {}
    for name, value in sorted(os.environ.items()):
        if name.startswith(PREFIXES_OF_VARIABLES):
            variables[name] = HIDDEN if is_secret(name) else redacted(value)
    return {
        "qabench": package_version("qabench"),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: version_or_none(name) for name in PACKAGES},
        "cache": {"path": str(cache_dir()), "bytes": folder_size(cache_dir())},
        "variables": variables,
    }


def offline_variable() -> str | None:
    """Return the environment variable that forbids network access (1, on, yes or true), or None."""
    for name in ("QABENCH_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(name, "").strip().lower() in {"1", "on", "yes", "true"}:
            return name
    return None


def folder_size(folder: Path) -> int:
    """Return the total size of a folder's files in bytes, or 0 if the folder does not exist."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def version_or_none(package: str) -> str | None:
    """Return the installed version of a package, or None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def package_version(name: str) -> str:
    """Return the installed version of a package.

    The version is cached, because signatures need it for every sample. Raises
    ``importlib.metadata.PackageNotFoundError`` if the package is not installed.
    """
    return metadata.version(name)


@cache
def code_version() -> str:
    """Return the version of qabench, and in a checkout the commit, such as "0.2.0+g3dd1941.dirty".

    A checkout may compute scores that differ from those of the release with the same version, so
    signatures must tell the two apart.
    """
    version = package_version("qabench")
    package = Path(__file__).parents[1]
    # setup.py writes this file, except for editable installs.
    built = package / "commit.txt"
    if built.exists():
        commit: str | None = built.read_text(encoding="utf-8")
    else:
        commit = commit_of(package.parents[1], version)
    return f"{version}+{commit}" if commit else version


def commit_of(root: Path, version: str) -> str | None:
    """Return the commit of a checkout: "g3dd1941", or "g3dd1941.dirty" with uncommitted changes.

    Return None if the folder is not a git checkout, or if its content is exactly the commit that
    the version's tag names. setup.py also calls this function, so this module must be importable
    with the standard library alone.
    """
    if not (root / ".git").exists():
        return None
    command = f"git describe --always --dirty=.dirty --long --tags --match=v{version}"
    try:
        done = subprocess.run(command.split(), cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        # git is not installed, or does not trust the folder.
        return None
    name = done.stdout.strip()
    if name.startswith(f"v{version}-0-g") and not name.endswith(".dirty"):
        return None
    return "g" + name.rpartition("-g")[2]
