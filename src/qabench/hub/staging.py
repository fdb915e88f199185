"""Repositories to publish: folders of datasets and Spaces, checked before they are sent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import datasets
from huggingface_hub import constants

from qabench.errors import QabenchError
from qabench.evaluation.signature import version
from qabench.hub.build import MANIFEST, build, copy_files, digests, read_manifest
from qabench.hub.cards import in_namespace
from qabench.hub.leaderboards import INSPECT_AI
from qabench.io.files import write_json, write_text
from qabench.loading_scripts import PATH_VARIABLE, custom_folders, dataset_table
from qabench.loading_scripts.load import load_dataset
from qabench.metrics import metric_class, metric_folder

Kind = Literal["dataset", "space"]
SPACE_FORMAT = "qabench metric space"
# The code of a card may load a model.
CARD_SECONDS = 600
# Spaces run on the Python version that checks their cards, and on a tested version of gradio.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
GRADIO = "6.31.0"
# The first lines of a Space's page for a benchmark from outside. The Space contains the benchmark's
# package, which need not be installed.
USE_PACKAGE = f"""import os

os.environ["{PATH_VARIABLE}"] = os.path.dirname(os.path.abspath(__file__))

"""
# A card's code is run, and must print what the comments after ``print`` say.
_CODE_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATED_OUTPUT = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
_REQUIREMENT = re.compile(r"^qabench(\[[\w,-]+\])?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository to publish, and the result.

    Attributes:
        state: "staged": it passed the checks. "published". "unchanged": the version is already
            there. "to publish" in a dry run. "skipped" or "failed", for ``reason``.
        commit: the commit with the tag of the version if "published" or "unchanged", else None.
        files: size and SHA-256 of its files by path.
        reason: why it was skipped or failed. In a dry run, why it was not compared with the Hub.
        missing: the configs that are left out because their data is not available.
    """

    kind: Kind
    repo_id: str
    folder: Path
    state: Literal["staged", "published", "unchanged", "to publish", "skipped", "failed"] = "staged"
    tag: str = field(default_factory=lambda: f"v{version()}")
    commit: str | None = None
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reason: str | None = None
    missing: tuple[str, ...] = ()


def stage_dataset(
    name: str, org: str, root: Path, *, skip_missing: bool = False, framework: str = INSPECT_AI
) -> Repository:
    """Build a benchmark's repository below ``root`` and check it.

    A benchmark with a restriction is skipped, including its sample: an incomplete dataset with this
    name on the Hub would be found before the complete one that ``qabench register`` prepares.
    """
    folder = root / "datasets" / org / name
    staged = Repository("dataset", f"{org}/{name}", folder)
    if restriction := dataset_table(name).restriction:
        reason = f"{restriction} `qabench register {name}` prepares it on your machine."
        return replace(staged, state="skipped", reason=reason)
    try:
        (built,) = build(folder.parent, [name], namespace=org, framework=framework)
        if built.missing and not skip_missing:
            raise QabenchError(
                f"no data for {', '.join(built.missing)}: run `qabench fetch`, or set QABENCH_MIRROR; --skip-missing "
                "publishes the other configs"
            )
        check_dataset(name, folder)
        return replace(staged, files=digests(folder, manifest=True), missing=tuple(built.missing))
    except (QabenchError, OSError) as error:
        return replace(staged, state="failed", reason=str(error))


def stage_space(name: str, org: str, root: Path, wheel: Path | None = None) -> Repository:
    """Write the Space of a metric below ``root`` and check it."""
    folder = root / "spaces" / org / name
    staged = Repository("space", f"{org}/{name}", folder)
    try:
        write_space(name, folder, org, wheel)
        # The card's code loads ORG/NAME, which is a path in the folder ``spaces``.
        run_card(_card(folder), folder.parents[1])
        return replace(staged, files=digests(folder, manifest=True))
    except (QabenchError, OSError) as error:
        return replace(staged, state="failed", reason=str(error))


def write_space(name: str, folder: Path, namespace: str, wheel: Path | None = None) -> None:
    """Write the files of a metric's Space, and the manifest, which marks it as qabench's.

    The files come from the metric's folder, with these changes. ``requirements.txt`` has
    ``qabench==VERSION`` and its extras, so that the Space's scores do not change. An unreleased
    version is added as a ``wheel`` instead. The card has the versions of Python and gradio. Without
    them, the Hub takes Python 3.10 and any gradio. The Hub names in the card have the owner
    ``namespace``. The page is ``app.py``. For a benchmark from outside, its package is beside the
    page.
    """
    copy_files(metric_folder(name), folder)
    page = f'from qabench.hub.space import page\n\npage("{name}").launch(max_file_size="1mb")\n'
    benchmark = metric_class(name).BENCHMARK
    if package := custom_folders().get(benchmark):
        copy_files(package, folder / benchmark)
        if (project := package.parent / "pyproject.toml").is_file():
            shutil.copyfile(project, folder / project.name)
        page = USE_PACKAGE + page
    write_text(folder / "app.py", page)
    card, requirements = folder / "README.md", folder / "requirements.txt"
    versions = f"sdk: gradio\nsdk_version: {GRADIO}\npython_version: '{PYTHON}'\n"
    text = in_namespace(_card(folder), namespace)
    write_text(card, text.replace("sdk: gradio\n", versions, 1))
    pin = f"=={version()}"
    if wheel:
        shutil.copyfile(wheel, folder / wheel.name)
        # A URL, because the Hub installs the requirements before the other files of a Space are there.
        url = f"{constants.ENDPOINT}/spaces/{namespace}/{name}/resolve/main"
        pin = f" @ {url}/{wheel.name}"
    needed = requirements.read_text(encoding="utf-8") if requirements.is_file() else "qabench\n"
    write_text(requirements, _REQUIREMENT.sub(rf"\g<0>{pin}", needed))
    manifest = {"format": SPACE_FORMAT, "metric": name, "made_with": {"qabench": version()}}
    write_json(folder / MANIFEST, manifest | {"files": digests(folder)})


