"""``qabench new``: a small, complete benchmark outside of this package, to be changed into another one."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from qabench.cli.output import say
from qabench.data.hub import HubDataset
from qabench.data.sources import local_path
from qabench.errors import InputError
from qabench.io.files import write_text
from qabench.loading_scripts import benchmark_names

EXAMPLE = "rivers"
NAME = re.compile("[a-z][a-z0-9_]*")
LICENSE = "cc-by-4.0"
FILES = ("configs.json", "questions.jsonl")  # not needed if the rows are on the Hub


def new(
    name: Annotated[
        str, Argument(metavar="NAME", help="The name of the benchmark, such as strategyqa.")
    ],
    output: Annotated[
        Path,
        Option(file_okay=False, help="Write DIR/NAME, DIR/pyproject.toml and a test."),
    ] = Path(),
    hub: Annotated[
        str | None,
        Option(metavar="ORG/NAME", help="A dataset on the Hub that has the questions."),
    ] = None,
    split: Annotated[str, Option(help="Its split.")] = "test",
    question: Annotated[str, Option(metavar="COLUMN", help="The question.")] = "question",
    answer: Annotated[str, Option(metavar="COLUMN", help="The answer.")] = "answer",
    id: Annotated[str, Option(metavar="COLUMN", help="The id; without, a digest.")] = "",
    config: Annotated[str | None, Option(help="The config of the dataset.")] = None,
    revision: Annotated[str | None, Option(help="Its commit; without, the latest.")] = None,
) -> None:
    """Write a small benchmark with four questions, a score, a prompt, a card and a test.

    Then change its files.

    With --hub, its questions are the rows of a dataset on the Hub, at its current commit. Every
    command takes it with QABENCH_PATH=DIR, or after `pip install DIR`. Exit code: 0 it was written;
    2 the name is not a Python name, files exist, or the dataset has no such split or column.
    """
    if not NAME.fullmatch(name):
        raise InputError(
            f"the name is {name!r}; allowed: lowercase letters, digits and _, such as strategyqa"
        )
    if name in sys.stdlib_module_names:
        raise InputError(f"{name} is a module of Python; choose another name")
    if name in benchmark_names():
        raise InputError(f"there is a benchmark {name}; choose another name")
    template = Path(str(resources.files("qabench.cli") / "template"))
    texts = {
        str(path.relative_to(template)).removesuffix(".txt"): path.read_text(encoding="utf-8")
        for path in sorted(template.rglob("*"))
        if path.is_file() and not (hub and path.name in FILES)
    }
    texts = {_renamed(path, name): _renamed(text, name) for path, text in texts.items()}
    if existing := [path for path in texts if (output / path).exists()]:
        raise InputError(f"{output / existing[0]} exists; choose another --output")
    if hub:
        chosen = HubDataset(hub, split, question, answer, id, config, revision=revision)
        _use_hub(texts, name, *_pinned(chosen, name))
    for path, text in texts.items():
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(output / path, text)
        say(str(output / path))
    say(f"Try it: QABENCH_PATH={output} qabench stats {name}")


def _renamed(text: str, name: str) -> str:
    """Return a text of the example with another name."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return text.replace(EXAMPLE, name).replace(EXAMPLE.capitalize(), title)


def _pinned(dataset: HubDataset, name: str) -> tuple[HubDataset, str]:
    """Return a dataset with its current commit and the digest of its rows, and its license."""
    from huggingface_hub import HfApi

    from qabench.hub.client import bounded_answers, hub_errors

    api = HfApi()
    with bounded_answers(), hub_errors(api):
        about = api.dataset_info(dataset.path, revision=dataset.revision)
    pinned = replace(dataset, revision=about.sha)
    rows = local_path(pinned.file(name)).read_bytes()
    license = about.card_data.get("license") if about.card_data else None
    if isinstance(license, list):
        license = license[0]
    return replace(pinned, sha256=hashlib.sha256(rows).hexdigest()), license or "unknown"


def _use_hub(texts: dict[str, str], name: str, dataset: HubDataset, license: str) -> None:
    """Let the files of the example use a dataset on the Hub."""
    unchanged = HubDataset(dataset.path)
    given = "".join(
        f'        {field.name}="{getattr(dataset, field.name)}",\n'
        for field in fields(dataset)
        if getattr(dataset, field.name) != getattr(unchanged, field.name)
    )
    data = f'    data = HubDataset(\n        "{dataset.path}",\n{given}    )\n'
    page = f"https://huggingface.co/datasets/{dataset.path}"
    changes: Mapping[str, Mapping[str, str]] = {
        f"{name}/__init__.py": {
            r"(Benchmark), (Setting)$": r"\1, HubDataset, \2",
            r"(    title = .*\n)": rf"\1{data}",
            r"    groupings = .*\n": "",
            r": which river .*\"\"\"": f': questions of {dataset.path}."""',
        },
        f"{name}/README.md": {
            f"license: {LICENSE}": f"license: {license}",
            "Which river.*": f"The questions of [{dataset.path}]({page}), split `{dataset.split}`.",
            '"test"': f'"{dataset.split}"',
        },
        f"{name}/{name}.yaml": {"test_split: test": f"test_split: {dataset.split}"},
        f"test_{name}.py": {'"test"': f'"{dataset.split}"'},
    }
    for path, replaced in changes.items():
        for pattern, new_text in replaced.items():
            texts[path] = re.sub(pattern, new_text, texts[path], flags=re.MULTILINE)
