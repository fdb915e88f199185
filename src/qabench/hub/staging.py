"""Repositories to publish: folders of datasets and Spaces, with the problems that the checks found in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from qabench import metrics
from qabench.errors import QabenchError
from qabench.evaluation.signature import version
from qabench.hub.build import MANIFEST, build, copy_files, digests, read_manifest
from qabench.hub.cards import in_namespace
from qabench.io.files import write_json, write_text
from qabench.loading import load_dataset
from qabench.loading_scripts import dataset_table

Kind = Literal["dataset", "space"]
SPACE_FORMAT = "qabench metric space"
CARD_SECONDS = 600
_CODE_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STATED_OUTPUT = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)
_REQUIREMENT = re.compile(r"^qabench(\[[\w,-]+\])?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Staged:
    """A repository to publish.

    Attributes:
        skipped: why it is not published, or None.
        problems: the problems found by the checks; it must not be published unless this is empty.
        missing: the configs that are left out because their data is not available.
    """

    kind: Kind
    repo_id: str
    folder: Path
    skipped: str | None = None
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def stage_dataset(name: str, org: str, root: Path, *, skip_missing: bool = False) -> Staged:
    """Build a benchmark's repository below ``root`` and check it.

    A benchmark with a restriction is skipped, including its sample: an incomplete dataset with this name on the Hub
    would be found before the complete one that ``qabench register`` prepares.
    """
    folder = root / "datasets" / org / name
    staged = Staged("dataset", f"{org}/{name}", folder)
    if restriction := dataset_table(name).restriction:
        return replace(staged, skipped=f"{restriction} `qabench register {name}` prepares it on your machine.")
    try:
        (built,) = build(folder.parent, [name], namespace=org, skip_missing=True)
        if built.missing and not skip_missing:
            problem = (
                f"no data for {', '.join(built.missing)}: run `qabench fetch`, or set QABENCH_MIRROR; --skip-missing "
                "publishes the other configs"
            )
            return replace(staged, problems=(problem,))
        return replace(staged, problems=tuple(check_dataset(name, folder)), missing=tuple(built.missing))
    except (QabenchError, OSError) as error:
        return replace(staged, problems=(str(error),))


def stage_space(name: str, org: str, root: Path) -> Staged:
    """Write the Space of a metric below ``root``, check it and add its signature."""
    folder = root / "spaces" / org / name
    staged = Staged("space", f"{org}/{name}", folder)
    try:
        write_space(name, folder, org)
        problems, signature = check_space(name, folder)
        if not problems:
            sign_space(name, folder, signature)
        return replace(staged, problems=tuple(problems))
    except (QabenchError, OSError) as error:
        return replace(staged, problems=(str(error),))


def write_space(name: str, folder: Path, namespace: str) -> None:
    """Write the files of a metric's Space, except the output of its example; see ``sign_space``.

    The files are those of the metric's folder, with two changes: ``requirements.txt`` has ``qabench==VERSION`` and its
    extras, so that the Space's scores do not change; and the Hub names in the card are those of ``namespace``. Its page
    is ``app.py``.
    """
    copy_files(Path(metrics.__file__).parent / name, folder)
    write_text(folder / "app.py", f'from qabench.hub.space import page\n\npage("{name}").launch()\n')
    card, requirements = folder / "README.md", folder / "requirements.txt"
    write_text(card, in_namespace(_card(folder), namespace))
    write_text(requirements, pinned(requirements.read_text(encoding="utf-8")))


def pinned(requirements: str) -> str:
    """Return requirements with qabench pinned to the installed version and all other lines unchanged."""
    text, count = _REQUIREMENT.subn(lambda match: f"{match[0]}=={version()}", requirements)
    if count != 1:
        raise QabenchError(
            f"requirements.txt has {count} lines like qabench or qabench[EXTRA]; it needs one, without a version"
        )
    return text


def sign_space(name: str, folder: Path, signature: str) -> None:
    """Add the signature of its example and the manifest, which marks it as qabench's, to a staged Space."""
    section = f"""
## Signature

With qabench {version()}, the example above has this signature. The same options and references give the same signature.

```text
{signature}
```
"""
    write_text(folder / "README.md", _card(folder).rstrip("\n") + "\n" + section)
    made_with = {"qabench": version()}
    manifest = {"format": SPACE_FORMAT, "metric": name, "made_with": made_with, "signature": signature}
    write_json(folder / MANIFEST, manifest | {"files": digests(folder)})


