"""Dataset cards and ``eval.yaml`` files of built repositories, and the licenses in the cards."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import yaml
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard, DatasetCardData, metadata_load

from qabench.errors import InputError
from qabench.hub.leaderboards import eval_file
from qabench.hub.register import NAMESPACE
from qabench.loading_scripts import DatasetTable, benchmark_names, custom_folders, folder_of
from qabench.loading_scripts.fields import FieldDescription, field_descriptions
from qabench.metrics import metric_names

ABOUT = ("description", "citation", "homepage", "license")
SAMPLE_LICENSE = "apache-2.0"
# The Hub's license identifiers that do not say what is allowed.
NO_LICENSE = ("other", "unknown")
# A row of a card's table of configs.
CONFIG_ROW = re.compile(r"\| `(\w+)`(?: \(default\))? \|")
TERMS = "https://huggingface.co/docs/hub/repositories-licenses"


def license_of(name: str) -> str:
    """Return the license of a benchmark's data according to its card, as the Hub's identifier.

    Raises:
        InputError: the card names no license that allows others to publish the data.
    """
    license = (metadata_load(folder_of(name) / "README.md") or {}).get("license")
    if not isinstance(license, str) or license in NO_LICENSE:
        raise InputError(
            f"{name} cannot be published: its card has the license {license!r}; allowed: a license that the Hub knows, "
            "such as cc-by-4.0"
        )
    return license


def check_accepted(names: Sequence[str], accepted: bool) -> None:
    """Raise an InputError with the benchmarks' licenses unless they were accepted."""
    licenses = [f"{name}: {license_of(name)}" for name in names]
    if licenses and not accepted:
        raise InputError(
            f"the data belongs to its authors. Their licenses are {', '.join(licenses)}; see {TERMS}. "
            "Nothing was published. Use --accept-licenses if you will comply with them."
        )


def card_text(table: DatasetTable, infos: Mapping[str, Any], restriction: str | None) -> str:
    """Return the dataset card of a repository with some of a benchmark's configs.

    It is the benchmark's card with ``configs`` and ``dataset_info`` of the built configs, in the
    order of ``configs.json``. A note below the title says which configs are missing, and that a
    copy must not be uploaded. If the benchmark's default config was not built, the first one that
    was built is the default. A copy that contains only this project's data has this project's
    license.

    Args:
        table: the benchmark.
        infos: for each built config, its ``datasets.DatasetInfo`` with features, splits and sizes.
        restriction: why the repository must not be uploaded. None if it may be.
    """
    card = DatasetCard((folder_of(table.name) / "README.md").read_text(encoding="utf-8"))
    default = table.default if table.default in infos else next(iter(infos), None)

    # Write the metadata of the built configs, by which the Hub and datasets find files and types.
    card.data["configs"], card.data["dataset_info"] = [], []
    for name, info in infos.items():
        data_files = []
        for split in info.splits:
            data_files.append({"split": split, "path": f"{name}/{split}-*.parquet"})
        entry: dict[str, Any] = {"config_name": name, "data_files": data_files}
        if name == default:
            entry["default"] = True
        card.data["configs"].append(entry)
        data = DatasetCardData()
        DatasetInfosDict({name: info}).to_dataset_card_data(data)
        dataset_info = dict(data["dataset_info"])
        # The stock load_dataset reads these from a card, too, though datasets does not write them.
        for key in ABOUT:
            if value := getattr(info, key):
                dataset_info[key] = value
        descriptions = field_descriptions(table, name)
        dataset_info["features"] = _described(dataset_info["features"], descriptions)
        card.data["dataset_info"].append(dataset_info)
    # Configs without upstream files, such as samples, were written for qabench if the benchmark is part
    # of this package.
    has_upstream_files = any(table.configs[name].files for name in infos)
    if table.name not in custom_folders() and not has_upstream_files:
        card.data["license"] = SAMPLE_LICENSE
        for key in ("license_name", "license_link"):
            card.data.pop(key, None)

    # Say below the title how this copy differs from the benchmark.
    notes = []
    if restriction:
        notes.append(f"> **Do not upload this copy.** {restriction}")
    missing = [name for name in table.configs if name not in infos]
    if missing:
        present = ", ".join(f"`{name}`" for name in infos)
        absent = ", ".join(f"`{name}`" for name in missing)
        notes.append(
            f"> **A part of the benchmark.** This copy contains {present}. It does not contain {absent}. Its default "
            f"config is `{default}`."
        )
    body = _with_configs(card.text, infos, default)
    if notes:
        title, _, rest = body.lstrip("\n").partition("\n")
        body = "\n".join(["", title, "", "\n>\n".join(notes), rest])
    return f"---\n{card.data.to_yaml()}\n---\n{body}"


def _described(
    features: Sequence[dict[str, Any]],
    descriptions: Mapping[str, FieldDescription],
    parent: str = "",
) -> list[dict[str, Any]]:
    """Return the features of a card with the descriptions of the fields.

    ``datasets`` has no descriptions of its own. It ignores a description in the entry of a value or
    a struct, but not in that of a list, so the description of a list is put into its items' entry.
    """
    described = []
    for feature in features:
        entry = dict(feature)
        path = f"{parent}{entry['name']}"
        items = entry
        # The inside of a list is the name of a type, the fields of a struct, or another list.
        while "list" in items:
            inner = items["list"]
            if isinstance(inner, str):
                inner = {"dtype": inner}
            elif isinstance(inner, list):
                inner = {"struct": inner}
            items["list"] = dict(inner)
            items = items["list"]
        if "struct" in items:
            items["struct"] = _described(items["struct"], descriptions, f"{path}.")
        if path in descriptions:
            items["description"] = str(descriptions[path])
        described.append(entry)
    return described


def _with_configs(text: str, built: Container[str], default: str | None) -> str:
    """Return a card's text with only the built configs in its table of configs."""
    before, title, rest = text.partition("### Configs\n")
    table, heading, after = rest.partition("\n#")
    lines = []
    for line in table.split("\n"):
        row = CONFIG_ROW.match(line)
        if row is None:
            lines.append(line)
        elif row[1] in built:
            marker = " (default)" if row[1] == default else ""
            lines.append(f"| `{row[1]}`{marker} |{line[row.end() :]}")
    return before + title + "\n".join(lines) + heading + after


def eval_tasks(table: DatasetTable, built: Container[str], framework: str) -> str | None:
    """Return the text of the dataset's ``eval.yaml``, or None if no leaderboard can be shown.

    Tasks of configs that were not built are left out. The file for Inspect AI can be run
    (``inspect eval hf/OWNER/NAME``): its scorers are a fixed list, so a benchmark that none of them
    can score has no such file.
    """
    content = eval_file(table.name, framework)
    if content is None:
        return None
    content["tasks"] = [task for task in content["tasks"] if task["config"] in built]
    if not content["tasks"]:
        return None
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def in_namespace(text: str, namespace: str) -> str:
    """Replace the owner of this project's Hub names, such as qabench/fanoutqa."""
    names = "|".join(map(re.escape, {*benchmark_names(), *metric_names()}))
    # Paths and URLs are not changed, because qabench/ means something else there.
    return re.sub(rf"(?<![\w./-]){NAMESPACE}/(?=(?:{names})\b)", lambda _: f"{namespace}/", text)