def check_dataset(name: str, folder: Path) -> None:
    """Raise QabenchError if a built dataset repository must not be published.

    Its rows, read with the stock ``datasets``, must equal those parsed from the source files in
    type and value, and the card's Python code must run. See ``run_card``.
    """
    for config in read_manifest(folder)["configs"]:
        _check_rows(name, folder, config)
    run_card(_card(folder), folder.parents[1])


def run_card(card: str, folder: Path) -> None:
    """Run a card's code in a new process without network access, and compare what it prints.

    The process runs in ``folder``. If ``folder`` contains the built repositories as OWNER/NAME, the
    stock ``load_dataset("OWNER/NAME")`` and ``evaluate.load("OWNER/NAME")`` load them instead of
    the Hub's: the code runs unchanged on the files to publish. The two libraries use new cache
    folders. Models come from the user's cache.

    Raises:
        QabenchError: the card has no code, the code fails, or it does not print all lines that the
            card states (in comments after ``print``), in their order.
    """
    code = "\n".join(_CODE_BLOCK.findall(card))
    if not code:
        raise QabenchError("the card has no Python code")
    with tempfile.TemporaryDirectory(prefix="qabench-card-", ignore_cleanup_errors=True) as caches:
        variables = (
            "HF_HUB_OFFLINE",
            "QABENCH_OFFLINE",
            "HF_DATASETS_DISABLE_PROGRESS_BARS",
            "PYTHONUTF8",
        )
        environment = os.environ | dict.fromkeys(variables, "1")
        # With the user's caches, the code could load what was built or published before.
        for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE"):
            environment[name] = str(Path(caches, name))
        folders = sorted({str(path.parent) for path in custom_folders().values()})
        environment[PATH_VARIABLE] = os.pathsep.join(folders)
        # -P: the working folder has a folder with this package's name.
        command = [sys.executable, "-P", "-W", "ignore", "-c", code]
        try:
            process = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                encoding="utf-8",
                timeout=CARD_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise QabenchError(
                f"the card's code did not finish within {CARD_SECONDS} seconds"
            ) from None
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise QabenchError(f"the card's code fails: {last[0]}")
    printed = process.stdout.splitlines()
    # ``in`` advances the iterator past the line that it finds, so the order of lines is checked.
    remaining = iter(printed)
    for stated in _STATED_OUTPUT.findall(code):
        if stated not in remaining:
            raise QabenchError(
                f"the card states that its code prints {stated!r}, but it prints {printed}"
            )


def _card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def _check_rows(name: str, folder: Path, config: str) -> None:
    """Raise QabenchError unless ``load_dataset`` reads the rows of the source files."""
    with tempfile.TemporaryDirectory(prefix="qabench-gate-", ignore_cleanup_errors=True) as cache:
        try:
            built = datasets.load_dataset(str(folder), config, cache_dir=cache)
        except Exception as error:
            # ``load_dataset`` raises many types of errors for what it cannot read.
            raise QabenchError(f"{config}: load_dataset cannot read it: {error}") from error
        for split, rows in built.items():
            # Streamed: parsed from the source files again, not read from the Arrow files of the
            # build.
            source = load_dataset(name, config, split=split, streaming=True)
            if rows.features != source.features:
                raise QabenchError(f"{config}, {split}: the features differ from the benchmark's")
            if difference := _first_difference(source, rows):
                raise QabenchError(f"{config}, {split}: {difference}")


def _first_difference(source: Any, rows: Any) -> str | None:
    """Say where rows first differ from the source, or return None if all are equal."""
    for number, (expected, row) in enumerate(zip_longest(source, rows)):
        if expected is None:
            return f"{len(rows)} rows; the source has fewer"
        if row is None:
            return f"{len(rows)} rows; the source has more"
        for column, value in expected.items():
            # They are compared as JSON text, because 1 == 1.0 == True in Python.
            if json.dumps(row[column], sort_keys=True) != json.dumps(value, sort_keys=True):
                return f"row {number}, field {column!r} is {row[column]!r:.80}; the source has {value!r:.80}"
    return None
