"""Descriptions of fields: complete, the same vocabularies as the parsers', and true of all rows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from datasets import List
from huggingface_hub import metadata_load

import qabench
from qabench.errors import InputError, SourceError
from qabench.hub.build import build
from qabench.loading_scripts import DatasetTable, benchmark_names, dataset_table
from qabench.loading_scripts.expertqa.parse import LABELS, OPTIONAL_KEYS
from qabench.loading_scripts.fastbook.parse import CELL_TYPES
from qabench.loading_scripts.felm.parse import DOMAINS, ERROR_TYPES
from qabench.loading_scripts.fields import FieldDescription, field_descriptions
from qabench.loading_scripts.load import builder


def paths(features: Any, parent: str = "") -> Iterator[str]:
    for name, feature in features.items():
        yield f"{parent}{name}"
        if isinstance(feature, List):
            feature = feature.feature
        if isinstance(feature, dict):
            yield from paths(feature, f"{parent}{name}.")


def values(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield the values of a field in a row. A missing struct or list has none."""
    if isinstance(value, list):
        for part in value:
            yield from values(part, path)
    elif not path:
        yield value
    elif value is not None:
        yield from values(value[path[0]], path[1:])


@pytest.mark.parametrize("name", benchmark_names())
def test_every_field_is_described(name: str) -> None:
    for config in dataset_table(name).configs:
        descriptions = field_descriptions(dataset_table(name), config)
        assert list(descriptions) == list(paths(builder(name, config).info.features)), config


def test_vocabularies_are_those_of_the_parsers() -> None:
    expertqa = field_descriptions(dataset_table("expertqa"), "main")
    for key, labels in LABELS.items():
        parent = "answers" if key == "usefulness" else "answers.claims"
        assert expertqa[f"{parent}.{key}"].values == labels
    assert expertqa["answers.claims.optional_fields"].values == OPTIONAL_KEYS
    felm = field_descriptions(dataset_table("felm"), "all")
    assert felm["domain"].values == DOMAINS and felm["type"].values == ERROR_TYPES
    assert field_descriptions(dataset_table("fastbook"), "corpus")["cells.cell_type"].values == CELL_TYPES


def count_checked(name: str) -> int:
    """Compare the rows of all configs whose data is here with the vocabularies of their fields."""
    counted = 0
    for config in dataset_table(name).configs:
        descriptions = field_descriptions(dataset_table(name), config)
        vocabularies = {path: about.values for path, about in descriptions.items() if about.values is not None}
        for split in builder(name, config).split_names():
            try:
                rows = list(qabench.load_dataset(name, config, split=split))
            except SourceError:
                continue
            for path, allowed in vocabularies.items():
                for row in rows:
                    for value in values(row, path.split(".")):
                        # a field that may be null is so in labels before annotation
                        assert value in allowed or value is None, (config, path, value)
                        counted += 1
    return counted


@pytest.mark.parametrize("name", ["expertqa", "fastbook", "felm"])
def test_no_shipped_row_has_another_value(name: str) -> None:
    assert count_checked(name) > 40


@pytest.mark.parametrize(
    ("name", "least"), [("expertqa", 15_000), ("fanoutqa", 150), ("fastbook", 1_000), ("felm", 7_000)]
)
def test_no_real_row_has_another_value(name: str, least: int, mirror: Path, compared: Callable[[str], None]) -> None:
    counted = count_checked(name)
    compared(f"{counted} values of vocabularies of {name}")
    assert counted >= least


def test_a_description_is_a_sentence_for_people() -> None:
    assert str(FieldDescription("the id")) == "the id"
    assert str(FieldDescription("the type", (None, "", "a b"))) == 'the type. One of: null, "", "a b"'
    assert str(FieldDescription("the config", ("all",))) == 'the config. Always "all"'
    assert str(FieldDescription("correct?", ("Yes", "No"))) == 'correct? One of: "Yes", "No"'


@pytest.mark.parametrize("content", [[], {"c": []}, {"c": {"a": 1}}, {"c": {"a": {"text": "x"}}}, {"c": {"a": None}}])
def test_a_wrong_file_is_named(content: Any, tmp_path: Path) -> None:
    table = DatasetTable("x", tmp_path, "X", "c", {})
    assert field_descriptions(table, "c") == {}
    (tmp_path / "fields.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"fields.json.*(must be a JSON object|allowed: a string)"):
        field_descriptions(table, "c")


def test_the_card_of_a_copy_has_the_descriptions(tmp_path: Path) -> None:
    """``datasets`` has none: the features that it reads from the card are the same without them."""
    (built,) = build(tmp_path, ["expertqa"], ["sample"])
    info = (metadata_load(built.path / "README.md") or {})["dataset_info"]
    (info,) = info if isinstance(info, list) else [info]
    by_name = {feature["name"]: feature for feature in info["features"]}
    described = field_descriptions(dataset_table("expertqa"), "sample")
    (claims,) = (part for part in by_name["answers"]["list"]["struct"] if part["name"] == "claims")
    (support,) = (part for part in claims["list"]["struct"] if part["name"] == "support")
    assert support == {"name": "support", "dtype": "string", "description": str(described["answers.claims.support"])}
    assert by_name["answers"]["list"]["description"] == str(described["answers"])
    stock = datasets.load_dataset_builder(str(built.path), "sample").info.features
    assert stock == builder("expertqa", "sample").info.features
    assert yaml.safe_dump(info).count("description:") == len(described) + 1  # and that of the config
