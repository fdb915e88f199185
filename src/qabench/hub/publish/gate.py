"""Checks before publishing: rows, digests, cards and the cards' code."""

from __future__ import annotations

import json
import re
import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import Any

from qabench.errors import QabenchError
from qabench.hub.build import repository
from qabench.hub.publish.card_code import run_card
from qabench.loading import load_dataset

# The Hub's requirements for a Space's card.
COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
_FILE_ROW = re.compile(r"^\| `(.+)` \| ([\d,]+) \| `([0-9a-f]{64})` \|$", re.MULTILINE)


def check_dataset(name: str, folder: Path) -> list[str]:
    """The problems of a built dataset repository; [] if it may be published.

    Its rows, read with the stock ``datasets``, must equal those parsed from the source files in type and value. Its
    files must have the digests in the manifest and the card. The card must be valid for the Hub's libraries, and its
    Python code must run; see ``card_code``.

    Args:
        name: the benchmark.
        folder: its repository, .../OWNER/NAME.

    Raises:
        SourceError: a source file is not available.
        InputError: the folder is not a repository written by ``qabench build``.
    """
    manifest = repository.read_manifest(folder)
    problems = [problem for config in manifest["configs"] for problem in _row_problems(name, folder, config)]
    problems += _digest_problems(folder, manifest)
    problems += _dataset_card_problems(folder, manifest)
    try:
        run_card(_card(folder), folder.parents[1])
    except QabenchError as error:
        problems.append(str(error))
    return problems


def check_space(name: str, folder: Path) -> tuple[list[str], str]:
    """The problems of the staged Space of a metric, and the signature that its card's example prints.

    The card must be valid; its code must run and print what the card says and the result's signature.

    Args:
        name: the metric.
        folder: its staged files, .../OWNER/NAME.
    """
    problems = _space_card_problems(folder)
    signature = ""
    try:
        printed = run_card(_card(folder), folder.parents[1])
        signature = next((line for line in reversed(printed) if line.startswith(f"{name}|")), "")
        if not signature:
            problems.append('the card\'s code does not print a signature: add print(result["signature"]) at its end')
    except QabenchError as error:
        problems.append(str(error))
    return problems, signature


def _card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def _row_problems(name: str, folder: Path, config: str) -> list[str]:
    import datasets

    problems = []
    with tempfile.TemporaryDirectory(prefix="qabench-gate-", ignore_cleanup_errors=True) as cache:
        try:
            built = datasets.load_dataset(str(folder), config, cache_dir=cache)
        except Exception as error:  # load_dataset raises many types for repositories that it cannot read
            return [f"{config}: load_dataset cannot read it: {error}"]
        for split, rows in built.items():
            # Streamed: parsed from the source files again, not read from the Arrow files of the build.
            source = load_dataset(name, config, split=split, streaming=True)
            if rows.features != source.features:
                problems.append(f"{config}, {split}: the features are not those of the benchmark")
            elif problem := _first_difference(source, rows):
                problems.append(f"{config}, {split}: {problem}")
    return problems


def _first_difference(source: Any, rows: Any) -> str | None:
    for number, (expected, row) in enumerate(zip_longest(source, rows)):
        if expected is None or row is None:
            return f"{len(rows)} rows; the source has {'fewer' if expected is None else 'more'}"
        for field, value in expected.items():
            # JSON distinguishes 1, 1.0 and true, and has all digits.
            if json.dumps(row[field], sort_keys=True) != json.dumps(value, sort_keys=True):
                return f"row {number}, field {field!r} is {row[field]!r:.80}; the source has {value!r:.80}"
    return None


def _digest_problems(folder: Path, manifest: dict[str, Any]) -> list[str]:
    files = repository.digests(folder)
    written = manifest["files"]
    problems = [f"{path} is not the file that was built" for path in files if files[path] != written.get(path)]
    problems += [f"{path} is missing" for path in written if path not in files]
    listed = {
        path: {"size": int(size.replace(",", "")), "sha256": sha256}
        for path, size, sha256 in _FILE_ROW.findall(_card(folder))
    }
    if listed != {path: digest for path, digest in files.items() if path.endswith(".parquet")}:
        problems.append("README.md: the table of files does not list the data files with their sizes and digests")
    return problems


def _dataset_card_problems(folder: Path, manifest: dict[str, Any]) -> list[str]:
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    try:
        data = DatasetCard(_card(folder)).data
        infos, configs = (kind.from_dataset_card_data(data) for kind in (DatasetInfosDict, MetadataConfigs))
    except Exception as error:  # these libraries raise many types for invalid cards
        return [f"README.md: the card is not valid: {error}"]
    problems = [f"README.md: the card has no {key}" for key in ("license", "pretty_name") if not data.get(key)]
    for what, named in (("configs", configs), ("dataset_info", infos)):
        if list(named) != list(manifest["configs"]):
            problems.append(
                f"README.md: {what} has {', '.join(named)}; the built configs are {', '.join(manifest['configs'])}"
            )
    return problems


def _space_card_problems(folder: Path) -> list[str]:
    from huggingface_hub import SpaceCard

    try:
        data = SpaceCard(_card(folder)).data
    except Exception as error:  # as above
        return [f"README.md: the card is not valid: {error}"]
    problems = [f"README.md: the card has no {key}" for key in ("title", "emoji", "sdk") if not data.get(key)]
    problems += [
        f"README.md: {key} is {data.get(key)!r}; allowed: {', '.join(sorted(COLORS))}"
        for key in ("colorFrom", "colorTo")
        if data.get(key) not in COLORS
    ]
    if not (folder / str(data.get("app_file"))).is_file():
        problems.append(f"README.md: app_file is {data.get('app_file')!r}, which does not exist")
    if not {"evaluate", "metric"} <= set(data.get("tags") or ()):
        problems.append("README.md: the tags must include evaluate and metric, by which the Hub finds metrics")
    return problems