def check_dataset(name: str, folder: Path) -> list[str]:
    """Return the problems of a built dataset repository; [] if it may be published.

    Its rows, read with the stock ``datasets``, must equal those parsed from the source files in type and value. Its
    files must have the digests in the manifest. The card must be valid for the Hub's libraries, and its Python code
    must run; see ``run_card``.
    """
    from datasets.info import DatasetInfosDict

    manifest, files = read_manifest(folder), digests(folder)
    problems = [problem for config in manifest["configs"] for problem in _row_problems(name, folder, config)]
    changed = [path for path in {**files, **manifest["files"]} if files.get(path) != manifest["files"].get(path)]
    problems += [f"{path} is not the file that was built" for path in changed]
    problems += _card_problems(folder, ("license", "pretty_name"), DatasetInfosDict.from_dataset_card_data)[0]
    return problems + _run_card(folder)[0]


def check_space(name: str, folder: Path) -> tuple[list[str], str]:
    """Return the problems of the staged Space of a metric, and the signature that its card's example prints.

    The card must be valid; its code must run and print what the card says and the result's signature.
    """
    problems, data = _card_problems(folder, ("title", "emoji", "sdk"), dict)
    if data and not (folder / str(data.get("app_file"))).is_file():
        problems.append(f"README.md: app_file is {data.get('app_file')!r}, which does not exist")
    if data and not {"evaluate", "metric"} <= set(data.get("tags") or ()):
        problems.append("README.md: the tags must include evaluate and metric, by which the Hub finds metrics")
    failures, printed = _run_card(folder)
    signature = next((line for line in reversed(printed) if line.startswith(f"{name}|")), "")
    if not signature and not failures:
        failures.append('the card\'s code does not print a signature: add print(result["signature"]) at its end')
    return problems + failures, signature


def _card_problems(
    folder: Path, keys: Sequence[str], read: Callable[[Any], object]
) -> tuple[list[str], Mapping[str, Any]]:
    """Return the problems of a card's metadata, which ``read`` must accept, and the metadata; {} if it is invalid."""
    from huggingface_hub import metadata_load

    try:
        data = metadata_load(folder / "README.md") or {}
        read(data)
    except Exception as error:  # these libraries raise many types for invalid cards
        return [f"README.md: the card is not valid: {error}"], {}
    return [f"README.md: the card has no {key}" for key in keys if not data.get(key)], data


def _run_card(folder: Path) -> tuple[list[str], list[str]]:
    """Return the problem of a card's code, if any, and the lines that it prints."""
    try:
        return [], run_card(_card(folder), folder.parents[1])
    except QabenchError as error:
        return [str(error)], []


def run_card(card: str, folder: Path) -> list[str]:
    """Run a card's code in a new process without network access, and return the lines that it prints.

    The process runs in ``folder``. If this contains the built repositories as OWNER/NAME, the stock
    ``load_dataset("OWNER/NAME")`` and ``evaluate.load("OWNER/NAME")`` load them instead of the Hub's: the code runs
    unchanged on the files to publish. The two libraries use new cache folders; models come from the user's cache.

    Raises:
        QabenchError: the card has no code, the code fails, or it does not print a line that the card states (in a
            comment after a ``print``), in this order.
    """
    code = "\n".join(_CODE_BLOCK.findall(card))
    if not code:
        raise QabenchError("the card has no Python code")
    with tempfile.TemporaryDirectory(prefix="qabench-card-", ignore_cleanup_errors=True) as caches:
        variables = ("HF_HUB_OFFLINE", "QABENCH_OFFLINE", "HF_DATASETS_DISABLE_PROGRESS_BARS", "PYTHONUTF8")
        environment = os.environ | dict.fromkeys(variables, "1")
        environment |= {name: str(Path(caches, name)) for name in ("HF_DATASETS_CACHE", "HF_MODULES_CACHE")}
        # -P: the working folder has a folder with this package's name.
        command = [sys.executable, "-P", "-W", "ignore", "-c", code]
        try:
            process = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=CARD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise QabenchError(f"the card's code did not finish within {CARD_SECONDS} seconds") from None
    if process.returncode:
        last = process.stderr.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise QabenchError(f"the card's code fails: {last[0]}")
    printed = process.stdout.splitlines()
    lines = iter(printed)
    if missing := next((line for line in _STATED_OUTPUT.findall(code) if line not in lines), None):
        raise QabenchError(f"the card states that its code prints {missing!r}, but it prints {printed}")
    return printed


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
