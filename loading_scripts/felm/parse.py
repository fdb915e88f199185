"""Parse rows of FELM's file into rows of the dataset.

This module does not import ``datasets``, which is slow. The source writes missing values in several
ways: NaN instead of a response, and an empty string or an empty list instead of a list. The dataset
has None instead of NaN, and an empty list instead of an empty string. Nothing is lost, because the
rest of the row tells what the source has. ``parse_row`` rejects a row that breaks one of these
rules:

- ``response`` is NaN if there is none, and never null.
- ``type`` and ``ref`` are empty strings in the domain ``reasoning``, and lists in all others.
- ``ref_contents`` is an empty string if the row has no references, and otherwise a list, which may
  be empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, SourceRow, read_json_lines
from qabench.errors import DataError

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
ERROR_TYPES = (None, "", "knowledge_error", "reasoning_error", "irrelevant_with_qst", "fooled")
# Rows of this domain have "" for ``type`` and ``ref``.
DOMAIN_WITHOUT_LISTS = "reasoning"


def read_rows(path: Path, config: str) -> Iterator[Json]:
    """Return the rows of a config as rows of the dataset, in the order of the file.

    A config with the name of a domain has only the rows of this domain, and any other config has
    all rows. Rows of other domains are checked, too.

    Raises:
        DataError: see ``parse_row``.
    """
    rows = map(parse_row, read_json_lines(path))
    return (row for row in rows if config not in DOMAINS or row["domain"] == config)


def parse_row(row: SourceRow) -> Json:
    """Return a response with its annotation: a row of ``eval/all.jsonl``.

    ``id`` equals ``index``. The other fields have the source's names. ``response`` is a string or
    None. ``segmented_response``, ``labels`` (true = factual) and ``comment`` are lists of the same
    length. ``type`` is a list of that length or empty. ``ref`` and ``ref_contents`` are lists whose
    lengths may differ. Raises a DataError that names file, line and field.
    """
    values = row.read(FIELDS)
    n = len(values["segmented_response"])
    for key in ("labels", "comment", "type"):
        # Only ``type`` may be empty, as it is for math.
        is_empty_type = key == "type" and not values[key]
        if len(values[key]) != n and not is_empty_type:
            raise DataError(
                f"{row.where}, field {key!r}: expected one entry for each of the {n} segments, got {len(values[key])}"
            )
    return {"id": values["index"]} | values


def _domain(row: SourceRow, key: str) -> str:
    return row.one_of(key, DOMAINS)


def _response(row: SourceRow, key: str) -> str | None:
    response = row.get(key, str, float)
    if isinstance(response, str):
        return response
    if not math.isnan(response):
        raise DataError(f"{row.where}, field {key!r}: expected a string or NaN, got {response!r}")
    return None


def _types(row: SourceRow, key: str) -> list[str | None]:
    if row.fields["domain"] == DOMAIN_WITHOUT_LISTS:
        return _no_list(row, key)
    types = row.get(key, list)
    for i, name in enumerate(types):
        # A list or an object cannot be compared with the allowed values.
        if not isinstance(name, str | None) or name not in ERROR_TYPES:
            names = ["null" if kind is None else repr(kind) for kind in ERROR_TYPES]
            allowed = ", ".join(names)
            raise DataError(
                f"{row.where}, field {key!r}[{i}]: expected one of {allowed}, got {name!r:.60}"
            )
    return list(types)


def _references(row: SourceRow, key: str) -> list[str]:
    if row.fields["domain"] == DOMAIN_WITHOUT_LISTS:
        return _no_list(row, key)
    return row.list_of(key)


def _contents(row: SourceRow, key: str) -> list[str]:
    if row.fields["ref"]:
        return row.list_of(key)
    return _no_list(row, key)


def _no_list(row: SourceRow, key: str) -> list[Any]:
    """Return an empty list for the empty string that the source has in the field ``key``."""
    row.one_of(key, [""])
    return []


# Fields are read in this order. ``_types`` and ``_references`` look at the domain, and ``_contents``
# looks at ``ref``, so these two must have been read before.
FIELDS = {
    "index": str,
    "domain": _domain,
    "source": str,
    "prompt": str,
    "response": _response,
    "segmented_response": [str],
    "labels": [bool],
    "comment": [str],
    "type": _types,
    "ref": _references,
    "ref_contents": _contents,
}
