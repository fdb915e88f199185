"""A dataset repository's ``croissant.json``, like the one that the Hub makes for a dataset.

Croissant (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html) describes files,
columns and splits in JSON-LD. The Hub writes one record set per config, with the same ids as here.
The Hub's description refers to files on the Hub. This one has relative paths with digests, so that
a copy can be read without the Hub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from datasets import Features, LargeList, List, Value

from qabench.data.rows import Json
from qabench.hub.cards import NO_LICENSE
from qabench.loading_scripts import DatasetTable
from qabench.loading_scripts.fields import FieldDescription, field_descriptions

FILE = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
# The terms of Croissant's own vocabulary. All other terms come from schema.org.
_TERMS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet format "
    "includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)
CONTEXT: Json = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS.split()},
}
TYPES = {
    "string": "sc:Text",
    "large_string": "sc:Text",
    "bool": "sc:Boolean",
    "int8": "cr:Int8",
    "int16": "cr:Int16",
    "int32": "cr:Int32",
    "int64": "cr:Int64",
    "float16": "cr:Float16",
    "float32": "cr:Float32",
    "float64": "cr:Float64",
}
PARQUET = "application/x-parquet"
HUB = "https://huggingface.co"
LICENSES = "https://choosealicense.com/licenses"


def croissant(
    table: DatasetTable,
    infos: Mapping[str, Any],
    card: Mapping[str, Any],
    digests: Mapping[str, Json],
    restriction: str | None,
    namespace: str,
) -> Json:
    """Return the Croissant description of a repository as JSON-LD.

    Args:
        table: the benchmark.
        infos: for each config, its ``datasets.DatasetInfo``.
        card: the metadata of the repository's card.
        digests: "sha256" and "size" of the repository's files by relative path.
        restriction: why the repository must not be uploaded. None if it may be.
        namespace: the owner in the Hub name.
    """
    name = f"{namespace}/{table.name}"
    info = next(iter(infos.values()))
    description = info.description
    if restriction:
        description += f" Do not upload this copy: {restriction}"
    content: Json = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": table.name,
        "alternateName": [name, card.get("pretty_name") or table.title],
        "description": description,
        "version": str(info.version),
        "url": f"{HUB}/datasets/{name}",
        "creator": {"@type": "Organization", "name": namespace, "url": f"{HUB}/{namespace}"},
        "keywords": [*card.get("task_categories", ()), *card.get("tags", ())],
    }
    # A license that the Hub knows has a page. For another license, the card may have a link.
    license = card.get("license")
    if link := card.get("license_link"):
        content["license"] = link
    elif isinstance(license, str) and license not in NO_LICENSE:
        content["license"] = f"{LICENSES}/{license}/"
    if info.homepage:
        content["sameAs"] = info.homepage
    if info.citation:
        content["citeAs"] = info.citation.strip()
    distribution: list[Json] = []
    record_sets: list[Json] = []
    for config, config_info in infos.items():
        distribution += _files(config, digests)
        splits = list(config_info.splits)
        record_sets += [
            _split_names(config, splits),
            {
                "@type": "cr:RecordSet",
                "@id": config,
                "name": config,
                "description": f"{table.configs[config].description} ({_counts(config_info)})",
                "field": [
                    _split_field(config, splits),
                    *_fields(config, config_info.features, field_descriptions(table, config)),
                ],
            },
        ]
    return content | {"distribution": distribution, "recordSet": record_sets}


def _counts(info: Any) -> str:
    counts = []
    for name, split in info.splits.items():
        counts.append(f"{split.num_examples:,} rows in {name}")
    return ", ".join(counts)


def _file_set(config: str) -> str:
    return f"parquet-files-for-config-{config}"


def _files(config: str, digests: Mapping[str, Json]) -> list[Json]:
    """Return a config's Parquet files, and the file set from which its records are read."""
    files: list[Json] = []
    for path, digest in digests.items():
        if path.startswith(f"{config}/") and path.endswith(".parquet"):
            files.append(
                {
                    "@type": "cr:FileObject",
                    "@id": path,
                    "name": path.rpartition("/")[2],
                    "contentUrl": path,
                    "contentSize": f"{digest['size']} B",
                    "encodingFormat": PARQUET,
                    "sha256": digest["sha256"],
                }
            )
    file_set = {
        "@type": "cr:FileSet",
        "@id": _file_set(config),
        "name": _file_set(config),
        "description": f"The Parquet files of the config {config}.",
        "encodingFormat": PARQUET,
        "includes": f"{config}/*.parquet",
    }
    return [*files, file_set]


def _split_names(config: str, splits: Sequence[str]) -> Json:
    """Return the record set that lists the splits of a config."""
    field = f"{config}_splits/split_name"
    return {
        "@type": "cr:RecordSet",
        "@id": f"{config}_splits",
        "name": f"{config}_splits",
        "description": f"The splits of the config {config}.",
        "dataType": "cr:Split",
        "key": {"@id": field},
        "field": [{"@type": "cr:Field", "@id": field, "dataType": "sc:Text"}],
        "data": [{field: split} for split in splits],
    }


def _split_field(config: str, splits: Sequence[str]) -> Json:
    """Return the field with a record's split, which is read from its file's name."""
    names = "|".join(map(re.escape, splits))
    return {
        "@type": "cr:Field",
        "@id": f"{config}/split",
        "description": "the split of the record",
        "dataType": "sc:Text",
        "source": {
            "fileSet": {"@id": _file_set(config)},
            "extract": {"fileProperty": "fullpath"},
            "transform": {"regex": f"{re.escape(config)}/({names})-.+\\.parquet$"},
        },
        "references": {"field": {"@id": f"{config}_splits/split_name"}},
    }


def _fields(
    config: str, features: Features, descriptions: Mapping[str, FieldDescription]
) -> list[Json]:
    """Return the fields of the columns. Columns of a type that Croissant lacks are left out."""
    fields = []
    for column, feature in features.items():
        source = {"fileSet": {"@id": _file_set(config)}, "extract": {"column": column}}
        if field := _field(f"{config}/{column}", [column], feature, source, descriptions):
            fields.append(field)
    return fields


def _field(
    id: str,
    path: Sequence[str],
    feature: Any,
    source: Json,
    descriptions: Mapping[str, FieldDescription],
) -> Json | None:
    field: Json = {"@type": "cr:Field", "@id": id}
    if description := descriptions.get(".".join(path)):
        field["description"] = str(description)
    shape = []
    while isinstance(feature, List | LargeList):
        # Croissant writes -1 for a dimension of any length.
        length = getattr(feature, "length", -1)
        shape.append(str(length if length and length > 0 else -1))
        feature = feature.feature
    if shape:
        field |= {"isArray": True, "arrayShape": ",".join(shape)}
    if isinstance(feature, Value) and feature.dtype in TYPES:
        return field | {"dataType": TYPES[feature.dtype], "source": source}
    if not isinstance(feature, dict):
        return None
    # The fields of a struct are read from its column by their paths.
    parts = []
    for name, part in feature.items():
        steps = [*source.get("transform", ()), {"jsonPath": name}]
        own_source = source | {"transform": steps}
        if own := _field(f"{id}/{name}", [*path, name], part, own_source, descriptions):
            parts.append(own)
    return field | {"subField": parts} if parts else None
