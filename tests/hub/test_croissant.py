"""The ``croissant.json`` of a built repository: valid, complete, and about the files beside it."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
from datasets import Features, LargeList, List, Value

from qabench.hub.build import build
from qabench.hub.croissant import _fields, croissant
from qabench.loading_scripts import benchmark_names, dataset_table
from qabench.loading_scripts.fields import field_descriptions

REQUIRED = {
    "sc:Dataset": {"@context", "conformsTo", "name", "description", "license", "url", "creator", "distribution"},
    "cr:FileObject": {"@id", "name", "contentUrl", "encodingFormat", "sha256"},
    "cr:FileSet": {"@id", "encodingFormat", "includes"},
    "cr:RecordSet": {"@id", "name", "field"},
    "cr:Field": {"@id"},
}  # of the specification 1.1
SCHEMA_ORG = {
    "@context", "@type", "@id", "name", "alternateName", "description", "url", "version", "license", "creator",
    "keywords", "sameAs", "distribution", "contentUrl", "contentSize", "encodingFormat", "sha256",
}  # fmt: skip
SAMPLES = {"expertqa": ["lfqa_random", "sample"], "fanoutqa": ["dev", "sample"]}


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all typed objects of a document."""
    if isinstance(value, list):
        for part in value:
            yield from nodes(part)
    elif isinstance(value, dict):
        if "@type" in value:
            yield value
        for key, part in value.items():
            if key not in ("@context", "data"):
                yield from nodes(part)


def references(value: Any) -> Iterator[str]:
    """Yield the ids that a document refers to."""
    if isinstance(value, list):
        for part in value:
            yield from references(part)
    elif isinstance(value, dict):
        if set(value) == {"@id"}:
            yield value["@id"]
        for key, part in value.items():
            if key not in ("@context", "data"):
                yield from references(part)


def leaves(features: Any, path: str) -> Iterator[str]:
    """Yield the ids of the fields that have values."""
    for name, feature in features.items():
        while isinstance(feature, List | LargeList):
            feature = feature.feature
        if isinstance(feature, dict):
            yield from leaves(feature, f"{path}/{name}")
        else:
            yield f"{path}/{name}"


def check(folder: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.1" and document["@type"] == "sc:Dataset"
    ids = []
    for node in nodes(document):
        assert REQUIRED.get(node["@type"], set()) <= node.keys(), node
        assert node.keys() <= {*document["@context"], *SCHEMA_ORG}, node.keys() - SCHEMA_ORG
        if node["@type"].startswith("cr:"):
            ids.append(node["@id"])
    assert len(set(ids)) == len(ids) and set(references(document)) <= set(ids)
    paths = []
    for file in document["distribution"]:
        if file["@type"] == "cr:FileObject":
            content = (folder / file["contentUrl"]).read_bytes()
            assert file["sha256"] == hashlib.sha256(content).hexdigest()
            assert file["contentSize"] == f"{len(content)} B"
            paths.append(file["contentUrl"])
        else:
            assert [path for path in paths if Path(path).match(file["includes"])]
    assert sorted(paths) == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))
    by_id = {record_set["@id"]: record_set for record_set in document["recordSet"]}
    for path in paths:
        config, _, file_name = path.partition("/")
        features = Features.from_arrow_schema(pq.read_schema(folder / path))
        fields = [node for node in nodes(by_id[config]["field"]) if "dataType" in node]
        assert [field["@id"] for field in fields] == [f"{config}/split", *leaves(features, config)]
        descriptions = field_descriptions(dataset_table(name), config)
        for field in nodes(by_id[config]["field"]):
            if field["@id"] != f"{config}/split":
                key = field["@id"].removeprefix(f"{config}/").replace("/", ".")
                assert field["description"] == str(descriptions[key])
                if "source" in field:
                    steps = [step["jsonPath"] for step in field["source"].get("transform", ())]
                    assert ".".join([field["source"]["extract"]["column"], *steps]) == key
        split = re.match(fields[0]["source"]["transform"]["regex"], path)
        assert split and file_name.startswith(f"{split[1]}-")
        assert {f"{config}_splits/split_name": split[1]} in by_id[f"{config}_splits"]["data"]
    return document


@pytest.mark.parametrize("name", benchmark_names())
def test_a_copy_is_described(name: str, tmp_path: Path) -> None:
    shipped = [config.name for config in dataset_table(name).configs.values() if not config.files]
    build(tmp_path, [name], shipped, namespace="someone")
    document = check(tmp_path / name, name)
    assert document["url"] == f"https://huggingface.co/datasets/someone/{name}"
    assert document["license"] == "https://choosealicense.com/licenses/apache-2.0/"  # the samples are our own
    assert document["citeAs"] == dataset_table(name).citation.strip() and document["description"].endswith(".")


def test_real_data_are_described(mirror: Path, tmp_path: Path) -> None:
    for name, configs in SAMPLES.items():
        build(tmp_path, [name], configs)
        document = check(tmp_path / name, name)
        assert document["license"].endswith(("/mit/", "/cc-by-sa-4.0/"))
    build(tmp_path, ["fastbook"], ["keywords"])
    document = check(tmp_path / "fastbook", "fastbook")
    assert document["license"] == "https://github.com/fastai/fastbook#readme"
    assert "Do not upload this copy" in document["description"]


def test_types_that_croissant_lacks_are_left_out() -> None:
    class Other:
        pass

    features = {
        "a": List(List(Value("int64"), length=3)),
        "b": Other(),
        "c": {"d": Other()},
        "e": LargeList({"f": Value("float32"), "g": Other()}),
    }
    a, e = _fields("c", features, {})
    assert (a["isArray"], a["arrayShape"], a["dataType"]) == (True, "-1,3", "cr:Int64")
    (part,) = e["subField"]
    assert part["@id"] == "c/e/f" and part["source"]["transform"] == [{"jsonPath": "f"}]
    assert e["arrayShape"] == "-1" and "dataType" not in e


def test_a_card_without_a_license_or_citation(tmp_path: Path) -> None:
    build(tmp_path, ["felm"], ["sample"])
    info = datasets.load_dataset_builder(str(tmp_path / "felm"), "sample").info
    info.citation = info.homepage = ""
    document = croissant(dataset_table("felm"), {"sample": info}, {}, {}, None, "qabench")
    assert not {"license", "citeAs", "sameAs"} & document.keys() and document["alternateName"][1] == "FELM"
    # No page describes these, and several licenses have no page of their own.
    for license in ("other", "unknown", ["mit", "apache-2.0"]):
        card = {"license": license}
        assert "license" not in croissant(dataset_table("felm"), {"sample": info}, card, {}, None, "qabench")
